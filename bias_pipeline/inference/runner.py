"""A model goes through one task's share of images or texts, block by block, and can be stopped.

What the commands that do so (``embed``, ``caption``, ``data detect``) have in common.
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
from bias_pipeline.io import stopping
from bias_pipeline.io.progress import bar, track
from bias_pipeline.io.terminal import say
from bias_pipeline.vision.photos import UnreadableError

S = TypeVar("S")
T = TypeVar("T")

UNSETTLED = -1  # a stamp that no source has, of what may be readable another time
_SHOWN = 5  # unreadable images that are named


class Model(Protocol):
    """Describes sources: photos or texts."""

    def read(self, source: Any, /) -> Any:
        """A source as the network takes it; called from several threads.

        Raises:
            UnreadableError: with the reason.
        """

    def describe(self, sources: Sequence[Any], /) -> Iterable[Any]:
        """A value (text or vector) for each source that was read."""


@dataclass
class Tally:
    """What a task did.

    Attributes:
        blocks: that are its share.
        found: blocks that were there already.
        changed: images that are others than when their block was described.
        earlier: images in blocks of an earlier version, which knew photos by their size.
        again: images in either kind of block, all of which are described again.
        described: images or texts.
        empty: texts of them that hold no word.
        seconds: for them, without loading the model.
        unreadable: image to reason.
    """

    blocks: int = 0
    found: int = 0
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
        self.empty += sum(isinstance(v, str) and not v.strip() for v in block.values)

    def add_outdated(self, before: Sequence[int], now: Sequence[int]) -> None:
        """Count a block that is there with other stamps than its images have now."""
        pairs = list(zip(before, now, strict=True))
        if any(is_of_content(new) and old > 0 and not is_of_content(old) for old, new in pairs):
            self.earlier += len(pairs)
        else:
            self.changed += sum(old not in (new, UNSETTLED) for old, new in pairs)
        self.again += len(pairs)

    def sentences(self, noun: str) -> list[str]:
        """What happened, a line each."""
        lines = [f"{self.found} of {self.blocks} blocks were there already"] if self.found else []
        if self.earlier:
            lines.append(
                f"{self.earlier} {noun} were described by an earlier version, which knew photos by "
                "their size alone; they were described again, this once"
            )
        if self.changed:
            lines.append(
                f"{self.changed} {noun} are others than when they were described; with the rest "
                f"of their blocks {self.again - self.earlier} were described again"
            )
        if self.described:
            rate = self.described / max(self.seconds, 1e-9)
            lines.append(f"{self.described} {noun} in {self.seconds:.1f} s: {rate:.1f} {noun}/s")
        if self.empty:
            lines.append(f"{self.empty} are described by an empty text")
        if self.unreadable:
            lines.append(f"{len(self.unreadable)} cannot be read: {named(self.unreadable)}")
        return lines


def named(reasons: Mapping[str, str]) -> str:
    """The first few images with their reasons.

    Example:
        >>> named({"7": "the file is empty", "8": "not computed yet"})
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
) -> Tally:
    """Describe the share of one task; blocks that are there are left alone.

    Args:
        sources: image to photo or text.
        stamps_of: gives a number for each source, which changes when the source does.
        store: where blocks are kept.
        load: gives the model; not called where nothing is left to do.
        options: ``shard``, ``batch`` and ``threads``.

    Raises:
        BiasPipelineError: if the model cannot be loaded, or a block cannot be kept.
    """
    shard = Shard.parse(options.shard) if options.shard else Shard.of_slurm()
    store.plan(list(sources))
    share = shard.share(blocks_of(sources))
    images = list(chain.from_iterable(share))
    stamps = dict(zip(images, stamps_of([sources[image] for image in images]), strict=True))
    tally = Tally(len(share))
    left = []
    for ids in share:
        before, now = store.stamps(ids), [stamps[image] for image in ids]
        if before == now:
            tally.found += 1
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
                stopping.stop_if_requested()
        tally.seconds = time.monotonic() - started
    return tally


def _blocks(
    model: Model,
    left: Sequence[Sequence[str]],
    sources: Mapping[str, S],
    stamps: Mapping[str, int],
    options: Namespace,
) -> Generator[Block, None, None]:
    """What becomes of each block in turn; reading runs ahead of it."""
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
    """The value of each source, or why there is none; batches reach over blocks."""
    while found := list(islice(read, batch)):
        good = [source for source in found if not isinstance(source, UnreadableError)]
        values = iter(_within_memory(model, good, batch) if good else ())
        for source in found:
            yield source if isinstance(source, UnreadableError) else next(values)


def _block(ids: Sequence[str], stamps: Mapping[str, int], found: Iterable[Any]) -> Block:
    """A block; what may be readable another time gets a stamp that no source has."""
    values, errors = [], []
    for outcome in found:
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
            f"the device has no memory left for {len(sources)} images at once; "
            f"--batch {max(1, batch // 2)} takes less"
        ) from error


def ahead(
    function: Callable[[S], T], items: Iterable[S], threads: int, window: int
) -> Generator[T, None, None]:
    """Results in the order of the items, computed by threads a little ahead of their use.

    Args:
        function: what is computed.
        items: of what.
        threads: how many compute.
        window: how many results may wait.

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


def report(tally: Tally, noun: str, command: str, store: BlockStore) -> None:
    """Print what a task did and how to go on."""
    for line in tally.sentences(noun):
        say(line)
    say("when all tasks are done, this puts everything into one file:")
    words = [*command.split(), "--gather", str(store.root), "--run", store.signature]
    say(f"  python -m bias_pipeline {shlex.join(words)}")
