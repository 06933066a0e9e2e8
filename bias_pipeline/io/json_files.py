"""Strict JSON: a file is read exactly, or refused with the position and the fix."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.kept_files import open_kept

T = TypeVar("T")

MAX_BYTES = 1 << 30
MAX_DEPTH = 100

_SHOWN = 80  # characters of the file around a fault
_CONSTANTS = ("NaN", "Infinity", "-Infinity")
_KIND_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
_UTF_16 = (
    "UTF-16 text: save it as UTF-8 (in Excel: Save As, CSV UTF-8; in a shell: "
    "iconv -f utf-16 -t utf-8 FILE > NEW)"
)
# The first bytes of common wrong files.
_MAGIC = (
    (b"\x1f\x8b", "a gzip archive: unpack it first"),
    (b"PK\x03\x04", "a zip archive (or .npz or .pt file): unpack or convert it first"),
    (b"\x93NUMPY", "a NumPy array: convert it first"),
    (b"\x89HDF", "an HDF5 file: convert it first"),
    (b"version https://git-lfs", "a Git LFS pointer: run 'git lfs pull' to get the file itself"),
    (b"<", "a web page or XML: the download went wrong"),
    (b"\xff\xfe", _UTF_16),
    (b"\xfe\xff", _UTF_16),
    (b"\x80", "a pickle"),
    (b"[", "JSON: give its name the ending .json"),
    (b"{", "JSON: give its name the ending .json"),
)
_AS_UTF_8 = (
    "Save the file as UTF-8 (in Excel: Save As, CSV UTF-8; in a shell: iconv -f latin1 -t utf-8)"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONG_NUMBER = re.compile(r"\d{640}")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
# Possessive, so that a long string costs linear time even where it does not end.
_TOKEN = re.compile(r'(?P<text>"(?:[^"\\]++|\\.)*+")(?P<colon>\s*:)?|[\[\]{}]|-?Infinity|NaN')


class _RefusedError(Exception):
    """The error for well-formed JSON that is refused; the message says why."""


def load_json(
    path: Path, *, what: str, max_depth: int = MAX_DEPTH, max_bytes: int = MAX_BYTES
) -> object:
    """Read a JSON file strictly.

    UTF-8 with or without a byte order mark. NaN, infinities, duplicate keys and deep nesting are
    refused; lone surrogates become U+FFFD.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "results.json")
        ...     _ = path.write_text('[{"image_id": 7, "caption": "a dog"}]')
        ...     load_json(path, what="COCO results")
        [{'image_id': 7, 'caption': 'a dog'}]
    """
    with open_input(path, what=what, max_bytes=max_bytes) as handle:
        return parse_json(handle.read(), path, what=what, max_depth=max_depth)


def parse_json(
    data: bytes, path: Path, *, what: str, max_depth: int = MAX_DEPTH, first_line: int = 1
) -> object:
    """Parse the contents of a file, or one line of JSON Lines, as strictly as :func:`load_json`."""
    text = decode(data, path, what, first_line)
    source = _Source(text, path, what, first_line)
    value = _parse(source, max_depth)
    if _deeper_than(value, max_depth):
        source.refuse_depth(max_depth)
    return replace_surrogates(value, path) if _SURROGATE_ESCAPE.search(text) else value


def expect(value: object, kind: type[T], path: Path, where: str) -> T:
    """Check the type of one value of a file.

    An integer passes as a number; true and false are neither integers nor numbers.

    Example:
        >>> expect("a dog", str, Path("captions.json"), "annotations[17].caption")
        'a dog'
        >>> expect(None, str, Path("captions.json"), "annotations[17].caption")
        Traceback (most recent call last):
        bias_pipeline.errors.DataError: captions.json: annotations[17].caption must be a string, \
found null
    """
    if isinstance(value, kind) and (kind is bool or type(value) is not bool):
        return value
    if kind is float and type(value) is int:
        return value  # type: ignore[return-value]
    expected = _KIND_NAMES.get(kind, kind.__name__)
    raise DataError(f"{path}: {where or 'the top level'} must be {expected}, found {_name(value)}")


def _name(value: object) -> str:
    """A value for a message: its kind, and the value if it is short."""
    name = _KIND_NAMES.get(type(value), type(value).__name__)
    if value is None or isinstance(value, dict | list):
        return name
    shown = repr(value)
    return f"{name}: {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'}"


def open_input(path: Path, *, what: str, max_bytes: int) -> BinaryIO:
    """Open a user's file for reading, after checking that it is a file and not too large."""
    try:
        info = path.stat()  # before opening, since opening a named pipe would block
        if not stat.S_ISREG(info.st_mode):
            kind = "a folder" if stat.S_ISDIR(info.st_mode) else "not a regular file"
            raise ResourceError(f"{path}: is {kind}; name a file that holds {what}")
        _check_size(path, info.st_size, what, max_bytes)
        return open_kept(path)
    except FileNotFoundError:
        raise ResourceError(
            f"{path}: there is no such file; expected {what}. Check the path "
            f"(relative paths start at {Path.cwd()})"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise ResourceError(f"{path}: cannot be read ({reason}); expected {what}") from error


def _check_size(path: Path, size: int, what: str, max_bytes: int) -> None:
    if size == 0:
        raise DataError(f"{path}: the file is empty; expected {what}. Fetch or make it again")
    if size > max_bytes:
        raise DataError(
            f"{path}: {size:,} bytes are more than the {max_bytes:,} that are read; "
            f"expected {what}. Split the file, or drop fields that are not used"
        )


def looks_like(head: bytes) -> str:
    """A sentence on the kind of a file, by its first bytes; empty if unknown.

    Example:
        >>> looks_like(b"PK" + bytes([3, 4]))
        'It looks like a zip archive (or .npz or .pt file): unpack or convert it first'
    """
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return f"It looks like {name}"
    return ""


def decode(data: bytes, path: Path, what: str, first_line: int = 1) -> str:
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + first_line
        byte = error.start - data.rfind(b"\n", 0, error.start)
        around = data[max(0, error.start - _SHOWN // 2) :][:_SHOWN]
        kind = "" if data[:1] in (b"[", b"{") else looks_like(data[:32])
        raise DataError(
            f"{path}: line {line}, byte {byte}: not UTF-8, near {around!r}; "
            f"expected {what}. {kind or _AS_UTF_8}"
        ) from None


def replace_surrogates(value: Any, path: Path) -> Any:
    """Replace half pairs of surrogates by U+FFFD, because no encoding can write half pairs.

    Example:
        >>> replace_surrogates(["a " + chr(0xD83D)], Path("captions.json"))
        ['a �']
    """
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [replace_surrogates(part, path) for part in value]
    if not isinstance(value, dict):
        return value
    new = {_SURROGATE.sub("\ufffd", k): replace_surrogates(v, path) for k, v in value.items()}
    if len(new) != len(value):
        raise DataError(f"{path}: two keys differ only in half surrogate pairs; rename one")
    return new


def _parse(source: _Source, max_depth: int) -> object:
    try:
        return json.loads(source.text, object_pairs_hook=_object_of, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        source.refuse(error.pos, error.msg, _hint(source.text, error))
    except RecursionError:
        source.refuse_depth(max_depth)
    except _RefusedError as refused:
        source.refuse(*source.find(str(refused)))
    except ValueError as error:  # an integer of thousands of digits
        digits = _LONG_NUMBER.search(source.text)
        position = digits.start() if digits else 0
        source.refuse(position, str(error), "Write ids as short integers or as strings")


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate keys; json would silently take the last value of a key."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _RefusedError("duplicate")
    return mapping


def _no_constant(name: str) -> NoReturn:
    raise _RefusedError(name)


def _deeper_than(value: Any, levels: int) -> bool:
    """Whether lists and objects nest deeper than ``levels``, without recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        level = [
            part
            for node in level
            for part in (node.values() if type(node) is dict else node)
            if type(part) is dict or type(part) is list
        ]
        if not level:
            return False
    return bool(level)


def _hint(text: str, error: json.JSONDecodeError) -> str:
    """How to fix a syntax error."""
    rest = text[error.pos : error.pos + _SHOWN]
    if not text.strip():
        return "The file holds only white space: fetch or make it again"
    if error.pos == 0 and (kind := looks_like(text[:32].encode())):
        return kind
    if rest.startswith(("]", "}")) and error.msg == "Extra data":
        return "A bracket is closed that was not opened: take it away"
    if rest.startswith(("]", "}")) or "trailing comma" in error.msg:
        return "Take away the comma before it"
    if error.msg == "Extra data":
        return "One value per line is JSON Lines: put the lines in [ ] with commas between"
    if rest.startswith(("'", "None", "True", "False")):
        return "This is Python, not JSON: write it with json.dump"
    if "control" not in error.msg and _ends_there(text, error):
        return "The file seems to be cut off: fetch or make it again"
    return "Write the file with a JSON library, not by hand"


def _ends_there(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the text ends within the word where the fault is."""
    return error.msg.startswith("Unterminated") or len(text.rstrip()) - error.pos < len("false")


class _Source:
    """The text of a file, which shows the position of a fault.

    The parser gives no position for faults in well-formed JSON. So this class searches for the
    fault, which is slow but happens only for refused files.
    """

    def __init__(self, text: str, path: Path, what: str, first_line: int = 1) -> None:
        self.text, self.path, self.what, self.first_line = text, path, what, first_line

    def refuse(self, position: int, fault: str, hint: str) -> NoReturn:
        line = self.text.count("\n", 0, position) + self.first_line
        column = position - self.text.rfind("\n", 0, position)
        around = self.text[max(0, position - _SHOWN // 2) :][:_SHOWN]
        raise DataError(
            f"{self.path}: line {line}, column {column}: {fault}, near {around!r}; "
            f"expected {self.what}. {hint}"
        )

    def refuse_depth(self, max_depth: int) -> NoReturn:
        """Raise the DataError for the first bracket that nests too deeply."""
        depth = 0
        for token in _TOKEN.finditer(self.text):
            depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
            if depth > max_depth:
                break
        self.refuse(
            token.start(),
            f"lists and objects nest deeper than {max_depth} levels",
            "Write a flat list of records",
        )

    def find(self, name: str) -> tuple[int, str, str]:
        """The position, the description and the remedy of a refused constant or a duplicate key."""
        if name == "duplicate":
            position, key = self._duplicate()
            return (
                position,
                f"key {key[:_SHOWN]} occurs twice in one object",
                "Remove one of the two",
            )
        first = next(token for token in _TOKEN.finditer(self.text) if token[0] in _CONSTANTS)
        return first.start(), f"{name} is not JSON", "Write null or a number"

    def _duplicate(self) -> tuple[int, str]:
        open_objects: list[set[str]] = []
        tokens = (t for t in _TOKEN.finditer(self.text) if t["colon"] or t[0] in ("{", "}"))
        for token in tokens:
            if token[0] == "{":
                open_objects.append(set())
            elif token[0] == "}":
                open_objects.pop()
            elif (key := json.loads(token["text"])) in open_objects[-1]:
                return token.start(), token["text"]
            else:
                open_objects[-1].add(key)
        raise AssertionError("the parser found a duplicate key that is not there")
