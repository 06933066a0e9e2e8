"""The section on attackers: how much scores vary with them, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bias_pipeline.analysis.consistency import Agreement, agreements
from bias_pipeline.analysis.sensitivity import Interval, Sensitivity, sensitivity
from bias_pipeline.analysis.variants import OVER, Stored, Variants, variants
from bias_pipeline.errors import DataError
from bias_pipeline.report.sheets import Cell, Number, Section, Sheet
from bias_pipeline.results.store import Result

MOST_PAIRS = 15
TEXT = (
    "CV: the standard deviation of a captioner's scores over attackers, divided by the size of "
    "their mean; it is large where the mean is near 0. Conflicts: the share of captioners that one "
    "attacker calls biased and the other does not. Intervals are over images, whose noise adds to "
    "the spread: resampled CVs lie higher, some beside their number. No attacker was trained."
)


def steadiness(results: Sequence[Result], draws: Stored) -> Iterator[Section]:
    """A section for each number that two attackers or more have scored for two captioners or more.

    Args:
        results: of any metrics.
        draws: run id to the headlines under resampling.
    """
    try:
        found = variants(results, draws, OVER)
    except DataError:  # runs that nothing tells apart: said elsewhere
        return
    for scores in found:
        yield Section(
            title=f"{scores.setting.headline} under {len(scores.variants)} attackers",
            texts=[TEXT],
            sheets=[_coefficients(sensitivity(scores)), *_agreement(scores)],
            notes=_left_out(scores),
            chapter="Does it depend on the attacker?",
        )


def _coefficients(found: Sensitivity) -> Sheet:
    scores = found.scores
    values = dict(zip(scores.captioners, scores.values.tolist(), strict=True))
    lines: list[list[Cell]] = [
        [name, *(Number(value, fraction=True, digits=1) for value in values[name]), _number(own)]
        for name, own in found.per_captioner.items()
    ]
    mean: list[Cell] = ["mean", *(None for _ in scores.variants), _number(found.mean)]
    return Sheet("Scores by attacker", ["captioner", *scores.variants, "CV"], [*lines, mean])


def _agreement(scores: Variants) -> Iterator[Sheet]:
    pairs = agreements(scores)
    if len(pairs) <= MOST_PAIRS:
        head = ["attackers", "conflicts", "Pearson", "Spearman", "Kendall", "who"]
        yield Sheet("Agreement of attackers", head, [_pair(own) for own in pairs])


def _pair(own: Agreement) -> list[Cell]:
    return [
        f"{own.first}, {own.second}",
        _number(own.conflicts, fraction=True),
        *(_number(one) for one in (own.pearson, own.spearman, own.kendall)),
        ", ".join(own.conflicting),
    ]


def _number(own: Interval, *, fraction: bool = False) -> Number:
    low, high = (None, None) if math.isnan(own.low) else (own.low, own.high)
    return Number(own.value, low, high, fraction=fraction, digits=1 if fraction else 2)


def _left_out(scores: Variants) -> list[str]:
    if not scores.absent:
        return []
    return [f"left out, since an attacker has not scored them: {', '.join(scores.absent)}"]
