"""The study of inference: it goes on where it stopped, and a small part of what it measures."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from bias_pipeline.metrics.counting.base import CountingMetric
from bias_pipeline.metrics.value_names import PartName
from experiments.inference import study, trials
from experiments.inference.designs import everything, two_faithful
from experiments.inference.estimators import numbers, of_sample
from tests.corpora import DATA

real = pytest.mark.skipif(not (DATA / "lic").is_dir(), reason=f"no real captions at {DATA}")
FIRST = next(study.planned_trials())


def make_row(trial: trials.Trial, metric: str, version: int | None = None) -> dict[str, object]:
    """A row of a finished trial."""
    fields = {name: getattr(trial, name) for name in ("design", "captioner", "n_images", "trial")}
    version = trials.version(metric) if version is None else version
    return {**fields, "metric": metric, "metric_version": version, "part": "score"}


def test_what_is_done_is_not_done_again():
    rows = pd.DataFrame([make_row(FIRST, "ba_mals")], columns=study.COLUMNS)
    left = next(study.missing_trials(rows))
    assert left == replace(FIRST, metrics=tuple(m for m in FIRST.metrics if m != "ba_mals"))


def test_a_trial_of_an_earlier_version_is_done_again(tmp_path):
    lines = [make_row(FIRST, "ba_mals", version=1), make_row(FIRST, "gender_error")]
    pd.DataFrame(lines, columns=study.COLUMNS).to_csv(tmp_path / "rows.csv", index=False)
    left = next(study.missing_trials(study.current_rows(tmp_path / "rows.csv")))
    assert "ba_mals" in left.metrics
    assert "gender_error" not in left.metrics


def test_every_kind_of_trial_has_its_turn_and_cheap_ones_come_first():
    turns = list(islice(study.planned_trials(), 200))
    assert {turn.n_images for turn in turns[:8]} == set(study.SIZES)
    assert {turn.design for turn in turns[:8]} == {"people", "scenes"}
    assert {turn.design for turn in turns} == {"people", "scenes", "samples"}
    assert any("lic" in turn.metrics for turn in turns)


def test_two_captioners_of_scenes_are_two():
    """Once both wrote the same captions, so that no test could find a difference."""
    one, other = two_faithful(DATA, 50, 0)
    same = [one.model.text(i) == other.model.text(i) for i in range(50)]
    assert np.mean(same) < 0.1
    assert len(one.human) == len(other.human) == 4 * 50


@pytest.mark.parametrize(("metric", "distance"), [("ba_mals", False), ("gender_ratio", True)])
def test_captioners_are_compared_as_compare_does(metric, distance):
    """By the number where lower is fairer, by its distance where the no-bias value is."""
    built = trials.build_metric(DATA, metric)
    score = built.compute(two_faithful(DATA, 400, 3)[0], splits=[])
    draws = trials.ranked_draws(built, score, "score")
    assert draws is not None
    scored = score.parts[PartName("score")]
    neutral = built.info.neutral if scored.neutral is None else scored.neutral
    value = scored.value
    assert value < neutral or not distance  # else nothing is tested
    assert draws.per_seed.item() == (abs(value - neutral) if distance else value)


@real
@pytest.mark.slow
def test_two_people_are_told_apart_by_none_but_chance():
    """Ten trials with fixed seeds, of which p is below .05 in one or none."""
    rows = [
        line
        for trial in range(10)
        for line in trials.rows(DATA, trials.Trial(trial, 100, "people", "", ("gender_error",)))
    ]
    query = pd.DataFrame(rows).query("part == 'score'")
    assert len(query) == 10
    assert (query["p_paired"] < 0.05).sum() <= 1


@real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "part", "published", "most"),
    [
        ("ba_directional", "t_to_a", "t_to_a:published:images", 0.02),
        ("ba_directional", "t_to_a:named", "t_to_a:published:named", 0.03),
        ("ba_mals", "score", "published:joint", 0.045),
        ("differential_fairness", "score", "published", 0.15),
    ],
)
def test_numbers_of_500_images_are_those_of_all(metric, part, published, most):
    """NIC, 20 samples with fixed seeds; the published number is further off."""
    built = trials.build_metric(DATA, metric)
    assert isinstance(built, CountingMetric)
    corpus = everything(DATA, "nic")
    tally = built.tally(built.see(corpus))
    truth = numbers(tally, np.ones((1, len(corpus))))
    samples = [of_sample(tally, 500, np.random.default_rng([seed, 500])) for seed in range(20)]

    def deviation(name: str) -> float:
        return abs(np.mean([draws[name].per_seed[0] for draws in samples]) - truth[name].item())

    assert deviation(part) < most
    assert deviation(published) > 2 * deviation(part)
