"""``analysis claims``: papers' conclusions, tested in their own tables and in our runs.

The register is data (``experiments/claims/claims.yaml``): claims in our words, each with checks
that name the printed cells or committed rows they rest on and a test of
:mod:`bias_pipeline.analysis.claim_checks`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bias_pipeline.analysis.claim_checks import TESTS, ClaimCheck, ClaimNumber, Series, merged
from bias_pipeline.analysis.sensitivity import coefficient_of_variation
from bias_pipeline.errors import DataError, ResourceError, did_you_mean

REGISTER = Path("claims") / "claims.yaml"
_NORMAL = 1.959964
_SERIES = ("a", "b")
_WORDS = ("where", "what", "test", "negated", *_SERIES)
# Keys that say how rows are read, not which rows.
_HOW = ("rows", "readings", "by", "scale", "from")
_OPPOSITE = {"yes": "no", "no": "yes"}


@dataclass(frozen=True)
class ClaimLine:
    """One check of one claim.

    Attributes:
        paper: who claims it.
        claim: the claim's short name.
        where: the paper's own tables, or our runs.
        what: what was compared.
        verdict: the result.
    """

    paper: str
    claim: str
    where: str
    what: str
    verdict: ClaimCheck


def judge_claim(folder: Path, paper: str | None = None) -> list[ClaimLine]:
    """Every check of the register, in its order.

    Args:
        folder: ``experiments``, with the register, the published cells and our rows.
        paper: only the claims of this paper; None for all.

    Raises:
        ResourceError: if a file is absent.
        DataError: if a check names an unknown test or cells that do not exist.
    """
    entries = [entry for entry in register(folder) if paper in (None, entry["paper"])]
    return [
        ClaimLine(
            entry["paper"], entry["claim"], check["where"], check["what"], _verdict(check, folder)
        )
        for entry in entries
        for check in entry["checks"]
    ]


def register(folder: Path) -> list[dict[str, Any]]:
    """The claims as the register has them.

    Raises:
        ResourceError: if the file is absent.
    """
    path = folder / REGISTER
    if not path.is_file():
        raise ResourceError(
            f"{path} is absent: the register is part of the repository, not of an installed "
            "package; run this command from a checkout"
        )
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
    word = "depends on the reading" if depends else word
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
    return verdicts[0] if len(verdicts) == 1 else merged(verdicts)


def _series(cells: Mapping[str, Any], folder: Path) -> Iterator[Series]:
    """The numbers that a check names; several series where it names readings."""
    all_series = _published(cells, folder) if "paper" in cells else _rows(cells, folder)
    for series in all_series:
        if not series:
            raise DataError(f"{folder / REGISTER}: no cells fit {dict(cells)}")
        yield _distances(series, cells["from"]) if "from" in cells else series


def _distances(series: Series, origin: float) -> Series:
    """How far each number lies from ``origin``, on either side."""
    return {name: ClaimNumber(abs(x.value - origin), x.half) for name, x in series.items()}


def _published(cells: Mapping[str, Any], folder: Path) -> Iterator[Series]:
    """Printed cells: a column by row, a row by column, a single cell, or the variation of rows."""
    lines = _read(folder / "published" / f"{cells['paper']}.csv")
    fixed = {key: str(cells.get(key, "")) for key in ("table", "part")}
    table = [line for line in lines if all(line[key] == value for key, value in fixed.items())]
    given = {key: str(cells[key]) for key in ("row", "column") if key in cells}
    chosen = [line for line in table if all(line[key] == value for key, value in given.items())]
    if cells.get("variation"):
        yield _variation(chosen)
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


def _variation(lines: Sequence[Mapping[str, str]]) -> Series:
    """Row to the coefficient of variation of its cells, in per cent as tables print it."""
    cells: dict[str, list[float]] = {}
    for line in lines:
        cells.setdefault(line["row"], []).append(float(line["value"]))
    return {
        row: ClaimNumber(float(coefficient_of_variation(np.array(values))), math.nan)
        for row, values in cells.items()
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
    return _NORMAL * math.sqrt(sum(x**2 for x in chosen) / cells["seeds"])


def _rows(cells: Mapping[str, Any], folder: Path) -> Iterator[Series]:
    """Rows of one of our studies, in per cent, by captioner or another key; a series a reading."""
    axis, scale = cells.get("by", "captioner"), cells.get("scale", 100)
    fixed = {key: value for key, value in cells.items() if key not in _HOW}
    lines = [
        line
        for line in _read(folder / cells["rows"] / "rows.csv")
        if all(_fits(line[key], value) for key, value in fixed.items())
    ]
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
