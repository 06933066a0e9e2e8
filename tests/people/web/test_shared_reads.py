"""Things that take long to read: once each, the last ones kept, failures tried again."""

import threading

import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from bias_pipeline.errors import ResourceError
from bias_pipeline.people.web.shared_reads import SharedReads


def test_all_who_ask_at_a_time_share_a_read():
    reads, gate, begun = SharedReads(len, 100), threading.Event(), []

    def read() -> str:
        begun.append(gate.wait(20))
        return "x"

    waiting = [reads.start("a", read) for _ in range(5)]
    gate.set()
    assert [one.result(20) for one in waiting] == ["x"] * 5
    assert begun == [True]


def test_what_failed_is_read_again():
    reads = SharedReads(len, 100)

    def raise_memory_error() -> str:
        raise MemoryError

    with pytest.raises(ResourceError, match="too little memory"):
        reads.start("a", raise_memory_error).result(20)
    assert reads.start("a", lambda: "x").result(20) == "x"


@pytest.mark.parametrize(("size", "n_kept"), [(1, 8), (40, 2), (200, 1)])
def test_the_last_things_stay_as_far_as_they_are_small(size, n_kept):
    reads, again = SharedReads(len, 100), []
    for key in range(12):
        reads.start(key, lambda: "x" * size).result(20)
    for key in reversed(range(12)):
        reads.start(key, lambda: again.append(1) or "").result(20)
    assert 12 - len(again) == n_kept
