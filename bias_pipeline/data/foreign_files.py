"""Suggests commands that turn a file of an unknown format into a readable file."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

_ARROW = (
    "import pyarrow as a, pyarrow.parquet as p; "
    "p.write_table(a.ipc.open_{form}({file!r}).read_all(), {new!r})"
)
_YAML = "import json, yaml; json.dump(yaml.safe_load(open({file!r})), open({new!r}, 'w'))"
_TABLES = (".json", ".jsonl", ".csv", ".tsv", ".parquet")
_HEAD = 512  # bytes
_TAR = slice(257, 262)  # where a tar names its format
_WRITE = "Write a table of it (CSV, or JSON Lines) with the columns image_id and caption"
_FLICKR = b".jpg#"


def _python(code: str, **names: str) -> str:
    written = code.format(**names)
    plain = not set(written) & set('"$`\\!')
    return f'python -c "{written}"' if plain else f"python -c {shlex.quote(written)}"


def _unpack(tool: str) -> Callable[[Path], str]:
    return lambda path: (
        f"Unpack it: {tool} -c {shlex.quote(str(path))} > {shlex.quote(str(path.with_suffix('')))}"
    )


def _open_archive(tool: str) -> Callable[[Path], str]:
    return lambda path: f"It holds several files; unpack them: {tool} {shlex.quote(str(path))}"


def _rename(ending: str) -> Callable[[Path], str]:
    return lambda path: (
        f"Rename it: mv {shlex.quote(str(path))} {shlex.quote(f'{_stem(path)}{ending}')}"
    )


def _arrow(form: str) -> Callable[[Path], str]:
    return lambda path: (
        "It is an Arrow file; write it as Parquet: "
        + _python(_ARROW, form=form, file=str(path), new=f"{_stem(path)}.parquet")
    )


def _objects(path: Path) -> str:
    return (
        "It holds Python's objects, which may run code and are not read; write JSON Lines where it "
        f"was made: pandas.read_pickle({path.name!r}).to_json({f'{path.stem}.jsonl'!r}, "
        "orient='records', lines=True)"
    )


def _array(path: Path) -> str:
    return (
        "It is an array of NumPy; write JSON Lines where it was made: pandas.DataFrame(list(numpy."
        f"load({path.name!r}, allow_pickle=True))).to_json({f'{path.stem}.jsonl'!r}, "
        "orient='records', lines=True)"
    )


_BY_FIRST_BYTES: tuple[tuple[bytes, Callable[[Path], str]], ...] = (
    (b"\x1f\x8b", _unpack("gunzip")),
    (b"\x28\xb5\x2f\xfd", _unpack("unzstd")),
    (b"BZh", _unpack("bunzip2")),
    (b"\xfd7zXZ", _unpack("unxz")),
    (b"PK\x03\x04", _open_archive("unzip")),
    (b"PAR1", _rename(".parquet")),
    (b"ARROW1", _arrow("file")),
    (b"\xff\xff\xff\xff", _arrow("stream")),
    (b"\x93NUMPY", _array),
    (b"\x80", _objects),
    (b"\xd0\xcf\x11\xe0", lambda _: "Save it as .xlsx"),
    (b"[", _rename(".json")),
    (b"{", _rename(".jsonl")),
)


def way_to_read(path: Path) -> str:
    """A sentence on how to make a file with an unknown ending readable, judged by content."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head[_TAR] == b"ustar":
        return _open_archive("tar -xf")(path)
    if path.suffix.lower() in (".yaml", ".yml"):
        return "Write it as JSON: " + _python(_YAML, file=str(path), new=f"{_stem(path)}.json")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    known = next((way for magic, way in _BY_FIRST_BYTES if start.startswith(magic)), _text)
    return known(path)


def _text(path: Path) -> str:
    """Advice on how a text table can be read whose file extension is unknown."""
    with path.open("rb") as file:
        line = file.readline(_HEAD)
    if _FLICKR in line:
        new = shlex.quote(f"{_stem(path)}.tsv")
        return (
            f"Write it without numbers of captions: sed -E 's/#[0-9]+\\t/\\t/' "
            f"{shlex.quote(str(path))} > {new}"
        )
    if b"\0" in line:
        return _WRITE
    if b"\t" in line:
        return _rename(".tsv")(path)
    if any(sign in line for sign in (b",", b";", b"|")):
        return _rename(".csv")(path)
    return f"Its first line has no columns. {_WRITE}"


def _stem(path: Path) -> str:
    """The path without its ending, or without both endings of ``mine.parquet.gzip``."""
    stem = path.with_suffix("")
    return str(stem.with_suffix("") if stem.suffix in _TABLES else stem)
