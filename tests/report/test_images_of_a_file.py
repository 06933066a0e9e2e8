"""A model that captions few of the labelled images is asked about these."""

import pytest

import bias_pipeline as bp
from bias_pipeline.report.conclusion_checks import evidence_rules, lacks_evidence
from bias_pipeline.report.verdict import verdict
from bias_pipeline.results.settings import with_settings

LABELS = {str(number): ("male", "female")[number % 2] for number in range(4000)}
DESCRIBED = [*LABELS][:200]
ANNOTATORS = {
    image: [f"a {noun} on a street", f"one {noun} outside"]
    for image, label in LABELS.items()
    for noun in ["man" if label == "male" else "woman"]
}


def answer(captions):
    """What gender_error concludes, and why it concludes nothing."""
    result = bp.score(
        "gender_error", captions, LABELS, ANNOTATORS, dataset={"strict": False}, seeds=1
    )
    conclusion = verdict(with_settings([result]))
    return conclusion.answer("misgendering", "gender")


def captions_naming(images):
    """Captions that name the wrong group in each fifth image."""
    return {
        image: f"a {'woman' if (LABELS.get(image) == 'female') != (n % 5 == 0) else 'man'} waits"
        for n, image in enumerate(images)
    }


def test_a_twentieth_of_the_labelled_images_is_answered():
    assert answer(captions_naming(DESCRIBED)) == "more"


def test_ids_that_fit_by_accident_are_not():
    others = [f"{number}" for number in range(100_000, 104_000)]
    assert answer(captions_naming([*DESCRIBED, *others])) == "unknown"


def test_blank_captions_of_the_file_are_not_covered():
    blanks = dict.fromkeys([*LABELS][200:500], "")
    settings = {"strict": False, "blank_limit": 1.0}
    result = bp.score(
        "gender_error",
        {**captions_naming(DESCRIBED), **blanks},
        LABELS,
        ANNOTATORS,
        dataset=settings,
    )
    (row,) = (row for row in result.rows if row.part == "score")
    reading = evidence_rules(result)["score"]
    assert lacks_evidence(result, row, reading).startswith("it covers only 40% of its images")


@pytest.mark.parametrize("share", [0.04, 0.4])
def test_rows_keep_the_share_of_all_labelled_images(share):
    images = [*LABELS][: int(share * len(LABELS))]
    result = bp.score(
        "gender_error", captions_naming(images), LABELS, dataset={"strict": False}, seeds=1
    )
    assert {row.coverage for row in result.rows if row.part == "score"} == {share}
