"""Runs a model over one task's share of images or texts, block by block.

A killed run continues. The commands ``embed``, ``caption`` and ``data detect`` use this module.
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
from bias_pipeline.errors import BiasPipelineError, ResourceError, inflect
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
)

if TYPE_CHECKING:
    import pyarrow as pa

S = TypeVar("S")
T = TypeVar("T")

KEEP_S = 10.0  # open blocks are stored so often (seconds), since a process may be killed
_SHOWN = 5  # how many unreadable images a message names
_WINDOW_OF_ANSWERS = 16  # the most batches of answers that wait for a slow answer
_POOL = 8  # sources of equal form are put together from so many batches


class Reader(Protocol):
    """Gives the value of a photo or a text as soon as it has read the source, as a server does."""

    def read(self, source: Any, /) -> Any:
        """The value of a source; several threads call this method at once."""


@runtime_checkable
class Model(Reader, Protocol):
    """Describes photos or texts in batches.

    Sources that a model has read may have an attribute ``form``. Then only sources of equal form
    are described together.
    """

    def read(self, source: Any, /) -> Any:
        """A source after preprocessing for the network; several threads call this method."""

    def describe(self, sources: Sequence[Any], /) -> Iterable[Any]:
        """A value (text, list of texts or vector) for each source that was read."""


@dataclass
class ProgressCounts:
    blocks: int = 0  # blocks of the task's share
    finished: int = 0  # blocks that existed already
    changed: int = 0  # images whose content has changed since they were described
    described: int = 0  # images or texts that were described, including the unreadable
    empty: int = 0  # empty texts
    seconds: float = 0.0  # time of describing, without loading the model
    unreadable: dict[str, str] = field(default_factory=dict)  # image to reason
    failed_before: dict[str, str] = field(default_factory=dict)  # failures of earlier starts

    def add(self, outcomes: Mapping[str, Any]) -> None:
        """Count the images that were described, and note why others could not be described."""
        reasons = {i: str(o) for i, o in outcomes.items() if isinstance(o, UnreadableError)}
        self.unreadable |= reasons
        self.described += len(outcomes)
        texts = [text for outcome in outcomes.values() for text in _texts(outcome)]
        self.empty += sum(not text.strip() for text in texts)

    def sentences(self, noun: str) -> list[str]:
        """The lines of the report."""
        lines = []
        if self.finished:
            lines.append(f"{self.finished} of {inflect(self.blocks, 'blocks')} existed already")
        if self.changed:
            lines.append(inflect(self.changed, f"{noun} have changed and were described again"))
        if self.described:
            rate = self.described / max(self.seconds, 1e-9)
            lines.append(
                f"{inflect(self.described, noun)} in {self.seconds:.1f} s: {rate:.1f} {noun}/s"
            )
        if self.empty:
            lines.append(inflect(self.empty, "have an empty text"))
        if failed := {**self.failed_before, **self.unreadable}:
            lines.append(
                f"{inflect(len(failed), 'have')} no result: {first_reasons(failed)}; the next "
                "start tries again (a broken file only after it has changed)"
            )
        return lines


def _texts(value: Any) -> Sequence[str]:
    """The texts of an image's value; empty if the value is a vector.

    Example:
        >>> _texts("a dog"), _texts(["a dog", ""]), _texts(None)
        (['a dog'], ['a dog', ''], [])
    """
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else []


def first_reasons(reasons: Mapping[str, str]) -> str:
    """The first few images and their reasons, with each reason once.

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
    # The ids of each unfinished block, and the ids in it that are to be described now
    blocks: Sequence[tuple[Sequence[str], Sequence[str]]]
    stamps: Mapping[str, int]  # of all images of the share
    tally: ProgressCounts  # counts of what was done already

    @property
    def images(self) -> list[str]:
        return [image for _, wanted in self.blocks for image in wanted]


def remaining(
    sources: Mapping[str, S],
    stamps_of: Callable[[Sequence[S]], Sequence[int]],
    store: BlockStore,
    shard: str,
    limit: int | None = None,
) -> Remaining:
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
        tally.changed += sum(before.get(image, UNSETTLED) != UNSETTLED for image in wanted)
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
    """Describe the share of one task, except finished blocks.

    If the work ends early (by a request to stop or a failure of the model), everything described so
    far is stored before the error is raised.
    """
    left = remaining(sources, stamps_of, store, options.shard, limit)
    work = _Work(load(), sources, left, store) if left.blocks else None
    store.plan(list(sources))  # only now: a run that cannot begin leaves nothing
    if work is not None:
        if "torch" in sys.modules:  # else the model computes nothing
            sys.modules["torch"].set_num_threads(options.threads)
        started = time.monotonic()
        work.describe_and_store(options)
        left.tally.seconds = time.monotonic() - started
    return left.tally


class _Work:
    """Describes the unfinished images until the model fails, and stores them block by block."""

    def __init__(
        self,
        model: Reader | Model,
        sources: Mapping[str, Any],
        left: Remaining,
        store: BlockStore,
    ) -> None:
        self._model, self._sources, self._left, self._store = model, sources, left, store
        self._open_blocks = deque(left.blocks)
        # Image to value, or to the reason for having none, for images whose block is not stored
        self._values: dict[str, Any] = {}
        self._failure: BiasPipelineError | None = None  # the first failure, which ends the work

    def describe_and_store(self, options: Namespace) -> None:
        """Store every finished block, and from time to time the open blocks."""
        kept_at = time.monotonic()
        try:
            with contextlib.closing(self._describe(options)) as described:
                for image in described:
                    if image == self._open_blocks[0][1][-1]:
                        self._close_first_block()
                        signals.stop_if_requested()
                    elif time.monotonic() - kept_at > KEEP_S:
                        self._store_open_blocks()
                        kept_at = time.monotonic()
        finally:
            while self._open_blocks:
                self._close_first_block()
        if self._failure is not None:
            raise self._failure

    def _describe(self, options: Namespace) -> Generator[str, None, None]:
        """Yield the images in order, each once its value is known; ends if the model fails."""
        images = self._left.images
        wanted = takewhile(lambda _: self._failure is None, images)
        # Answers wait until slower answers before them are there; images wait in memory.
        window = (2 if isinstance(self._model, Model) else _WINDOW_OF_ANSWERS) * options.batch
        reading = ahead(
            self._read, wanted, options.threads, window, self._store_open_blocks, KEEP_S
        )
        with bar("images"), contextlib.closing(reading):
            values: Iterator[Any] = track(reading, len(images))
            if isinstance(self._model, Model):
                values = in_batches(self._model, values, options.batch)
            for image, value in zip(images, values, strict=False):
                self._add(image, value)
                yield image

    def _read(self, image: str) -> Any:
        """A source as input for the model, or why it cannot be read; called by several threads."""
        source: Any = UnreadableError(NOT_YET, lasting=False)
        try:
            if self._failure is None:
                source = self._model.read(self._sources[image])
        except UnreadableError as error:
            source = error
        except BiasPipelineError as error:
            self._failure = self._failure or error
        if not isinstance(self._model, Model):  # an answer behind a slow one would be lost
            self._add(image, source)
        return source

    def _add(self, image: str, value: Any) -> None:
        if not (isinstance(value, UnreadableError) and str(value) == NOT_YET):
            self._values[image] = value

    def _store_open_blocks(self) -> None:
        for block in self._open_blocks:
            self._put(*block)

    def _close_first_block(self) -> None:
        described = self._put(*self._open_blocks[0])
        self._left.tally.add(described)
        for image in described:
            del self._values[image]
        self._open_blocks.popleft()

    def _put(self, ids: Sequence[str], wanted: Sequence[str]) -> dict[str, Any]:
        """Store the outcomes of a block, if there are any, and return them."""
        described = {image: self._values[image] for image in wanted if image in self._values}
        if described:
            stamps = self._left.stamps
            self._store.put(_block(ids, stamps, described, self._store.read(ids)))
        return described


def in_batches(model: Model, read: Iterator[Any], batch: int) -> Iterator[Any]:
    """The value of each source, or why it has none; a batch may contain several blocks."""
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
    """The places of sources that were read, grouped by form.

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
    """A block with new results and with the stored results of unchanged images.

    Temporary failures get a stamp that no source has, so the next run tries their images again.
    """
    rows: dict[str, tuple[Any, ...]] = {}
    if before is not None:
        fields = [before[name].to_pylist() for name in ("id", "stamp", "reason")]
        stored = zip(*fields, block_values(before), block_notes(before), strict=True)
        rows = {
            image: (stamp, value, reason, notes)
            for image, stamp, reason, value, notes in stored
            if stamp == stamps[image]
        }
    for image, outcome in outcomes.items():
        if isinstance(outcome, UnreadableError):
            stamp = stamps[image] if outcome.lasting else UNSETTLED
            rows[image] = (stamp, None, str(outcome), None)
        else:
            rows[image] = (stamps[image], outcome, None, getattr(outcome, "notes", None))
    absent = (UNSETTLED, None, NOT_YET, None)
    columns = zip(*(rows.get(image, absent) for image in ids), strict=True)
    return Block(ids, *(list(column) for column in columns))


def _within_memory(model: Model, sources: Sequence[Any], batch: int) -> Iterable[Any]:
    try:
        return model.describe(sources)
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # of PyTorch, which may be absent
            raise
        raise ResourceError(
            f"the device has no memory left for {inflect(len(sources), 'images')} at once; use "
            f"--batch {max(1, batch // 2)}"
        ) from error


def report_progress(
    tally: ProgressCounts, noun: str, command: str, store: BlockStore, lines: Sequence[str] = ()
) -> None:
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
    """Yield results in the order of the items; threads compute results a little in advance.

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
                yield _wait_for(waiting.popleft(), meanwhile, every_s)
        while waiting:
            yield _wait_for(waiting.popleft(), meanwhile, every_s)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _wait_for(future: Future[T], meanwhile: Callable[[], None], every_s: float) -> T:
    while not wait([future], every_s).done:
        meanwhile()
    return future.result()
