"""Captions that do not fit into memory. Words are stored in a file that is read in blocks.

Functions that treat captions one by one (:func:`~bias_pipeline.corpus.captions.each_caption`) are
called block by block. The joined results equal the results in memory. Every other function raises
an error.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, TypeVar, cast
from weakref import finalize

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Int32Array, IntArray
from bias_pipeline.corpus.captions import EACH_CAPTION, Captions, add_numbers, offsets
from bias_pipeline.errors import NotApplicableError

T = TypeVar("T")
NOT_STREAMED = "this needs all captions in memory; leave out --stream"
_WORDS = 1 << 23  # running words of a block, at least
_WIDTH = 4  # bytes of a word's number
_STEP = 64


class _WordFile:
    """A file of word ids, which is deleted when no captions read it any more."""

    def __init__(self) -> None:
        folder = mkdtemp(prefix="captions-")
        self.path = Path(folder, "words")
        finalize(self, rmtree, folder, ignore_errors=True)


class StreamedCaptions(Captions):
    """Captions in a file of word ids; see :class:`CaptionsWriter`."""

    def __init__(
        self,
        types: tuple[str, ...],
        lengths: Int32Array,
        image_rows: Int32Array,
        file: _WordFile,
    ) -> None:
        marks = offsets(lengths)[::_STEP].copy()
        self.__dict__.update(types=types, lengths=lengths, image_rows=image_rows)
        self.__dict__.update(file=file, _marks=marks)

    in_memory = False
    file: _WordFile
    _marks: IntArray  # the first word of every `_STEP`-th caption

    @property
    def starts(self) -> IntArray:
        """(N + 1,) as in memory; computed anew each time, since lengths take half of the memory."""
        return offsets(self.lengths)

    @property
    def tokens(self) -> Int32Array:
        """Raises an error, since the words of all captions do not fit into memory."""
        raise NotApplicableError(NOT_STREAMED)

    def read(self, how: Callable[..., T], *words: Hashable) -> T:
        """The joined results of a function for all blocks, from the cache."""
        if how not in EACH_CAPTION:
            raise NotApplicableError(NOT_STREAMED)
        key = (how, words)
        if key not in self._read:
            self._read[key] = _join_results([how(block, *words) for block in self.blocks()])
        return cast("T", self._read[key])

    def blocks(self) -> Iterator[Captions]:
        return (block for _, block in self._rows_and_blocks())

    def _rows_and_blocks(self) -> Iterator[tuple[slice, Captions]]:
        """One block of images after the other, as rows and captions."""
        for begin, end in self._bounds:
            rows = self.image_rows[begin:end].astype(np.int64)
            starts = offsets(self.lengths[begin:end])
            tokens = self._words_at(begin, int(starts[-1]))
            yield slice(begin, end), Captions(self.types, tokens, starts, rows)

    @cached_property
    def _bounds(self) -> list[tuple[int, int]]:
        """The first caption of each block, and the end of the last; images are never split."""
        bounds, begin, starts = [], 0, self.starts
        while begin < len(self):
            last = int(np.searchsorted(starts, starts[begin] + _WORDS)) - 1
            of_last = self.image_rows[max(begin, min(last, len(self) - 1))]
            end = int(np.searchsorted(self.image_rows, of_last, side="right"))
            bounds.append((begin, end))
            begin = end
        return bounds

    def _words_at(self, row: int, count: int) -> Int32Array:
        """The first words of a caption, and of its successors."""
        mark = row // _STEP
        begin = int(self._marks[mark]) + int(self.lengths[mark * _STEP : row].sum())
        return np.fromfile(self.file.path, np.int32, count, offset=_WIDTH * begin)

    def words(self, row: int) -> list[str]:
        tokens = self._words_at(row, int(self.lengths[row]))
        return [self.types[token] for token in tokens.tolist()]

    @property
    def all_alike(self) -> bool:
        first: set[str] = set()
        for block in self.blocks():
            first.add(block.text(0))
            if len(first) > 1 or not block.all_alike:
                return False
        return True

    @cached_property
    def digest(self) -> str:
        sha = hashlib.sha256("\n".join(self.types).encode("utf-8", "surrogatepass"))
        for block in self.blocks():
            add_numbers(sha, block.tokens)
        for column in (self.starts, self.image_rows):
            add_numbers(sha, column)
        return sha.hexdigest()

    def by_block(self, change: Callable[[Captions], Captions]) -> Captions:
        return _write_blocks(map(change, self.blocks()))

    def take(self, rows: IntArray | BoolArray) -> Captions:
        if rows.dtype != bool:
            raise NotApplicableError(NOT_STREAMED)
        return _write_blocks(block.take(rows[here]) for here, block in self._rows_and_blocks())

    def compact(self) -> Captions:
        return self  # the writer numbers words in the order of their first use

    def rewrite(self, rule: Callable[[str], Sequence[str]]) -> Captions:
        return self.by_block(lambda block: block.rewrite(rule).compact())

    def with_texts(self, texts: Mapping[int, str]) -> Captions:
        return _write_blocks(
            block.with_texts({row - here.start: texts[row] for row in texts
                              if here.start <= row < here.stop})
            for here, block in self._rows_and_blocks()
        )  # fmt: skip


def _write_blocks(blocks: Iterable[Captions]) -> Captions:
    writer = CaptionsWriter()
    for block in blocks:
        writer.add(block)
    return writer.finish()


class CaptionsWriter:
    """Writes captions to a file, in the order of the images."""

    def __init__(self) -> None:
        self._file = _WordFile()
        self._numbers: dict[str, int] = {}
        self._lengths: list[Int32Array] = []
        self._rows: list[Int32Array] = []

    def add(self, captions: Captions, first: int = 0) -> None:
        """Add captions in memory; ``first`` is the row of their first image."""
        number = self._numbers.setdefault
        of_types = [number(word, len(self._numbers)) for word in captions.types]
        with self._file.path.open("ab") as file:
            np.array(of_types, np.int32)[captions.tokens].tofile(file)
        self._lengths.append(captions.lengths.astype(np.int32))
        self._rows.append((captions.image_rows + first).astype(np.int32))

    def finish(self) -> Captions:
        if not any(map(len, self._rows)):
            return Captions.from_texts([])
        lengths: Int32Array = np.concatenate(self._lengths)
        rows: Int32Array = np.concatenate(self._rows)
        return StreamedCaptions(tuple(self._numbers), lengths, rows, self._file)


def _join_results(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(map(_join_results, zip(*parts, strict=True)))
    if isinstance(first, Counter):
        return sum(parts, Counter())
    if isinstance(first, sparse.csr_array):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    joined = np.concatenate(parts)
    joined.setflags(write=False)  # all callers get the same array
    return joined
