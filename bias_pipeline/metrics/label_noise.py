"""How far a score moves if labels err more often: sensitivity, not a correction.

Labels are drawn anew at given rates, as if those that are there were the truth, and everything is
computed again. If labels already err that often, the score under true labels lies about as far in
the opposite direction, as long as moves are small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.label_noise import LabelNoise
from bias_pipeline.errors import DataError
from bias_pipeline.io.progress import track
from bias_pipeline.metrics.base import HEADLINES, Metric, Part, Score
from bias_pipeline.metrics.value_names import SCORE, PartName, direction_of
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate

NOISE = "label_noise"  # the part, and the manifest's entry
_ROUNDING = 1e-12  # sums in another order are no move
_COUNTS, _OTHERS = 200, 20  # draws; others than counts train attackers, or rate captions


def n_draws(metric: Metric) -> int:
    """How often labels are drawn anew."""
    return _COUNTS if metric.info.family == "counting" else _OTHERS


def with_label_noise(
    score: Score,
    corpus: Corpus,
    metric: Metric,
    noise: LabelNoise,
    values: Callable[[Corpus], Mapping[str, float]],
) -> Score:
    """The score with a part ``label_noise`` for each headline.

    Its value is the mean over draws of how far the headline moves; the interval contains the middle
    95 % (``stats.level``) of the draws. It shows how much the move depends on which labels err,
    not on the sample of images.

    Args:
        score: under the labels as they are.
        corpus: that was scored.
        metric: that computed it.
        noise: how much more often labels err.
        values: headline to its value under the labels of a corpus.

    Raises:
        UsageError: if nothing is known of a group.
    """
    number = n_draws(metric)
    drawn: list[Mapping[str, float]] = []
    for draw in track(range(number), number):
        try:
            drawn.append(values(noise.redrawn(corpus, draw)))
        except DataError:  # such as a group that lost too many images
            drawn.append({})
    level = getattr(metric, "stats", Bootstrap()).level
    wrong = noise.wrong(corpus.groupings[noise.attribute].names)
    moves: dict[str, Part] = {
        PartName(NOISE, direction="" if name == SCORE else name): _moved(
            part, np.array([line.get(name, math.nan) for line in drawn]), level
        )
        for name, part in score.parts.items()
        if name in HEADLINES and not math.isnan(part.estimate.value)
    }
    failed = number - sum(bool(line) for line in drawn)
    note = _note(noise.attribute, wrong, moves, number, failed)
    headlines = {name: part for name, part in score.parts.items() if name in HEADLINES}
    return replace(
        score,
        parts={**headlines, **moves, **score.parts},
        audit={**score.audit, NOISE: {"wrong": wrong, "draws": number, "failed": failed}},
        notes=[*score.notes, note],
    )


def _note(
    attribute: str, wrong: Mapping[str, float], moved: Mapping[str, Part], n: int, failed: int
) -> str:
    rates = ", ".join(f"{group} {share:.1%}" for group, share in wrong.items())
    moves = " and ".join(
        f"{direction_of(name) or SCORE} would move by {_amount(part)}"
        for name, part in moved.items()
    )
    lost = f", {failed} of them not scorable" * bool(failed)
    return (
        f"if {attribute} labels erred that often more ({rates}), {moves or 'nothing could move'} "
        f"({n} draws{lost}; sensitivity, not a correction)"
    )


def _amount(part: Part) -> str:
    values = (part.estimate.value, part.estimate.ci_low, part.estimate.ci_high)
    if part.unit == "fraction":
        mean, low, high = (f"{round(100 * value, 1) + 0.0:+.1f}" for value in values)
        return f"{mean} points [{low}, {high}]"
    mean, low, high = (f"{value:+.3g}" for value in values)
    return f"{mean} [{low}, {high}]"


def _moved(part: Part, values: Float64Array, level: float) -> Part:
    """How far a headline moves, from its values in all draws, NaN where there is none."""
    moves = values[~np.isnan(values)] - part.estimate.value
    moves[np.abs(moves) < _ROUNDING] = 0.0
    nan = math.nan
    mean = low = high = nan
    if len(moves):
        mean = float(moves.mean())
        low, high = np.quantile(moves, [(1 - level) / 2, (1 + level) / 2]).tolist()
    estimate = Estimate(mean, nan, nan, low, high, nan, part.estimate.n_seeds)
    return replace(part, estimate=estimate, range=(-math.inf, math.inf), neutral=None)
