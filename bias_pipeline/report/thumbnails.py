"""Pictures beside the examples of a page: thumbnails of the photos that the examples are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bias_pipeline.corpus.image_ids import canonical_id
from bias_pipeline.errors import DataError
from bias_pipeline.io.terminal import warn
from bias_pipeline.report.content import Report
from bias_pipeline.report.report_tables import Cell, Illustrated, Section, Sheet
from bias_pipeline.report.summary import Summary
from bias_pipeline.vision.drawn import thumbnail
from bias_pipeline.vision.photos import UnreadableError, read_photo

MOST = 200  # pictures of a page
_IMAGE = "image"  # the head of columns of image ids


def with_thumbnails(report: Report, photos: Mapping[str, Path]) -> Report:
    """The report with a small picture beside each image id, of at most ``MOST`` images.

    Args:
        report: whose examples have a column of image ids.
        photos: image id to file.

    Raises:
        DataError: if no example's image is among the photos.
    """
    pictures = _Pictures(photos)
    shown = replace(
        report,
        summaries=[pictures.in_summary(summary) for summary in report.summaries],
        sections=[pictures.in_section(section) for section in report.sections],
    )
    if pictures.wanted and not pictures.read:
        raise DataError(
            f"none of the {len(pictures.wanted)} images that examples are of is among the photos "
            "of --images, whose names are image ids; name the folder of the data set's photos"
        )
    return shown


@dataclass
class _Pictures:
    """Thumbnails, each read once.

    Attributes:
        photos: image id to file.
        wanted: ids of images that examples are of.
        read: id to thumbnail, as base64.
    """

    photos: Mapping[str, Path]
    wanted: set[str] = field(default_factory=set)
    read: dict[str, str] = field(default_factory=dict)

    def in_summary(self, summary: Summary) -> Summary:
        panels = [replace(one, sheets=self._in_sheets(one.sheets)) for one in summary.panels]
        return replace(summary, panels=panels)

    def in_section(self, section: Section) -> Section:
        return replace(section, sheets=self._in_sheets(section.sheets))

    def _in_sheets(self, sheets: Sequence[Sheet]) -> list[Sheet]:
        return [self._in_sheet(sheet) if _IMAGE in sheet.head else sheet for sheet in sheets]

    def _in_sheet(self, sheet: Sheet) -> Sheet:
        """The table with its pictures in front, where they are seen on a narrow page too."""
        column = list(sheet.head).index(_IMAGE)
        cells = [self._cell(row[column]) for row in sheet.rows]
        if not any(isinstance(cell, Illustrated) for cell in cells):
            return sheet
        others = [[*row[:column], *row[column + 1 :]] for row in sheet.rows]
        head = [_IMAGE, *(name for name in sheet.head if name != _IMAGE)]
        rows = [[cell, *rest] for cell, rest in zip(cells, others, strict=True)]
        return replace(sheet, head=head, rows=rows)

    def _cell(self, cell: Cell) -> Cell:
        if not isinstance(cell, str):
            return cell
        self.wanted.add(cell)
        picture = self._picture(canonical_id(cell))
        return Illustrated(cell, picture) if picture else cell

    def _picture(self, image: str) -> str:
        """A thumbnail, empty if there is none."""
        if image not in self.read and image in self.photos and len(self.read) < MOST:
            try:
                self.read[image] = thumbnail(read_photo(self.photos[image]))
            except UnreadableError as error:
                warn(f"{self.photos[image]}: {error}; the report does not show it")
        return self.read.get(image, "")
