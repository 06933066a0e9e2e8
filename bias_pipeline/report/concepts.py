"""The report's sections on queries, with the groups and pictures that each query retrieves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bias_pipeline.errors import DataError, inflect
from bias_pipeline.report.examples import Grid, grid_of
from bias_pipeline.report.figures import FigureBar, Plot, bars
from bias_pipeline.report.section import Section, stored_lines
from bias_pipeline.report.table import Cell, NumberCell, PCell, Table
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import ResultStore

CONCEPTS = "concepts"  # the table's name
RETRIEVED = "retrieved"  # the table of the pictures that queries retrieve first
MOST_SHOWN = 12  # most runs with pictures, since a page must be small enough to mail
ENDS = 10  # how many of the least equal, and of the most equal, queries are drawn
_FEWER = (
    f"Pictures are shown only for the first {MOST_SHOWN} runs; report fewer runs to see the "
    "pictures of this run."
)
_ALPHA = 0.05
_SHARE = "share:"
_COLUMNS = {
    "concept",
    "query",
    "fairness",
    "ci_low",
    "ci_high",
    "p_holm",
    "over_represented",
    "excess",
}

Line = Mapping[str, str]


def concept_sections(
    store: ResultStore, results: Sequence[Result]
) -> tuple[list[Section], list[str]]:
    """A section for each run with queries, and a sentence on each damaged file."""
    sections: list[Section] = []
    damaged: list[str] = []
    for result in with_settings(results):
        lost = "Its queries are not shown"
        lines = stored_lines(store, result, CONCEPTS, _COLUMNS, damaged, lost)
        groups = [key.removeprefix(_SHARE) for key in (lines or [{}])[0] if key.startswith(_SHARE)]
        if not groups:
            continue
        grid: Grid | None = None
        text = _FEWER
        if len(sections) < MOST_SHOWN:
            try:
                grid = grid_of(store.table(result, RETRIEVED), f"{_title(result)}: pictures")
            except DataError as error:
                damaged.append(f"{store.root / result.run_id / RETRIEVED}.csv: {error}")
            text = _of_pictures(result, grid)
        sections.append(_section(result, lines, groups, grid, text))
    return sections, damaged


def _title(result: Result) -> str:
    row = result.rows[0]
    apart = ", ".join(f"{key}={value}" for key, value in result.settings.items())
    return ", ".join(filter(None, (f"Queries by {row.attribute}", row.dataset, apart)))


def _section(
    result: Result,
    lines: Sequence[Line],
    groups: Sequence[str],
    grid: Grid | None,
    text: str,
) -> Section:
    """The section on the queries of a run: the groups they retrieve, with pictures and a text."""
    title = _title(result)
    explanation = (
        "Which groups each query retrieves, the most unequal first. Intervals resample images; a "
        "query that always retrieves the same groups has no interval. p tests the exact count of "
        "each group, corrected over all queries (Holm); if p is below .05, the table names the "
        "group that is retrieved too often, with points above its share of all pictures."
    )
    return Section(
        title=title,
        texts=[explanation, text],
        figures=[_figure(title, lines, groups), *([grid] if grid else [])],
        tables=[_table(lines, groups)],
        metrics=[result.rows[0].metric],
        chapter="Queries",
    )


def _of_pictures(result: Result, grid: Grid | None) -> str:
    """A text on the grid of pictures and their terms, or on why there is no grid."""
    terms = result.facts.audit.get("shown_under")
    if grid is not None:
        return (
            "Pictures: those nearest to the most unequal and the most equal queries (first "
            "seed), as the model saw them. A query says nothing about the people shown. "
            f"Terms: {terms}."
        )
    if terms:
        return "Pictures: the run's folder contains none."
    return (
        f"Pictures: none are shown, since dataset {result.rows[0].dataset} does not state terms "
        "that allow it; for your own data, set dataset.shown_under=TERMS."
    )


def _figure(title: str, lines: Sequence[Line], groups: Sequence[str]) -> Plot:
    """A figure of groups' shares in the pictures of the least and the most balanced queries."""
    shown = list(lines) if len(lines) <= 2 * ENDS else [*lines[:ENDS], *lines[-ENDS:]]
    query_bars = [
        FigureBar(line["concept"], [float(line[_SHARE + group]) for group in groups])
        for line in shown
    ]
    return bars(query_bars, groups, title, gap=ENDS if len(lines) > 2 * ENDS else None)


def _table(lines: Sequence[Line], groups: Sequence[str]) -> Table:
    rows: list[list[Cell]] = [
        [
            line["concept"],
            line["query"],
            _fairness(line),
            PCell(_value(line["p_holm"])),
            _too_many(line),
            *(NumberCell(float(line[_SHARE + group]), fraction=True, digits=0) for group in groups),
        ]
        for line in lines
    ]
    head = [
        "concept",
        "query",
        "fairness",
        "p (Holm)",
        "too many",
        *(f"{group}, share" for group in groups),
    ]
    return Table(f"All {inflect(len(rows), 'queries')}", head, rows, folded=True)


def _too_many(line: Line) -> str:
    """The group that is retrieved more often than by chance, and the difference in points."""
    if not _value(line["p_holm"]) < _ALPHA:
        return ""
    return f"{line['over_represented']} {100 * _value(line['excess']):+.0f}"


def _fairness(line: Line) -> NumberCell:
    value, low, high = (_value(line[key]) for key in ("fairness", "ci_low", "ci_high"))
    return NumberCell(value, low, high, fraction=True, digits=1)


def _value(cell: str) -> float:
    """A number of a table, or NaN for an empty cell."""
    return float(cell) if cell else math.nan
