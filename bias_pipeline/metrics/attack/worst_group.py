"""Scores of single groups: which is worst, and how far the groups are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bias_pipeline.stats.bootstrap import Estimate, summary

NO_LESS_THAN_NONE = (0.0, math.inf)  # the range of a gap


@dataclass(frozen=True)
class Gap:
    """The largest difference between two groups' scores."""

    worst: str  # the group with the highest score; lower is fairer
    best: str  # the group with the lowest
    # Worst minus best. As the two are chosen from all groups, the interval is corrected for all
    # pairs of groups (Bonferroni).
    estimate: Estimate


def gap_of(groups: Mapping[str, Estimate], level: float) -> Gap | None:
    """The largest gap between groups; None if fewer than two have a score.

    Args:
        groups: name to its score, all from the same seeds and settings of the bootstrap.
        level: coverage of the interval, in (0, 1).
    """
    known = {name: e for name, e in groups.items() if math.isfinite(e.value)}
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda name: known[name].value)
    best, worst = known[ordered[0]].draws, known[ordered[-1]].draws
    assert best is not None
    assert worst is not None
    corrected = 1 - (1 - level) / math.comb(len(known), 2)
    return Gap(ordered[-1], ordered[0], summary(worst - best, corrected))


def sentence(of: str, groups: Mapping[str, Estimate], gap: Gap) -> str:
    """Worst group and largest gap, in per cent.

    Args:
        of: what was scored, such as ``lic`` or ``A→T``.
        groups: see :func:`gap_of`.
        gap: from there.
    """
    return (
        f"{of}: worst group {gap.worst} {_formatted(groups[gap.worst])}; largest gap "
        f"{_formatted(gap.estimate)}, to {gap.best}"
    )


def _formatted(e: Estimate) -> str:
    return f"{100 * e.value:.1f} [{100 * e.ci_low:.1f}, {100 * e.ci_high:.1f}]"
