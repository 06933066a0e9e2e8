"""Features of pictures by frozen networks; each picture is computed once and cached.

The blocks of :mod:`bias_pipeline.inference.blocks`, by the digest of the edited picture, so its
path and the other pictures do not matter: overlapping sets of pictures share features, and a killed
job continues. Training reads rows in any order, so they are also written to a memory-mapped table.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.pictures import Pictures, Pixels
from bias_pipeline.inference.blocks import BlockStore, store_in
from bias_pipeline.inference.runner import describe_share
from bias_pipeline.inference.shards import by_name
from bias_pipeline.inference.texts import known_names, vectors_by_block
from bias_pipeline.io.arrays import Filling, mapped_table
from bias_pipeline.io.cores import n_threads
from bias_pipeline.vision.drawn import read_pixels

Regions = npt.NDArray[np.float16]


class RegionExtractor(Protocol):
    """A frozen network.

    Attributes:
        side: pixels a side of its square input.
        together: pictures per batch.
    """

    @property
    def side(self) -> int: ...  # noqa: D102

    @property
    def together(self) -> int: ...  # noqa: D102

    def look(self, pixels: Pixels, /) -> Regions:
        """(B, side, side, 3) pictures to (B, ...) features."""


class _Picture(NamedTuple):
    pictures: Pictures
    row: int


class _Looking:
    """Adapts a frozen network to the interface of :mod:`~bias_pipeline.inference.runner`."""

    def __init__(self, eyes: RegionExtractor) -> None:
        self._eyes = eyes

    def read(self, picture: _Picture) -> Pixels:
        return read_pixels(picture.pictures, picture.row, self._eyes.side)

    def describe(self, pixels: Sequence[Pixels]) -> list[Regions]:
        return list(self._eyes.look(np.stack(pixels)).reshape(len(pixels), -1))


def regions_of(
    pictures: Pictures,
    cache: str | None,
    settings: Mapping[str, object],
    model: str,
    load: Callable[[], RegionExtractor],
) -> Regions:
    """(N, ...) features of N pictures, memory-mapped if there is a cache.

    Args:
        pictures: all must exist.
        cache: folder of all stores and tables, None for no cache.
        settings: all that decides a feature except the picture.
        model: the network's name, for people.
        load: returns the network; not called if the table exists.

    Raises:
        DataError: if a picture cannot be read.
        ResourceError: if the folder cannot be written.
    """
    spec = {"job": "regions", **settings}
    key = f"regions {spec} {pictures.digest}"

    def make() -> Filling:
        eyes = load()
        shape = eyes.look(np.zeros((1, eyes.side, eyes.side, 3), np.uint8)).shape[1:]
        rows = _rows(pictures, cache, spec, model, eyes)
        shaped = ((row, flat.reshape(shape)) for row, flat in rows)
        return Filling((len(pictures), *shape), np.float16, shaped)

    return mapped_table(cache, key, make)


def _rows(
    pictures: Pictures,
    cache: str | None,
    spec: Mapping[str, object],
    model: str,
    eyes: RegionExtractor,
) -> Iterator[tuple[int, Regions]]:
    """Each picture's row and features, block by block."""
    rows: dict[str, list[int]] = {}
    for row in range(len(pictures)):
        rows.setdefault(pictures.shown(row), []).append(row)
    with store_in(cache, spec, model) as store:
        wanted = {name: _Picture(pictures, copies[0]) for name, copies in rows.items()}
        _look_at_missing(wanted, store, eyes)
        for names, vectors in vectors_by_block(list(rows), store):
            for name, vector in zip(names, vectors, strict=True):
                yield from ((row, vector) for row in rows[name])


def _look_at_missing(
    wanted: Mapping[str, _Picture], store: BlockStore, eyes: RegionExtractor
) -> None:
    known = known_names(store)
    missing = {name: picture for name, picture in wanted.items() if name not in known}
    if missing:
        how = Namespace(shard="0/1", batch=eyes.together, threads=n_threads())
        describe_share(missing, by_name, store, lambda: _Looking(eyes), how)
