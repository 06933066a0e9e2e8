"""Tables on how far scores vary with attackers and with changed pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bias_pipeline.errors import DataError, counted
from bias_pipeline.io.terminal import print_out
from bias_pipeline.report.attacker_agreement import (
    Agreement,
    Interval,
    Sensitivity,
    agreements,
    sensitivity,
)
from bias_pipeline.report.attacker_variants import OVER, Stored, Variants, variants
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.section import Section
from bias_pipeline.report.table import Cell, NumberCell, Table
from bias_pipeline.results.rows import Result

MOST_PAIRS = 15
TEXT = (
    "CV: the standard deviation of a captioner's scores over attackers, divided by the size of "
    "their mean; it is large where the mean is near 0. Conflicts: the share of captioners that one "
    "attacker calls biased and the other does not. Intervals resample images; their noise adds to "
    "the spread, so resampled CVs are higher and some intervals miss their number. No attacker was "
    "trained for this section."
)


def steadiness(results: Sequence[Result], draws: Stored) -> Iterator[Section]:
    """A section for each number that several attackers have scored for several captioners."""
    try:
        all_scores = variants(results, draws, OVER)
    except DataError:  # runs that differ in nothing are reported elsewhere
        return
    for scores in all_scores:
        yield Section(
            title=f"{scores.setting.headline} under {counted(len(scores.variants), 'attackers')}",
            texts=[TEXT],
            tables=[_coefficients(sensitivity(scores)), *_agreement(scores)],
            notes=_left_out(scores),
            chapter="Does it depend on the attacker?",
        )


def _coefficients(result: Sensitivity) -> Table:
    scores = result.scores
    values = dict(zip(scores.captioners, scores.values.tolist(), strict=True))
    lines: list[list[Cell]] = [
        [
            name,
            *map(NumberCell.in_unit, scores.units, values[name]),
            _number(coefficient),
        ]
        for name, coefficient in result.per_captioner.items()
    ]
    mean: list[Cell] = ["mean", *(None for _ in scores.variants), _number(result.mean)]
    return Table("Scores by attacker", ["captioner", *scores.variants, "CV"], [*lines, mean])


def _agreement(scores: Variants) -> Iterator[Table]:
    pairs = agreements(scores)
    if len(pairs) <= MOST_PAIRS:
        yield _agreement_table("Agreement of attackers", "attackers", pairs)


def _agreement_table(caption: str, what: str, pairs: Sequence[Agreement]) -> Table:
    head = [what, "conflicts", "Pearson", "Spearman", "Kendall", "who"]
    rows: list[list[Cell]] = [
        [
            f"{pair.first}, {pair.second}",
            _number(pair.conflicts, fraction=True),
            *(_number(one) for one in (pair.pearson, pair.spearman, pair.kendall)),
            ", ".join(pair.conflicting),
        ]
        for pair in pairs
    ]
    return Table(caption, head, rows)


def _number(interval: Interval, *, fraction: bool = False) -> NumberCell:
    low, high = (None, None) if math.isnan(interval.low) else (interval.low, interval.high)
    return NumberCell(interval.value, low, high, fraction=fraction, digits=1 if fraction else 2)


def _left_out(scores: Variants) -> list[str]:
    if not scores.absent:
        return []
    return [f"left out, since an attacker has not scored them: {', '.join(scores.absent)}"]


def print_title(scores: Variants) -> None:
    """Print what was scored under which variants, and which captioners are left out."""
    print_out(
        f"{scores.setting} · {counted(len(scores.variants), 'variants')}: "
        f"{', '.join(scores.variants)}"
    )
    if scores.absent:
        print_out(f"left out, since a variant lacks them: {', '.join(scores.absent)}")


def print_sensitivity(result: Sensitivity, what: str, *, fraction: bool = False) -> None:
    """Print a table of captioners; ``what`` heads its column."""
    numbers = {**result.per_captioner, "mean": result.mean}
    rows: list[list[Cell]] = [
        [name, _number(one, fraction=fraction)] for name, one in numbers.items()
    ]
    print_table(Table("", ["captioner", what], rows))
    if result.one_sided:
        print_out(
            "some intervals do not include their number: noise of images adds to the spread of "
            "attackers, so resampled coefficients are higher"
        )
    print_out()


def print_agreements(pairs: Sequence[Agreement]) -> None:
    """Print how far attackers, or metrics, agree."""
    print_table(_agreement_table("", "pair", pairs))
    print_out()
