"""Puts pictures and drawn maps of words beside the examples of a report."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bias_pipeline.corpus.image_ids import canonical_id
from bias_pipeline.data.photos import UnreadableError, jpeg, read_photo, thumbnail
from bias_pipeline.data.tables import open_rows
from bias_pipeline.errors import DataError
from bias_pipeline.io.terminal import warn
from bias_pipeline.report.examples import shorten_caption
from bias_pipeline.report.page import Report
from bias_pipeline.report.summary import Summary
from bias_pipeline.report.table import Cell, Illustrated, Table, cell_text

if TYPE_CHECKING:
    from PIL.Image import Image

TABLE, PICTURES = "attribution.parquet", "maps"  # in a folder of explain gradcam
_LONGEST_NAME = 200  # most bytes of a drawing's file name; file systems allow 255
MOST = 200  # most images on a page
MAP_SIZE = (256, 128)  # most pixels; the picture and its map stand side by side
_IMAGE, _CAPTION = "image", "caption"  # names of columns


def drawing_name(image_id: str, number: int, word: str | None) -> str:
    """The file name of a word's drawing; it is safe for all characters in an image id.

    Example:
        >>> drawing_name("42", 0, "young man"), drawing_name("../7", 1, None)
        ('42_0_young_man.png', '.._7_1_unnamed_fda181e2.png')
    """
    name = f"{image_id}_{number}_{word or 'unnamed'}".replace(" ", "_")
    plain = re.sub(r"[/\\\x00-\x1f]", "_", name)
    if len(plain.encode("utf-8", "replace")) > _LONGEST_NAME:
        plain = plain[:50]
    if plain != name:  # so that two ids never share a file
        plain = f"{plain}_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return f"{plain}.png"


class DrawnMap(NamedTuple):
    """The drawing of a map for the first word of a caption that names a group."""

    caption: str
    word: str
    file: Path


def drawn_maps(folder: Path) -> dict[str, DrawnMap]:
    """The drawings that ``explain gradcam`` wrote, by image id."""
    columns = ("image_id", "caption", "word")
    rows = open_rows(folder / TABLE, what="the table of explain gradcam", wanted=columns)
    rows.require(*columns)
    maps = {}
    for number, row in rows.items:
        image_id, word = rows.id(number, row, "image_id"), row["word"]
        file = folder / PICTURES / drawing_name(image_id, 0, word)
        if word and file.is_file():
            maps[image_id] = DrawnMap(rows.text(number, row, "caption"), str(word), file)
    return maps


def with_pictures(
    report: Report,
    photos: Mapping[str, Path] | None = None,
    maps: Mapping[str, DrawnMap] | None = None,
) -> Report:
    """The report with pictures beside its examples' image ids, for at most ``MOST`` images."""
    pictures = _Pictures(photos or {}, maps or {})
    shown = replace(
        report,
        summaries=[pictures.in_summary(summary) for summary in report.summaries],
        sections=[replace(one, tables=pictures.in_tables(one.tables)) for one in report.sections],
    )
    if not pictures.wanted:
        warn("the page has no pictures, since these runs have no captions as examples")
    if photos is not None and pictures.wanted and not pictures.pictured:
        raise DataError(
            f"none of the {len(pictures.wanted)} images of the examples is among the photos of "
            "--images, whose names must be image ids; name the folder of the data set's photos"
        )
    if maps is not None and pictures.wanted and not pictures.mapped:
        raise DataError(
            f"none of the {len(pictures.wanted)} images of the examples has a drawn map of the "
            "same caption in --maps; let explain gradcam draw all maps (--pictures 1000) of the "
            "captioner that the runs score"
        )
    return shown


@dataclass
class _Pictures:
    """Thumbnails and maps; each file is read once."""

    photos: Mapping[str, Path]  # files by image id
    maps: Mapping[str, DrawnMap]  # maps by image id
    wanted: set[str] = field(default_factory=set)  # ids of the examples' images
    pictured: set[str] = field(default_factory=set)  # ids shown with a thumbnail
    mapped: set[str] = field(default_factory=set)  # ids shown with a map
    # By file, a JPEG in base64; empty if the file cannot be read
    read: dict[Path, str] = field(default_factory=dict)

    def in_summary(self, summary: Summary) -> Summary:
        cards = [replace(one, examples=self.in_tables(one.examples)) for one in summary.cards]
        panels = [replace(one, tables=self.in_tables(one.tables)) for one in summary.panels]
        return replace(summary, panels=panels, cards=cards)

    def in_tables(self, tables: Sequence[Table]) -> list[Table]:
        return [self._in_table(table) if _IMAGE in table.head else table for table in tables]

    def _in_table(self, table: Table) -> Table:
        """The table with pictures in the first column, which narrow pages also show."""
        column = list(table.head).index(_IMAGE)
        rows = [dict(zip(table.head, row, strict=True)) for row in table.rows]
        cells = [self._cell(row[_IMAGE], row.get(_CAPTION)) for row in rows]
        if not any(isinstance(cell, Illustrated) for cell in cells):
            return table
        others = [[*row[:column], *row[column + 1 :]] for row in table.rows]
        head = [_IMAGE, *(name for name in table.head if name != _IMAGE)]
        return replace(
            table, head=head, rows=[[cell, *rest] for cell, rest in zip(cells, others, strict=True)]
        )

    def _cell(self, cell: Cell, caption: Cell) -> Cell:
        if not isinstance(cell, str):
            return cell
        self.wanted.add(cell)
        image = canonical_id(cell)
        shown = self.pictured | self.mapped
        if image not in shown and len(shown) >= MOST:
            return cell
        word, drawing = ("", "") if image in self.mapped else self._map(image, cell_text(caption))
        picture = self._jpeg(self.photos[image], thumbnail) if image in self.photos else ""
        if picture:
            self.pictured.add(image)
        if drawing:
            self.mapped.add(image)
        return Illustrated(cell, picture, word, drawing) if picture or drawing else cell

    def _map(self, image: str, caption: str) -> tuple[str, str]:
        """The word and its map; empty if this caption has no map."""
        drawn = self.maps.get(image)
        if drawn is None or shorten_caption(drawn.caption) != caption:
            return "", ""
        drawing = self._jpeg(drawn.file, _shrink_map)
        return drawn.word if drawing else "", drawing

    def _jpeg(self, file: Path, shrink: Callable[[Image], str]) -> str:
        if file not in self.read:
            try:
                self.read[file] = shrink(read_photo(file))
            except UnreadableError as error:
                warn(f"{file}: {error}; the report does not show it")
                self.read[file] = ""
        return self.read[file]


def _shrink_map(drawing: Image) -> str:
    drawing.thumbnail(MAP_SIZE)
    return jpeg(drawing)
