"""Fault E10 (and E7, E8) of pickles: plain data is read, all else is refused and nothing is run."""

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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.datasets import pickles
from bias_pipeline.datasets._unpickle_child import RefusedError, read_plain
from bias_pipeline.datasets.pickles import DEFAULT_LIMITS, UnpicklingLimits, load_pickle
from bias_pipeline.errors import DataError, ResourceError

resource = pytest.importorskip("resource", reason="needs the limits of Unix")

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
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


def refused(folder: Path, data: bytes, limits: UnpicklingLimits = DEFAULT_LIMITS) -> str:
    """The message with which a file of these bytes is refused."""
    with pytest.raises(DataError) as caught:
        read(folder, data, limits)
    return str(caught.value)


def text(word: str) -> bytes:
    """The opcode that pushes a str."""
    raw = word.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


# Plain data


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_records_are_read(tmp_path, protocol):
    assert read(tmp_path, pickle.dumps([RECORD] * 3, protocol)) == [RECORD] * 3


def test_more_records_than_one_chunk_keep_their_order(tmp_path):
    assert read(tmp_path, pickle.dumps(list(range(12_001)))) == list(range(12_001))


@pytest.mark.parametrize("value", [[], {}, "", 0, None, True, 0.1, -(2**63), 2**64])
def test_any_plain_value_may_stand_alone(tmp_path, value):
    assert read(tmp_path, pickle.dumps(value)) == value


def test_tuples_come_back_as_lists(tmp_path):
    assert read(tmp_path, pickle.dumps(({"a": (1, ())},))) == [{"a": [1, []]}]


def test_true_stays_true(tmp_path):
    assert str(read(tmp_path, pickle.dumps([True, 1]))) == "[True, 1]"


def test_nan_is_data(tmp_path):
    assert math.isnan(read(tmp_path, pickle.dumps(math.nan)))


def test_infinities_are_data(tmp_path):
    assert read(tmp_path, pickle.dumps([math.inf, -math.inf])) == [math.inf, -math.inf]


def test_text_of_python_2_is_read(tmp_path):
    assert read(tmp_path, b"U\x05caf\xc3\xa9.") == "café"


def test_e7_emoji_and_scripts_survive(tmp_path):
    words = ["👩‍👩‍👧", "子供", "كلب", "e\u0301", "\u202e", "\0\n\x7f"]
    assert read(tmp_path, pickle.dumps(words)) == words


def test_e7_lone_surrogates_are_replaced(tmp_path):
    assert read(tmp_path, pickle.dumps(["a\ud800", {"\udfff": "é"}])) == [
        "a\ufffd",
        {"\ufffd": "é"},
    ]


def test_e7_keys_that_become_equal_are_refused(tmp_path):
    assert "two keys" in refused(tmp_path, pickle.dumps(dict.fromkeys(["\ud800", "\ud801"])))


def test_shared_parts_within_bounds_are_read(tmp_path):
    shared = ["x"]
    assert read(tmp_path, pickle.dumps([shared, shared])) == [["x"], ["x"]]


def test_white_space_after_the_end_is_ignored(tmp_path):
    assert read(tmp_path, pickle.dumps([1]) + b"\r\n") == [1]


# Code


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_e10_os_system_is_refused_in_every_protocol(tmp_path, protocol):
    data = pickle.dumps([RECORD, Touch(tmp_path / "canary")], protocol)
    assert f"'{os.system.__module__}.system'" in refused(tmp_path, data)


def payloads(canary: Path) -> dict[str, bytes]:
    """Ways to have ``touch canary`` run by an unpickler that trusts the file."""
    command = text(f"touch {shlex.quote(str(canary))}")
    os_name, system, call = text("os"), text("system"), command + b"\x85R."
    bodies = {
        "GLOBAL": b"cos\nsystem\n" + call,
        "STACK_GLOBAL": os_name + system + b"\x93" + call,
        "alias through an innocent module": text("logging") + text("os.system") + b"\x93" + call,
        "alias with GLOBAL": b"clogging\nos.system\n" + call,
        "names from the memo": system + b"\x940" + os_name + b"\x940h\x01h\x00\x93" + call,
        "memo overwritten": text("x")
        + b"q\x000"
        + os_name
        + b"q\x000h\x00"
        + system
        + b"\x93"
        + call,
        "function from the memo": b"cos\nsystem\nq\x070h\x07" + call,
        "INST": b"(" + command + b"ios\nsystem\n.",
        "OBJ": b"(cos\nsystem\n" + command + b"o.",
        "nested loads": _nested(b"cos\nsystem\n" + call),
        "after ten thousand numbers": b"](" + b"K\x01" * 10_000 + b"ecos\nsystem\n" + call,
        "in a later frame": b"\x95" + struct.pack("<Q", 2) + b"]0cos\nsystem\n" + call,
    }
    return {name: b"\x80\x04" + body for name, body in bodies.items()}


def _nested(inner: bytes) -> bytes:
    return b"cpickle\nloads\nB" + struct.pack("<I", len(inner)) + inner + b"\x85R."


@pytest.mark.parametrize("name", payloads(Path("x")))
def test_e10_code_is_refused(tmp_path, name):
    assert "asks for code or a class" in refused(tmp_path, payloads(tmp_path / "canary")[name])


def test_e10_canary_is_never_created(tmp_path):
    canary = tmp_path / "canary"
    for data in [*payloads(canary).values(), *(pickle.dumps(Touch(canary), p) for p in PROTOCOLS)]:
        refused(tmp_path, data)
    assert not canary.exists()


@pytest.mark.parametrize("name", payloads(Path("x")))
def test_the_canary_would_sing(tmp_path, name):
    pickle.loads(payloads(tmp_path / "canary")[name])
    assert (tmp_path / "canary").exists()


@pytest.mark.parametrize("opcode", [b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00"])
def test_e10_extension_codes_are_refused(tmp_path, opcode):
    assert "byte 0: refused, it asks for code or a class (EXT" in refused(tmp_path, opcode + b".")


@pytest.mark.parametrize(
    "data",
    [
        b"]N}U\x06appendU\x02oss\x86b.",  # BUILD on a list
        b"}}U\x01aK\x01sb.",  # BUILD on a dict
        b"U\x06system)R.",  # REDUCE of a str
        b"(U\x06systemK\x01o.",  # OBJ of a str
    ],
)
def test_e10_calls_without_a_global_are_refused(tmp_path, data):
    assert "asks for code or a class" in refused(tmp_path, data)


@pytest.mark.parametrize("data", [b"Pos.system\n.", b"U\x02osQ."])
def test_e10_persistent_ids_are_refused(tmp_path, data):
    assert "refers to an object outside the file" in refused(tmp_path, data)


def test_e10_nested_pickle_is_refused_as_bytes(tmp_path):
    inner = pickle.dumps(Touch(tmp_path / "canary"))
    assert "at [0]['blob']: refused, it contains a value of type bytes" in refused(
        tmp_path, pickle.dumps([{"blob": inner}])
    )


@pytest.mark.parametrize("value", [{1}, frozenset([1]), bytearray(b"x"), b"x"])
def test_e10_other_built_in_types_are_refused(tmp_path, value):
    assert f"type {type(value).__name__}" in refused(tmp_path, pickle.dumps([value], 5))


@pytest.mark.parametrize(
    "name",
    ["builtins.eval", "builtins.getattr", "__main__._PlainUnpickler", "copyreg._reconstructor"],
)
def test_e10_no_global_is_on_the_list(tmp_path, name):
    module, attribute = name.split(".")
    assert f"({name!r})" in refused(tmp_path, f"c{module}\n{attribute}\n.".encode())


@pytest.mark.parametrize(
    "value", [collections.OrderedDict(a=1), array.array("i", [1]), 1 + 2j, Path("x"), ValueError]
)
def test_e10_harmless_classes_are_refused_too(tmp_path, value):
    assert "asks for code or a class" in refused(tmp_path, pickle.dumps(value))


def test_e10_message_names_offset_and_file(tmp_path):
    assert f"{tmp_path / 'entries.pkl'}, byte 3: refused" in refused(
        tmp_path, b"](Ncos\nsystem\ne."
    )


def test_e10_message_tells_how_to_convert(tmp_path):
    message = refused(tmp_path, pickle.dumps({"a": collections.OrderedDict(b=[{1}])}))
    command = shlex.split(message.split("use the new file: ")[1])
    subprocess.run([sys.executable, *command[1:]], check=True)
    assert load_pickle(tmp_path / "entries.plain.pkl") == {"a": {"b": [[1]]}}


def test_e9_control_characters_of_a_name_do_not_reach_the_terminal(tmp_path):
    assert "\x1b" not in refused(tmp_path, b"cos\x1b[31m\nx\n.")


# Shape


@pytest.mark.parametrize("key", [1, None, (1, 2), 0.5, True])
def test_e10_keys_other_than_str_are_refused(tmp_path, key):
    message = refused(tmp_path, pickle.dumps([{"a": {key: 1}}]))
    assert f"at [0]['a']: refused, a dict has the key {key} (" in message


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04]\x94h\x00a.",  # a list that holds itself
        b"\x80\x04}\x94U\x01ah\x00s.",  # a dict that holds itself
        b"\x80\x04]\x94h\x00\x85a.",  # a list that holds a tuple that holds it
        b"\x80\x04]\x94}\x94U\x01ah\x00sa.",  # a list that holds a dict that holds it
    ],
)
def test_e10_cycles_are_refused(tmp_path, data):
    assert "contains itself" in refused(tmp_path, data)


def test_e8_nesting_of_ten_thousand_levels_is_refused(tmp_path):
    assert "more than 100 levels" in refused(tmp_path, b"]" * 10_000 + b"a" * 9_999 + b".")


def test_e8_depth_through_shared_parts_counts(tmp_path):
    part: list[object] = []
    for _ in range(60):
        part = [part]
    deep: list[object] = [part]
    for _ in range(60):
        deep = [deep]
    assert "more than 100 levels" in refused(tmp_path, pickle.dumps([part, deep]))


def test_e8_depth_at_the_limit_is_read(tmp_path):
    assert read(tmp_path, pickle.dumps([[[]]]), UnpicklingLimits(depth=3)) == [[[]]]


def test_e8_depth_over_the_limit_is_refused(tmp_path):
    assert "more than 2 levels" in refused(
        tmp_path, pickle.dumps([[[]]]), UnpicklingLimits(depth=2)
    )


def test_e8_tuples_too_deep_to_hash_do_not_crash_the_caller(tmp_path):
    assert "refused" in refused(tmp_path, b"}" + b")" + b"\x85" * 3_000_000 + b"K\x01s.")


def test_e8_integers_of_thousands_of_digits_are_refused(tmp_path):
    assert "an int of 5001 bits" in refused(tmp_path, pickle.dumps(1 << 5000))


# Bombs


def laughs(levels: int) -> bytes:
    """A list of two references to a list of two references to ... to one number."""
    doubled = (b"](" + 2 * (b"h" + bytes([level])) + b"e\x94" for level in range(levels))
    return b"\x80\x04K\x01\x94" + b"".join(doubled) + b"."


def test_e10_billion_laughs_are_refused(tmp_path):
    assert "its shared parts, written out" in refused(tmp_path, laughs(40))


def test_e10_billion_laughs_are_refused_at_once(tmp_path):
    start = time.perf_counter()
    refused(tmp_path, laughs(90))
    assert time.perf_counter() - start < 5


def test_e10_few_laughs_are_read(tmp_path):
    assert read(tmp_path, laughs(2)) == [[1, 1], [1, 1]]


@pytest.mark.parametrize("wrap", [b"(%b l.", b"(%b t."])
def test_e10_one_long_text_referred_to_a_million_times_is_refused(tmp_path, wrap):
    word = b"\x80\x04X" + struct.pack("<I", 10**6) + b"a" * 10**6 + b"\x940"
    assert "written out" in refused(tmp_path, word + wrap.replace(b" ", b"") % (b"h\x00" * 10**6))


def test_e10_one_long_key_in_a_hundred_thousand_dicts_is_refused(tmp_path):
    word = b"\x80\x04X" + struct.pack("<I", 10**6) + b"a" * 10**6 + b"\x940("
    assert "written out" in refused(tmp_path, word + b"}h\x00Ns" * 10**5 + b"l.")


@pytest.mark.parametrize("opcode", [b"\x8d", b"\x8e", b"\x96"])
def test_e10_bomb_of_a_false_length_is_refused_at_its_byte(tmp_path, opcode):
    data = b"\x80\x05" + opcode + struct.pack("<Q", 10**10) + b"abc."
    assert "byte 2: refused, not a readable pickle (expected 10000000000 bytes" in refused(
        tmp_path, data
    )


@pytest.mark.parametrize("data", [b"]r\xff\xff\xff\xff.", b"]p99999999999\n."])
def test_e10_bomb_of_a_huge_memo_hits_the_memory_limit(tmp_path, data):
    assert "more than 4,096 MiB of memory" in refused(tmp_path, data)


def test_e8_data_over_the_memory_limit_is_refused(tmp_path):
    data = b"](" + b"]" * 2_000_000 + b"e."
    assert "memory" in refused(tmp_path, data, UnpicklingLimits(memory_bytes=64 << 20))


def collisions(keys: int) -> bytes:
    """A dict of ints that all have the same hash: reading it takes quadratic time."""
    numbers = (pickle.dumps(i * (2**61 - 1), 2)[2:-1] + b"N" for i in range(keys))
    return b"\x80\x02}(" + b"".join(numbers) + b"u."


def test_e8_processor_time_over_the_limit_is_refused(tmp_path):
    assert "over 1 s to read" in refused(
        tmp_path, collisions(60_000), UnpicklingLimits(cpu_seconds=1)
    )


def test_e8_time_over_the_limit_is_refused(tmp_path):
    assert "not read within 0.3 s" in refused(
        tmp_path, collisions(60_000), UnpicklingLimits(wall_seconds=0.3)
    )


def test_e8_file_over_the_size_limit_is_refused(tmp_path):
    assert "bytes are more than the 10" in refused(
        tmp_path, b"K\x01." * 10, UnpicklingLimits(file_bytes=10)
    )


def test_e8_data_over_the_size_limit_is_refused(tmp_path):
    words = pickle.dumps(["é" * 90])
    assert "too large when written out" in refused(
        tmp_path, words, UnpicklingLimits(data_bytes=150)
    )


# Damage


def test_e1_empty_file_is_refused(tmp_path):
    assert "is empty" in refused(tmp_path, b"")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_e1_truncated_at_every_97th_byte_is_refused(protocol):
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
def test_e1_truncated_file_is_called_damaged(tmp_path, protocol):
    assert "fetch or make it again" in refused(tmp_path, pickle.dumps([RECORD], protocol)[:-9])


def test_e1_truncated_file_is_refused_at_the_last_whole_opcode(tmp_path):
    assert "byte 3: refused, not a readable pickle" in refused(tmp_path, b"](NX\xff\0\0\0ab")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"img_id,pred\n7,a dog\n", "not a readable pickle"),
        (b'[{"img_id": 7}]', "It looks like JSON"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x1f\x8b\x08rest", "gzip archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\0" * 100, "not a readable pickle"),
    ],
)
def test_e1_other_formats_are_recognised(tmp_path, data, kind):
    assert kind in refused(tmp_path, data)


def test_e1_protocol_of_the_future_is_refused(tmp_path):
    assert "unsupported pickle protocol: 99" in refused(tmp_path, b"\x80\x63N.")


def test_e1_second_pickle_in_the_file_is_not_dropped_in_silence(tmp_path):
    assert "6 further bytes follow" in refused(tmp_path, b"]." + b"](K\x01e.")


def test_missing_file_is_a_resource_error_that_names_it(tmp_path):
    with pytest.raises(ResourceError, match=r"absent\.pkl: there is no such file"):
        load_pickle(tmp_path / "absent.pkl")


def test_folder_is_a_resource_error(tmp_path):
    with pytest.raises(ResourceError, match="is a folder"):
        load_pickle(tmp_path)


def test_named_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.pkl")
    with pytest.raises(ResourceError, match="not a regular file"):
        load_pickle(tmp_path / "pipe.pkl")


# The process


def test_python_that_cannot_be_started_is_a_resource_error(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(ResourceError, match="could not be started"):
        read(tmp_path, b"N.")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('{nonsense')", "no readable answer"),
        ("print('+{nonsense')", "no readable answer"),
        ("print('+' + '[' * 100000)", "no readable answer"),
        ("import sys; sys.stdout.buffer.write(b'+\"\\xff\"')", "no readable answer"),
        ("print('-[1, 2]')", "no readable answer"),
        ('print(\'-{"code": "surprise"}\')', "no readable answer"),
        ("print('+[]'); raise SystemExit(3)", "ended early (exit code 3)"),
        ("import os; os.kill(os.getpid(), 11)", "ended early (signal 11)"),
        ("print('+\"' + 'x' * 9999999)", "too large when written out"),
    ],
)
def test_e10_subverted_reader_is_not_trusted(tmp_path, monkeypatch, code, message):
    (tmp_path / "child.py").write_text(code)
    monkeypatch.setattr(pickles, "_CHILD", tmp_path / "child.py")
    assert message in refused(tmp_path, b"N.", UnpicklingLimits(data_bytes=1 << 20))


@pytest.mark.parametrize("code", ["", "import os; os.close(1)"])
def test_e10_reader_that_hangs_is_ended(tmp_path, monkeypatch, code):
    (tmp_path / "child.py").write_text(f"{code}\nimport time; time.sleep(60)")
    monkeypatch.setattr(pickles, "_CHILD", tmp_path / "child.py")
    assert "not read within 0.5 s" in refused(tmp_path, b"N.", UnpicklingLimits(wall_seconds=0.5))


def test_e10_subverted_reader_cannot_write_to_the_terminal(tmp_path, monkeypatch):
    text = r'-{"code": "type", "found": "\u001b[31m", "where": "\u202e", "offset": null}'
    (tmp_path / "child.py").write_text(f"print({text!r})")
    monkeypatch.setattr(pickles, "_CHILD", tmp_path / "child.py")
    assert refused(tmp_path, b"N.").isprintable()


@pytest.mark.parametrize(
    "deed",
    [
        "open('file', 'w').write('x' * 100_000)",
        "[os.dup(0) for _ in range(20)]",
        "bytearray(2 << 30)",
    ],
)
def test_e10_subverted_reader_can_do_little(tmp_path, deed):
    code = (
        f"import os, sys; sys.path.insert(0, {str(pickles._CHILD.parent)!r}); "
        f"import _unpickle_child as child; child._restrict(1 << 30, 5)\n"
        f"try: {deed}\n"
        "except (OSError, MemoryError): print('failed')"
    )
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "failed\n"


def test_no_process_is_left_over(tmp_path):
    before = set(psutil.Process().children())  # other tests may have left workers of their own
    refused(tmp_path, collisions(60_000), UnpicklingLimits(wall_seconds=0.2))
    assert set(psutil.Process().children()) - before == set()


def test_nothing_that_the_reader_prints_reaches_the_terminal(tmp_path, monkeypatch, capfd):
    (tmp_path / "child.py").write_text("raise ValueError('a traceback')")
    monkeypatch.setattr(pickles, "_CHILD", tmp_path / "child.py")
    refused(tmp_path, b"N.")
    assert capfd.readouterr() == ("", "")


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


# Any bytes at all, without the cost of a process for each example

IN_PROCESS = settings(max_examples=200, deadline=None)
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
def test_e10_plain_data_goes_round(value, protocol):
    assert read_plain(pickle.dumps(value, protocol)) == value


@IN_PROCESS
@given(data=st.binary(max_size=400))
@pytest.mark.usefixtures("_little_memory")
def test_e10_random_bytes_are_plain_or_refused(data):
    assert plain_or_refused(data)


@IN_PROCESS
@given(parts=st.lists(st.sampled_from(SNIPPETS), max_size=60))
@pytest.mark.usefixtures("_little_memory")
def test_e10_random_opcodes_are_plain_or_refused(parts):
    assert plain_or_refused(b"".join(parts))


@IN_PROCESS
@given(value=PLAIN, protocol=st.sampled_from(PROTOCOLS), data=st.data())
@pytest.mark.usefixtures("_little_memory")
def test_e10_flipped_bytes_are_plain_or_refused(value, protocol, data):
    raw = bytearray(pickle.dumps(value, protocol))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    assert plain_or_refused(bytes(raw))
