"""The sentences that text encoders are debiased by."""

import pytest

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.retrieval.debias.base import held_out, template_sentences
from bias_pipeline.run import compose

GENDER = ("male", "female")


def attribute(name: str) -> Attribute:
    built: Attribute = compose.cell([f"attribute={name}"]).build("attribute")
    return built


def test_two_hundred_pairs_of_gender_differ_in_the_term_alone_in_the_order_of_the_names():
    sentences = template_sentences(attribute("gender"), GENDER)
    assert len(set(sentences)) >= 200
    for one, other in sentences:
        differ = set(one.split()) ^ set(other.split())
        assert 1 <= len(differ) <= 2, (one, other)
    turned = template_sentences(attribute("gender"), GENDER[::-1])
    assert turned == [sentence[::-1] for sentence in sentences]


@pytest.mark.parametrize("name", ["race", "age", "emotion"])
def test_other_attributes_have_sentences_of_each_group(name):
    groups = attribute(name).groups
    sentences = template_sentences(attribute(name), groups)
    assert {len(sentence) for sentence in sentences} == {len(groups)}


def test_groups_without_words_are_refused_with_what_to_do_and_have_none_held_out():
    mood = Attribute("mood", ("low", "high"), {}, {})
    with pytest.raises(NotApplicableError, match=r"debias\.side=image"):
        template_sentences(mood, mood.groups)
    assert held_out(mood, mood.groups) == []


def test_no_sentence_that_is_held_out_was_fitted_to():
    gender = attribute("gender")
    fitted = {text for pair in template_sentences(gender, GENDER) for text in pair}
    assert not fitted & {text for pair in held_out(gender, GENDER) for text in pair}
