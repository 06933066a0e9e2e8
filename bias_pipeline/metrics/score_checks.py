"""Refuses what a metric returns that no row can hold: metrics may be of the user's own packages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from numbers import Real

from bias_pipeline.errors import UsageError
from bias_pipeline.metrics.base import Metric, Part, Score

_OF_PART = ("n_images", "coverage", "neutral_rate")
_BESIDE = ("draws",)  # of an estimate, no number


def check_score(score: object, metric: Metric) -> None:
    """Refuse a score of another type, without parts, or whose numbers are no numbers.

    Raises:
        UsageError: naming the metric, its class, the part and the value.
    """
    where = f"metric {metric.info.name!r} ({type(metric).__module__}.{type(metric).__name__})"
    if not isinstance(score, Score):
        raise UsageError(f"{where}: compute returns {score!r}; it must return a Score")
    if not score.parts:
        raise UsageError(f"{where}: its score has no part; what is undefined is a part that is NaN")
    for name, part in score.parts.items():
        for what, value in _numbers(part):
            if not isinstance(value, Real):
                raise UsageError(
                    f"{where}: part {name!r} has {what}={value!r}, which is no number; give a "
                    "float, NaN where it is undefined"
                )


def _numbers(part: Part) -> Iterator[tuple[str, object]]:
    estimate = part.estimate
    for field in fields(estimate):
        if field.name not in _BESIDE:
            yield field.name, getattr(estimate, field.name)
    for name in _OF_PART:
        yield name, getattr(part, name)
