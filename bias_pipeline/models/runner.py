"""Runs a model over one task's share of images or texts, block by block, resumably.

Used by the commands ``embed``, ``caption`` and ``data detect``.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from bias_pipeline.corpus.image_ids import id_key
from bias_pipeline.data.photos import UnreadableError
from bias_pipeline.errors import BiasPipelineError, ResourceError, counted
from bias_pipeline.io import signals
from bias_pipeline.io.progress import bar, track
from bias_pipeline.io.terminal import print_out
from bias_pipeline.models.blocks import (
    NOT_YET,
    UNSETTLED,
    Block,
    BlockStore,
    Shard,
    block_notes,
    block_values,
    blocks_of,
    is_of_content,
)

if TYPE_CHECKING:
    import pyarrow as pa

S = TypeVar("S")
T = TypeVar("T")

KEEP_S = 10.0  # between two times that open blocks are stored, since nobody can catch SIGKILL
_SHOWN = 5  # unreadable images named in a message
_WINDOW_OF_ANSWERS = 16  # times those asked at once
_POOL = 8  # batches from which sources of one form are put together


class Reader(Protocol):
    """Gives the value of a photo or text as it reads it, as a server does."""

    def read(self, source: Any, /) -> Any:
        """The value of a source; called from several threads."""


@runtime_checkable
class Model(Reader, Protocol):
    """Describes photos or texts in batches.

    What it reads may have an attribute ``form``: then only sources of one form are described
    together.
    """

    def read(self, source: Any, /) -> Any:
        """A source, preprocessed for the network; called from several threads."""

    def describe(self, sources: Sequence[Any], /) -> Iterable[Any]:
        """A value (text, list of texts or vector) for each source that was read."""


@dataclass
class ProgressCounts:
    """Counts of a task's work."""

    blocks: int = 0  # blocks of its share
    finished: int = 0  # blocks that existed already
    changed: int = 0  # images whose content has changed since they were described
    earlier: int = 0  # images of an earlier version, which identified photos by size
    described: int = 0  # images or texts, unreadable ones too
    empty: int = 0  # empty texts among them
    seconds: float = 0.0  # for them, without loading the model
    unreadable: dict[str, str] = field(default_factory=dict)  # image to reason
    failed_before: dict[str, str] = field(default_factory=dict)  # the same, of earlier starts

    def add(self, outcomes: Mapping[str, Any]) -> None:
        """Count images that were described, or why they could not be."""
        reasons = {i: str(o) for i, o in outcomes.items() if isinstance(o, UnreadableError)}
        self.unreadable |= reasons
        self.described += len(outcomes)
        texts = [text for outcome in outcomes.values() for text in _texts(outcome)]
        self.empty += sum(not text.strip() for text in texts)

    def add_outdated(self, before: int, now: int) -> None:
        """Count an image whose stamp differs from its block's stamp."""
        if is_of_content(now) and before > 0 and not is_of_content(before):
            self.earlier += 1
        elif before != UNSETTLED:
            self.changed += 1

    def sentences(self, noun: str) -> list[str]:
        """The lines of the report."""
        lines = []
        if self.finished:
            lines.append(f"{self.finished} of {counted(self.blocks, 'blocks')} existed already")
        if self.earlier:
            lines.append(
                f"{counted(self.earlier, f'{noun} were')} described by an earlier version, which "
                "identified photos by size only, and again now"
            )
        if self.changed:
            lines.append(counted(self.changed, f"{noun} have changed and were described again"))
        if self.described:
            rate = self.described / max(self.seconds, 1e-9)
            lines.append(
                f"{counted(self.described, noun)} in {self.seconds:.1f} s: {rate:.1f} {noun}/s"
            )
        if self.empty:
            lines.append(counted(self.empty, "have an empty text"))
        if failed := {**self.failed_before, **self.unreadable}:
            lines.append(
                f"{counted(len(failed), 'have')} no result: {first_reasons(failed)}; the next "
                "start tries again (a broken file only after it has changed)"
            )
        return lines


def _texts(value: Any) -> Sequence[str]:
    """The texts of an image's value; empty if it is a vector.

    Example:
        >>> _texts("a dog"), _texts(["a dog", ""]), _texts(None)
        (['a dog'], ['a dog', ''], [])
    """
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else []


def first_reasons(reasons: Mapping[str, str]) -> str:
    """The first few images with their reasons, each reason once.

    Example:
        >>> first_reasons({"7": "it is empty", "8": "not computed yet", "9": "it is empty"})
        '7, 9 (it is empty), 8 (not computed yet)'
    """
    images: dict[str, list[str]] = {}
    for image, reason in islice(reasons.items(), _SHOWN):
        images.setdefault(reason, []).append(image)
    shown = [f"{', '.join(alike)} ({reason})" for reason, alike in images.items()]
    more = max(0, len(reasons) - _SHOWN)
    return ", ".join([*shown, f"and {more} more"] if more else shown)


@dataclass(frozen=True)
class Remaining:
    """What is left to do of one task's share."""

    # The ids of each unfinished block, and those among them to describe now
    blocks: Sequence[tuple[Sequence[str], Sequence[str]]]
    stamps: Mapping[str, int]  # of all images of the share
    tally: ProgressCounts  # what was done already

    @property
    def images(self) -> list[str]:
        """The images to describe, in the order of their blocks."""
        return [image for _, wanted in self.blocks for image in wanted]


def remaining(
    sources: Mapping[str, S],
    stamps_of: Callable[[Sequence[S]], Sequence[int]],
    store: BlockStore,
    shard: str,
    limit: int | None = None,
) -> Remaining:
    """What is left to do of a task's share."""
    share = (Shard.parse(shard) if shard else Shard.of_slurm()).share(blocks_of(sources))
    images = list(chain.from_iterable(share))
    stamps = dict(zip(images, stamps_of([sources[image] for image in images]), strict=True))
    allowed = set(images if limit is None else sorted(images, key=id_key)[:limit])
    tally = ProgressCounts(len(share))
    left = []
    for ids in share:
        known = store.outcomes(ids)
        before = {image: stamp for image, (stamp, _) in known.items()}
        outdated = [image for image in ids if before.get(image) != stamps[image]]
        reasons = {image: reason for image, (_, reason) in known.items() if reason is not None}
        tally.failed_before |= {i: reasons[i] for i in reasons if before[i] == stamps[i]}
        tally.finished += not outdated
        wanted = [image for image in outdated if image in allowed]
        for image in set(wanted) & before.keys():
            tally.add_outdated(before[image], stamps[image])
        if wanted:
            left.append((ids, wanted))
    return Remaining(left, stamps, tally)


def describe_share(
    sources: Mapping[str, S],
    stamps_of: Callable[[Sequence[S]], Sequence[int]],
    store: BlockStore,
    load: Callable[[], Reader | Model],
    options: Namespace,
    limit: int | None = None,
) -> ProgressCounts:
    """Describe the share of one task; what is finished is skipped.

    If the work ends early (a request to stop, a failure of the model), what was described until
    then is stored before the error is raised.
    """
    left = remaining(sources, stamps_of, store, options.shard, limit)
    work = _Work(load(), sources) if left.blocks else None
    store.plan(list(sources))  # a run that cannot begin leaves nothing
    if work is not None:
        if "torch" in sys.modules:  # else the model computes nothing
            sys.modules["torch"].set_num_threads(options.threads)
        started = time.monotonic()
        open_blocks = deque(left.blocks)

        def keep() -> None:
            for block in open_blocks:
                _put(block, left, work.values, store)

        try:
            with contextlib.closing(work.described(left.images, options, keep)) as described:
                _store_as_described(described, open_blocks, left, work.values, store, keep)
        finally:
            while open_blocks:
                _put_first(open_blocks, left, work.values, store)
        if work.failure is not None:
            raise work.failure
        left.tally.seconds = time.monotonic() - started
    return left.tally


def _store_as_described(
    described: Iterable[str],
    open_blocks: deque[tuple[Sequence[str], Sequence[str]]],
    left: Remaining,
    values: dict[str, Any],
    store: BlockStore,
    keep: Callable[[], None],
) -> None:
    """Store every finished block, and from time to time the open blocks."""
    kept_at = time.monotonic()
    for image in described:
        if image == open_blocks[0][1][-1]:
            _put_first(open_blocks, left, values, store)
            signals.stop_if_requested()
        elif time.monotonic() - kept_at > KEEP_S:
            keep()
            kept_at = time.monotonic()


def _put_first(
    open_blocks: deque[tuple[Sequence[str], Sequence[str]]],
    left: Remaining,
    values: dict[str, Any],
    store: BlockStore,
) -> None:
    """Store what was described of the first open block, and close it."""
    described = _put(open_blocks[0], left, values, store)
    left.tally.add(described)
    for image in described:
        del values[image]
    open_blocks.popleft()


def _put(
    block: tuple[Sequence[str], Sequence[str]],
    left: Remaining,
    values: Mapping[str, Any],
    store: BlockStore,
) -> dict[str, Any]:
    """Store what was described of a block, if anything, and return it."""
    ids, wanted = block
    described = {image: values[image] for image in wanted if image in values}
    if described:
        store.put(_block(ids, left.stamps, described, store.read(ids)))
    return described


class _Work:
    """Describes sources until the model fails."""

    def __init__(self, model: Reader | Model, sources: Mapping[str, Any]) -> None:
        self._model, self._sources = model, sources
        # Image to value, or why it has none, of images whose block is not stored
        self.values: dict[str, Any] = {}
        self.failure: BiasPipelineError | None = None  # the first, which ends the work

    def described(
        self, images: Sequence[str], options: Namespace, keep: Callable[[], None]
    ) -> Generator[str, None, None]:
        """Each image after its value is there, in order, until the model fails."""
        wanted = takewhile(lambda _: self.failure is None, images)
        # Answers wait for a slow one before them; what a model reads waits in memory.
        window = (2 if isinstance(self._model, Model) else _WINDOW_OF_ANSWERS) * options.batch
        reading = ahead(self._read, wanted, options.threads, window, keep, KEEP_S)
        with bar("images"), contextlib.closing(reading):
            values: Iterator[Any] = track(reading, len(images))
            if isinstance(self._model, Model):
                values = in_batches(self._model, values, options.batch)
            for image, value in zip(images, values, strict=False):
                self._add(image, value)
                yield image

    def _read(self, image: str) -> Any:
        """A source as the model takes it, or why it cannot be read; called from threads."""
        source: Any = UnreadableError(NOT_YET, lasting=False)
        try:
            if self.failure is None:
                source = self._model.read(self._sources[image])
        except UnreadableError as error:
            source = error
        except BiasPipelineError as error:
            self.failure = self.failure or error
        if not isinstance(self._model, Model):  # an answer behind a slow one would be lost
            self._add(image, source)
        return source

    def _add(self, image: str, value: Any) -> None:
        if not (isinstance(value, UnreadableError) and str(value) == NOT_YET):
            self.values[image] = value


def in_batches(model: Model, read: Iterator[Any], batch: int) -> Iterator[Any]:
    """The value of each source, or why it has no value; batches span blocks."""
    while sources := list(islice(read, batch)):
        if len(_by_form(sources)) > 1:  # else they are one batch as they come
            sources += islice(read, (_POOL - 1) * batch)
        values = dict(enumerate(sources))
        for places in _by_form(sources):
            for first in range(0, len(places), batch):
                rows = places[first : first + batch]
                texts = _within_memory(model, [sources[row] for row in rows], batch)
                values |= zip(rows, texts, strict=True)
        yield from values.values()


def _by_form(sources: Sequence[Any]) -> list[list[int]]:
    """Places of the sources that were read, sources of one form together.

    Example:
        >>> _by_form([1, UnreadableError("broken"), 2])
        [[0, 2]]
    """
    forms: dict[object, list[int]] = {}
    for place, source in enumerate(sources):
        if not isinstance(source, UnreadableError):
            forms.setdefault(getattr(source, "form", None), []).append(place)
    return list(forms.values())


def _block(
    ids: Sequence[str],
    stamps: Mapping[str, int],
    outcomes: Mapping[str, Any],
    before: pa.Table | None,
) -> Block:
    """A block of new results and the stored results of unchanged images.

    Temporary failures get a stamp that no source has.
    """
    rows = {} if before is None else _unchanged(before, stamps)
    for image, outcome in outcomes.items():
        if isinstance(outcome, UnreadableError):
            stamp = stamps[image] if outcome.lasting else UNSETTLED
            rows[image] = (stamp, None, str(outcome), None)
        else:
            rows[image] = (stamps[image], outcome, None, getattr(outcome, "notes", None))
    absent = (UNSETTLED, None, NOT_YET, None)
    columns = zip(*(rows.get(image, absent) for image in ids), strict=True)
    return Block(ids, *(list(column) for column in columns))


def _unchanged(block: pa.Table, stamps: Mapping[str, int]) -> dict[str, tuple[Any, ...]]:
    """Image to stamp, value, reason and notes, of images whose stamp did not change."""
    ids, known = block["id"].to_pylist(), block["stamp"].to_pylist()
    fields = zip(
        known, block_values(block), block["reason"].to_pylist(), block_notes(block), strict=True
    )
    return {image: row for image, row in zip(ids, fields, strict=True) if row[0] == stamps[image]}


def _within_memory(model: Model, sources: Sequence[Any], batch: int) -> Iterable[Any]:
    try:
        return model.describe(sources)
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # PyTorch's, which need not be installed
            raise
        raise ResourceError(
            f"the device has no memory left for {counted(len(sources), 'images')} at once; use "
            f"--batch {max(1, batch // 2)}"
        ) from error


def report_progress(
    tally: ProgressCounts, noun: str, command: str, store: BlockStore, lines: Sequence[str] = ()
) -> None:
    """Print a task's counts, more lines about them, and the next command."""
    for line in (*tally.sentences(noun), *lines):
        print_out(line)
    print_out("when all tasks are done, this command gathers everything into one file:")
    words = [*command.split(), "--gather", str(store.root), "--run", store.signature]
    print_out(f"  python -m bias_pipeline {shlex.join(words)}")


def ahead(
    function: Callable[[S], T],
    items: Iterable[S],
    threads: int,
    window: int,
    meanwhile: Callable[[], None] = lambda: None,
    every_s: float = 10.0,
) -> Generator[T, None, None]:
    """Results in the order of the items, computed by threads a little ahead of their use.

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
                yield _awaited(waiting.popleft(), meanwhile, every_s)
        while waiting:
            yield _awaited(waiting.popleft(), meanwhile, every_s)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _awaited(future: Future[T], meanwhile: Callable[[], None], every_s: float) -> T:
    while not wait([future], every_s).done:
        meanwhile()
    return future.result()
