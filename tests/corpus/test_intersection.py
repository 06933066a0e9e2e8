"""Two attributes at once: which images are in which group, and what is refused."""

from collections.abc import Mapping

import numpy as np
import pytest

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.regrouping import Intersection, intersect
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.run.overrides import expand_intersections
from bias_pipeline.text.mentions import attribute_mentions

GENDER = Attribute("gender", ("male", "female"), {"male": ["man"], "female": ["woman"]}, {})
RACE = Attribute("race", ("light", "dark"), {"light": ["pale"], "dark": ["afro"]}, {}, ["asian"])


def cross(min_images: int = 1) -> Intersection:
    parts = {"first": GENDER, "second": RACE}
    return Intersection("gender_race", (), {}, {}, parts=parts, min_images=min_images)


def corpus(attribute: Attribute, labels: Mapping[str, str]) -> Corpus:
    """Images by id with their label; an empty label is a stratum, and "?" is nobody's to tell."""
    labelled = LabelMap("x", {g: g for g in attribute.groups}, ("", "?"), ("?",))
    groups = (tuple(attribute.groups), labelled)
    records = [
        Record(i, f"caption {i}", (f"one {i}", f"two {i}"), {attribute.name: label},
               frozenset({f"object {i}"}))
        for i, label in labels.items()
    ]  # fmt: skip
    return Corpus.build(records, dataset="toy", captioner="toy", groups={attribute.name: groups})


SEXES = corpus(
    GENDER, {"1": "male", "2": "male", "3": "female", "4": "female", "5": "", "7": "male"}
)
SKINS = corpus(
    RACE, {"7": "", "4": "dark", "3": "light", "2": "dark", "1": "light", "6": "dark", "5": "dark"}
)


def corpus_of_both() -> Corpus:
    return intersect([SEXES, SKINS], cross())


def test_an_image_is_in_the_group_of_both_its_labels():
    labels = {record.id: record.labels.get("gender_race") for record in corpus_of_both()}
    groups = ("male-light", "male-dark", "female-light", "female-dark")
    assert corpus_of_both().groupings["gender_race"].names == groups
    assert labels == dict(zip("1234", groups, strict=True)) | {"5": None, "7": None}


def test_images_without_a_group_of_both_are_counted_and_those_labelled_for_one_left_out():
    assert corpus_of_both().groupings["gender_race"].strata == {"none-dark": 1, "male-none": 1}
    note = "1 image is labelled for only one attribute of gender_race: left out"
    assert corpus_of_both().notes == (note,)


def test_images_keep_their_captions_and_objects():
    assert all(
        record.model == f"caption {record.id}"
        and record.human == (f"one {record.id}", f"two {record.id}")
        and record.objects == {f"object {record.id}"}
        for record in corpus_of_both()
    )


def test_the_order_of_the_two_does_not_change_who_is_together():
    turned = Intersection("x", (), {}, {}, parts={"first": RACE, "second": GENDER}, min_images=1)
    names = {record.id: record.labels.get("x") for record in intersect([SKINS, SEXES], turned)}
    assert names["2"] == "dark-male"


def test_both_attributes_words_are_masked():
    assert cross().all_words == ("afro", "asian", "man", "pale", "woman")


@pytest.mark.parametrize(
    ("skins", "least", "message"),
    [
        (SKINS, 2, r"too few images of male-light 1.*attribute\.min_images"),
        (corpus(RACE, {"100": "light", "101": "dark"}), 1, "no image has labels of both"),
    ],
    ids=["too small a group", "no image in common"],
)
def test_attributes_that_cannot_be_crossed_are_refused(skins, least, message):
    with pytest.raises(DataError, match=message):
        intersect([SEXES, skins], cross(min_images=least))


def test_one_attribute_twice_is_refused():
    with pytest.raises(UsageError, match="name two attributes"):
        Intersection("x", (), {}, {}, parts={"first": RACE, "second": RACE})


def test_a_bound_below_one_is_refused():
    with pytest.raises(UsageError, match="min_images=0"):
        cross(min_images=0)


@pytest.mark.parametrize("word", ["attribute=[gender]", "attribute=[gender,race,age]"])
def test_other_than_two_attributes_are_refused(word):
    with pytest.raises(UsageError, match="name two attributes"):
        expand_intersections([word])


@pytest.mark.parametrize("word", ["attribute=gender", "attribute=gender,race", "seeds=[0,12]"])
def test_other_words_stay_as_they_are(word):
    assert expand_intersections([word]) == [word]


def test_rows_of_the_captioners_file_keep_their_order():
    assert sorted(corpus_of_both().source_order.tolist()) == list(range(len(corpus_of_both())))
    assert np.array_equal(corpus_of_both().model.image_rows, np.arange(len(corpus_of_both())))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a pale man", ["male-light"]),
        ("a man", []),
        ("an afro woman and a man", ["male-dark", "female-dark"]),
    ],
)
def test_a_caption_names_a_group_when_it_names_one_of_each(text, named):
    names = cross().groups
    result = attribute_mentions(Captions.from_texts([text]), cross(), names).toarray()[0]
    assert [name for name, flag in zip(names, result, strict=True) if flag] == named


@pytest.mark.parametrize(
    ("sex", "skin", "unsure"),
    [
        ("?", "dark", True),
        ("male", "?", True),
        ("?", "?", True),
        ("male", "dark", False),
        ("", "?", False),
        ("?", "", False),
    ],
)
def test_nobody_could_tell_both_where_nobody_could_tell_one(sex, skin, unsure):
    sexes = {"1": sex, "2": "male", "3": "male", "4": "female", "5": "female"}
    skins = {"1": skin, "2": "light", "3": "dark", "4": "light", "5": "dark"}
    result = intersect([corpus(GENDER, sexes), corpus(RACE, skins)], cross())
    assert result.groupings["gender_race"].unsure.tolist() == [unsure, *[False] * 4]
