"""Small tests of papers' conclusions, on numbers by captioner (or by column of a table)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np

from bias_pipeline.stats.compare import holm, p_of_interval

LEVEL = 0.05


@dataclass(frozen=True)
class ClaimNumber:
    """A number, and half the width of its 95 % interval, NaN where it is unknown."""

    value: float
    half: float = math.nan


Series = Mapping[str, ClaimNumber]


@dataclass(frozen=True)
class ClaimCheck:
    """The result of a test.

    Attributes:
        finding: in numbers.
        follows: ``yes``, ``no``, ``not shown`` (the numbers are too few or too uncertain),
            ``not tested`` (they are absent), or ``depends`` (on the reading).
    """

    finding: str
    follows: str


def same_order(a: Series, b: Series) -> ClaimCheck:
    """Two attackers put captioners in the same order, beyond chance (Spearman)."""
    from scipy import stats

    rho, p = stats.spearmanr(*_paired(a, b))
    return ClaimCheck(f"Spearman {rho:.2f}, p {p:.3f}", "yes" if p < LEVEL else "not shown")


def all_above(a: Series, sure: bool = False) -> ClaimCheck:
    """All numbers lie above 0, or (``sure``) their intervals do."""
    return _all_beyond(a, sure, 1, "above")


def all_below(a: Series, sure: bool = False) -> ClaimCheck:
    """All numbers lie below 0, or (``sure``) their intervals do."""
    return _all_beyond(a, sure, -1, "below")


def most_above(a: Series) -> ClaimCheck:
    """More than half of the numbers lie above 0."""
    n = sum(x.value > 0 for x in a.values())
    return ClaimCheck(f"{n} of {len(a)} above 0", "yes" if 2 * n > len(a) else "no")


def all_lower(a: Series, b: Series) -> ClaimCheck:
    """Every number of ``a`` lies below that of ``b``; how many significantly, where known."""
    gaps = {name: x.value - b[name].value for name, x in a.items()}
    lower = [name for name, gap in gaps.items() if gap < 0]
    finding = f"{len(lower)} of {len(gaps)} lower"
    halves = [math.hypot(x.half, b[name].half) for name, x in a.items()]
    if not math.isnan(sum(halves)):
        p_values = [p_of_interval(g, h) for g, h in zip(gaps.values(), halves, strict=True)]
        adjusted = dict(zip(gaps, holm(p_values), strict=True))
        finding += f", {sum(adjusted[n] < LEVEL for n in lower)} significantly (Holm)"
    others = [f"{name} {gap:+.1f}" for name, gap in gaps.items() if gap >= 0]
    finding += f"; not lower: {', '.join(others)}" if others else ""
    return ClaimCheck(finding, "no" if others else "yes")


def lowest(a: Series, one: str) -> ClaimCheck:
    """One captioner has a lower number than all others."""
    return _last_of(sorted(a, key=lambda name: -a[name].value), a, one)


def highest(a: Series, one: str) -> ClaimCheck:
    """One captioner has a higher number than all others."""
    return _last_of(sorted(a, key=lambda name: a[name].value), a, one)


def raised(a: Series, one: str, other: str, claimed: bool = True) -> ClaimCheck:
    """One captioner is significantly higher than another; or, not ``claimed``, it is not."""
    absent = [name for name in (one, other) if name not in a]
    if absent:
        return ClaimCheck(f"{absent[0]}: its captions are not among the files here", "not tested")
    gap = a[one].value - a[other].value
    half = math.hypot(a[one].half, a[other].half)
    if math.isnan(half):
        return ClaimCheck(f"{gap:+.1f}", "yes" if (gap > 0) == claimed else "no")
    p = p_of_interval(gap, half)
    above = gap > 0 and p < LEVEL
    return ClaimCheck(f"{gap:+.1f}, p {p:.3f}", "yes" if above == claimed else "no")


def times(a: Series, one: str, other: str, about: float) -> ClaimCheck:
    """One captioner has about ``about`` times the number of another, rounded."""
    if not {one, other} <= set(a):
        return ClaimCheck("captions of one of the two are not among the files here", "not tested")
    ratio = a[one].value / a[other].value
    return ClaimCheck(f"{ratio:.2f} times", "yes" if round(ratio) == about else "no")


def mean_is(a: Series, printed: float, within: float = 0.01) -> ClaimCheck:
    """The printed mean is the mean of the printed numbers."""
    mean = fmean(x.value for x in a.values())
    follows = "yes" if abs(mean - printed) <= within else "no"
    return ClaimCheck(f"{len(a)} cells average {mean:.2f}, printed {printed:.2f}", follows)


def pearson_is(a: Series, b: Series, claimed: float, within: float = 1.0) -> ClaimCheck:
    """The claimed correlation, in per cent, is the correlation of the printed numbers."""
    r = 100 * float(np.corrcoef(*_paired(a, b))[0, 1])
    return ClaimCheck(f"Pearson {r:.2f}, claimed {claimed:g}", _within(abs(r - claimed), within))


def same_numbers(a: Series, b: Series, within: float = 0.01) -> ClaimCheck:
    """Two tables print the same numbers, signs included."""
    pairs = {name: (x.value, b[name].value) for name, x in a.items()}
    alike = [n for n, (x, y) in pairs.items() if abs(abs(x) - abs(y)) <= within + 1e-9]
    turned = [n for n in alike if pairs[n][0] * pairs[n][1] < 0]
    finding = f"{len(alike)} of {len(pairs)} agree in size"
    finding += _apart(pairs, alike)
    finding += f", {len(turned)} of them with opposite sign: {', '.join(turned)}" if turned else ""
    return ClaimCheck(finding, "yes" if len(alike) == len(pairs) and not turned else "no")


def not_copied(a: Series, b: Series) -> ClaimCheck:
    """Two lines that measure different things do not print the same numbers throughout."""
    n = sum(x.value == b[name].value for name, x in a.items())
    return ClaimCheck(f"{n} of {len(a)} cells equal", "no" if n == len(a) else "yes")


def same_sign(a: Series, b: Series) -> ClaimCheck:
    """Two tables of one thing agree in the sign of every number."""
    turned = [name for name, x in a.items() if x.value * b[name].value < 0]
    finding = f"{len(a) - len(turned)} of {len(a)} have the same sign"
    return ClaimCheck(
        finding + (f", not: {', '.join(turned)}" if turned else ""), "no" if turned else "yes"
    )


def rising(a: Series) -> ClaimCheck:
    """The numbers rise from first to last."""
    values = [x.value for x in a.values()]
    rises = all(one < two for one, two in pairwise(values))
    return ClaimCheck(", ".join(f"{v:g}" for v in values), "yes" if rises else "no")


def merged(verdicts: Sequence[ClaimCheck]) -> ClaimCheck:
    """Verdicts of one test under several readings, as one."""
    tested = [v for v in verdicts if v.follows != "not tested"]
    if not tested:
        return verdicts[0]
    n = sum(v.follows == "yes" for v in tested)
    follows = "yes" if n == len(tested) else "depends" if n else "no"
    return ClaimCheck(f"follows under {n} of {len(tested)} readings", follows)


TESTS: Mapping[str, Callable[..., ClaimCheck]] = {
    test.__name__: test
    for test in (
        same_order, all_above, all_below, most_above, all_lower, lowest, highest, raised, times,
        mean_is, pearson_is, same_numbers, not_copied, same_sign, rising,
    )
}  # fmt: skip


def _all_beyond(a: Series, sure: bool, sign: int, word: str) -> ClaimCheck:
    margin = {name: x.half if sure else 0.0 for name, x in a.items()}
    others = [f"{n} {x.value:+.1f}" for n, x in a.items() if not sign * x.value - margin[n] > 0]
    finding = f"{len(a) - len(others)} of {len(a)} {word} 0"
    finding += f", not: {', '.join(others)}" if others else ""
    return ClaimCheck(finding, "no" if others else "yes")


def _last_of(ordered: Sequence[str], a: Series, one: str) -> ClaimCheck:
    before, last = ordered[-2:]
    finding = f"{last} {a[last].value:g}, next {before} {a[before].value:g}"
    alone = last == one and a[before].value != a[last].value
    return ClaimCheck(finding, "yes" if alone else "no")


def _apart(pairs: Mapping[str, tuple[float, float]], alike: Sequence[str]) -> str:
    others = [f"{n} {x:g} and {y:g}" for n, (x, y) in pairs.items() if n not in alike]
    return f", not: {', '.join(others)}" if others else ""


def _paired(a: Series, b: Series) -> tuple[list[float], list[float]]:
    return [x.value for x in a.values()], [b[name].value for name in a]


def _within(gap: float, limit: float) -> str:
    return "yes" if gap <= limit else "no"
