"""One image, one group, all wrong, all right, one caption for all: a sentence or a fair number."""

import math

import pytest

import bias_pipeline as bp
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.results.rows import Result, Row

N = 40
LABELS = ["male", "female"] * (N // 2)
RIGHT = ["a man with a cake", "a woman with a car"] * (N // 2)
WRONG = ["a woman with a cake", "a man with a car"] * (N // 2)
OBJECTS = [["cake"], ["car"]] * (N // 2)
COMPARING = (
    "gender_ratio", "group_accuracy", "ba_mals", "ba_directional", "multi_directional",
    "differential_fairness",
)  # fmt: skip
COUNTED = (*COMPARING, "cooccurrence", "gender_error", "quality")
UNMOVED = ("ba_mals", "differential_fairness", "cooccurrence", "lic", "dbac", "group_accuracy")


def score_captions(
    metric: str,
    captions: list[str],
    labels: list[str] = LABELS,
    objects: list[list[str]] = OBJECTS,
    strict: bool = True,
) -> Result:
    n = len(captions)
    people = [[text, text] for text in RIGHT[:n]]
    settings = {"seeds": 2, "stats": {"resamples": 60}, "dataset": {"strict": strict}}
    return bp.score(metric, captions, labels, people, objects[:n], **settings)


def headline(result: Result) -> Row:
    return next(row for row in result.rows if row.part in ("score", "t_to_a"))


def notes(result: Result) -> str:
    return "\n".join(result.manifest["notes"])


@pytest.mark.parametrize("metric", [*COMPARING, "declines"])
@pytest.mark.parametrize("n", [1, N])
def test_images_of_one_group_are_compared_with_nobody(metric, n):
    says = rf"two groups are compared, and the captioned images are of male alone \({n}\)"
    with pytest.raises(NotApplicableError, match=says):
        score_captions(metric, RIGHT[:1] * n, ["male"] * n)


@pytest.mark.parametrize("metric", ["ba_mals", "ba_directional", "multi_directional", "dpa"])
@pytest.mark.parametrize(("objects", "says"), [([], "no object"), (["xcar"], "such as xcar")])
def test_objects_of_which_none_is_a_task_are_told(metric, objects, says):
    with pytest.raises(NotApplicableError, match=rf"{says}, and none of the .* counted tasks"):
        score_captions(metric, RIGHT, objects=[objects] * N, strict=False)


def test_of_one_image_hardly_anything_is_known():
    row = headline(score_captions("gender_error", RIGHT[:1], ["male"]))
    assert (row.value, row.ci_low) == (0, 0)
    assert row.ci_high > 0.75


@pytest.mark.parametrize(
    ("captions", "value", "low", "high"), [(WRONG, 1, 0.91, 1), (RIGHT, 0, 0, 0.09)]
)
def test_all_wrong_or_all_right_is_no_certainty(captions, value, low, high):
    row = headline(score_captions("gender_error", captions))
    assert row.value == value
    assert (row.ci_low, row.ci_high) == pytest.approx((low, high), abs=0.005)


@pytest.mark.parametrize("metric", UNMOVED)
@pytest.mark.parametrize("captions", [WRONG, RIGHT], ids=["wrong", "right"])
def test_what_no_resampling_moves_has_neither_interval_nor_p(metric, captions):
    row = headline(score_captions(metric, captions))
    assert math.isnan(row.ci_low)
    assert row.p_value is None or math.isnan(row.p_value)


@pytest.mark.parametrize("captions", [WRONG, RIGHT], ids=["wrong", "right"])
@pytest.mark.parametrize("metric", COUNTED)
def test_no_number_has_an_interval_of_zero_width(metric, captions):
    rows = score_captions(metric, captions).rows
    assert not [row.part for row in rows if row.ci_high - row.ci_low < 1e-9]


@pytest.mark.parametrize(
    ("metric", "part"), [("dbac", "a_to_t:prior:model"), ("dpa", "a_to_t:accuracy")]
)
def test_a_count_beside_attackers_has_no_interval_of_zero_width(metric, part):
    (row,) = (row for row in score_captions(metric, RIGHT).rows if row.part == part)
    assert row.value > 0
    assert math.isnan(row.ci_low)


@pytest.mark.parametrize("captions", [WRONG, RIGHT], ids=["wrong", "right"])
def test_a_share_has_the_same_interval_in_either_metric(captions):
    accuracy, error = (
        score_captions("group_accuracy", captions),
        score_captions("gender_error", captions),
    )
    (one,) = (row for row in accuracy.rows if row.part == "incorrect:male")
    (two,) = (row for row in error.rows if row.part == "group:male")
    assert (one.ci_low, one.ci_high) == (two.ci_low, two.ci_high)


def test_captions_that_are_all_the_same_are_told():
    says = "all 40 captions are the same, 'a man with a cake': they say nothing about the images"
    assert says in notes(score_captions("lic", RIGHT[:1] * N))
    assert "are the same" not in notes(score_captions("lic", RIGHT))


def test_a_ratio_to_nobody_is_told():
    result = score_captions("gender_ratio", RIGHT[:1] * N)
    assert math.isnan(headline(result).value)
    assert "no caption names female alone, so there is no ratio to it" in notes(result)
