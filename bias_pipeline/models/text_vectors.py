"""Computes vectors of texts, each once for all runs, seeds, captioners and commands.

The cache consists of the blocks of :mod:`bias_pipeline.models.blocks`; the digest of its words
names a text. A call stores the texts that are not yet in the cache as new blocks. Blocks overlap
only if processes computed the same texts at the same time, and then the results are equal.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array
from bias_pipeline.io import signals
from bias_pipeline.io.progress import bar, track
from bias_pipeline.models.blocks import Block, BlockStore, read_block, vectors_of

BLOCK = 1024  # texts of a block; a killed process loses at most one block
WHOLE, CUT = 0, 1  # stamps: the text was read completely, or cut


class TextEmbedder(Protocol):
    """A frozen model; after a call, ``cut`` has the indices of texts that were too long."""

    @property
    def cut(self) -> Collection[int]: ...

    def embed(self, texts: Sequence[str], /) -> Float32Array:
        """(N, D) a vector for each text."""


@dataclass(frozen=True)
class Embedded:
    fresh: int = 0  # distinct texts that were embedded
    reused: int = 0  # distinct texts whose vectors were cached
    cut: int = 0  # distinct texts longer than the model reads
    seconds: float = 0.0  # time of embedding, without loading the model


def embed_missing(
    texts: Sequence[str], store: BlockStore, load: Callable[[], TextEmbedder]
) -> Embedded:
    """Embed the texts that have no cached vector; long texts come last."""
    wanted = {digest(text): text for text in texts}
    missing = {name: wanted[name] for name in wanted.keys() - known_names(store)}
    if not missing:
        return Embedded(reused=len(wanted), cut=_n_cut(wanted, store))
    store.introduce()
    model = load()
    started, fresh = time.monotonic(), 0
    with bar("captions"):
        for names in track(_blocks(missing), -(-len(missing) // BLOCK)):
            fresh += _embed_block(names, missing, store, model)
            signals.stop_if_requested()
    seconds = time.monotonic() - started
    return Embedded(fresh, len(wanted) - fresh, _n_cut(wanted, store), seconds)


def _n_cut(wanted: Collection[str], store: BlockStore) -> int:
    return len(store.names_with(CUT).intersection(wanted))


def _embed_block(
    names: Sequence[str], texts: dict[str, str], store: BlockStore, model: TextEmbedder
) -> int:
    """Embed a block; returns the number of embedded texts, or 0 if another process has done it."""
    if store.read(names) is not None:
        return 0
    vectors = model.embed([texts[name] for name in names])
    stamps = [CUT if place in model.cut else WHOLE for place in range(len(names))]
    store.put(Block(names, stamps, list(vectors), [None] * len(names)))
    return len(names)


def _blocks(missing: dict[str, str]) -> list[list[str]]:
    """Blocks of texts with similar lengths; every process begins with another block.

    So processes that lack the same texts share the work.
    """
    ordered = sorted(missing, key=lambda name: (len(missing[name].split()), name))
    blocks = [ordered[start : start + BLOCK] for start in range(0, len(ordered), BLOCK)]
    first = os.getpid() % len(blocks)
    return blocks[first:] + blocks[:first]


def vectors_from(texts: Sequence[str], store: BlockStore) -> Float32Array:
    """(N, D) the vectors of distinct texts, after :func:`embed_missing`."""
    return vectors_of_names([digest(text) for text in texts], store)


def vectors_of_names(wanted: Sequence[str], store: BlockStore) -> Float32Array:
    """(N, D) the vectors stored under N distinct names."""
    place = {name: row for row, name in enumerate(wanted)}
    result = np.empty((0, 0), np.float32)
    for names, vectors in vectors_by_block(wanted, store):
        if not result.size:
            result = np.empty((len(wanted), vectors.shape[1]), np.float32)
        result[[place[name] for name in names]] = vectors
    return result


def vectors_by_block(
    wanted: Sequence[str], store: BlockStore
) -> Iterator[tuple[list[str], npt.NDArray[np.floating]]]:
    """For each block, the places of the wanted names in it, and their vectors (B, D)."""
    left = set(wanted)
    for path, stamps in store.index().items():
        table = None if left.isdisjoint(stamps) else read_block(path)
        if table is not None:
            names = table["id"].filter(table["value"].is_valid()).to_pylist()
            rows = [row for row, name in enumerate(names) if name in left]
            block_names = [names[row] for row in rows]
            yield block_names, vectors_of(table["value"])[rows]
            left -= set(block_names)
    if left:
        raise KeyError(f"{store.folder} lacks {len(left)} of {len(wanted)} vectors")


def known_names(store: BlockStore) -> set[str]:
    """The names that need no computation: all stored names except temporary failures."""
    return {
        name for stamps in store.index().values() for name, stamp in stamps.items() if stamp >= 0
    }


def digest(text: str) -> str:
    """The name of a text: SHA-256, hexadecimal.

    Example:
        >>> digest("a dog")[:8]
        '7dbdf68a'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
