"""What frozen networks see in pictures as numbers, each picture looked at once for whoever asks.

The blocks of :mod:`bias_pipeline.inference.blocks`, a picture under the digest of what is shown of
it, so neither its name nor who stands beside it plays a part: another set of pictures finds what it
shares with the first, and a job that was killed goes on. A training reads rows in any order, again
and again; for that a table is made of them, which is mapped into memory.
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
from bias_pipeline.inference.stamps import by_name
from bias_pipeline.inference.texts import known_names, vectors_by_block
from bias_pipeline.io.cores import n_cores
from bias_pipeline.io.mapped_tables import Filling, mapped_table
from bias_pipeline.vision.pixels import read_pixels

Regions = npt.NDArray[np.float16]


class Eyes(Protocol):
    """A frozen network.

    Attributes:
        side: of the square that it looks at, in pixels.
        together: pictures that it looks at at once.
    """

    @property
    def side(self) -> int: ...  # noqa: D102

    @property
    def together(self) -> int: ...  # noqa: D102

    def look(self, pixels: Pixels, /) -> Regions:
        """(B, side, side, 3) pictures to (B, ...) what is seen in each."""


class _Picture(NamedTuple):
    pictures: Pictures
    row: int


class _Looking:
    """Eyes as a model that goes through blocks."""

    def __init__(self, eyes: Eyes) -> None:
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
    load: Callable[[], Eyes],
) -> Regions:
    """(N, ...) what a network sees in N pictures, mapped into memory if there is a cache.

    Args:
        pictures: each of which is there.
        cache: folder of all stores and tables, None to keep nothing.
        settings: all that decides a number besides the picture.
        model: the network's name, to be told.
        load: gives the network; not called where the table is there.

    Raises:
        DataError: if a picture cannot be read.
        ResourceError: if the folder cannot be written.
    """
    told = {"job": "regions", **settings}
    key = f"regions {told} {pictures.digest}"

    def make() -> Filling:
        eyes = load()
        shape = eyes.look(np.zeros((1, eyes.side, eyes.side, 3), np.uint8)).shape[1:]
        rows = _rows(pictures, cache, told, model, eyes)
        shaped = ((row, flat.reshape(shape)) for row, flat in rows)
        return Filling((len(pictures), *shape), np.float16, shaped)

    return mapped_table(cache, key, make)


def _rows(
    pictures: Pictures, cache: str | None, told: Mapping[str, object], model: str, eyes: Eyes
) -> Iterator[tuple[int, Regions]]:
    """Each picture's row and what is seen in it, block by block."""
    rows: dict[str, list[int]] = {}
    for row in range(len(pictures)):
        rows.setdefault(pictures.shown(row), []).append(row)
    with store_in(cache, told, model) as store:
        wanted = {name: _Picture(pictures, own[0]) for name, own in rows.items()}
        _look_at_missing(wanted, store, eyes)
        for names, vectors in vectors_by_block(list(rows), store):
            for name, vector in zip(names, vectors, strict=True):
                yield from ((row, vector) for row in rows[name])


def _look_at_missing(wanted: Mapping[str, _Picture], store: BlockStore, eyes: Eyes) -> None:
    known = known_names(store)
    missing = {name: own for name, own in wanted.items() if name not in known}
    if missing:
        how = Namespace(shard="0/1", batch=eyes.together, threads=n_cores())
        describe_share(missing, by_name, store, lambda: _Looking(eyes), how)
