"""What people name, worked by hand, and the correlations that follow from the paper's tables."""

import math

import pytest

from bias_pipeline.people.anonymous import (
    ANONYMOUS,
    LARGEST,
    AnonymousRow,
    correlations,
    human_scores,
    printed_correlations,
)
from bias_pipeline.stats.compare import pearson
from experiments.study import printed_table

GROUPS = ("male", "female")
VOTES = {
    "1": {"ann": "male", "ben": "Unsure"},
    "2": {"ann": "female", "ben": "female", "cem": "female"},
    "3": {"ann": "Unsure"},
    "4": {"ann": "male", "ben": "female"},
}
TRUTH = {"1": "male", "2": "male", "3": "female", "4": "female"}


@pytest.mark.parametrize(
    ("truth", "part", "value", "n_images"),
    [
        ({}, "gt", (0.5 + 1 + 0 + 1) / 4, 4),  # the mean over captions of the share of raters
        ({}, "names:male", (0.5 + 0 + 0 + 0.5) / 4, 4),
        (TRUTH, "right", (1 + 0 + 0.5) / 3, 3),  # only of answers that name a group
        (TRUTH, "right:female", 0.5, 1),
        (TRUTH, "gt:female", 0.5, 2),
        ({"1": "male"}, "right", 1.0, 1),  # without a true group neither right nor wrong
        ({"1": "male"}, "right:female", math.nan, 0),
    ],
)
def test_scores_worked_by_hand(truth, part, value, n_images):
    score = human_scores(VOTES, GROUPS, truth)[part]
    assert (score.value, score.n_images) == (pytest.approx(value, nan_ok=True), n_images)


def test_what_is_named_adds_up_to_gt_and_the_interval_of_none_is_no_point():
    scores = human_scores(VOTES, GROUPS)
    assert scores["names:male"].value + scores["names:female"].value == scores["gt"].value
    score = human_scores({str(i): {"ann": "Unsure"} for i in range(20)}, GROUPS)["gt"]
    assert (score.value, score.ci_low) == (0.0, 0.0)
    assert 0.1 < score.ci_high < 0.25


def test_more_raters_of_the_same_captions_are_not_more_captions():
    """Raters who always agree leave the interval as wide as one rater does."""
    one = {str(i): {"ann": "male" if i % 2 else "Unsure"} for i in range(40)}
    many = {i: dict.fromkeys("abcde", *votes.values()) for i, votes in one.items()}
    single, several = (human_scores(votes, GROUPS)["gt"] for votes in (one, many))
    widths = [one.ci_high - one.ci_low for one in (several, single)]
    assert widths[0] == pytest.approx(widths[1], rel=0.05)


def row(captioner: str, metric: str, part: str, value: float) -> AnonymousRow:
    nan = math.nan
    return AnonymousRow(captioner, "gender", metric, part, ANONYMOUS, value, nan, nan, nan, 9)


def test_captioners_without_answers_are_left_out_of_a_correlation():
    rows = [row(name, "people", "gt", x) for name, x in zip("abc", (0.1, 0.2, 0.4), strict=True)]
    rows += [row(name, "lic", LARGEST, x) for name, x in zip("abcd", (6, 7, 9, 0), strict=True)]
    (line,) = correlations(rows)
    assert (line.n_captioners, line.value) == (3, pytest.approx(1.0))


@pytest.mark.parametrize(("metric", "column"), [("lic", "lic"), ("imagecaptioner2", "ours")])
@pytest.mark.parametrize(("table", "place"), [("5", 0), ("3", 1)])
def test_the_paper_s_correlations_follow_from_its_cells(metric, column, table, place):
    people = printed_table("imagecaptioner2", "5", "")["gt"]
    scores = printed_table("imagecaptioner2", table, "")[column].reindex(people.index)
    follows = pearson(scores.tolist(), people.tolist())
    printed = printed_correlations(correlations([row("a", metric, LARGEST, 0.5)]))[place]
    assert (printed.value, printed.n_captioners) == (pytest.approx(follows.value, abs=1e-4), 9)
