"""``metric=declines``: a case by hand, planted refusals, and its exact test."""

import math

import numpy as np
import pytest
from scipy import stats

import bias_pipeline as bp
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.metrics.counting.declines import Declines, declines_note
from bias_pipeline.results.rows import Row
from bias_pipeline.run.cell import run_cell
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.shares import same_share_p
from bias_pipeline.text.scored_text import ScoredText
from tests.corpora import GENDER, make_corpus

SORRY = "I'm sorry, but I can't identify the people in this image."
EMOTIONS = (
    "amusement", "awe", "contentment", "excitement", "anger", "disgust", "fear", "sadness",
    "something_else",
)  # fmt: skip
METRIC = Declines(GENDER, Bootstrap(resamples=200))


def rows(corpus: Corpus) -> dict[str, Row]:
    return {row.part: row for row in run_cell(corpus, METRIC, (), run_id="x").rows}


def by_hand() -> Corpus:
    """Of 10 men 1 is declined, of 8 women 4; 3 men and 1 woman are hedged; one is blank."""
    texts = [SORRY, *["what appears to be a man"] * 3, *["a man"] * 6]
    texts += [SORRY] * 4 + ["possibly a woman", *["a woman"] * 3]
    labels = "m" * 10 + "f" * 8
    records = [
        Record(str(i), text, labels={"gender": label})
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    further = [
        Record("18", "", labels={"gender": "f"}),
        Record("19", labels={"gender": "f"}),
        Record("20", SORRY, labels={"gender": "unsure"}),
    ]
    return make_corpus([*records, *further])


@pytest.mark.parametrize("declined", ["absent", "keep"])
def test_a_case_by_hand(declined):
    parts = rows(ScoredText(declined=declined).apply(by_hand()))
    values = {name: row.value for name, row in parts.items()}
    assert values == pytest.approx(
        {
            "score": 4 / 8 - 1 / 10,
            "overall": 5 / 18,
            "group:male": 1 / 10,
            "group:female": 4 / 8,
            "hedged:male": 3 / 9,
            "hedged:female": 1 / 4,
        }
    )
    assert (parts["score"].n_images, parts["score"].coverage) == (18, 18 / 20)
    assert parts["hedged:female"].n_images == 4
    fisher = stats.fisher_exact([[1, 4], [9, 4]])
    assert parts["score"].p_value == pytest.approx(fisher.pvalue)


def planted_corpus(men: float, women: float, n: int = 400, seed: int = 0) -> Corpus:
    declined = np.random.default_rng(seed).random(n) < np.tile([men, women], n)[:n]
    texts = [SORRY if item else "a man" for item in declined]
    return make_corpus(
        [Record(str(i), text, labels={"gender": "mf"[i % 2]}) for i, text in enumerate(texts)]
    )


def test_planted_refusals_of_one_group_show():
    score = rows(ScoredText().apply(planted_corpus(0.05, 0.25)))["score"]
    assert score.ci_low > 0.1 < score.value < score.ci_high < 0.3
    assert score.p_value < 0.001


def test_equal_refusals_are_rarely_significant():
    p_values = [rows(planted_corpus(0.2, 0.2, seed=seed))["score"].p_value for seed in range(60)]
    assert sum(p < 0.05 for p in p_values) <= 7  # 3 expected; more than 7 has p = .01


def test_the_interval_contains_the_difference_as_often_as_it_says():
    scores = [rows(planted_corpus(0.1, 0.25, n=300, seed=seed))["score"] for seed in range(60)]
    assert sum(s.ci_low <= 0.15 <= s.ci_high for s in scores) >= 52  # of 57; fewer has p = .01


def test_of_many_groups_the_interval_pays_for_choosing_two():
    """Of nine equal groups the ends of 16 and of 4 refusals in 100 are no evidence."""
    captions, labels = [], []
    for emotion, n in zip(EMOTIONS, (4, *[10] * 7, 16), strict=True):
        captions += [SORRY] * n + ["a tree"] * (100 - n)
        labels += [emotion] * 100
    result = bp.score("declines", captions, labels, attribute="emotion", stats={"resamples": 200})
    score = next(row for row in result.rows if row.part == "score")
    assert score.p_value > 0.05
    assert score.ci_low == 0 < score.ci_high


def test_no_refusal_is_zero_with_an_upper_end():
    score = rows(planted_corpus(0, 0))["score"]
    assert (score.value, score.ci_low, score.p_value) == (0, 0, 1)
    assert 0 < score.ci_high < 0.05


def test_a_captioner_that_declines_everything_can_be_counted():
    scored = ScoredText().apply(planted_corpus(1, 1), blank_limit=1)
    assert rows(scored)["overall"].value == 1
    assert math.isnan(rows(scored)["hedged:male"].value)


def test_the_note_counts_by_group_with_the_test():
    note = declines_note(ScoredText().apply(by_hand()), "gender")
    p_value = same_share_p(np.array([1, 4]), np.array([10, 8]))
    assert note == (
        "warning: 6 of 19 captions (31.6%) decline to describe or are errors of a service: "
        f"1 of 10 (male), 4 of 8 (female) (test of equal shares: p = {p_value:.2g}); "
        "they count as absent, "
        "and coverage falls"
    )


def test_few_refusals_are_no_warning_and_none_are_no_note():
    assert declines_note(planted_corpus(0.02, 0.02), "gender").startswith(
        "9 of 400 captions (2.2%)"
    )
    assert declines_note(planted_corpus(0, 0), "gender") == ""


def test_of_three_groups_the_labels_are_dealt_anew():
    events, totals = np.array([0, 3, 9]), np.array([40, 40, 40])
    expected = stats.chi2_contingency(np.stack([events, totals - events])).pvalue
    assert same_share_p(events, totals) == pytest.approx(expected, abs=0.004)


def test_three_equal_shares_are_no_evidence():
    assert same_share_p(np.array([2, 2, 2]), np.array([10, 10, 10])) == 1
