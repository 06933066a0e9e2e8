"""Reads users' pickles without trusting them.

A pickle is a program. Here a pickle may build only plain data, since every look-up of a class or
function is refused before any call. A separate process with little memory and time reads the pickle
and returns JSON. Even a hijacked process could only send other JSON.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.json_files import looks_like, open_input, replace_surrogates
from bias_pipeline.published._unpickle_child import OUT_OF_MEMORY

_CHILD = Path(__file__).with_name("_unpickle_child.py")
_PLAIN = "list, tuple, dict with str keys, str, int, float, bool and None"
_FORMAT = f"a pickle of plain data ({_PLAIN})"
_OUT_OF_TIME = -24  # exit by SIGXCPU; not every system has this name
_CONVERTER = (
    "import json, pickle, sys; "
    "plain = lambda v: v.tolist() if hasattr(v, 'tolist') else list(v); "
    "data = json.loads(json.dumps(pickle.load(open(sys.argv[1], 'rb')), default=plain)); "
    "pickle.dump(data, open(sys.argv[2], 'wb'))"
)


@dataclass(frozen=True)
class UnpicklingLimits:
    """What one pickle may cost."""

    file_bytes: int = 1 << 30  # size of the file
    data_bytes: int = 1 << 30  # size of the data as JSON, with shared parts written out
    memory_bytes: int = 4 << 30  # address space of the process that reads it
    cpu_seconds: int = 60  # processor time of that process
    wall_seconds: float = 120.0  # time until that process is ended
    depth: int = 100  # levels of lists within lists


DEFAULT_LIMITS = UnpicklingLimits()


def load_pickle(path: Path, *, limits: UnpicklingLimits = DEFAULT_LIMITS) -> object:
    """Read plain data from a pickle of any protocol.

    Tuples become lists, and half surrogate pairs become U+FFFD. The function may be called from any
    thread.

    Example:
        >>> import pickle, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "entries.pkl")
        ...     _ = path.write_bytes(pickle.dumps([{"img_id": 7, "pred": "a dog"}]))
        ...     load_pickle(path)
        [{'img_id': 7, 'pred': 'a dog'}]
    """
    open_input(path, what=_FORMAT, max_bytes=limits.file_bytes).close()
    with path.open("rb") as handle:  # another process reads this file
        reader = _Reader(path, limits)
        answer = reader.answer(handle)
        if answer[:1] == b"-":
            handle.seek(0)
            raise _fault(bytes(answer[1:]), path, handle.read(32))
    return _decode(answer, path)


class _Reader:
    """One run of the child process."""

    def __init__(self, path: Path, limits: UnpicklingLimits) -> None:
        self.path, self.limits = path, limits
        self._expired = threading.Event()

    def answer(self, pickle_file: BinaryIO) -> bytearray:
        with self._start(pickle_file) as child:
            timer = threading.Timer(self.limits.wall_seconds, self._expire, [child])
            timer.daemon = True
            timer.start()
            try:
                answer = self._read(child.stdout)
                child.wait()
            except BaseException:
                child.kill()
                raise
            finally:
                timer.cancel()
        self._check_end(child.returncode)
        return answer

    def _start(self, pickle_file: BinaryIO) -> subprocess.Popen[bytes]:
        limits = self.limits
        numbers = (limits.memory_bytes, limits.cpu_seconds, limits.data_bytes, limits.depth)
        command = [sys.executable, "-I", "-S", str(_CHILD), *map(str, numbers)]
        try:
            return subprocess.Popen(  # noqa: S603 - fixed program, numbers only
                command,
                stdin=pickle_file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise ResourceError(
                f"{self.path}: the process that reads pickles could not be started ({error}); "
                "free memory or processes and try again"
            ) from error

    def _expire(self, child: subprocess.Popen[bytes]) -> None:
        self._expired.set()
        child.kill()

    def _read(self, pipe: IO[bytes] | None) -> bytearray:
        """Read to the end, but never more than the limit, because the child is not trusted."""
        answer = bytearray()
        while pipe is not None and (block := pipe.read(1 << 20)):
            answer += block
            if len(answer) > self.limits.data_bytes:
                raise DataError(self._too_much("its data is too large when written out"))
        return answer

    def _check_end(self, code: int) -> None:
        if self._expired.is_set():
            raise DataError(self._too_much(f"not read within {self.limits.wall_seconds:g} s"))
        if code == OUT_OF_MEMORY:
            megabytes = self.limits.memory_bytes >> 20
            raise DataError(self._too_much(f"it needs more than {megabytes:,} MiB of memory"))
        if code == _OUT_OF_TIME:
            raise DataError(self._too_much(f"it took over {self.limits.cpu_seconds} s to read"))
        if code != 0:
            reason = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise DataError(self._too_much(f"its reader ended early ({reason})"))

    def _too_much(self, reason: str) -> str:
        return (
            f"{self.path}: refused, {reason}. A file like that is corrupt or hostile, or too "
            "large to read at once: if you trust it, split it into smaller pickles"
        )


# What each fault code of the child means, and what to do about it.
_AGAIN = "The file is damaged or not a pickle: fetch or make it again"
_CONVERT = "{convert}"
_MESSAGES = {
    "global": ("it asks for code or a class ({found})", _CONVERT),
    "persistent": ("it refers to an object outside the file ({found})", _CONVERT),
    "type": ("it contains a value of type {found}", _CONVERT),
    "key": ("a dict has the key {found}", _CONVERT),
    "integer": ("it contains {found}", "Write ids as ints of at most 64 bits or as str"),
    "cycle": ("a {found} contains itself", "Write a tree: a list of records"),
    "depth": ("it nests too deeply ({found})", "Write a flat list of records"),
    "expands": (
        "its shared parts, written out, come to {found}, more than is read",
        "Write each record once",
    ),
    "trailing": (
        "{found} follow the end of the first pickle",
        "Put everything in one list and call pickle.dump once",
    ),
    "broken": ("not a readable pickle ({found})", _AGAIN),
}


def _fault(output: bytes, path: Path, head: bytes) -> DataError:
    try:
        fault = json.loads(output)
        reason, fix = _MESSAGES[fault["code"]]
        place = "" if fault["offset"] is None else f", byte {int(fault['offset']):,}"
        place += f", at {_printable(fault['where'])}" if fault["where"] else ""
        reason = reason.format(found=_printable(fault["found"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return _unreadable(path)
    if fix is _AGAIN:
        reason += f"; it begins with {head!r}"
        fix = (not head.startswith(b"\x80") and looks_like(head)) or fix
    remedy = _how_to_convert(path) if fix is _CONVERT else fix
    return DataError(f"{path}{place}: refused, {reason}. {remedy}")


def _printable(text: object) -> str:
    """Text from the child as printable ASCII of bounded length."""
    return ascii(str(text)[:200])[1:-1].replace("\\\\", "\\").replace("\\'", "'")


def _how_to_convert(path: Path) -> str:
    plain = path.with_name(f"{path.stem}.plain.pkl")
    command = shlex.join(["python", "-c", _CONVERTER, str(path), str(plain)])
    return (
        f"Only plain data is read ({_PLAIN}), and nothing of the file was run. If you trust "
        f"whoever made it, and only then, convert it once, where its libraries are installed, "
        f"and use the new file: {command}"
    )


def _decode(answer: bytearray, path: Path) -> object:
    if answer[:1] != b"+":
        raise _unreadable(path)
    body = memoryview(answer)[1:]
    try:
        try:
            return json.loads(str(body, "utf-8"))
        except UnicodeDecodeError:  # lone surrogates, the only bytes that JSON text may not have
            return replace_surrogates(json.loads(str(body, "utf-8", "surrogatepass")), path)
    except (ValueError, RecursionError):
        raise _unreadable(path) from None


def _unreadable(path: Path) -> DataError:
    return DataError(f"{path}: refused, its reader gave no readable answer. {_AGAIN}")
