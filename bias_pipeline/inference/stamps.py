"""Stamps: a photo's content as one number, to detect changed files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.io.digests import digests_of
from bias_pipeline.io.progress import bar, track

GONE = 0  # of a photo that cannot be read
_OF_CONTENT = 1 << 60  # added to a part of a digest; above any size in bytes
_DIGITS = 15  # hexadecimal digits of a digest; with the above it fits into a signed 64-bit integer


def photo_stamps(photos: Sequence[Path]) -> list[int]:
    """A number for each photo's content.

    Example:
        >>> photo_stamps([Path("nowhere.jpg")])
        [0]
    """
    with bar("reading photos"):
        digests = digests_of(track(photos, len(photos)))
    return [
        GONE if digest is None else _OF_CONTENT | int(digest[:_DIGITS], 16) for digest in digests
    ]


def is_of_content(stamp: int) -> bool:
    """Whether a stamp is of content; those of earlier versions are sizes in bytes.

    Example:
        >>> is_of_content(123456), is_of_content(-1)
        (False, False)
    """
    return stamp >= _OF_CONTENT


def by_name(sources: Sequence[object]) -> list[int]:
    """Stamps of sources whose names are digests: a source that changes has another name.

    Example:
        >>> by_name(["a", "b"])
        [0, 0]
    """
    return [0] * len(sources)
