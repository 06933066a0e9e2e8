"""The sentences that text encoders are debiased by."""

from __future__ import annotations

import pytest

from bias_pipeline.config import compose
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.debias.sentences import held_out, sentences
from bias_pipeline.errors import NotApplicableError

GENDER = ("male", "female")


def attribute(name: str) -> Attribute:
    found: Attribute = compose.cell([f"attribute={name}"]).build("attribute")
    return found


def test_there_are_two_hundred_pairs_of_gender() -> None:
    assert len(set(sentences(attribute("gender"), GENDER))) >= 200


def test_a_pair_differs_in_the_term_alone() -> None:
    for one, other in sentences(attribute("gender"), GENDER):
        differ = set(one.split()) ^ set(other.split())
        assert 1 <= len(differ) <= 2, (one, other)


def test_the_order_of_groups_is_that_of_the_names() -> None:
    turned = sentences(attribute("gender"), GENDER[::-1])
    assert turned == [own[::-1] for own in sentences(attribute("gender"), GENDER)]


@pytest.mark.parametrize("name", ["race", "age", "emotion"])
def test_other_attributes_have_sentences_of_each_group(name: str) -> None:
    own = attribute(name)
    assert {len(each) for each in sentences(own, own.groups)} == {len(own.groups)}


def test_groups_without_words_are_refused_with_what_to_do() -> None:
    with pytest.raises(NotApplicableError, match=r"debias\.side=image"):
        sentences(Attribute("mood", ("low", "high"), {}, {}), ("low", "high"))


def test_no_sentence_that_is_held_out_was_fitted_to() -> None:
    own = attribute("gender")
    fitted = {text for pair in sentences(own, GENDER) for text in pair}
    assert not fitted & {text for pair in held_out(own, GENDER) for text in pair}


def test_groups_without_words_have_none_held_out() -> None:
    assert held_out(Attribute("mood", ("low", "high"), {}, {}), ("low", "high")) == []
