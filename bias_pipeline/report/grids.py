"""Grids of small pictures: what each query retrieves first, each picture with its group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from bias_pipeline.errors import DataError
from bias_pipeline.io.terminal import printable
from bias_pipeline.report.figures import Colours, Plot, Points
from bias_pipeline.vision.drawn import SIDE, read_thumbnail

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = {"concept", "group", "picture"}
_MOST = 100  # pictures of a grid
_STEP = (1.1, 1.35)  # from one picture to the next, across and down, in sides of one


class Tile(NamedTuple):
    """A picture as base64 of a small JPEG, and the group of the person in it."""

    picture: str
    group: str


@dataclass(frozen=True)
class Grid(Plot):
    """A figure of pictures: a table of images in a page, drawn in files.

    Attributes:
        lines: name and pictures of each line, the first on top.
    """

    lines: Sequence[tuple[str, Sequence[Tile]]]

    def inline(self) -> str:
        """A table of pictures, each with its group below it and for screen readers."""
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
    """The grid of a run's table of retrieved pictures; None if it has no pictures.

    Args:
        lines: with ``concept``, ``group`` and ``picture``; lines of a concept are adjacent.
        title: above it.

    Raises:
        DataError: if a picture is not in the format that runs write.
    """
    if not lines or not lines[0].keys() >= _COLUMNS or not any(line["picture"] for line in lines):
        return None
    if len(lines) > _MOST:
        raise DataError(
            f"{len(lines)} pictures, but a run writes at most {_MOST}; run its cell again"
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
    return Grid(title, size, _drawer(tile_rows), Points((), (), ()), tile_rows)


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
