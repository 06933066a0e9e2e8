"""Pickles: plain data is read, all else is refused and nothing is run."""

import array
import collections
import math
import os
import pickle
import shlex
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.published._unpickle_child import RefusedError, read_plain
from bias_pipeline.published.pickles import DEFAULT_LIMITS, UnpicklingLimits, load_pickle

pytest.importorskip("resource", reason="needs the limits of Unix")


PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
EXTENSIONS = (b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00")
RECORD = {"img_id": 272357, "pred": "a dog runs", "ratio": 0.25, "seen": True, "race": None}


class Touch:
    """Runs ``touch FILE`` when unpickled by anyone who trusts it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {shlex.quote(str(self.file))}",)


def read(folder: Path, data: bytes, limits: UnpicklingLimits = DEFAULT_LIMITS) -> object:
    """What load_pickle makes of a file of these bytes."""
    path = folder / "entries.pkl"
    path.write_bytes(data)
    return load_pickle(path, limits=limits)


def refuse(folder: Path, data: bytes, limits: UnpicklingLimits = DEFAULT_LIMITS) -> str:
    """The message with which a file of these bytes is refused."""
    with pytest.raises(DataError) as caught:
        read(folder, data, limits)
    return str(caught.value)


def text(word: str) -> bytes:
    """The opcode that pushes a str."""
    raw = word.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def refer(opcodes: bytes) -> bytes:
    """A text of a megabyte in the memo, and what refers to it."""
    return b"\x80\x04X" + struct.pack("<I", 10**6) + b"a" * 10**6 + b"\x940" + opcodes


def laughs(levels: int) -> bytes:
    """A list of two references to a list of two references to ... to one number."""
    doubled = (b"](" + 2 * (b"h" + bytes([level])) + b"e\x94" for level in range(levels))
    return b"\x80\x04K\x01\x94" + b"".join(doubled) + b"."


def collisions(keys: int) -> bytes:
    """A dict of ints that all have the same hash: reading it takes quadratic time."""
    numbers = (pickle.dumps(i * (2**61 - 1), 2)[2:-1] + b"N" for i in range(keys))
    return b"\x80\x02}(" + b"".join(numbers) + b"u."


def lists(depth: int, inner: object = 1) -> object:
    """A value in that many lists, each in the next."""
    for _ in range(depth):
        inner = [inner]
    return inner


# Plain data


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_records_are_read_in_their_order(tmp_path, protocol):
    assert read(tmp_path, pickle.dumps([RECORD] * 3, protocol)) == [RECORD] * 3
    chunks = list(range(12_001))  # more than one
    assert read(tmp_path, pickle.dumps(chunks, protocol)) == chunks


@pytest.mark.parametrize(
    "value",
    [
        *([], {}, "", 0, None, True, 0.1, -(2**63), 2**64, [True, 1], [math.inf, -math.inf]),
        ["👩‍👩‍👧", "子供", "كلب", "e\u0301", "\u202e", "\0\n\x7f"],
        [math.nan],
        2 * [["x"]],  # one list, referred to twice
    ],
    ids=ascii,
)
def test_plain_values_are_read_as_they_are(tmp_path, value):
    assert repr(read(tmp_path, pickle.dumps(value))) == repr(value)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        pytest.param(pickle.dumps(({"a": (1, ())},)), [{"a": [1, []]}], id="tuples"),
        pytest.param(b"U\x05caf\xc3\xa9.", "café", id="text of Python 2"),
        pytest.param(pickle.dumps(["a\ud800", {"\udfff": "é"}]), ["a\ufffd", {"\ufffd": "é"}]),
        pytest.param(pickle.dumps([1]) + b"\r\n", [1], id="white space after the end"),
        pytest.param(laughs(2), [[1, 1], [1, 1]], id="few laughs"),
    ],
)
def test_other_data_becomes_plain(tmp_path, data, value):
    assert read(tmp_path, data) == value


# Code


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_os_system_is_refused_in_every_protocol(tmp_path, protocol):
    data = pickle.dumps([RECORD, Touch(tmp_path / "canary")], protocol)
    assert f"'{os.system.__module__}.system'" in refuse(tmp_path, data)
    assert not (tmp_path / "canary").exists()


def payloads(canary: Path) -> dict[str, bytes]:
    """Ways to have ``touch canary`` run by an unpickler that trusts the file."""
    command = text(f"touch {shlex.quote(str(canary))}")
    os_name, system, call = text("os"), text("system"), command + b"\x85R."
    inner = b"cos\nsystem\n" + call
    overwritten = text("x") + b"q\x000" + os_name + b"q\x000h\x00" + system + b"\x93"
    bodies = {
        "GLOBAL": inner,
        "STACK_GLOBAL": os_name + system + b"\x93" + call,
        "alias through an innocent module": text("logging") + text("os.system") + b"\x93" + call,
        "alias with GLOBAL": b"clogging\nos.system\n" + call,
        "names from the memo": system + b"\x940" + os_name + b"\x940h\x01h\x00\x93" + call,
        "memo overwritten": overwritten + call,
        "function from the memo": b"cos\nsystem\nq\x070h\x07" + call,
        "INST": b"(" + command + b"ios\nsystem\n.",
        "OBJ": b"(cos\nsystem\n" + command + b"o.",
        "nested loads": b"cpickle\nloads\nB" + struct.pack("<I", len(inner)) + inner + b"\x85R.",
        "after ten thousand numbers": b"](" + b"K\x01" * 10_000 + b"ecos\nsystem\n" + call,
        "in a later frame": b"\x95" + struct.pack("<Q", 2) + b"]0cos\nsystem\n" + call,
    }
    return {name: b"\x80\x04" + body for name, body in bodies.items()}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory) -> tuple[Mapping[str, str], Path]:
    """What is said of each payload, and the file that each would make."""
    folder = tmp_path_factory.mktemp("payloads")
    bodies = payloads(folder / "canary")
    return {name: refuse(folder, body) for name, body in bodies.items()}, folder / "canary"


@pytest.mark.parametrize("name", payloads(Path("x")))
def test_code_is_refused(refusals, name):
    assert "asks for code or a class" in refusals[0][name]


def test_canary_is_never_created(refusals):
    assert not refusals[1].exists()


@pytest.mark.parametrize("name", payloads(Path("x")))
def test_the_canary_would_sing(tmp_path, name):
    pickle.loads(payloads(tmp_path / "canary")[name])
    assert (tmp_path / "canary").exists()


OBJECTS = (collections.OrderedDict(a=1), array.array("i", [1]), 1 + 2j, Path("x"), ValueError)
GLOBALS = (
    "builtins.eval",
    "builtins.getattr",
    "__main__._PlainUnpickler",
    "copyreg._reconstructor",
)
CODE = "asks for code or a class"
OUTSIDE = "refers to an object outside the file"
COLLISIONS = collisions(60_000)
DEEP = "more than 100 levels"
SHARED = lists(60)
FALSE_LENGTH = "byte 2: refused, not a readable pickle (expected 10000000000 bytes"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"](Ncos\nsystem\ne.", "entries.pkl, byte 3: refused"),
        *((code + b".", f"byte 0: refused, it {CODE} (EXT") for code in EXTENSIONS),
        pytest.param(b"]N}U\x06appendU\x02oss\x86b.", CODE, id="BUILD on a list"),
        pytest.param(b"}}U\x01aK\x01sb.", CODE, id="BUILD on a dict"),
        pytest.param(b"U\x06system)R.", CODE, id="REDUCE of a str"),
        pytest.param(b"(U\x06systemK\x01o.", CODE, id="OBJ of a str"),
        (b"Pos.system\n.", OUTSIDE),
        (b"U\x02osQ.", OUTSIDE),
        *((f"c{name}\n.".replace(".", "\n", 1).encode(), f"({name!r})") for name in GLOBALS),
        *((pickle.dumps(value), CODE) for value in OBJECTS),
    ],
)
def test_what_calls_for_code_is_refused(tmp_path, data, message):
    assert message in refuse(tmp_path, data)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"blob": b"x"}], "at [0]['blob']: refused, it contains a value of type bytes"),
        ([{1}], "type set"),
        ([frozenset([1])], "type frozenset"),
        ([bytearray(b"x")], "type bytearray"),
        ([b"x"], "type bytes"),
        *(
            ([{"a": {key: 1}}], f"at [0]['a']: refused, a dict has the key {key} (")
            for key in (1, None, (1, 2), 0.5, True)
        ),
        (dict.fromkeys(["\ud800", "\ud801"]), "two keys"),
        pytest.param([SHARED, lists(60, SHARED)], DEEP, id="deep through shared parts"),
        (1 << 5000, "an int of 5001 bits"),
    ],
    ids=ascii,
)
def test_values_that_are_not_plain_are_refused(tmp_path, value, message):
    assert message in refuse(tmp_path, pickle.dumps(value, 5))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x80\x04]\x94h\x00a.", "contains itself"),  # a list that holds itself
        (b"\x80\x04}\x94U\x01ah\x00s.", "contains itself"),  # a dict that holds itself
        (b"\x80\x04]\x94h\x00\x85a.", "contains itself"),  # a list, through a tuple
        (b"\x80\x04]\x94}\x94U\x01ah\x00sa.", "contains itself"),  # a list, through a dict
        pytest.param(b"]" * 10_000 + b"a" * 9_999 + b".", DEEP, id="ten thousand levels"),
        pytest.param(b"}" + b")" + b"\x85" * 3_000_000 + b"K\x01s.", "refused", id="deep key"),
        pytest.param(laughs(40), "its shared parts, written out", id="billion laughs"),
        pytest.param(refer(b"(" + b"h\x00" * 10**6 + b"l."), "written out", id="long list"),
        pytest.param(refer(b"(" + b"h\x00" * 10**6 + b"t."), "written out", id="long tuple"),
        pytest.param(refer(b"(" + b"}h\x00Ns" * 10**5 + b"l."), "written out", id="long keys"),
        *(
            (b"\x80\x05" + opcode + struct.pack("<Q", 10**10) + b"abc.", FALSE_LENGTH)
            for opcode in (b"\x8d", b"\x8e", b"\x96")
        ),
        (b"]r\xff\xff\xff\xff.", "more than 4,096 MiB of memory"),
        (b"]p99999999999\n.", "more than 4,096 MiB of memory"),
        (b"", "is empty"),
        (b"](NX\xff\0\0\0ab", "byte 3: refused, not a readable pickle"),
        (b"img_id,pred\n7,a dog\n", "not a readable pickle"),
        (b'[{"img_id": 7}]', "It looks like JSON"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x1f\x8b\x08rest", "gzip archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\0" * 100, "not a readable pickle"),
        (b"\x80\x63N.", "unsupported pickle protocol: 99"),
        (b"]." + b"](K\x01e.", "6 further bytes follow"),
    ],
)
def test_bombs_and_damaged_files_are_refused(tmp_path, data, message):
    assert message in refuse(tmp_path, data)


@pytest.mark.parametrize(
    ("data", "limit", "message"),
    [
        (pickle.dumps([[[]]]), {"depth": 2}, "more than 2 levels"),
        (b"](" + b"]" * 2_000_000 + b"e.", {"memory_bytes": 64 << 20}, "memory"),
        (COLLISIONS, {"cpu_seconds": 1}, "over 1 s to read"),
        (COLLISIONS, {"wall_seconds": 0.3}, "not read within 0.3 s"),
        (b"K\x01." * 10, {"file_bytes": 10}, "bytes are more than the 10"),
        (pickle.dumps(["é" * 90]), {"data_bytes": 150}, "too large when written out"),
    ],
    ids=["depth", "memory", "processor time", "time", "file", "data"],
)
def test_what_is_over_a_limit_is_refused(tmp_path, data, limit, message):
    assert message in refuse(tmp_path, data, UnpicklingLimits(**limit))
    assert read(tmp_path, pickle.dumps([[[]]]), UnpicklingLimits(depth=3)) == [[[]]]  # at it


def test_billion_laughs_are_refused_at_once(tmp_path):
    start = time.perf_counter()
    refuse(tmp_path, laughs(90))
    assert time.perf_counter() - start < 5


def test_message_tells_how_to_convert(tmp_path):
    message = refuse(tmp_path, pickle.dumps({"a": collections.OrderedDict(b=[{1}])}))
    command = shlex.split(message.split("use the new file: ")[1])
    subprocess.run([sys.executable, *command[1:]], check=True)
    assert load_pickle(tmp_path / "entries.plain.pkl") == {"a": {"b": [[1]]}}


def test_control_characters_of_a_name_do_not_reach_the_terminal(tmp_path):
    assert "\x1b" not in refuse(tmp_path, b"cos\x1b[31m\nx\n.")


# Damage


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_truncated_at_every_97th_byte_is_refused(protocol):
    data = pickle.dumps([{**RECORD, "img_id": i} for i in range(100)], protocol)
    read_anyway = []
    for cut in range(0, len(data), 97):
        try:
            read_plain(data[:cut])
            read_anyway.append(cut)
        except RefusedError:
            pass
    assert read_anyway == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_truncated_file_is_called_damaged(tmp_path, protocol):
    assert "fetch or make it again" in refuse(tmp_path, pickle.dumps([RECORD], protocol)[:-9])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.pkl", r"absent\.pkl: there is no such file"),
        (".", "is a folder"),
        ("pipe.pkl", "not a regular file"),
    ],
)
def test_what_is_no_file_is_a_resource_error(tmp_path, name, message):
    os.mkfifo(tmp_path / "pipe.pkl")
    with pytest.raises(ResourceError, match=message):
        load_pickle(tmp_path / name)


# The process


def test_python_that_cannot_be_started_is_a_resource_error(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(ResourceError, match="could not be started"):
        read(tmp_path, b"N.")


def test_no_process_is_left_over(tmp_path):
    before = set(psutil.Process().children())  # other tests may have left workers of their own
    refuse(tmp_path, COLLISIONS, UnpicklingLimits(wall_seconds=0.2))
    assert set(psutil.Process().children()) - before == set()


def test_threads_read_at_the_same_time(tmp_path):
    paths = [tmp_path / f"{i}.pkl" for i in range(16)]
    for i, path in enumerate(paths):
        path.write_bytes(pickle.dumps([i] * 1000))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(load_pickle, paths)) == [[i] * 1000 for i in range(16)]


def test_ten_thousand_records_take_a_fraction_of_a_second(tmp_path):
    data = pickle.dumps([{**RECORD, "img_id": i, "pred": f"a dog runs {i}"} for i in range(10_780)])
    times = []
    for _ in range(3):
        start = time.perf_counter()
        read(tmp_path, data)
        times.append(time.perf_counter() - start)
    assert min(times) < 1  # 0.1 s where nothing else runs
