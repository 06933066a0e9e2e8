"""Worst group and largest gap, from draws made by hand and from a planted captioner."""

import math
from functools import cache

import numpy as np
import pytest

from bias_pipeline.metrics.attack.extra_parts import gap_of, gap_sentence
from bias_pipeline.metrics.base import Score
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Draws, Estimate, summary

GENERATOR = np.random.default_rng(0)


def estimate(value: float, spread: float = 0.01) -> Estimate:
    return summary(Draws(np.full(3, value), GENERATOR.normal(value, spread, (500, 3))))


ABSENT = Estimate(math.nan, n_seeds=3)
GROUPS = {"a": estimate(0.1), "b": estimate(0.4), "c": estimate(0.2), "d": ABSENT}


def test_worst_and_best_are_found_and_groups_without_a_score_left_out():
    gap = gap_of(GROUPS, 0.95)
    assert gap is not None
    assert (gap.worst, gap.best) == ("b", "a")
    assert gap.estimate.value == pytest.approx(0.3)
    text = gap_sentence("lic", GROUPS, gap)
    assert text.startswith("lic: worst group b 40.0 [")
    assert text.endswith("], to a")
    ratio = gap_sentence("lic", GROUPS, gap, "ratio")  # no per cent
    assert ratio.startswith("lic: worst group b 0.40 [")


def test_the_interval_of_a_gap_begins_at_0_in_the_sentence_too():
    alike = {"a": estimate(0.1, 0.5), "b": estimate(0.11, 0.5)}
    gap = gap_of(alike, 0.95)
    assert gap is not None
    assert "largest gap 1.0 [0.0, " in gap_sentence("lic", alike, gap)


def test_the_interval_pays_for_choosing_among_all_pairs():
    gap, one, two = gap_of(GROUPS, 0.95), GROUPS["b"].draws, GROUPS["a"].draws
    assert gap is not None
    assert one is not None
    assert two is not None
    plain = summary(one - two)
    ratio = (gap.estimate.ci_high - gap.estimate.ci_low) / (plain.ci_high - plain.ci_low)
    assert ratio == pytest.approx(2.394 / 1.960, abs=0.01)  # z at 1 - 0.05 / 3


def test_one_group_has_no_gap():
    assert gap_of({"a": estimate(0.1), "d": ABSENT}, 0.95) is None


@cache
def score_scenes(metric: str, other: str, *words: str) -> Score:
    cell = compose.cell(
        [
            f"attribute=[gender,{other}]", "captioner=amplifier", f"metric={metric}",
            "dataset.n_images=1000", "stats.resamples=100", "probe.cache=null", *words,
        ]
    )  # fmt: skip
    item, corpus = cell.build("metric"), cell.corpus()
    score: Score = item.compute(corpus, splits=item.draw_splits(corpus, (0, 12)))
    return score


LIC = ("lic", "race", "metric.positions=2")
DBAC = (
    "dbac", "age", "metric.positions=2", "metric.min_support=10", "attribute.min_images=20",
)  # fmt: skip
NAMES = {
    name: [f"{a}-{b}" for a in ("male", "female") for b in others]
    for name, others in {"race": ("light", "dark"), "age": ("young", "old")}.items()
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "prefix", "whole"), [(LIC, "", "score"), (DBAC, "a_to_t:", "a_to_t")]
)
def test_a_group_rests_on_its_own_images(cell, prefix, whole):
    score = score_scenes(*cell)
    images = [score.parts[f"{prefix}group:{name}"].n_images for name in NAMES[cell[1]]]
    assert sum(images) == score.parts[whole].n_images


@pytest.mark.parametrize(
    ("cell", "prefix"),
    [
        (LIC, ""),
        *(pytest.param(DBAC, way, marks=pytest.mark.slow) for way in ("a_to_t:", "t_to_a:")),
    ],
)
def test_groups_are_rows_and_their_gap_is_one(cell, prefix):
    score = score_scenes(*cell)
    parts = {name: score.parts[f"{prefix}group:{name}"] for name in NAMES[cell[1]]}
    values = [part.value for part in parts.values() if math.isfinite(part.value)]
    gap = score.parts[f"{prefix}gap"]
    assert gap.value == pytest.approx(max(values) - min(values))
    assert gap.ci_low <= gap.value <= gap.ci_high
    assert any("worst group" in note for note in score.notes)


def test_lic_of_all_is_the_mean_of_the_groups_that_are_cut_to_one_size():
    score = score_scenes(*LIC)
    groups = [score.parts[f"group:{name}"].value for name in NAMES["race"]]
    assert score.parts["score"].value == pytest.approx(np.mean(groups), abs=0.01)
