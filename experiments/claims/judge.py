"""Papers' conclusions, tested in their own tables and in our runs.

``python -m experiments.claims.judge > experiments/claims/RESULTS.md`` runs no study. The register
is data (``claims.yaml``): claims in our words, each with checks that name the printed cells or
committed rows they rest on and a small test, on numbers by captioner (or by column of a table).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import yaml

from bias_pipeline.errors import DataError, ResourceError, did_you_mean
from bias_pipeline.stats.compare import holm, p_of_interval
from bias_pipeline.stats.shares import NORMAL_95
from bias_pipeline.studies.attacker_agreement import coefficient_of_variation

LEVEL = 0.05


@dataclass(frozen=True)
class ClaimNumber:
    """A number, and half the width of its 95 % interval, NaN where it is unknown."""

    value: float
    half: float = math.nan


Series = Mapping[str, ClaimNumber]


@dataclass(frozen=True)
class ClaimCheck:
    """The result of a test."""

    finding: str  # in numbers
    # `yes`, `no`, `not shown` (the numbers are too few or too uncertain), `not tested` (they are
    # absent), or `depends` (on the reading)
    follows: str


def same_order(a: Series, b: Series) -> ClaimCheck:
    """Two attackers put captioners in the same order, beyond chance (Spearman)."""
    from scipy import stats

    rho, p = stats.spearmanr(*_paired_values(a, b))
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
    """Every number of ``a`` lies below its number of ``b``; how many significantly, where known."""
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


def is_raised(a: Series, one: str, other: str, claimed: bool = True) -> ClaimCheck:
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
    r = 100 * float(np.corrcoef(*_paired_values(a, b))[0, 1])
    follows = "yes" if abs(r - claimed) <= within else "no"
    return ClaimCheck(f"Pearson {r:.2f}, claimed {claimed:g}", follows)


def same_numbers(a: Series, b: Series, within: float = 0.01) -> ClaimCheck:
    """Two tables print the same numbers, signs included."""
    pairs = {name: (x.value, b[name].value) for name, x in a.items()}
    alike = [n for n, (x, y) in pairs.items() if abs(abs(x) - abs(y)) <= within + 1e-9]
    turned = [n for n in alike if pairs[n][0] * pairs[n][1] < 0]
    finding = f"{len(alike)} of {len(pairs)} agree in size"
    finding += _differing_text(pairs, alike)
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


def merge_checks(verdicts: Sequence[ClaimCheck]) -> ClaimCheck:
    """Verdicts of one test under several interpretations, as one."""
    tested = [v for v in verdicts if v.follows != "not tested"]
    if not tested:
        return verdicts[0]
    n = sum(v.follows == "yes" for v in tested)
    follows = "yes" if n == len(tested) else "depends" if n else "no"
    return ClaimCheck(f"follows under {n} of {len(tested)} interpretations", follows)


TESTS: Mapping[str, Callable[..., ClaimCheck]] = {
    test.__name__: test
    for test in (
        same_order, all_above, all_below, most_above, all_lower, lowest, highest, is_raised, times,
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


def _differing_text(pairs: Mapping[str, tuple[float, float]], alike: Sequence[str]) -> str:
    others = [f"{n} {x:g} and {y:g}" for n, (x, y) in pairs.items() if n not in alike]
    return f", not: {', '.join(others)}" if others else ""


def _paired_values(a: Series, b: Series) -> tuple[list[float], list[float]]:
    return [x.value for x in a.values()], [b[name].value for name in a]


REGISTER = Path("claims") / "claims.yaml"
_SERIES = ("a", "b")
_WORDS = ("where", "what", "test", "negated", *_SERIES)
# Keys that say how rows are read, not which rows.
_HOW = ("rows", "readings", "by", "scale", "from", "variation")
_OPPOSITE = {"yes": "no", "no": "yes"}


@dataclass(frozen=True)
class ClaimLine:
    """One check of one claim."""

    paper: str  # who claims it
    claim: str  # the claim's short name
    where: str  # the paper's own tables, or our runs
    what: str  # what was compared
    verdict: ClaimCheck  # the result


def judge_claims(folder: Path, paper: str | None = None) -> list[ClaimLine]:
    """Every check of the register in ``experiments``, in its order, or the checks of one paper."""
    entries = [entry for entry in register(folder) if paper in (None, entry["paper"])]
    return [
        ClaimLine(
            entry["paper"], entry["claim"], check["where"], check["what"], _verdict(check, folder)
        )
        for entry in entries
        for check in entry["checks"]
    ]


def register(folder: Path) -> list[dict[str, Any]]:
    """The claims as the register has them."""
    path = folder / REGISTER
    entries: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["claims"]
    return entries


def claims_report(lines: Sequence[ClaimLine]) -> str:
    """The result of each claim, then every check, as Markdown."""
    return (
        f"# What papers conclude, tested\n\n## By claim\n\n{claims_summary(lines)}\n"
        f"## Every check\n\n{claims_markdown(lines)}"
    ).rstrip("\n")


def claims_markdown(lines: Sequence[ClaimLine]) -> str:
    """A table with a line for each check."""
    header = "| paper | claim | where | what was compared | finding | follows |"
    rows = [
        [x.paper, x.claim, x.where, x.what, x.verdict.finding, x.verdict.follows] for x in lines
    ]
    table = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([header, "|" + " --- |" * 6, *table]) + "\n"


def claims_summary(lines: Sequence[ClaimLine]) -> str:
    """A table: for every claim, in how many checks it holds, by place."""
    places = list(dict.fromkeys(line.where for line in lines))
    header = "| paper | claim | " + " | ".join(places) + " |"
    table = [header, "|" + " --- |" * (2 + len(places))]
    for paper, claim in dict.fromkeys((line.paper, line.claim) for line in lines):
        claim_lines = [line for line in lines if (line.paper, line.claim) == (paper, claim)]
        cells = [_outcome([x.verdict for x in claim_lines if x.where == place]) for place in places]
        table.append("| " + " | ".join([paper, claim, *cells]) + " |")
    return "\n".join(table) + "\n"


def _outcome(verdicts: Sequence[ClaimCheck]) -> str:
    tested = [v for v in verdicts if v.follows != "not tested"]
    if not tested:
        return "not tested"
    n = sum(v.follows == "yes" for v in tested)
    word = "holds" if n == len(tested) else "partly" if n else "does not hold"
    depends = any(v.follows == "depends" for v in tested)
    word = "depends on the interpretation" if depends else word
    return f"{word} ({n} of {len(tested)})"


def _verdict(check: Mapping[str, Any], folder: Path) -> ClaimCheck:
    if check["test"] not in TESTS:
        raise DataError(
            f"{folder / REGISTER}: test {check['test']!r} is unknown; "
            f"{did_you_mean(check['test'], TESTS)}"
        )
    options = {key: value for key, value in check.items() if key not in _WORDS}
    named = [name for name in _SERIES if name in check]
    all_series = [list(_series(check[name], folder)) for name in named]
    verdicts = [
        TESTS[check["test"]](**dict(zip(named, series, strict=True)), **options)
        for series in zip(*all_series, strict=True)
    ]
    if check.get("negated"):
        verdicts = [ClaimCheck(v.finding, _OPPOSITE.get(v.follows, v.follows)) for v in verdicts]
    return verdicts[0] if len(verdicts) == 1 else merge_checks(verdicts)


def _series(cells: Mapping[str, Any], folder: Path) -> Iterator[Series]:
    """The numbers that a check names; several series where it names interpretations."""
    all_series = _printed_series(cells, folder) if "paper" in cells else _rows(cells, folder)
    for series in all_series:
        if not series:
            raise DataError(f"{folder / REGISTER}: no cells fit {dict(cells)}")
        yield _distances(series, cells["from"]) if "from" in cells else series


def _distances(series: Series, origin: float) -> Series:
    """How far each number lies from ``origin``, on either side."""
    return {name: ClaimNumber(abs(x.value - origin), x.half) for name, x in series.items()}


def _printed_series(cells: Mapping[str, Any], folder: Path) -> Iterator[Series]:
    """Printed cells: a column by row, a row by column, a single cell, or the variation of rows."""
    lines = _read(folder / "published" / f"{cells['paper']}.csv")
    fixed = {key: str(cells.get(key, "")) for key in ("table", "part")}
    table = [line for line in lines if all(line[key] == value for key, value in fixed.items())]
    given = {key: str(cells[key]) for key in ("row", "column") if key in cells}
    chosen = [line for line in table if all(line[key] == value for key, value in given.items())]
    if cells.get("variation"):
        yield _variation(chosen, "row")
        return
    axis = "column" if "column" not in given else "row"
    deviations = {(line["row"], line["column"]): float(line["std"] or "nan") for line in table}
    scale = cells.get("scale", 1)
    yield {
        cells.get("as", line[axis]): ClaimNumber(
            scale * float(line["value"]), scale * _printed_half(line, cells, deviations)
        )
        for line in chosen
        if line[axis] not in cells.get("without", [])
    }


def _variation(lines: Sequence[Mapping[str, str]], axis: str) -> Series:
    """Name in a column to the coefficient of variation of its cells."""
    cells: dict[str, list[float]] = {}
    for line in lines:
        cells.setdefault(line[axis], []).append(float(line["value"]))
    return {
        name: ClaimNumber(float(coefficient_of_variation(np.array(values))), math.nan)
        for name, values in cells.items()
    }


def _printed_half(
    line: Mapping[str, str],
    cells: Mapping[str, Any],
    deviations: Mapping[tuple[str, str], float],
) -> float:
    """Half an interval: as printed, or from seeds' deviations of columns, taken as independent."""
    if "deviations" not in cells:
        return float(line.get("ci95") or "nan")
    chosen = [deviations[line["row"], column] for column in cells["deviations"]]
    return NORMAL_95 * math.sqrt(sum(x**2 for x in chosen) / cells["seeds"])


def _rows(cells: Mapping[str, Any], folder: Path) -> Iterator[Series]:
    """Rows of one of our studies, in per cent, by captioner or another key; one series each."""
    axis, scale = cells.get("by", "captioner"), cells.get("scale", 100)
    fixed = {key: value for key, value in cells.items() if key not in _HOW}
    path = folder / cells["rows"]
    lines = [
        line
        for line in _read(path if path.suffix else path / "rows.csv")
        if all(_fits(line[key], value) for key, value in fixed.items())
    ]
    if cells.get("variation"):
        yield _variation(lines, axis)
        return
    by = cells.get("readings", [])
    readings = dict.fromkeys(tuple(line[key] for key in by) for line in lines)
    for reading in readings or [()]:
        yield {
            line[axis]: _number(line, scale)
            for line in lines
            if tuple(line[key] for key in by) == reading
        }


def _fits(cell: str, wanted: object) -> bool:
    return cell in map(str, wanted) if isinstance(wanted, list) else cell == str(wanted)


def _number(line: Mapping[str, str], scale: float) -> ClaimNumber:
    value, low, high = (
        scale * float(line.get(key) or "nan") for key in ("value", "ci_low", "ci_high")
    )
    return ClaimNumber(value, (high - low) / 2)


def _read(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise ResourceError(f"{path} is absent; run this command from a complete checkout")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    print(claims_report(judge_claims(Path(__file__).parents[1])))
