"""Examples of captions and words for a report's first screen, and grids of retrieved pictures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from bias_pipeline.data.photos import SIDE, read_thumbnail
from bias_pipeline.errors import DataError
from bias_pipeline.io.terminal import printable
from bias_pipeline.report.figures import Colours, Plot
from bias_pipeline.report.section import stored_lines
from bias_pipeline.report.table import Cell, Table
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from bias_pipeline.text.transform import EXAMPLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bias_pipeline.report.explain.words import RevealingWords

MISNAMED = "misnamed"
# A run's tables of examples, with the columns that are shown.
_TABLES = {
    MISNAMED: {"image_id", "labelled", "named", "caption", "wrong"},
    EXAMPLES: {"image_id", "before", "after"},
    "assumed": {"named", "image_id", "caption"},
    "described_captions": {"concept", "group", "image_id", "caption"},
    "invented_captions": {"object", "group", "image_id", "caption"},
}
# By question, the table of its card's captions, and the columns that distinguish their kinds.
_KINDS = {
    "misgendering": (MISNAMED, ("labelled", "named")),
    "assuming": ("assumed", ("named",)),
    "describing": ("described_captions", ("concept", "group")),
    "inventing": ("invented_captions", ("object", "group")),
}
_OF_NAMED = {"describing", "inventing"}  # captions are shown of the things that a Yes names
_MOST_KINDS = 4  # most captions on a card
_EDITED = 3  # most captions that are shown before and after a change
_LONGEST = 200  # most characters of a shown caption
ABSENT = (
    "There are no captions to show: an earlier version made these runs, or no caption names the "
    "wrong group."
)


Lines = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class ScreenExamples:
    # By name of a table and by run id, the run's lines
    lines: Mapping[str, Mapping[str, Lines]] = field(default_factory=dict)
    # Attribute, data set and captioner to the most revealing words
    words: Mapping[tuple[str, str, str], Table] = field(default_factory=dict)

    def _run_lines(self, table: str, result: Result) -> Lines:
        return self.lines.get(table, {}).get(result.run_id, ())

    def tables_behind(self, kind: str, result: Result) -> list[Table]:
        """The examples that a panel shows for one captioner."""
        row = result.rows[0]
        if kind == "misgendering" and (misnamed := self._run_lines(MISNAMED, result)):
            return [misnamed_table(misnamed)]
        if kind != "leakage":
            return []
        key = (row.attribute, row.dataset, row.captioner)
        edited = [edited_table(lines)] if (lines := self._run_lines(EXAMPLES, result)) else []
        return edited + ([self.words[key]] if key in self.words else [])

    def one_of_each(self, question: str, result: Result, named: Collection[str]) -> list[Table]:
        """One caption of each kind that the number of a question counts, for the question's card.

        For questions about concepts or objects, the captions have concepts or objects that a Yes
        names.
        """
        if question not in _KINDS:
            return []
        table, columns = _KINDS[question]
        first: dict[tuple[str, ...], Mapping[str, str]] = {}
        for line in self._run_lines(table, result):
            if question not in _OF_NAMED or line[columns[0]] in named:
                first.setdefault(tuple(line[column] for column in columns), line)
        rows: list[list[Cell]] = [
            [*kind, shorten_caption(line["caption"]), line["image_id"]]
            for kind, line in list(first.items())[:_MOST_KINDS]
        ]
        return [Table("", [*columns, "caption", "image"], rows)] if rows else []


NOTHING = ScreenExamples()


def examples_of(
    store: ResultStore, results: Sequence[Result], words: Sequence[RevealingWords]
) -> tuple[ScreenExamples, list[str]]:
    """The examples of runs, and a sentence on each file that is damaged."""
    damaged: list[str] = []
    lines = {table: _lines_of(store, results, table, damaged) for table in _TABLES}
    return ScreenExamples(lines, _revealing_of(words)), damaged


def _lines_of(
    store: ResultStore, results: Sequence[Result], table: str, damaged: list[str]
) -> dict[str, list[dict[str, str]]]:
    """The lines of a table of examples, by the id of the run."""
    lost = "Its examples are not shown"
    lines = {
        r.run_id: stored_lines(store, r, table, _TABLES[table], damaged, lost) for r in results
    }
    return {run_id: run_lines for run_id, run_lines in lines.items() if run_lines}


def _revealing_of(words: Sequence[RevealingWords]) -> dict[tuple[str, str, str], Table]:
    """The most revealing words by attribute, data set and captioner."""
    from bias_pipeline.report.word_attribution import revealing  # it imports the attackers

    return {
        (explanation.attribute, explanation.dataset, explanation.captioner): revealing(explanation)
        for explanation in words
    }


def misnamed_table(lines: Lines) -> Table:
    """A table of one captioner's captions that name the wrong group."""
    wrong = lines[0]["wrong"]
    rows: list[list[Cell]] = [
        [line["labelled"], line["named"], shorten_caption(line["caption"]), line["image_id"]]
        for line in lines
    ]
    caption = f"{len(rows)} of the {wrong} captions that name the wrong group, chosen at random"
    return Table(caption, ["labelled", "named", "caption", "image"], rows)


def edited_table(lines: Lines) -> Table:
    """A table of human captions before and after words were removed and inserted."""
    rows: list[list[Cell]] = [
        [shorten_caption(line["before"]), shorten_caption(line["after"]), line["image_id"]]
        for line in lines[:_EDITED]
    ]
    caption = f"{len(rows)} human captions before and after they were brought to equal style"
    return Table(caption, ["before", "after", "image"], rows)


def shorten_caption(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_COLUMNS = {"concept", "group", "picture"}
_MOST = 100  # most pictures in a grid
_STEP = (1.1, 1.35)  # distance of pictures, across and down, in sides of a picture


class Tile(NamedTuple):
    """A small JPEG of a picture in base64, and the group of the person in the picture."""

    picture: str
    group: str


@dataclass(frozen=True)
class Grid(Plot):
    """Pictures in a grid: a table of images on the page, and a drawn figure in files."""

    lines: Sequence[tuple[str, Sequence[Tile]]] = ()  # name and pictures of each line

    def inline(self) -> str:
        """An HTML table of pictures; each has its group below it and in its alternative text."""
        from markupsafe import escape

        rows = [
            f'<tr><th scope="row">{escape(printable(name))}</th>{"".join(map(_cell, tiles))}</tr>'
            for name, tiles in self.lines
        ]
        caption = f"<caption>{escape(printable(self.title))}</caption>"
        return f'<table class="grid">{caption}<tbody>{"".join(rows)}</tbody></table>'


def _cell(tile: Tile) -> str:
    from markupsafe import escape

    group = escape(printable(tile.group))
    source = f"data:image/jpeg;base64,{tile.picture}"
    return f'<td><img src="{source}" width="{SIDE}" height="{SIDE}" alt="{group}">{group}</td>'


def grid_of(lines: Sequence[Mapping[str, str]], title: str) -> Grid | None:
    """The grid of the pictures in a run's table, or None without pictures."""
    if not lines or not lines[0].keys() >= _COLUMNS or not any(line["picture"] for line in lines):
        return None
    if len(lines) > _MOST:
        raise DataError(
            f"{len(lines)} pictures, but a run writes at most {_MOST}; run the job again"
        )
    for line in lines:
        read_thumbnail(line["picture"])
    tile_rows = [
        (name, [Tile(line["picture"], line["group"]) for line in concept_lines])
        for name, concept_lines in groupby(lines, key=lambda line: line["concept"])
    ]
    wide, high = (
        _STEP[0] * max(len(concept_lines) for _, concept_lines in tile_rows),
        _STEP[1] * len(tile_rows),
    )
    size = (1.6 + 0.75 * wide, 0.75 * high)
    return Grid(title, size, _drawer(tile_rows), lines=tile_rows)


def _drawer(lines: Sequence[tuple[str, Sequence[Tile]]]) -> Callable[[Axes, Colours], None]:
    def draw(axes: Axes, colours: Colours) -> None:
        for down, (name, tiles) in enumerate(lines):
            top = down * _STEP[1]
            axes.text(-0.15, top + 0.5, printable(name), ha="right", va="center")
            for left, tile in _places(tiles):
                picture = read_thumbnail(tile.picture)
                axes.imshow(picture, extent=(left, left + 1, top + 1, top), interpolation="none")
                group = printable(tile.group)
                axes.text(left + 0.5, top + 1.02, group, ha="center", va="top", fontsize=7,
                          color=colours.ink)  # fmt: skip
        longest = max(len(tiles) for _, tiles in lines)
        axes.set_xlim(-0.1, longest * _STEP[0])
        axes.set_ylim(len(lines) * _STEP[1], 0)
        axes.set_axis_off()

    return draw


def _places(tiles: Sequence[Tile]) -> Iterator[tuple[float, Tile]]:
    for number, tile in enumerate(tiles):
        yield number * _STEP[0], tile
