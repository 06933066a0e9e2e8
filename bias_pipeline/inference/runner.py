"""Runs a model over one task's share of images or texts, block by block, resumably.

Used by the commands ``embed``, ``caption`` and ``data detect``.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

from bias_pipeline.errors import ResourceError
from bias_pipeline.inference.blocks import Block, BlockStore
from bias_pipeline.inference.shards import Shard, blocks_of
from bias_pipeline.inference.stamps import is_of_content
from bias_pipeline.io import signals
from bias_pipeline.io.progress import bar, track
from bias_pipeline.io.terminal import print_out
from bias_pipeline.vision.photos import UnreadableError

S = TypeVar("S")
T = TypeVar("T")

UNSETTLED = -1  # a stamp that no source has, for temporary failures
_SHOWN = 5  # unreadable images named in a message


class Model(Protocol):
    """Describes sources: photos or texts."""

    def read(self, source: Any, /) -> Any:
        """A source, preprocessed for the network; called from several threads.

        Raises:
            UnreadableError: with the reason.
        """

    def describe(self, sources: Sequence[Any], /) -> Iterable[Any]:
        """A value (text, list of texts or vector) for each source that was read."""


@dataclass
class ProgressCounts:
    """Counts of a task's work.

    Attributes:
        blocks: blocks of its share.
        finished: blocks that existed already.
        changed: images whose content has changed since their block was written.
        earlier: images in blocks of an earlier version, which identified photos by size.
        again: images in both kinds of blocks; all are described again.
        described: images or texts.
        empty: empty texts among them.
        seconds: for them, without loading the model.
        unreadable: image to reason.
    """

    blocks: int = 0
    finished: int = 0
    changed: int = 0
    earlier: int = 0
    again: int = 0
    described: int = 0
    empty: int = 0
    seconds: float = 0.0
    unreadable: dict[str, str] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Count a block that is finished."""
        reasons = zip(block.ids, block.reasons, strict=True)
        self.unreadable |= {image: reason for image, reason in reasons if reason is not None}
        self.described += len(block.ids)
        self.empty += sum(not text.strip() for value in block.values for text in _texts(value))

    def add_outdated(self, before: Sequence[int], now: Sequence[int]) -> None:
        """Count a block whose stamps differ from those of its images now."""
        pairs = list(zip(before, now, strict=True))
        if any(is_of_content(new) and old > 0 and not is_of_content(old) for old, new in pairs):
            self.earlier += len(pairs)
        else:
            self.changed += sum(old not in (new, UNSETTLED) for old, new in pairs)
        self.again += len(pairs)

    def sentences(self, noun: str) -> list[str]:
        """The lines of the report."""
        lines = []
        if self.finished:
            lines.append(f"{self.finished} of {self.blocks} blocks existed already")
        if self.earlier:
            lines.append(
                f"{self.earlier} {noun} were described by an earlier version, which identified "
                "photos by size only; they were described again"
            )
        if self.changed:
            lines.append(
                f"{self.changed} {noun} have changed since they were described; with the rest "
                f"of their blocks {self.again - self.earlier} were described again"
            )
        if self.described:
            rate = self.described / max(self.seconds, 1e-9)
            lines.append(f"{self.described} {noun} in {self.seconds:.1f} s: {rate:.1f} {noun}/s")
        if self.empty:
            lines.append(f"{self.empty} have an empty text")
        if self.unreadable:
            lines.append(f"{len(self.unreadable)} cannot be read: {first_reasons(self.unreadable)}")
        return lines


def _texts(value: Any) -> Sequence[str]:
    """The texts of an image's value, none if it is a vector.

    Example:
        >>> _texts("a dog"), _texts(["a dog", ""]), _texts(None)
        (['a dog'], ['a dog', ''], [])
    """
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else []


def first_reasons(reasons: Mapping[str, str]) -> str:
    """The first few images with their reasons.

    Example:
        >>> first_reasons({"7": "the file is empty", "8": "not computed yet"})
        '7 (the file is empty), 8 (not computed yet)'
    """
    shown = [f"{image} ({reason})" for image, reason in islice(reasons.items(), _SHOWN)]
    more = len(reasons) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more else shown)


def describe_share(
    sources: Mapping[str, S],
    stamps_of: Callable[[Sequence[S]], Sequence[int]],
    store: BlockStore,
    load: Callable[[], Model],
    options: Namespace,
) -> ProgressCounts:
    """Describe the share of one task; finished blocks are skipped.

    Args:
        sources: image to photo or text.
        stamps_of: returns a number for each source that changes with its content.
        store: of the blocks.
        load: returns the model; not called if nothing is left to do.
        options: ``shard``, ``batch`` and ``threads``.

    Raises:
        BiasPipelineError: if the model cannot be loaded, or a block cannot be kept.
    """
    shard = Shard.parse(options.shard) if options.shard else Shard.of_slurm()
    store.plan(list(sources))
    share = shard.share(blocks_of(sources))
    images = list(chain.from_iterable(share))
    stamps = dict(zip(images, stamps_of([sources[image] for image in images]), strict=True))
    tally = ProgressCounts(len(share))
    left = []
    for ids in share:
        before, now = store.stamps(ids), [stamps[image] for image in ids]
        if before == now:
            tally.finished += 1
            continue
        left.append(ids)
        if before is not None:
            tally.add_outdated(before, now)
    if left:
        _use_threads(options.threads)
        model = load()
        started = time.monotonic()
        with contextlib.closing(_blocks(model, left, sources, stamps, options)) as blocks:
            for block in blocks:
                store.put(block)
                tally.add(block)
                signals.stop_if_requested()
        tally.seconds = time.monotonic() - started
    return tally


def _blocks(
    model: Model,
    left: Sequence[Sequence[str]],
    sources: Mapping[str, S],
    stamps: Mapping[str, int],
    options: Namespace,
) -> Generator[Block, None, None]:
    """The results of each block in turn; reading runs ahead."""
    wanted = [sources[image] for image in chain.from_iterable(left)]
    reading = ahead(_reader(model), wanted, options.threads, 2 * options.batch)
    with bar("images"), contextlib.closing(reading):
        described = _described(model, track(reading, len(wanted)), options.batch)
        for ids in left:
            yield _block(ids, stamps, islice(described, len(ids)))


def _use_threads(number: int) -> None:
    import torch

    torch.set_num_threads(number)


def _reader(model: Model) -> Callable[[Any], Any]:
    """Reads a source, or returns why it cannot be read."""

    def read(source: Any) -> Any:
        try:
            return model.read(source)
        except UnreadableError as error:
            return error

    return read


def _described(model: Model, read: Iterator[Any], batch: int) -> Iterator[Any]:
    """The value of each source, or why there is none; batches span blocks."""
    while sources := list(islice(read, batch)):
        good = [source for source in sources if not isinstance(source, UnreadableError)]
        values = iter(_within_memory(model, good, batch) if good else ())
        for source in sources:
            yield source if isinstance(source, UnreadableError) else next(values)


def _block(ids: Sequence[str], stamps: Mapping[str, int], outcomes: Iterable[Any]) -> Block:
    """A block; temporary failures get a stamp that no source has."""
    values, errors = [], []
    for outcome in outcomes:
        broken = isinstance(outcome, UnreadableError)
        values.append(None if broken else outcome)
        errors.append(outcome if broken else None)
    return Block(
        ids,
        [
            stamps[image] if error is None or error.lasting else UNSETTLED
            for image, error in zip(ids, errors, strict=True)
        ],
        values,
        [None if error is None else str(error) for error in errors],
    )


def _within_memory(model: Model, sources: Sequence[Any], batch: int) -> Iterable[Any]:
    import torch

    try:
        return model.describe(sources)
    except torch.OutOfMemoryError as error:
        raise ResourceError(
            f"the device has no memory left for {len(sources)} images at once; use --batch "
            f"{max(1, batch // 2)}"
        ) from error


def ahead(
    function: Callable[[S], T], items: Iterable[S], threads: int, window: int
) -> Generator[T, None, None]:
    """Results in the order of the items, computed by threads a little ahead of their use.

    Args:
        function: applied to each item.
        items: its arguments.
        threads: number of threads.
        window: most results that may wait.

    Example:
        >>> list(ahead(abs, [-2, 3, -4], threads=2, window=1))
        [2, 3, 4]
    """
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[T]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > window:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def report_progress(tally: ProgressCounts, noun: str, command: str, store: BlockStore) -> None:
    """Print a task's counts and the next command."""
    for line in tally.sentences(noun):
        print_out(line)
    print_out("when all tasks are done, this command gathers everything into one file:")
    words = [*command.split(), "--gather", str(store.root), "--run", store.signature]
    print_out(f"  python -m bias_pipeline {shlex.join(words)}")
