"""Scores on anonymous pictures for people: tables on the screen, files, and a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.io.files import replace_file, table_csv
from bias_pipeline.io.terminal import print_out, printable
from bias_pipeline.people.anonymous import (
    ANONYMOUS,
    GT,
    HERE,
    PEOPLE,
    AnonymousRow,
    CorrelationRow,
)
from bias_pipeline.report.figures import Colours, Plot, name_points
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, PCell, Table, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORES, CORRELATIONS, FIGURE = "scores.csv", "correlations.csv", "figure"
_MARKERS = "os^Dv"
_NAMES = {"lic": "LIC", "imagecaptioner2": "ImageCaptioner2"}


def write_rows(folder: Path, rows: Sequence[AnonymousRow], lines: Sequence[CorrelationRow]) -> None:
    """Write both tables."""
    for name, table in ((SCORES, rows), (CORRELATIONS, lines)):
        text = table_csv([asdict(one) for one in table])
        replace_file(folder / name, text.encode())


def print_scores(rows: Sequence[AnonymousRow]) -> None:
    """Print the numbers of captioners in per cent, a column each, with their intervals."""
    keys = list(dict.fromkeys((row.metric, row.part, row.data) for row in rows))
    cells = {(row.captioner, row.metric, row.part, row.data): _cell(row) for row in rows}
    names = list(dict.fromkeys(row.captioner for row in rows))
    rows_of_numbers = [[name, *(cells.get((name, *key)) for key in keys)] for name in names]
    print_table(Table("", ["captioner", *map(_column, keys)], rows_of_numbers))


def print_correlations(lines: Sequence[CorrelationRow]) -> None:
    """Print the correlations of metrics with what people name."""
    head = ["with what people name", "Pearson", "p", "captioners", "from"]
    cells: list[list[Cell]] = [
        [
            _column((line.metric, line.part, line.data)),
            NumberCell(line.value, line.ci_low, line.ci_high),
            PCell(line.p_value),
            NumberCell(line.n_captioners, digits=0),
            line.source,
        ]
        for line in lines
    ]
    print_table(Table("", head, cells))
    print_out()


def _column(key: tuple[str, str, str]) -> str:
    """What a number is called.

    Example:
        >>> _column(("people", "gt", "anonymous")), _column(("lic", "score", "coco"))
        ('GT', 'LIC score on coco')
    """
    metric, part, data = key
    if metric == PEOPLE:
        return part.replace(GT, "GT").replace(":", " ")
    name = _NAMES.get(metric, metric)
    return name if data == ANONYMOUS else f"{name} {part} on {data}"


def _cell(row: AnonymousRow) -> NumberCell:
    if row.part == "alpha":
        return NumberCell(row.value)
    low, high = (None, None) if math.isnan(row.ci_low) else (row.ci_low, row.ci_high)
    return NumberCell(row.value, low, high, fraction=True, digits=1)


def figure_of(rows: Sequence[AnonymousRow], lines: Sequence[CorrelationRow]) -> Plot | None:
    """Figure 4: what attackers make of each captioner's captions against what people name."""
    people = {row.captioner: row for row in rows if (row.metric, row.part) == (PEOPLE, GT)}
    shown = [line for line in lines if line.data == ANONYMOUS and line.source == HERE]
    points = {
        line: [
            (100 * people[row.captioner].value, 100 * row.value, row.captioner)
            for row in rows
            if (row.metric, row.part, row.data) == (line.metric, line.part, line.data)
            and row.captioner in people
        ]
        for line in shown
    }
    if not any(points.values()):
        return None
    attribute = rows[0].attribute

    def draw(axes: Axes, colours: Colours) -> None:
        strengths = [1 - 0.6 * place / max(len(shown), 1) for place in range(len(shown))]
        for (line, of_line), marker, strength in zip(
            points.items(), _MARKERS, strengths, strict=False
        ):
            label = f"{_column((line.metric, line.part, line.data))}, r = {number(line.value)}"
            across, up = [x for x, _, _ in of_line], [y for _, y, _ in of_line]
            axes.plot(
                across, up, marker, color=colours.mark, alpha=strength, label=label, markersize=6
            )
        axes.set_xlabel(f"captions whose readers name a {printable(attribute)}, per cent")
        axes.set_ylabel("attackers' largest probability, per cent")
        axes.figure.legend(loc="outside upper center", ncols=2, frameon=False)
        every = [point for of_line in points.values() for point in of_line]
        places = [(x, y) for x, y, _ in every]
        name_points(axes, places, [printable(name) for *_, name in every], (), colours.faint)

    title = f"Attackers and people on anonymous pictures, {attribute}"
    return Plot(title, (6.4, 4.4), draw)


def write_figure(folder: Path, attribute: str, plot: Plot) -> Iterable[Path]:
    """Write the figure as SVG and PNG."""
    for ending, content in ((".svg", plot.svg().encode()), (".png", plot.png())):
        path = folder / f"{FIGURE}-{attribute}{ending}"
        replace_file(path, content)
        yield path
