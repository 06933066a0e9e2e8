"""Groups that no image belongs to, and numbers that may be above 1."""

import math

import pytest

import bias_pipeline as bp
from bias_pipeline.results.rows import Row

CAPTIONS = {
    1: "an amused crowd with a cake",
    2: "an amused crowd with a cake",
    3: "an amused crowd with a dog",
    4: "a crowd with a dog",
    5: "an afraid crowd with a dog",
    6: "an afraid crowd with a cake",
    7: "an amused crowd with a dog",
    8: "a crowd with a dog",
}
PEOPLE = {
    i: ["an afraid crowd with a dog", "the afraid crowd with a dog"]
    if i > 4
    else ["an amused crowd with a cake", "an amused crowd with a dog"]
    for i in CAPTIONS
}
EMOTIONS = {
    "amusement": "amused",
    "awe": "awed",
    "contentment": "content",
    "excitement": "excited",
    "anger": "angry",
    "disgust": "disgusted",
    "fear": "afraid",
    "sadness": "sad",
    "something_else": "bored",
}
# Words that name no emotion, one a group: the same in many images would be a stock sentence.
SILENT = ("tall", "small", "green", "old", "young", "wide", "thin", "bare", "dark")
LABELS = {i: "fear" if i > 4 else "amusement" for i in CAPTIONS}  # two of nine emotions


def values(metric: str, **settings: object) -> dict[str, float]:
    result = bp.score(
        metric, CAPTIONS, LABELS, PEOPLE, attribute="emotion", stats={"resamples": 20}, **settings
    )
    return {row.part: row.value for row in result.rows}


def test_a_gap_of_accuracy_is_one_of_the_groups_that_have_images():
    """Three of four amused and two of four afraid images are named rightly, one of four wrongly."""
    result = values("group_accuracy")
    assert result["score"] == 0.75 - 0.5
    assert math.isnan(result["group:awe"])
    assert result["human"] == 0


def test_the_divergence_is_one_of_the_groups_that_have_images():
    def entropy(*shares: float) -> float:
        return -sum(share * math.log2(share) for share in shares if share)

    mean = entropy(0.625, 0.125, 0.25)
    expected = mean - (entropy(0.75, 0, 0.25) + entropy(0.5, 0.25, 0.25)) / 2
    assert values("group_accuracy")["divergence"] == pytest.approx(expected)


def test_differential_fairness_is_one_of_the_groups_that_have_images():
    """Cakes: two of four against one of four; dogs: two against three. Of people's: 4, 2 and 0."""
    prior = 0.02
    result = values("differential_fairness", prior="share")
    cakes = math.log((0.5 + prior) / (0.25 + prior))
    assert result["object:cake:model"] == pytest.approx(cakes)
    assert result["model"] == pytest.approx(cakes)
    assert result["human"] == pytest.approx(math.log((1 + prior) / prior) / 2)
    assert result["score"] == pytest.approx(result["model"] - result["human"])


def test_a_gap_of_quality_is_one_of_the_groups_that_have_images():
    result = values("quality")
    assert result["gap"] == abs(result["group:amusement"] - result["group:fear"])
    assert result["gap:model"] == abs(result["group:amusement:model"] - result["group:fear:model"])


def test_of_many_groups_the_interval_of_a_gap_of_accuracy_pays_for_choosing_two():
    """Of nine equal groups 69 and 51 right captions in 100 are no evidence, for people neither."""
    rows = rows_of_nine([51, *[60] * 7, 69], 100, "group_accuracy")
    assert rows["score"].value == pytest.approx(0.18)
    assert rows["score"].ci_low == rows["human"].ci_low == 0


def test_of_many_groups_a_large_gap_of_accuracy_is_evidence():
    assert rows_of_nine([40, *[60] * 7, 80], 100, "group_accuracy")["score"].ci_low > 0


def test_of_many_groups_the_interval_of_a_gap_of_quality_pays_for_choosing_two():
    rows = rows_of_nine([14, *[20] * 7, 26], 40, "quality")
    assert rows["gap"].value > 0
    assert rows["gap"].ci_low == rows["gap:model"].ci_low == 0


def rows_of_nine(right: list[int], n: int, metric: str) -> dict[str, Row]:
    """How many of n captions name the group (or describe as annotators do), group by group.

    Two of three people write what the captioner writes.
    """
    captions, labels, people = [], [], []
    for (emotion, word), other, n_right in zip(EMOTIONS.items(), SILENT, right, strict=True):
        labels += [emotion] * n
        for i in range(n):
            first = word if i < n_right else other
            captions.append(f"a {first} tree in the rain")
            people.append([captions[-1], captions[-1], f"the {word} tree in the rain"])
    result = bp.score(
        metric,
        *(captions, labels, people),
        attribute="emotion",
        stats={"resamples": 300},
    )
    return {row.part: row for row in result.rows}


def test_a_rate_of_naming_may_be_above_one():
    """With fear captions name one dog, people's four, with amusement two each; one image has it."""
    objects = {i: ["dog"] if i == 3 else [] for i in CAPTIONS}
    result = values("cooccurrence", objects=objects)
    assert result["distance:amusement"] == pytest.approx(0, abs=1e-12)
    assert result["distance:fear"] == pytest.approx(3 / 1.0005)


def test_a_distance_rests_on_the_images_whose_objects_are_known():
    known = {i: ["dog"] for i in (1, 5)}
    result = bp.score(
        "cooccurrence",
        *(CAPTIONS, LABELS, PEOPLE, known),
        attribute="emotion",
        dataset={"strict": False},
        stats={"resamples": 20},
    )
    assert {row.part: row.n_images for row in result.rows}["distance:fear"] == 2


def test_changes_of_a_set_of_tasks_may_add_up_to_more_than_one():
    """Of the dogs a third is with awe and two thirds with fear; captions name awe alone."""
    captions = dict.fromkeys(range(9), "an awed crowd with a dog")
    labels = {i: "awe" if i < 3 else "fear" for i in captions}
    result = bp.score(
        "multi_directional",
        *(captions, labels),
        objects={i: ["dog"] for i in captions},
        attribute="emotion",
        stats={"resamples": 20},
    )
    assert {row.part: row.value for row in result.rows}["mals"] == pytest.approx(2 / 3 + 2 / 3)
