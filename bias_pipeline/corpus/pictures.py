"""Defines the pictures of a corpus: files, annotated regions and edits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.io.digests import digests_of

Pixels = npt.NDArray[np.uint8]
PERSON = "person"
_PAINTED = 2  # raise it whenever the same edit paints over other pixels


@dataclass(frozen=True)
class Region:
    """An object and its region in a picture, as in COCO's instances.

    Attributes:
        category: the name of the object, such as ``person``.
        box: left and upper edge, width and height, in pixels of the annotated picture.
        size: height and width of the annotated picture. The picture that is read may be scaled. (0,
            0) means the size of the picture file.
        polygons: outlines x1, y1, x2, y2, ...; empty without outlines.
        counts: run lengths of a mask in the format of COCO's tools; empty without a mask.
        score: how certain a detector was, in [0, 1]. Annotations by hand have 1.
    """

    category: str
    box: tuple[float, float, float, float]
    size: tuple[int, int]
    polygons: tuple[tuple[float, ...], ...] = ()
    counts: bytes = b""
    score: float = 1.0

    @property
    def has_outline(self) -> bool:
        """Whether the region has an outline or a mask, not only a box."""
        return bool(self.polygons or self.counts)

    @property
    def is_outside(self) -> bool:
        """Whether the region lies outside the picture; False if the picture's size is unknown.

        A region with a mask is always inside.

        Example:
            >>> [Region("person", (left, 0, 2, 2), (4, 4)).is_outside for left in (-2, -1, 3, 4)]
            [True, False, False, True]
        """
        height, width = self.size
        left, top, wide, high = extent(self.polygons) if self.polygons else self.box
        beside = left >= width or left + wide <= 0
        reaches = bool(self.counts) or not (beside or top >= height or top + high <= 0)
        return all(self.size) and not reaches


def extent(polygons: Iterable[Sequence[float]]) -> tuple[float, float, float, float]:
    """The box around outlines x1, y1, x2, y2, ...: left, top, width, height.

    Example:
        >>> extent([(1, 2, 5, 2, 5, 4)])
        (1, 2, 4, 2)
    """
    points = [*polygons]
    across = [x for outline in points for x in outline[::2]]
    down = [y for outline in points for y in outline[1::2]]
    return min(across), min(down), max(across) - min(across), max(down) - min(down)


class Drawn(NamedTuple):
    """Pixels (H, W, 3) and their regions."""

    pixels: Pixels
    regions: tuple[Region, ...]


@runtime_checkable
class Drawing(Protocol):
    """A picture that is drawn when it is read.

    Attributes:
        digest: digest of everything on which the pixels depend.
    """

    @property
    def digest(self) -> str: ...  # noqa: D102

    def draw(self, side: int) -> Drawn:
        """Draw a square of ``side`` x ``side`` pixels, which is the same at each call."""


class Edit(Protocol):
    """A change that is made to pictures when they are read.

    Attributes:
        spec: everything on which the edit depends, as plain data.
    """

    @property
    def spec(self) -> Mapping[str, object]: ...  # noqa: D102

    def apply(self, drawn: Drawn) -> Pixels:
        """The changed pixels. The input does not change."""

    def hides(self, category: str) -> bool:
        """Whether the edit makes objects of this category invisible."""


@dataclass(frozen=True)
class MissingPicture:
    """A picture whose file is missing. Only the annotated regions are known."""


Picture: TypeAlias = Path | Drawing | MissingPicture


@dataclass(frozen=True, eq=False)
class Pictures:
    """The pictures of N images, which are read only when they are needed.

    Attributes:
        files: N paths, drawings or missing pictures; None for an image without a picture.
        regions: N tuples of annotated regions, or None for a file without annotations. None if no
            file has annotations. Drawings have their own regions.
        edits: edits that are applied in this order whenever a picture is read.

    Example:
        >>> pictures = Pictures((Path("1.jpg"), None))
        >>> len(pictures), pictures.take(np.array([1])).files
        (2, (None,))
    """

    files: tuple[Picture | None, ...]
    regions: tuple[tuple[Region, ...] | None, ...] | None = None
    edits: tuple[Edit, ...] = ()

    @classmethod
    def from_files(
        cls,
        files: Sequence[Picture | None],
        regions: Sequence[tuple[Region, ...] | None] = (),
    ) -> Pictures | None:
        """The pictures of a data set, or None if no image has one."""
        known = tuple(regions) if any(item is not None for item in regions) else None
        return cls(tuple(files), known) if any(item is not None for item in files) else None

    def __len__(self) -> int:
        return len(self.files)

    def take(self, rows: IntArray) -> Pictures:
        """The pictures of some images, in the order of ``rows``."""
        chosen = rows.tolist()
        regions = None if self.regions is None else tuple(self.regions[row] for row in chosen)
        return Pictures(tuple(self.files[row] for row in chosen), regions, self.edits)

    def regions_of(self, row: int) -> tuple[Region, ...] | None:
        """The annotated regions of a file, or None if the file was not annotated."""
        return None if self.regions is None else self.regions[row]

    def with_edit(self, edit: Edit) -> Pictures:
        """The same pictures with one more edit, applied after all others."""
        return replace(self, edits=(*self.edits, edit))

    @property
    def present(self) -> BoolArray:
        """(N,) flags: true for images that have a picture, on disk or elsewhere."""
        return np.array([file is not None for file in self.files], bool)

    @cached_property
    def contents(self) -> tuple[str | None, ...]:
        """SHA-256 (hex) of each picture, or None for a picture that is not on disk."""
        files = [file for file in self.files if isinstance(file, Path)]
        read = dict(zip(files, digests_of(files), strict=True))
        return tuple(
            read[file] if isinstance(file, Path) else _digest_of_drawing(file)
            for file in self.files
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of pictures, regions and edits, in order. Folders play no part."""
        text = "\n".join(content or "-" for content in self.contents)
        if self.regions is not None:
            text += f"\nregions {_PAINTED} {self.regions!r}"
        for edit in self.edits:
            text += f"\nedit {sorted(edit.spec.items())!r}"
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def pixels_digest(self) -> str:
        """SHA-256 (hex) of everything on which the pixels depend."""
        return self.digest if self.edits else replace(self, regions=None).digest

    def digest_of_row(self, row: int) -> str:
        """SHA-256 (hex) of everything on which the look of one picture depends."""
        return self.take(np.array([row])).pixels_digest

    def copies(self) -> Iterator[IntArray]:
        """The rows of each set of equal files.

        A file is read only if another file has the same size.
        """
        sized: dict[int, list[int]] = {}
        for row, path in enumerate(self.files):
            if isinstance(path, Path) and path.is_file():
                sized.setdefault(path.stat().st_size, []).append(row)
        for rows in sized.values():
            alike: dict[str | None, list[int]] = {}
            for row in rows if len(rows) > 1 else ():
                alike.setdefault(self.take(np.array([row])).contents[0], []).append(row)
            yield from (
                np.array(alike_rows) for alike_rows in alike.values() if len(alike_rows) > 1
            )


def _digest_of_drawing(picture: Drawing | MissingPicture | None) -> str | None:
    return None if isinstance(picture, MissingPicture | None) else picture.digest
