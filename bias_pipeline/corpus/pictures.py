"""The pictures of a corpus: where their pixels are, and what stands in the files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.digests import digest_of

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pictures:
    """Files of N images, read only when somebody asks what is in them.

    Attributes:
        files: N paths, None for an image without a picture.

    Example:
        >>> pictures = Pictures((Path("1.jpg"), None))
        >>> len(pictures), pictures.take(np.array([1])).files
        (2, (None,))
    """

    files: tuple[Path | None, ...]

    @classmethod
    def of(cls, files: Sequence[Path | None]) -> Pictures | None:
        """Those of a data set; None where no image has one."""
        return cls(tuple(files)) if any(files) else None

    def __len__(self) -> int:
        return len(self.files)

    def take(self, rows: IntArray) -> Pictures:
        """The pictures of some images, in that order."""
        return Pictures(tuple(self.files[row] for row in rows.tolist()))

    @cached_property
    def contents(self) -> tuple[str | None, ...]:
        """SHA-256 (hex) of each file; None where there is none. A changed file is another one."""
        return tuple(None if path is None else content_digest(path) for path in self.files)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all contents, in order; where files lie does not count."""
        told = "\n".join(own or "-" for own in self.contents)
        return hashlib.sha256(told.encode()).hexdigest()

    def copies(self) -> Iterator[IntArray]:
        """Rows of equal files, each set of two or more; only files of one size are read."""
        sized: dict[int, list[int]] = {}
        for row, path in enumerate(self.files):
            if path is not None and path.is_file():
                sized.setdefault(path.stat().st_size, []).append(row)
        for rows in sized.values():
            alike: dict[str | None, list[int]] = {}
            for row in rows if len(rows) > 1 else ():
                path = self.files[row]
                assert path is not None
                alike.setdefault(content_digest(path), []).append(row)
            yield from (np.array(own) for own in alike.values() if len(own) > 1)


def content_digest(path: Path) -> str | None:
    """SHA-256 (hex) of a file, None if it cannot be read.

    See :func:`~bias_pipeline.io.digests.digest_of`.
    """
    try:
        return digest_of(path)
    except ResourceError:
        return None
