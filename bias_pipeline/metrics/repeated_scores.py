"""Computes scores several times: under noisy labels, and for each sample of captions.

Label noise shows how much a score changes if labels are wrong more often. Labels are replaced at
random with given rates, as if the present labels were true, and every score is computed again. If
the present labels already have these error rates, the score under true labels lies about as far in
the opposite direction, provided that changes are small. Label noise measures sensitivity and
corrects nothing.

A captioner may write several captions of each image. The k-th captions of all images form a sample,
and each sample is scored separately. Every number is the mean over samples. Resamples draw images
together with all their samples. So intervals include how much captions of an image differ. More
samples make intervals narrower. Splits and seeds are the same for all samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.regrouping import LabelNoise
from bias_pipeline.errors import DataError
from bias_pipeline.io.progress import track
from bias_pipeline.metrics.base import HEADLINES, Metric, Number, Score
from bias_pipeline.metrics.value_names import SCORE, PartName, direction_of
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.stats.choices import mean_over_samples

NOISE = "label_noise"  # name of the part and of the manifest's entry
_ROUNDING = 1e-12  # smaller changes come from the order of sums
_COUNTS, _OTHERS = 200, 20  # draws of labels: of counting metrics, and of others


def n_draws(metric: Metric) -> int:
    """How many times labels are drawn at random."""
    return _COUNTS if metric.info.family == "counting" else _OTHERS


def with_label_noise(
    score: Score,
    corpus: Corpus,
    metric: Metric,
    noise: LabelNoise,
    values: Callable[[Corpus], Mapping[str, float]],
) -> Score:
    """Add a number ``label_noise`` to the score for each headline.

    The value is the mean change of the headline over draws. The interval contains the middle 95 %
    (``stats.level``) of draws. So the interval shows how much the change depends on which labels
    are wrong, not on the sample of images.
    """
    number = n_draws(metric)
    drawn: list[Mapping[str, float]] = []
    for draw in track(range(number), number):
        try:
            drawn.append(values(noise.redrawn(corpus, draw)))
        except DataError:  # for example, a group may have lost too many images
            drawn.append({})
    level = getattr(metric, "stats", Bootstrap()).level
    wrong = noise.wrong_shares(corpus.groupings[noise.attribute].names)
    moves: dict[str, Number] = {
        PartName(NOISE, direction="" if name == SCORE else name): _movement(
            part, np.array([line.get(name, math.nan) for line in drawn]), level
        )
        for name, part in score.parts.items()
        if name in HEADLINES and not math.isnan(part.value)
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
    attribute: str, wrong: Mapping[str, float], moved: Mapping[str, Number], n: int, failed: int
) -> str:
    rates = ", ".join(f"{share:.1%} of {group}" for group, share in wrong.items())
    moves = " and ".join(
        f"{direction_of(name) or SCORE} would move by {_amount(part)}"
        for name, part in moved.items()
    )
    lost = f", {failed} of them not scorable" * bool(failed)
    return (
        f"if more {attribute} labels were wrong (a further {rates}), "
        f"{moves or 'nothing could move'} ({n} draws{lost}; sensitivity, not a correction)"
    )


def _amount(part: Number) -> str:
    values = (part.value, part.ci_low, part.ci_high)
    if part.unit == "fraction":
        mean, low, high = (f"{round(100 * value, 1) + 0.0:+.1f}" for value in values)
        return f"{mean} points [{low}, {high}]"
    mean, low, high = (f"{value:+.3g}" for value in values)
    return f"{mean} [{low}, {high}]"


def _movement(part: Number, values: Float64Array, level: float) -> Number:
    """How much a headline changes, computed from its values in all draws."""
    moves = values[~np.isnan(values)] - part.value
    moves[np.abs(moves) < _ROUNDING] = 0.0
    mean = low = high = math.nan
    if len(moves):
        mean = float(moves.mean())
        low, high = np.quantile(moves, [(1 - level) / 2, (1 + level) / 2]).tolist()
    estimate = Estimate(mean, ci_low=low, ci_high=high, n_seeds=part.n_seeds)
    return replace(part, **vars(estimate), range=(-math.inf, math.inf), neutral=None)


def mean_score(scores: Sequence[Score], metric: Metric) -> Score:
    """The mean score of several samples. Examples and predictions come from the first sample.

    A number is NaN if some sample does not have this number. A note that the first sample lacks
    begins with the number of its sample.
    """
    if len(scores) == 1:
        return scores[0]
    level = getattr(metric, "stats", Bootstrap()).level
    names = dict.fromkeys(name for score in scores for name in score.parts)
    return replace(
        scores[0],
        parts={
            name: _mean_part([s.parts[name] for s in scores if name in s.parts], len(scores), level)
            for name in names
        },
        notes=[
            *scores[0].notes,
            *(
                f"sample {number}: {note}"
                for number, score in enumerate(scores[1:], 1)
                for note in score.notes
                if note not in scores[0].notes
            ),
        ],
    )


def _mean_part(parts: Sequence[Number], n_samples: int, level: float) -> Number:
    estimate = mean_over_samples(parts, level)
    if len(parts) < n_samples:
        nan = math.nan
        estimate = replace(estimate, value=nan, ci_low=nan, ci_high=nan, p_value=nan, draws=None)
    return replace(
        parts[0],
        **vars(estimate),
        n_images=round(float(np.mean([part.n_images for part in parts]))),
        coverage=float(np.mean([part.coverage for part in parts])),
        neutral_rate=float(np.mean([part.neutral_rate for part in parts])),
    )
