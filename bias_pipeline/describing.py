"""A model goes through one task's share of images or texts, block by block, and can be stopped.

What both commands that do so (``embed``, ``caption``) have in common.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bias_pipeline import stopping
from bias_pipeline.arguments import Parser
from bias_pipeline.blocks import Block, BlockStore
from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.progress import bar, track
from bias_pipeline.shards import Shard, blocks_of
from bias_pipeline.vision.photos import UnreadableError

S = TypeVar("S")
T = TypeVar("T")

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
        described: images or texts.
        seconds: for them, without loading the model.
        unreadable: image to reason.
    """

    blocks: int = 0
    found: int = 0
    described: int = 0
    seconds: float = 0.0
    unreadable: dict[str, str] = field(default_factory=dict)

    def sentences(self, noun: str) -> list[str]:
        """What happened, a line each."""
        lines = [f"{self.found} of {self.blocks} blocks were there already"] if self.found else []
        if self.described:
            rate = self.described / max(self.seconds, 1e-9)
            lines.append(f"{self.described} {noun} in {self.seconds:.1f} s: {rate:.1f} {noun}/s")
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
    stamp: Callable[[S], int],
    store: BlockStore,
    load: Callable[[], Model],
    options: Namespace,
) -> Tally:
    """Describe the share of one task; blocks that are there are left alone.

    Args:
        sources: image to photo or text.
        stamp: a number that changes when a source does.
        store: where blocks are kept.
        load: gives the model; not called where nothing is left to do.
        options: ``shard``, ``batch`` and ``threads``.

    Raises:
        BiasPipelineError: if the model cannot be loaded, or a block cannot be kept.
    """
    store.plan(list(sources))
    shard = Shard.parse(options.shard) if options.shard else Shard.of_slurm()
    share = shard.share(blocks_of(sources))
    stamps = {image: stamp(sources[image]) for image in chain.from_iterable(share)}
    left = [ids for ids in share if not store.has(ids, [stamps[image] for image in ids])]
    tally = Tally(len(share), len(share) - len(left))
    if not left:
        return tally
    _use_threads(options.threads)
    model = load()
    started = time.monotonic()
    wanted = [sources[image] for image in chain.from_iterable(left)]
    reading = ahead(_reader(model), wanted, options.threads, 2 * options.batch)
    with bar("images"), contextlib.closing(reading):
        described = _described(model, track(reading, len(wanted)), options.batch)
        for ids in left:
            block = _block(ids, stamps, islice(described, len(ids)))
            store.put(block)
            reasons = zip(ids, block.reasons, strict=True)
            tally.unreadable |= {image: reason for image, reason in reasons if reason is not None}
            tally.described += len(ids)
            stopping.stop_if_requested()
    tally.seconds = time.monotonic() - started
    return tally


def _use_threads(number: int) -> None:
    import torch

    torch.set_num_threads(number)


def size_of(photo: Path) -> int:
    """What tells that another photo has taken a file's name; 0 if the file has gone."""
    try:
        return photo.stat().st_size
    except OSError:
        return 0


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
            stamps[image] if error is None or error.lasting else -1
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


# --- words of both commands


def parser(command: str, description: str | None, noun: str) -> Parser:
    """The options that both commands have."""
    own = Parser(f"python -m bias_pipeline {command}", description=description)
    own.add_argument("folder", type=Path, nargs="?", help="of photos; folders in it are left out")
    own.add_argument("--model", help="a folder, or a name on the hub; safetensors only")
    own.add_argument("--revision", default="", help="of a name on the hub (its main one)")
    own.add_argument("--out", type=Path, help="folder of the blocks; may be shared by tasks")
    own.add_argument("--shard", default="", metavar="K/N", help="(this task of a Slurm array; 0/1)")
    own.add_argument("--batch", type=positive, default=32, help="images at once (32)")
    own.add_argument(
        "--threads",
        type=positive,
        default=_cores(),
        help="that compute, and that read (what Slurm gives a task; all cores)",
    )
    own.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (auto)")
    own.add_argument("--gather", type=Path, metavar="OUT", help=f"finished blocks as one {noun}")
    own.add_argument("--to", type=Path, metavar="FILE", help=f"the {noun} that --gather writes")
    own.add_argument("--run", default="", help="which one, where OUT holds several")
    own.add_argument(
        "--no-strict", action="store_true", help="gather although something is missing"
    )
    return own


def _cores() -> int:
    """What this process may use; Slurm does not always keep it from using more."""
    given = os.environ.get("SLURM_CPUS_PER_TASK", "")
    if given.isdigit():
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def positive(text: str) -> int:
    """A whole number of at least 1, as an option's type.

    Raises:
        ValueError: if it is none.
    """
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def check_words(options: Namespace, *sources: str) -> None:
    """Refuse what does not fit together.

    Args:
        options: as parsed.
        sources: the options of which one says what is described.

    Raises:
        UsageError: naming what is absent or too much.
    """
    given = [name for name in sources if getattr(options, name) is not None]
    if options.gather:
        if given or options.model or options.out:
            raise UsageError("--gather OUT takes no other source, --model or --out")
        return
    if len(given) != 1:
        raise UsageError(f"name one source: {' or '.join(map(_flag, sources))}; or --gather OUT")
    for name in ("model", "out"):
        if getattr(options, name) is None:
            raise UsageError(f"--{name} is absent; see --help")


def _flag(name: str) -> str:
    return "FOLDER" if name == "folder" else f"--{name}"


def report(tally: Tally, noun: str, command: str, store: BlockStore) -> None:
    """Print what a task did and how to go on."""
    for line in tally.sentences(noun):
        print(line)
    print("when all tasks are done, this puts everything into one file:")
    words = [command, "--gather", str(store.root), "--run", store.signature]
    print(f"  python -m bias_pipeline {shlex.join(words)}")
