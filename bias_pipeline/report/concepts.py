"""The report's sections of queries: which of them retrieve one group, and which all alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bias_pipeline.errors import DataError
from bias_pipeline.report.figures import Bar, Plot, bars
from bias_pipeline.report.sheets import Cell, Number, Section, Sheet
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import Result, ResultStore

CONCEPTS = "concepts"  # the table's name
ENDS = 10  # queries that are drawn, of the least and of the most alike
_SHARE = "share:"
_COLUMNS = {"concept", "query", "fairness", "ci_low", "ci_high", "p_holm"}

Line = Mapping[str, str]


def concept_sections(
    store: ResultStore, results: Sequence[Result]
) -> tuple[list[Section], list[str]]:
    """One section for each run that asked queries, and a sentence on each file that is damaged."""
    sections, damaged = [], []
    for result in with_settings(results):
        try:
            lines = store.table(result.run_id, CONCEPTS)
        except DataError as error:
            damaged.append(f"{error}. Its queries are not shown")
            continue
        groups = [key.removeprefix(_SHARE) for key in (lines or [{}])[0] if key.startswith(_SHARE)]
        if lines and groups and lines[0].keys() >= _COLUMNS:
            sections.append(_section(result, lines, groups))
    return sections, damaged


def _section(result: Result, lines: Sequence[Line], groups: Sequence[str]) -> Section:
    row = result.rows[0]
    apart = ", ".join(f"{key}={value}" for key, value in result.settings.items())
    title = ", ".join(filter(None, (f"Queries by {row.attribute}", row.dataset, apart)))
    texts = [
        "Whom each query retrieves, the least alike first. Intervals resample images; p is Holm's "
        "over all queries."
    ]
    return Section(
        title=title,
        texts=texts,
        figures=[_figure(title, lines, groups)],
        sheets=[_sheet(lines, groups)],
        metrics=[row.metric],
        chapter="Queries",
    )


def _figure(title: str, lines: Sequence[Line], groups: Sequence[str]) -> Plot:
    """The groups' shares of what queries at either end retrieve."""
    shown = list(lines) if len(lines) <= 2 * ENDS else [*lines[:ENDS], *lines[-ENDS:]]
    own = [
        Bar(line["concept"], [float(line[_SHARE + group]) for group in groups]) for line in shown
    ]
    return bars(own, groups, title, gap=ENDS if len(lines) > 2 * ENDS else None)


def _sheet(lines: Sequence[Line], groups: Sequence[str]) -> Sheet:
    rows: list[list[Cell]] = [
        [
            line["concept"],
            line["query"],
            _fairness(line),
            Number(float(line["p_holm"]), digits=3),
            *(Number(float(line[_SHARE + group]), fraction=True, digits=0) for group in groups),
        ]
        for line in lines
    ]
    head = ["concept", "query", "fairness", "p (Holm)", *(f"{group}, share" for group in groups)]
    return Sheet(f"All {len(rows)} queries", head, rows, folded=True)


def _fairness(line: Line) -> Number:
    value, low, high = (float(line[key]) for key in ("fairness", "ci_low", "ci_high"))
    return Number(value, low, high, fraction=True, digits=1)
