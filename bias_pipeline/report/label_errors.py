"""Sentences on how far scores would move if labels were wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bias_pipeline.errors import counted
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.repeated_scores import NOISE
from bias_pipeline.report.table import percent
from bias_pipeline.report.tables import headline_name
from bias_pipeline.results.rows import Result, Row, mapping_in
from bias_pipeline.results.settings import label

_NAMED = 4  # headlines that the sentence names


def noise_sentences(results: Sequence[Result]) -> list[str]:
    """One for each attribute whose label errors were asked for.

    It names the headlines that would leave their interval, the largest change first.
    """
    by_attribute: dict[str, list[Result]] = {}
    for result in results:
        if _wrong(result):
            by_attribute.setdefault(result.rows[0].attribute, []).append(result)
    return [_sentence(name, noisy) for name, noisy in by_attribute.items()]


def _sentence(attribute: str, results: Sequence[Result]) -> str:
    rates = ", ".join(f"{share:.1%} of {group}" for group, share in _wrong(results[0]).items())
    moved: list[tuple[float, str]] = []
    n_tested = 0
    for result in results:
        rows = {row.part: row for row in result.rows}
        for name in HEADLINES:
            row, move = rows.get(name), rows.get(_part(name))
            if row is None or move is None or math.isnan(row.ci_low + move.value):
                continue
            n_tested += 1
            wide = max(row.ci_high - row.value, row.value - row.ci_low)
            if not row.ci_low <= row.value + move.value <= row.ci_high:
                what = f"{headline_name(row, label(result))} by {_amount(move)}"
                moved.append((abs(move.value) / wide if wide else math.inf, what))
    first = f"If more {attribute} labels were wrong (a further {rates})"
    if not moved:
        return f"{first}, none of {counted(n_tested, 'headlines')} would leave its interval."
    names = [what for _, what in sorted(moved, key=lambda one: -one[0])]
    more = f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
    intervals = "its interval" if len(names) == 1 else "their intervals"
    return (
        f"{first}, {len(names)} of {counted(n_tested, 'headlines')} would leave {intervals}: "
        f"{', '.join(names[:_NAMED])}{more}."
    )


def _part(headline: str) -> str:
    return NOISE if headline == "score" else f"{headline}:{NOISE}"


def _amount(move: Row) -> str:
    if move.unit != "fraction":
        return f"{move.value:+.3g}"
    sign = "+" if move.value > 0 else ""
    return f"{sign}{percent(move.value)} points"


def _wrong(result: Result) -> Mapping[str, float]:
    """Group to the share of wrong labels that was asked for; possibly empty."""
    return mapping_in(result.facts.audit, NOISE, "wrong")
