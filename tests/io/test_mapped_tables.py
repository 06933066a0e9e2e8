"""Tables that are mapped into memory: as they were written, or made anew; a full disk is told."""

import hashlib
import logging
import operator
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.arrays import Filling, mapped_table
from tests.corpora import REPOSITORY

SHAPE = (4, 2, 3)


def filling() -> Filling:
    rows = ((row, np.full(SHAPE[1:], row + 1, np.uint8)) for row in range(SHAPE[0]))
    return Filling(SHAPE, np.uint8, rows)


def table(folder: Path, key: str = "key") -> Any:
    return mapped_table(str(folder), key, filling)


def refuse_to_make() -> Filling:
    raise AssertionError("the table is made again")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    table(tmp_path)
    (path,) = tmp_path.iterdir()
    return path


def test_a_table_has_the_rows_it_was_given_and_is_read_back(tmp_path):
    assert [int(row.min()) for row in table(tmp_path)] == [1, 2, 3, 4]
    assert [int(row.max()) for row in mapped_table(str(tmp_path), "key", refuse_to_make)] == [
        1,
        2,
        3,
        4,
    ]


def test_rows_may_come_in_any_order(tmp_path):
    def backwards() -> Filling:
        rows = ((row, np.full(SHAPE[1:], row, np.float64)) for row in reversed(range(SHAPE[0])))
        return Filling(SHAPE, np.float16, rows)

    opened = mapped_table(str(tmp_path), "key", backwards)
    assert (opened.dtype, [int(row.max()) for row in opened]) == (np.float16, [0, 1, 2, 3])


def flip_byte(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "damaged",
    [
        *(partial(flip_byte, place=place) for place in (0, 60, 128, -1)),
        *(operator.itemgetter(slice(size)) for size in (0, 5, 130, -1)),
    ],
)
def test_a_table_with_a_flipped_byte_or_a_cut_one_is_made_again(file, damaged):
    file.write_bytes(damaged(file.read_bytes()))
    assert [int(row.max()) for row in table(file.parent)] == [1, 2, 3, 4]


def test_a_damaged_table_is_told(file, caplog):
    file.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        table(file.parent)
    assert f"{file} is damaged" in caplog.text


def test_a_table_of_another_key_is_never_read(file):
    """Renamed to what the other's name begins with."""
    other = hashlib.sha256(b"other").hexdigest()[:32]
    file.rename(file.with_name(other + file.name[32:]))
    with pytest.raises(AssertionError, match="made again"):
        mapped_table(str(file.parent), "other", refuse_to_make)


def test_what_fails_leaves_no_draft(tmp_path):
    def breaking() -> Iterator[tuple[int, Any]]:
        yield 0, np.zeros(SHAPE[1:], np.uint8)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        mapped_table(str(tmp_path), "key", lambda: Filling(SHAPE, np.uint8, breaking()))
    assert list(tmp_path.iterdir()) == []


def test_space_is_asked_for_before_any_row(tmp_path, monkeypatch):
    def report_full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def unread() -> Iterator[tuple[int, Any]]:
        raise AssertionError("a row is read")
        yield

    monkeypatch.setattr(os, "posix_fallocate", report_full_disk)
    with pytest.raises(ResourceError, match="No space left"):
        mapped_table(str(tmp_path), "key", lambda: Filling(SHAPE, np.uint8, unread()))


def test_a_full_disk_under_a_table_is_a_sentence_and_no_signal(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = "mount -t tmpfs -o size=64k tmpfs"
    if subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{mount} {place}"], capture_output=True
    ).returncode:
        pytest.skip("mounting a file system needs more rights than this process has")
    code = (
        "import numpy as np, os\n"
        "from bias_pipeline.errors import ResourceError\n"
        "from bias_pipeline.io.arrays import Filling, mapped_table\n"
        "rows = ((row, np.ones(1000, np.uint8)) for row in range(1000))\n"
        "try:\n"
        f"    mapped_table({str(place)!r}, 'key', lambda: Filling((1000, 1000), np.uint8, rows))\n"
        "except ResourceError as error:\n"
        f"    print(error, os.listdir({str(place)!r}))\n"
    )
    (tmp_path / "fill.py").write_text(code)
    done = subprocess.run(
        [
            *("unshare", "--mount", "sh", "-c"),
            f"{mount} {place}; exec {sys.executable} {tmp_path / 'fill.py'}",
        ],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "No space left on device" in done.stdout) == (0, True), done
    assert done.stdout.rstrip().endswith("[]")
