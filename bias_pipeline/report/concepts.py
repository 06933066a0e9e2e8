"""The report's sections of queries: which of them retrieve one group, and which all alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bias_pipeline.errors import DataError
from bias_pipeline.io.extras import CLOUDS
from bias_pipeline.report.clouds import cloud
from bias_pipeline.report.figures import Bar, Plot, bars
from bias_pipeline.report.grids import Grid, grid_of
from bias_pipeline.report.sheets import Cell, Number, Section, Sheet
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import Result, ResultStore

CONCEPTS = "concepts"  # the table's name
RETRIEVED = "retrieved"  # that of the pictures they retrieve first
MOST_SHOWN = 12  # runs with pictures and clouds: a page is mailed
MOST_CLOUDS = 7  # groups of which clouds are drawn
ENDS = 10  # queries that are drawn, of the least and of the most alike
_FEWER = (
    f"Pictures and word clouds are shown of the first {MOST_SHOWN} runs alone; report fewer at "
    "once to see those of this one."
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
    """One section for each run that asked queries, and a sentence on each file that is damaged."""
    sections: list[Section] = []
    damaged: list[str] = []
    for result in with_settings(results):
        try:
            lines = store.table(result.run_id, CONCEPTS)
        except DataError as error:
            damaged.append(f"{error}. Its queries are not shown")
            continue
        groups = [key.removeprefix(_SHARE) for key in (lines or [{}])[0] if key.startswith(_SHARE)]
        if not (lines and groups and lines[0].keys() >= _COLUMNS):
            continue
        if len(sections) >= MOST_SHOWN:
            sections.append(_section(result, lines, groups, [], [_FEWER]))
            continue
        figures, texts, faults = _pictures(store, result, lines, groups)
        sections.append(_section(result, lines, groups, figures, texts))
        damaged += faults
    return sections, damaged


def _title(result: Result) -> str:
    row = result.rows[0]
    apart = ", ".join(f"{key}={value}" for key, value in result.settings.items())
    return ", ".join(filter(None, (f"Queries by {row.attribute}", row.dataset, apart)))


def _section(
    result: Result,
    lines: Sequence[Line],
    groups: Sequence[str],
    figures: Sequence[Plot],
    texts: Sequence[str],
) -> Section:
    """Whom queries retrieve, with further figures below the bars and what is said of them."""
    title = _title(result)
    told = (
        "Whom each query retrieves, the least alike first. Intervals resample images, and there is "
        "none where no resampling found anyone else. p is that of the exact count of each group, "
        "Holm's over all queries; where it is below .05 the group that is retrieved too often is "
        "named, in points above its share of all pictures."
    )
    return Section(
        title=title,
        texts=[told, *texts],
        figures=[_figure(title, lines, groups), *figures],
        sheets=[_sheet(lines, groups)],
        metrics=[result.rows[0].metric],
        chapter="Queries",
    )


def _pictures(
    store: ResultStore, result: Result, lines: Sequence[Line], groups: Sequence[str]
) -> tuple[list[Plot], list[str], list[str]]:
    """The grid and the clouds of a run, what is said of them, and faults."""
    title, faults = _title(result), []
    grid = None
    try:
        grid = grid_of(store.table(result.run_id, RETRIEVED), f"{title}: pictures")
    except DataError as error:
        faults.append(f"{store.root / result.run_id / RETRIEVED}.csv: {error}")
    clouds = _clouds(title, lines, groups)
    figures = [*([grid] if grid else []), *clouds]
    return figures, [_of_pictures(result, grid), _of_clouds(clouds, groups)], faults


def _of_pictures(result: Result, grid: Grid | None) -> str:
    """What the grid shows and under which terms, or why there is none."""
    audit = result.manifest.get("audit")
    terms = audit.get("shown_under") if isinstance(audit, Mapping) else None
    if grid is not None:
        return (
            "Pictures: those that the queries at either end retrieve first, the nearest first, as "
            "the model saw them, with the first seed. A query says nothing of the people shown. "
            f"Terms: {terms}."
        )
    if terms:
        return "Pictures: the run's folder holds none, so none are shown."
    return (
        f"Pictures: none are shown, for dataset {result.rows[0].dataset} does not say that they "
        "may be; of your own dataset.shown_under=TERMS says so."
    )


def _clouds(title: str, lines: Sequence[Line], groups: Sequence[str]) -> list[Plot]:
    """One for each group, if they can be drawn."""
    if not CLOUDS.there or len(groups) > MOST_CLOUDS:
        return []
    shares = {
        group: {line["concept"]: float(line[_SHARE + group]) for line in lines} for group in groups
    }
    return [cloud(own, f"{title}: {group}") for group, own in shares.items() if any(own.values())]


def _of_clouds(clouds: Sequence[Plot], groups: Sequence[str]) -> str:
    """What clouds show, or why there are none."""
    if clouds:
        return (
            f"Clouds, of {', '.join(groups)} in this order: the larger a concept, the larger the "
            "group's share of what it retrieves. Groups of whom nothing is retrieved have none."
        )
    if len(groups) > MOST_CLOUDS:
        return f"Word clouds are drawn of at most {MOST_CLOUDS} groups (metric.groups)."
    return f"Word clouds of each group: pip install 'bias_pipeline[{CLOUDS.name}]'."


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
            Number(_value(line["p_holm"]), digits=3),
            _too_many(line),
            *(Number(float(line[_SHARE + group]), fraction=True, digits=0) for group in groups),
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
    return Sheet(f"All {len(rows)} queries", head, rows, folded=True)


def _too_many(line: Line) -> str:
    """The group of which there are more than chance gives, and by how many points."""
    if not _value(line["p_holm"]) < _ALPHA:
        return ""
    return f"{line['over_represented']} {100 * _value(line['excess']):+.0f}"


def _fairness(line: Line) -> Number:
    value, low, high = (_value(line[key]) for key in ("fairness", "ci_low", "ci_high"))
    return Number(value, low, high, fraction=True, digits=1)


def _value(cell: str) -> float:
    """A number of a table, which is empty where there is none, such as ends that nothing moves."""
    return float(cell) if cell else math.nan
