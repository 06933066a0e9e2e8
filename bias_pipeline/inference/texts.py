"""Vectors of texts, each computed once for whoever asks: runs, seeds, captioners and commands.

The blocks of :mod:`bias_pipeline.inference.blocks`, a text under the digest of its words. A block
holds the texts that one call was the first to need, so blocks overlap in nothing but what several
processes computed at the same time, which is the same.
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

from bias_pipeline.inference.blocks import Block, BlockStore, vectors_of
from bias_pipeline.io import stopping
from bias_pipeline.io.progress import bar, track

FloatArray = npt.NDArray[np.float32]
BLOCK = 1024  # texts; as many are lost when a process is killed
WHOLE, CUT = 0, 1  # stamps: whether all of a text was read


class TextEmbedder(Protocol):
    """A frozen model.

    Attributes:
        cut: places of those of the last call's texts that were longer than it reads.
    """

    @property
    def cut(self) -> Collection[int]: ...  # noqa: D102

    def embed(self, texts: Sequence[str], /) -> FloatArray:
        """(N, D) a vector for each text."""


@dataclass(frozen=True)
class Embedded:
    """What it took to have the vectors of some texts.

    Attributes:
        fresh: distinct texts that were embedded.
        kept: distinct texts whose vectors were there.
        cut: distinct texts longer than the model reads.
        seconds: of embedding, without loading the model.
    """

    fresh: int = 0
    kept: int = 0
    cut: int = 0
    seconds: float = 0.0


def embed_missing(
    texts: Sequence[str], store: BlockStore, load: Callable[[], TextEmbedder]
) -> Embedded:
    """Embed those texts whose vectors are not there yet, the longest last.

    Args:
        texts: any number, repeated ones too.
        store: of the model with its settings.
        load: gives the model; not called where nothing is missing.

    Raises:
        BiasPipelineError: if the model cannot be loaded, or a block cannot be kept.
    """
    wanted = {digest(text): text for text in texts}
    missing = {name: wanted[name] for name in wanted.keys() - known_names(store)}
    if not missing:
        return Embedded(kept=len(wanted), cut=_n_cut(wanted, store))
    store.introduce()
    model = load()
    started, fresh = time.monotonic(), 0
    with bar("captions"):
        for names in track(_blocks(missing), -(-len(missing) // BLOCK)):
            fresh += _embed_block(names, missing, store, model)
            stopping.stop_if_requested()
    seconds = time.monotonic() - started
    return Embedded(fresh, len(wanted) - fresh, _n_cut(wanted, store), seconds)


def _n_cut(wanted: Collection[str], store: BlockStore) -> int:
    return len(store.stamped(CUT).intersection(wanted))


def _embed_block(
    names: Sequence[str], texts: dict[str, str], store: BlockStore, model: TextEmbedder
) -> int:
    """How many texts were embedded: none if another process has meanwhile."""
    if store.read(names) is not None:
        return 0
    vectors = model.embed([texts[name] for name in names])
    stamps = [CUT if place in model.cut else WHOLE for place in range(len(names))]
    store.put(Block(names, stamps, list(vectors), [None] * len(names)))
    return len(names)


def _blocks(missing: dict[str, str]) -> list[list[str]]:
    """Texts of almost equal length together, begun in another place by every process.

    So processes that miss the same texts find most of what the others have done.
    """
    ordered = sorted(missing, key=lambda name: (len(missing[name].split()), name))
    blocks = [ordered[start : start + BLOCK] for start in range(0, len(ordered), BLOCK)]
    first = os.getpid() % len(blocks)
    return blocks[first:] + blocks[:first]


def vectors_from(texts: Sequence[str], store: BlockStore) -> FloatArray:
    """(N, D) the vectors of distinct texts that :func:`embed_missing` has seen to.

    Raises:
        KeyError: if one is not there.
    """
    return vectors_of_names([digest(text) for text in texts], store)


def vectors_of_names(wanted: Sequence[str], store: BlockStore) -> FloatArray:
    """(N, D) the vectors under N distinct names.

    Raises:
        KeyError: if one is not there.
    """
    place = {name: row for row, name in enumerate(wanted)}
    found = np.empty((0, 0), np.float32)
    for names, vectors in vectors_by_block(wanted, store):
        if not found.size:
            found = np.empty((len(wanted), vectors.shape[1]), np.float32)
        found[[place[name] for name in names]] = vectors
    return found


def vectors_by_block(
    wanted: Sequence[str], store: BlockStore
) -> Iterator[tuple[list[str], npt.NDArray[np.floating]]]:
    """Those of N distinct names that a block holds, and their vectors (B, D), block by block.

    Raises:
        KeyError: at the end, if one is nowhere.
    """
    left = set(wanted)
    for path, names in store.index().items():
        rows = [row for row, name in enumerate(names) if name in left]
        table = store.table(path) if rows else None
        if table is not None:
            own = [names[row] for row in rows]
            yield own, vectors_of(table["value"])[rows]
            left -= set(own)
    if left:
        raise KeyError(f"{store.folder} lacks {len(left)} of {len(wanted)} vectors")


def known_names(store: BlockStore) -> set[str]:
    """The names under which there is a vector."""
    return {name for names in store.index().values() for name in names}


def digest(text: str) -> str:
    """The name of a text: SHA-256, hexadecimal.

    Example:
        >>> digest("a dog")[:8]
        '7dbdf68a'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
