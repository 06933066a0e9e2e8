"""Pickles of any bytes, without the cost of a process for each, are plain or refused."""

import pickle
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.published._unpickle_child import RefusedError, read_plain
from tests.published.test_pickles import PROTOCOLS

resource = pytest.importorskip("resource", reason="needs the limits of Unix")

IN_PROCESS = settings(max_examples=100, deadline=None)
ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
PLAIN = st.recursive(
    ATOMS,
    lambda part: st.lists(part) | st.dictionaries(st.text(), part) | st.tuples(part, part),
    max_leaves=20,
)
SNIPPETS = [
    *(bytes([code]) for code in range(256)),
    *(b"](e", b"}(u", b"K\x01", b"U\x01a", b"q\x00", b"h\x00", b"\x94", b"cos\nsystem\n", b"\x93"),
    *(b"\x8c\x02os", b"\x8c\x06system", b"R", b")R", b"b", b"\x81", b"S'a'\n", b"I1\n", b"."),
]


@pytest.fixture(scope="module")
def _little_memory() -> Iterator[None]:
    """A gigabyte more than now, so that a bomb that is found by chance cannot harm the tests."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    allowed = psutil.Process().memory_info().vms + (1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def is_plain(value: object) -> bool:
    """Whether only allowed types occur, written without regard to how the reader checks it."""
    if isinstance(value, dict):
        return all(type(k) is str and is_plain(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def plain_or_refused(data: bytes) -> bool:
    """Whether bytes give plain data, or the error that becomes a message."""
    try:
        return is_plain(read_plain(data))
    except (RefusedError, MemoryError):
        return True


@IN_PROCESS
@given(value=PLAIN, protocol=st.sampled_from(PROTOCOLS))
def test_plain_data_goes_round(value, protocol):
    assert read_plain(pickle.dumps(value, protocol)) == value


@IN_PROCESS
@given(data=st.binary(max_size=400))
@pytest.mark.usefixtures("_little_memory")
def test_random_bytes_are_plain_or_refused(data):
    assert plain_or_refused(data)


@IN_PROCESS
@given(parts=st.lists(st.sampled_from(SNIPPETS), max_size=60))
@pytest.mark.usefixtures("_little_memory")
def test_random_opcodes_are_plain_or_refused(parts):
    assert plain_or_refused(b"".join(parts))


@IN_PROCESS
@given(value=PLAIN, protocol=st.sampled_from(PROTOCOLS), data=st.data())
@pytest.mark.usefixtures("_little_memory")
def test_flipped_bytes_are_plain_or_refused(value, protocol, data):
    raw = bytearray(pickle.dumps(value, protocol))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    assert plain_or_refused(bytes(raw))
