"""The pictures of a corpus: where their pixels are, what is known to be where, and their edits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from bias_pipeline.io.digests import digests_of

IntArray = npt.NDArray[np.int64]
Pixels = npt.NDArray[np.uint8]
PERSON = "person"
_PAINTED = 2  # raise it whenever other pixels of files are painted over, whatever the edit says


@dataclass(frozen=True)
class Region:
    """Something in a picture and where it is, as COCO's instances tell it.

    Attributes:
        category: such as ``person``.
        box: left and upper edge, width and height, in pixels of the annotated picture.
        size: height and width of the annotated picture; the one that is read may be scaled. (0, 0):
            that of the file.
        polygons: outlines x1, y1, x2, y2, ...; empty where there are none.
        counts: run lengths of a mask as COCO's tools write them; empty where there is none.
        score: how certain a detector was, in [0, 1]; 1 for people's annotations.
    """

    category: str
    box: tuple[float, float, float, float]
    size: tuple[int, int]
    polygons: tuple[tuple[float, ...], ...] = ()
    counts: bytes = b""
    score: float = 1.0

    @property
    def outlined(self) -> bool:
        """Whether more is known than a box."""
        return bool(self.polygons or self.counts)

    @property
    def outside(self) -> bool:
        """Whether it lies beside the picture, as far as the picture's size is known.

        Run lengths are of the picture itself, wherever the box is.

        Example:
            >>> [Region("person", (left, 0, 2, 2), (4, 4)).outside for left in (-2, -1, 3, 4)]
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
    across = [x for own in points for x in own[::2]]
    down = [y for own in points for y in own[1::2]]
    return min(across), min(down), max(across) - min(across), max(down) - min(down)


class Drawn(NamedTuple):
    """Pixels (H, W, 3) and what is where in them."""

    pixels: Pixels
    regions: tuple[Region, ...]


@runtime_checkable
class Drawing(Protocol):
    """A picture that is drawn when somebody looks at it.

    Attributes:
        digest: of everything that decides its pixels.
    """

    @property
    def digest(self) -> str: ...  # noqa: D102

    def draw(self, side: int) -> Drawn:
        """It as a square of so many pixels a side, the same each time."""


class Edit(Protocol):
    """A change of pictures that takes place when they are read.

    Attributes:
        spec: everything that decides it, as plain data.
    """

    @property
    def spec(self) -> Mapping[str, object]: ...  # noqa: D102

    def apply(self, drawn: Drawn) -> Pixels:
        """The pixels afterwards; what was given is left as it is."""

    def hides(self, category: str) -> bool:
        """Whether nothing is left to be seen of such a thing."""


@dataclass(frozen=True)
class Elsewhere:
    """A picture that nobody has at hand; what is where in it is told, and no more can be seen."""


Picture: TypeAlias = Path | Drawing | Elsewhere


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures of N images, looked at only when somebody asks what is in them.

    Attributes:
        files: N paths, drawings or pictures elsewhere; None for an image without a picture.
        regions: N tuples of what is known to be in the files, None where nobody has looked; None
            altogether if there are no annotations. Drawings know for themselves.
        edits: made in this order whenever a picture is read.

    Example:
        >>> pictures = Pictures((Path("1.jpg"), None))
        >>> len(pictures), pictures.take(np.array([1])).files
        (2, (None,))
    """

    files: tuple[Picture | None, ...]
    regions: tuple[tuple[Region, ...] | None, ...] | None = None
    edits: tuple[Edit, ...] = ()

    @classmethod
    def of(
        cls,
        files: Sequence[Picture | None],
        regions: Sequence[tuple[Region, ...] | None] = (),
    ) -> Pictures | None:
        """Those of a data set; None where no image has one."""
        known = tuple(regions) if any(own is not None for own in regions) else None
        return cls(tuple(files), known) if any(own is not None for own in files) else None

    def __len__(self) -> int:
        return len(self.files)

    def take(self, rows: IntArray) -> Pictures:
        """The pictures of some images, in that order."""
        chosen = rows.tolist()
        regions = None if self.regions is None else tuple(self.regions[row] for row in chosen)
        return Pictures(tuple(self.files[row] for row in chosen), regions, self.edits)

    def known(self, row: int) -> tuple[Region, ...] | None:
        """What is known to be where in a file, None if nobody has looked."""
        return None if self.regions is None else self.regions[row]

    def edited(self, edit: Edit) -> Pictures:
        """The same pictures with one more edit, the last."""
        return replace(self, edits=(*self.edits, edit))

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """(N,) whether each image has a picture, at hand or elsewhere."""
        return np.array([own is not None for own in self.files], bool)

    @cached_property
    def contents(self) -> tuple[str | None, ...]:
        """SHA-256 (hex) of each picture; None where there is none at hand."""
        files = [own for own in self.files if isinstance(own, Path)]
        read = dict(zip(files, digests_of(files), strict=True))
        return tuple(read[own] if isinstance(own, Path) else _drawn(own) for own in self.files)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all that is seen, in order; where files lie does not count."""
        told = "\n".join(own or "-" for own in self.contents)
        if self.regions is not None:
            told += f"\nregions {_PAINTED} {self.regions!r}"
        for edit in self.edits:
            told += f"\nedit {sorted(edit.spec.items())!r}"
        return hashlib.sha256(told.encode()).hexdigest()

    def shown(self, row: int) -> str:
        """SHA-256 (hex) of all that is seen of one picture."""
        return self.take(np.array([row])).digest

    def copies(self) -> Iterator[IntArray]:
        """Rows of equal files, each set of two or more; only files of one size are read."""
        sized: dict[int, list[int]] = {}
        for row, path in enumerate(self.files):
            if isinstance(path, Path) and path.is_file():
                sized.setdefault(path.stat().st_size, []).append(row)
        for rows in sized.values():
            alike: dict[str | None, list[int]] = {}
            for row in rows if len(rows) > 1 else ():
                alike.setdefault(self.take(np.array([row])).contents[0], []).append(row)
            yield from (np.array(own) for own in alike.values() if len(own) > 1)


def _drawn(picture: Drawing | Elsewhere | None) -> str | None:
    return None if isinstance(picture, Elsewhere | None) else picture.digest
