"""Captions told of another group."""

import pytest

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.run import compose
from bias_pipeline.text.counterfactual_captions import captions_naming, counterparts

TERMS = {"male": "man", "female": "woman"}


def attribute(name: str) -> Attribute:
    return compose.cell([f"attribute={name}"]).build("attribute")


@pytest.mark.parametrize(
    ("text", "group", "expected"),
    [
        ("A man and his dog.", "female", "a woman and her dog"),
        ("two boys, one waiter", "female", "two girls one waitress"),
        ("the man's hat", "female", "the woman 's hat"),
        ("a person on a bench", "female", "a person on a bench"),
        ("a woman", "female", "a woman"),
        ("a man and a woman", "female", "a woman and a woman"),
        ("a lady with her dog", "male", "a gentleman with his dog"),  # his is listed oftener
        # without counterparts the first listed word stands for all
        ("a white man on a white horse", "dark", "a black man on a white horse"),
    ],
)
def test_every_word_of_the_other_group_gives_way(text, group, expected):
    name = "race" if group == "dark" else "gender"
    assert (
        captions_naming(Captions.from_texts([text]), attribute(name), group, TERMS).text(0)
        == expected
    )


def test_who_is_told_back_is_the_same_again():
    texts = ["a man rides his horse", "two women on a bench", "a boy and his father"]
    captions = Captions.from_texts(texts)
    there = captions_naming(captions, attribute("gender"), "female", TERMS)
    back = captions_naming(there, attribute("gender"), "male", TERMS)
    assert [back.text(k) for k in (0, 2)] == [texts[0], texts[2]]


def test_lists_that_are_not_read_side_by_side_have_no_counterparts():
    assert counterparts(attribute("race"), "dark") == {}


def test_images_stay_theirs():
    captions = Captions.from_texts(["a man", "a boy", "a man"], [0, 0, 4])
    assert captions_naming(captions, attribute("gender"), "female", {}).image_rows.tolist() == [
        0,
        0,
        4,
    ]


def test_an_intersection_is_refused():
    crossed = attribute("[gender,race]")
    with pytest.raises(NotApplicableError, match="is an intersection"):
        captions_naming(Captions.from_texts(["a man"]), crossed, crossed.groups[0], {})


def test_a_group_that_no_word_names_needs_a_term():
    race = Attribute("race", ("light", "unsure"), {"light": ["white"]}, {})
    captions = Captions.from_texts(["a white crowd"])
    assert captions_naming(captions, race, "unsure", {"unsure": "some"}).text(0) == "a some crowd"
    with pytest.raises(NotApplicableError, match="no word for group 'unsure'"):
        captions_naming(captions, race, "unsure", {})
