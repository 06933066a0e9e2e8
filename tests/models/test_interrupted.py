"""Work that ends early stores what was described until then; the next start does the rest."""

import threading
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence

import pytest

from bias_pipeline.io.signals import Stopped
from bias_pipeline.models import blocks, runner
from bias_pipeline.models.blocks import BlockStore, by_name
from bias_pipeline.models.runner import describe_share

TEXTS = {str(number): f"text {number}" for number in range(300)}  # about five a block
AT_ONCE = Namespace(shard="0/1", batch=4, threads=4)


class Answers:
    """Gives values as it reads, until so many; the next one fails."""

    def __init__(self, fails_after: int, error: type[BaseException] = ValueError) -> None:
        self.answered: list[str] = []
        self._fails_after, self._error = fails_after, error
        self._lock = threading.Lock()

    def read(self, text: str) -> str:
        with self._lock:
            if len(self.answered) >= self._fails_after:
                raise self._error
            self.answered.append(text)
        return text.upper()


class Slow(Answers):
    """Its first answer comes after the failure."""

    def __init__(self) -> None:
        super().__init__(3)
        self._failed = threading.Event()
        self._first = threading.Lock()

    def read(self, text: str) -> str:
        if self._first.acquire(blocking=False):
            self._failed.wait(10)
            raise ValueError
        try:
            return super().read(text)
        except ValueError:
            self._failed.set()
            raise


class Network:
    """Describes texts in batches, until so many."""

    def __init__(self, fails_after: int) -> None:
        self.answered: list[str] = []
        self._fails_after = fails_after

    def read(self, text: str) -> str:
        return text

    def describe(self, texts: Sequence[str]) -> list[str]:
        if len(self.answered) >= self._fails_after:
            raise ValueError
        self.answered += texts
        return [text.upper() for text in texts]


@pytest.mark.parametrize(
    ("first", "error"),
    [
        (Answers(123), ValueError),
        (Answers(123, Stopped), Stopped),
        (Slow(), ValueError),
        (Network(124), ValueError),
    ],
    ids=["a crash", "a request to stop", "an answer behind a slow one", "a network"],
)
def test_the_next_start_asks_only_for_what_is_missing(tmp_path, first, error):
    store = BlockStore(tmp_path, {}, "upper")
    with pytest.raises(error):
        describe_share(TEXTS, by_name, store, lambda: first, AT_ONCE)
    second = Answers(len(TEXTS))
    describe_share(TEXTS, by_name, store, lambda: second, AT_ONCE)
    assert sorted(second.answered) == sorted(set(TEXTS.values()) - set(first.answered))


@pytest.mark.parametrize("model", [Answers(len(TEXTS)), Network(len(TEXTS))])
def test_what_is_open_is_stored_every_few_seconds(tmp_path, model, monkeypatch):
    """So SIGKILL, which cannot be caught, loses what was described in some seconds."""
    monkeypatch.setattr(blocks, "FEWEST_BLOCKS", 1)  # blocks of a hundred
    monkeypatch.setattr(runner, "KEEP_S", 0.0)
    store, missed = BlockStore(tmp_path, {}, "upper"), []

    def look(steps: Iterable[object], _: int) -> Iterator[object]:
        for step in steps:
            missed.append(len(model.answered) - len(store.names_with(0)))
            yield step

    monkeypatch.setattr(runner, "track", look)
    describe_share(TEXTS, by_name, store, lambda: model, AT_ONCE)
    # Asked ahead: 8 and 4 that a network reads, or 64 and 4 answers, which wait for a slow one
    assert max(missed) < (80 if isinstance(model, Answers) else 30)


def test_what_waits_for_a_slow_answer_is_stored(tmp_path, monkeypatch):
    """So SIGKILL loses no more where the first answer takes minutes."""
    monkeypatch.setattr(blocks, "FEWEST_BLOCKS", 1)
    monkeypatch.setattr(runner, "KEEP_S", 0.05)
    store, first = BlockStore(tmp_path, {}, "upper"), threading.Lock()

    class FirstIsSlow(Answers):
        def read(self, text: str) -> str:
            if first.acquire(blocking=False):
                end = time.monotonic() + 20
                while len(store.names_with(0)) < 40 and time.monotonic() < end:
                    time.sleep(0.02)
                self.n_stored = len(store.names_with(0))
            return super().read(text)

    model = FirstIsSlow(len(TEXTS))
    describe_share(TEXTS, by_name, store, lambda: model, AT_ONCE)
    assert model.n_stored >= 40
    assert len(store.names_with(0)) == len(TEXTS)


def test_a_run_that_was_interrupted_ends_as_one_that_was_not(tmp_path):
    store = BlockStore(tmp_path, {}, "upper")
    with pytest.raises(ValueError):  # noqa: PT011 - of the test
        describe_share(TEXTS, by_name, store, lambda: Answers(123), AT_ONCE)
    describe_share(TEXTS, by_name, store, lambda: Answers(len(TEXTS)), AT_ONCE)
    tables, missing, _ = store.gather()
    values = {row["id"]: row["value"] for table in tables for row in table.to_pylist()}
    assert (values, missing) == ({i: text.upper() for i, text in TEXTS.items()}, {})
