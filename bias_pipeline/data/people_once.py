"""Reads human captions once in a process, for all captioners and attributes of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import offsets
from bias_pipeline.data.coco_files import human_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.io.kept_files import Traits, are_unchanged, files_opened, note_opened

_MOST = 1 << 26  # bytes of kept captions, enough for a million; more would cost memory

ByImage = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class _PackedCaptions:
    """The captions of a file, packed into a third of the memory."""

    path: Path
    place: Path  # the file's absolute path
    settings: Layout  # the settings with which the file was read
    notes: Layout  # what was noted while the file was read
    files: Mapping[Path, Traits]
    images: bytes  # the images' ids, with NUL between them
    texts: bytes  # the captions, with NUL between them
    counts: IntArray  # (N,) captions of each image
    repeated: int

    def by_image(self) -> ByImage:
        texts = _unpack(self.texts)
        ends = pairwise(offsets(self.counts).tolist())
        parts = (tuple(texts[begin:end]) for begin, end in ends)
        return dict(zip(_unpack(self.images), parts, strict=True))


_last: list[_PackedCaptions] = []  # at most one file


def people_once(path: Path, layout: Layout) -> tuple[ByImage, int]:
    """The human captions, and the number of repeated rows; see :func:`human_captions`."""
    request = path, path.absolute(), layout.blank_copy()
    for known in _last:
        if (known.path, known.place, known.settings) == request and are_unchanged(known.files):
            layout.take_notes(known.notes)
            for place, traits in known.files.items():
                note_opened(place, traits)
            return known.by_image(), known.repeated
    _last.clear()
    notes = layout.blank_copy()
    with files_opened() as files:
        by_image, repeated = human_captions(path, notes)
    layout.take_notes(notes)
    texts = [*chain.from_iterable(by_image.values())]
    packed = _pack(texts)
    # Stock captions have a type of their own, which bytes do not keep
    if packed is not None and {*map(type, texts)} == {str}:
        counts = np.fromiter(map(len, by_image.values()), np.int64, len(by_image))
        images = "\0".join(by_image).encode("utf-8", "surrogatepass")
        _last.append(_PackedCaptions(*request, notes, files, images, packed, counts, repeated))
    return by_image, repeated


def _pack(texts: Sequence[str]) -> bytes | None:
    """Texts as bytes, or None if there are too many, or if they could not be separated again."""
    together = "\0".join(texts)
    if not together or len(together) > _MOST or together.count("\0") != len(texts) - 1:
        return None
    packed = together.encode("utf-8", "surrogatepass")
    return packed if len(packed) <= _MOST else None


def _unpack(together: bytes) -> list[str]:
    return together.decode("utf-8", "surrogatepass").split("\0")
