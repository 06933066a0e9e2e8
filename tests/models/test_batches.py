"""Batches of sources of one form: their order, their sizes, and what cannot be read."""

from collections.abc import Sequence
from typing import NamedTuple

from bias_pipeline.data.photos import UnreadableError
from bias_pipeline.models.runner import in_batches


class Sized(NamedTuple):
    """A source of some size."""

    number: int
    form: int


class Recorder:
    """Names sources, and records which were described together."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def read(self, source: Sized) -> Sized:
        return source

    def describe(self, sources: Sequence[Sized]) -> list[str]:
        assert len({source.form for source in sources}) == 1
        self.batches.append([source.number for source in sources])
        return [f"number {source.number}" for source in sources]


MIXED = [Sized(number, number % 3) for number in range(24)]


def test_values_come_in_the_order_of_the_sources_though_those_of_one_form_fill_batches():
    recorder = Recorder()
    assert list(in_batches(recorder, iter(MIXED), 4)) == [f"number {k}" for k in range(24)]
    assert [len(batch) for batch in recorder.batches] == [4] * 6


def test_alike_sources_wait_for_no_more_than_a_batch():
    """So that a kill loses no more than a batch of them."""
    taken = []

    def sources() -> object:
        for number in range(100):
            taken.append(number)
            yield Sized(number, 0)

    next(in_batches(Recorder(), sources(), 4))
    assert len(taken) == 4


def test_what_cannot_be_read_keeps_its_place():
    broken = UnreadableError("broken")
    values = list(in_batches(Recorder(), iter([MIXED[0], broken, MIXED[1], MIXED[3]]), 2))
    assert values == ["number 0", broken, "number 1", "number 3"]
