"""Rows of a trial: values, intervals, and p of nobody being more biased than anybody."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bias_pipeline.errors import DataError
from bias_pipeline.metrics.base import HEADLINES, Metric, Score
from bias_pipeline.metrics.catalogue import metric_class
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.report.compare import as_ranked
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Draws, Estimate, two_sided_p
from bias_pipeline.stats.compare import paired_difference
from experiments.inference import designs

SEEDS = (0, 12, 456)
FEW = "stats.resamples=400"
COUNTED = (
    "gender_error", "gender_ratio", "group_accuracy", "ba_mals", "ba_directional",
    "multi_directional", "differential_fairness", "cooccurrence", "quality",
)  # fmt: skip
TRAINED = ("lic", "leakage", "dbac", "dpa")
# Besides the headlines: parts that are 0 for people against people, and parts that conclusions use.
BESIDE = (
    "named:increase", "captions:increase", "t_to_a:named", "t_to_a:published:named",
    "t_to_a:published:images", "published:joint", "published", "named", "group:female",
    "a_to_t:shared", "t_to_a:shared",
)  # fmt: skip
# Numbers with a p against 0, which human captions should have.
NULL = {
    "gender_error named:increase", "gender_ratio captions:increase", "ba_mals score",
    "ba_directional t_to_a:named", "differential_fairness score",
    "cooccurrence score", "quality score", "lic score", "leakage score", "dpa t_to_a",
    "dbac a_to_t", "dbac t_to_a", "dbac a_to_t:shared", "dbac t_to_a:shared",
}  # fmt: skip


@dataclass(frozen=True, order=True)
class Trial:
    """One unit of work, done or not.

    Attributes:
        trial: its number; the same images whatever scores them.
        n_images: how many.
        design: of :mod:`~experiments.inference.designs`.
        captioner: of samples; empty where captioners are people or write as they do.
        metrics: what scores it.
    """

    trial: int
    n_images: int
    design: str
    captioner: str = ""
    metrics: tuple[str, ...] = ()


@cache
def build_metric(data: Path, metric: str, *settings: str) -> Metric:
    """A metric with its defaults, except the number of resamplings."""
    metric_built: Metric = compose.cell([*designs.words(data, metric), FEW, *settings]).build(
        "metric"
    )
    return metric_built


def version(metric: str) -> int:
    """The version of a metric's numbers."""
    return metric_class(metric).info.version


def rows(data: Path, trial: Trial) -> list[dict[str, object]]:
    """The rows of a trial; if a metric refuses its images, one row without a part."""
    return [
        line for name in trial.metrics for line in _of_metric(data, trial, build_metric(data, name))
    ]


def _of_metric(data: Path, trial: Trial, metric: Metric) -> list[dict[str, object]]:
    made = _sample_values if trial.design == designs.SAMPLES else _compare_captioners
    head: dict[str, object] = {
        "design": trial.design,
        "metric": metric.info.name,
        "metric_version": metric.info.version,
        "captioner": trial.captioner,
        "n_images": trial.n_images,
        "trial": trial.trial,
    }
    return [head | line for line in made(data, trial, metric)] or [head | {"part": ""}]


def _compare_captioners(data: Path, trial: Trial, metric: Metric) -> Iterator[dict[str, object]]:
    """P of one captioner compared with people, and of two captioners compared with each other."""
    make = designs.two_people if trial.design == designs.PEOPLE else designs.two_faithful
    scores = [_score(metric, corpus) for corpus in make(data, trial.n_images, trial.trial)]
    first, other = scores
    for part in _parts(scores):
        assert first is not None
        assert other is not None
        estimate = first.parts[part]
        one, two = (ranked_draws(metric, score, part) for score in (first, other))
        if one is None or two is None:
            continue
        difference = paired_difference(one, two)
        yield {
            "part": part,
            "value": estimate.value,
            "ci_low": estimate.ci_low,
            "ci_high": estimate.ci_high,
            "p_single": _p_against_people(metric, part, estimate),
            "difference": difference.value,
            "p_paired": difference.p_value if part in _compared_by(metric) else math.nan,
            "smallest_seen": 2.8 * difference.error,
        }


def _p_against_people(metric: Metric, part: str, estimate: Estimate) -> float:
    """The p that the metric gives itself, else that of its interval; NaN for a number without."""
    if f"{metric.info.name} {part}" not in NULL:
        return math.nan
    return two_sided_p(estimate) if math.isnan(estimate.p_value) else estimate.p_value


def _compared_by(metric: Metric) -> set[str]:
    """The numbers by which ``compare`` ranks and decides."""
    return {*HEADLINES, *(reading.part for reading in metric.info.readings.values())}


def ranked_draws(metric: Metric, score: Score, part: str) -> Draws | None:
    """A number under resampling, as ``compare`` compares it: mostly its distance from no bias."""
    scored = score.parts[PartName(part)]
    of_headline = metric.info.neutral if scored.neutral is None else scored.neutral
    neutral = of_headline if part in HEADLINES else 0.0
    draws = scored.draws
    return draws and as_ranked(draws, metric.info.direction, neutral)


def _sample_values(data: Path, trial: Trial, metric: Metric) -> Iterator[dict[str, object]]:
    """Values and intervals of a sample, and the values of all images."""
    score = _score(metric, designs.sample(data, trial.captioner, trial.n_images, trial.trial))
    truth = _truth(data, metric.info.name, trial.captioner)
    for part in _parts([score]):
        assert score is not None
        estimate = score.parts[part]
        yield {
            "part": part,
            "value": estimate.value,
            "ci_low": estimate.ci_low,
            "ci_high": estimate.ci_high,
            "truth": truth.parts[part].value,
        }


@cache
def _truth(data: Path, metric: str, captioner: str) -> Score:
    built_metric, corpus = (
        build_metric(data, metric, "stats.resamples=2"),
        designs.everything(data, captioner),
    )
    return built_metric.compute(corpus, splits=built_metric.draw_splits(corpus, SEEDS))


def _score(metric: Metric, corpus: designs.Corpus) -> Score | None:
    try:
        return metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
    except DataError:
        return None


def _parts(scores: Sequence[Score | None]) -> list[str]:
    """The parts to compare that all scores have."""
    looked = (*HEADLINES, *BESIDE)
    return [str(part) for part in looked if all(score and part in score.parts for score in scores)]
