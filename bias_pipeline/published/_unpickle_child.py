"""Reads one pickle of plain data in a process that is allowed almost nothing.

`pickles.py` starts this file by its path with ``python -I -S``. The file imports only the standard
library, so it starts in about 20 ms and cannot import any module of the user.

The pickle comes in on stdin. The answer goes out on stdout: ``+`` with the data as JSON, or ``-``
with the fault as JSON. An exit code other than 0 means that the answer is incomplete.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import pickle
import sys
from typing import Any, BinaryIO, NoReturn

try:
    import resource
except ImportError:  # not on Windows: there the time-out of the parent is the only limit
    resource = None  # type: ignore[assignment]

OUT_OF_MEMORY = 77  # exit code, because writing a message needs memory too
MAX_BITS = 4096  # bits of an int; ids have 64
_CHUNK = 5000  # entries of the outermost list turned to JSON at once
_SHOWN = 80  # characters of the file's text that a message quotes
_STEPS = 6  # keys and indices that a message names

_CALLS = frozenset(
    ("GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "REDUCE", "NEWOBJ", "NEWOBJ_EX", "BUILD")
) | frozenset(("EXT1", "EXT2", "EXT4"))
_PERSISTENT = frozenset(("PERSID", "BINPERSID"))


class RefusedError(Exception):
    """Why the pickle is refused."""

    def __init__(self, code: str, detail: str = "", offset: int | None = None) -> None:
        super().__init__(code, detail)
        # The kind of fault (`pickles.py` has its message), the name or value, and its byte
        self.code, self.detail, self.offset = code, detail[:_SHOWN], offset
        self.where: list[object] = []  # keys and indices that lead to it, outermost first

    def as_json(self) -> bytes:
        """The fault as JSON, in the form that the parent process expects."""
        path = "".join(f"[{ascii(step)[:_SHOWN]}]" for step in self.where[:_STEPS])
        path += "..." if len(self.where) > _STEPS else ""
        record = {"code": self.code, "found": self.detail, "offset": self.offset, "where": path}
        return json.dumps(record).encode("ascii")


class _PlainUnpickler(pickle.Unpickler):
    """Refuses every global, so that nothing can be called."""

    def find_class(self, module_name: str, global_name: str) -> NoReturn:
        raise RefusedError("global", ascii(f"{module_name}.{global_name}"))

    def persistent_load(self, pid: Any) -> NoReturn:
        raise RefusedError("persistent", ascii(pid))


def read_plain(data: bytes, *, max_size: int = 1 << 30, max_depth: int = 100) -> object:
    """Unpickle plain data and check that it is plain.

    Example:
        >>> read_plain(pickle.dumps([{"img_id": 7}]))
        [{'img_id': 7}]
    """
    stream = io.BufferedReader(io.BytesIO(data), 1 << 16)
    try:
        # Python 2 wrote its str as bytes: UTF-8 also reads those that are not ASCII.
        value = _PlainUnpickler(stream, encoding="utf-8").load()
    except Exception as error:
        raise _explain(data, error) from error
    _check_end(data, stream.tell())
    _Meter(max_size, max_depth).measure(value, 0)
    return value


def _check_end(data: bytes, end: int) -> None:
    """Refuse bytes after the first pickle, which would be ignored silently."""
    if data[end:].strip():
        raise RefusedError("trailing", f"{len(data) - end} further bytes", end)


def _explain(data: bytes, error: Exception) -> Exception:
    """The fault and its place, found by a slow second pass that builds no object."""
    fault = _first_fault(data)
    if isinstance(error, RefusedError):
        error.offset = fault.offset if fault.code == error.code else None
        return error
    # A damaged file can contain any opcode by accident: such a fault is not the reason.
    damaged = isinstance(error, pickle.UnpicklingError | EOFError | MemoryError)
    if fault.code == "broken" or (fault.code != "none" and not damaged):
        return fault
    if isinstance(error, MemoryError):
        return error
    return RefusedError("broken", f"{type(error).__name__}: {ascii(str(error))[1:-1]}")


def _first_fault(data: bytes) -> RefusedError:
    """The first opcode that plain data never has, or the first invalid byte."""
    import pickletools  # a tenth of the start-up time, and only needed for faults

    stream, position = io.BytesIO(data), 0
    try:
        for opcode, argument, start in pickletools.genops(stream):
            position = start or 0
            if opcode.name in _CALLS:
                return RefusedError("global", f"{opcode.name} {argument!a}", position)
            if opcode.name in _PERSISTENT:
                return RefusedError("persistent", ascii(argument), position)
            position = stream.tell()
    except Exception as error:
        return RefusedError("broken", ascii(str(error))[1:-1], min(position, len(data)))
    return RefusedError("none")


class _Meter:
    """The size and the depth of nested containers; a shared container is measured once.

    Nested containers that share parts are small in memory but huge as JSON. The size is computed
    from the sizes of the parts, without writing them out.
    """

    def __init__(self, max_size: int, max_depth: int) -> None:
        self.max_size = max_size
        self.max_depth = max_depth
        # By id; None while it is being measured
        self._known: dict[int, tuple[int, int] | None] = {}

    def measure(self, value: Any, depth: int) -> tuple[int, int]:
        """The number of characters and levels of a value at nesting level ``depth``."""
        kind = type(value)
        if kind is str:
            return len(value) + 3, 0
        if kind is list or kind is dict or kind is tuple:
            return self._container(value, depth)
        return _scalar_size(value), 0

    def _container(self, value: Any, depth: int) -> tuple[int, int]:
        key = id(value)
        if key in self._known:
            known = self._known[key]
            if known is None:
                raise RefusedError("cycle", type(value).__name__)
        else:
            self._known[key] = None
            self._known[key] = known = self._fresh(value, depth)
        if depth + known[1] > self.max_depth:
            raise RefusedError("depth", f"more than {self.max_depth} levels")
        return known

    def _fresh(self, value: Any, depth: int) -> tuple[int, int]:
        if depth >= self.max_depth:
            raise RefusedError("depth", f"more than {self.max_depth} levels")
        size, height = 2, 0
        for step, part in _parts(value):
            if type(part) is str:  # nearly all of them
                size += len(part) + 3
                continue
            try:
                more, levels = self.measure(part, depth + 1)
            except RefusedError as fault:
                fault.where.insert(0, step)
                raise
            size += more
            height = max(height, levels)
        if type(value) is dict:
            size += sum(map(len, value)) + 4 * len(value)
        if size > self.max_size:
            raise RefusedError("expands", f"at least {size} characters")
        return size, height + 1


def _parts(value: Any) -> Any:
    """Pairs of key or index and value."""
    if type(value) is not dict:
        return enumerate(value)
    for key in value:
        if type(key) is not str:
            raise RefusedError("key", f"{ascii(key)[: _SHOWN // 2]} ({type(key).__name__})")
    return value.items()


def _scalar_size(value: object) -> int:
    if type(value) is int:
        if value.bit_length() > MAX_BITS:
            raise RefusedError("integer", f"an int of {value.bit_length()} bits")
        return 20
    if value is None or type(value) is bool or type(value) is float:
        return 8
    raise RefusedError("type", type(value).__name__)


def write_json(value: object, out: BinaryIO) -> None:
    """Write plain data as JSON, a few thousand entries at a time to save memory.

    Tuples become lists. Lone surrogates stay as they are, and the reader replaces them.
    """
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
    if not isinstance(value, list | tuple):
        out.write(encode(value).encode("utf-8", "surrogatepass"))
        return
    out.write(b"[")
    for start in range(0, len(value), _CHUNK):
        text = encode(value[start : start + _CHUNK])[1:-1]
        out.write(b"," if start else b"")
        out.write(text.encode("utf-8", "surrogatepass"))
    out.write(b"]")


def _restrict(memory: int, cpu_seconds: int) -> None:
    """Limit memory, time, files and child processes for good, before any byte is read."""
    if resource is None:
        return
    _limit("RLIMIT_AS", memory)
    _limit("RLIMIT_CPU", cpu_seconds, grace=1)  # the soft limit ends it by a signal that says so
    _limit("RLIMIT_NOFILE", 8)  # stdin, stdout and stderr are three; imports need a few
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_NPROC", 0)
    _limit("RLIMIT_CORE", 0)


def _limit(name: str, value: int, grace: int = 0) -> None:
    """Lower one limit, unless the system lacks it or it is already lower."""
    kind = getattr(resource, name, None)
    if kind is None:
        return
    hard = resource.getrlimit(kind)[1]
    ceiling = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (min(value, ceiling), ceiling))


def main(memory: int, cpu_seconds: int, max_size: int, max_depth: int) -> None:
    """Read the pickle on stdin and answer on stdout, within ``memory`` bytes of address space."""
    _restrict(memory, cpu_seconds)
    gc.disable()  # nothing is freed before the end, so garbage collection only costs time
    out = sys.stdout.buffer
    try:
        value = read_plain(sys.stdin.buffer.read(), max_size=max_size, max_depth=max_depth)
    except RefusedError as fault:
        out.write(b"-" + fault.as_json())
    else:
        out.write(b"+")
        write_json(value, out)
    out.flush()


if __name__ == "__main__":
    try:
        main(*map(int, sys.argv[1:]))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException:
        os._exit(1)
    os._exit(0)  # without taking a million objects apart
