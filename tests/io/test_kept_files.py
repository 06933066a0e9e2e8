"""Small files are opened once a process, and anew once they change."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bias_pipeline.errors import ResourceError
from bias_pipeline.io import kept_files
from bias_pipeline.io.kept_files import open_kept

OPENED: Counter[str] = Counter()


def _count(event: str, details: tuple[object, ...]) -> None:
    if event == "open" and isinstance(details[0], str | Path):
        OPENED[Path(details[0]).name] += 1


@pytest.fixture(scope="session", autouse=True)
def _hook() -> None:
    sys.addaudithook(_count)  # which no process can take away


@pytest.fixture(autouse=True)
def _settle_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files count as settled at once, and none is kept from other tests."""
    monkeypatch.setattr(kept_files, "TICK", -(10**12))
    kept_files._contents.clear()
    OPENED.clear()
    yield
    kept_files._contents.clear()


def contents(path: Path) -> bytes:
    with open_kept(path) as file:
        return file.read()


def test_a_file_is_opened_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"one")
    OPENED.clear()
    assert [contents(path) for _ in range(3)] == [b"one"] * 3
    assert OPENED["a.csv"] == 1


def test_a_file_that_changed_is_read_anew(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"one")
    before = path.stat()
    assert contents(path) == b"one"
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert contents(path) == b"two"


def test_a_file_that_was_just_written_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_files, "TICK", 10**12)
    path = tmp_path / "a.csv"
    path.write_bytes(b"one")
    assert contents(path) == b"one"
    assert not kept_files._contents


def test_a_file_that_is_gone_is_not_there(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"one")
    contents(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        open_kept(path)


def test_the_files_that_were_read_last_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_files, "_ROOM", 8)
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(b"four")
    for number in (0, 1, 0, 2):
        contents(paths[number])
    assert [path.name for path in kept_files._contents] == ["a", "c"]


def test_a_large_file_takes_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_files, "_ROOM", 8)
    path = tmp_path / "a.csv"
    path.write_bytes(b"more than eight")
    assert contents(path) == b"more than eight"
    assert not kept_files._contents


def test_an_audit_opens_its_file_once(tmp_path, monkeypatch, capsys):
    from bias_pipeline.commands.main import main

    monkeypatch.chdir(tmp_path)
    rows = [f"{k},a {'man' if k % 2 else 'woman'} on a bench,{k % 2}" for k in range(60)]
    table = "\n".join(["image_id,caption,gender", *rows]) + "\n"
    Path("mine.csv").write_text(table.replace(",0\n", ",female\n").replace(",1\n", ",male\n"))
    OPENED.clear()
    words = ["audit", "mine.csv", "--attributes", "mine.csv", "--out", "out", "--minutes", "0.01"]
    assert main(words) == 0
    assert OPENED["mine.csv"] == 1
    first = capsys.readouterr().out
    Path("mine.csv").write_text(Path("mine.csv").read_text().replace("a man", "a woman"))
    OPENED.clear()
    assert main(words) == 0
    assert OPENED["mine.csv"] == 1
    assert capsys.readouterr().out != first


def test_a_refusal_names_a_file_that_is_gone(tmp_path):
    from bias_pipeline.io.json_files import open_input

    with pytest.raises(ResourceError, match="there is no such file"):
        open_input(tmp_path / "a.csv", what="captions", max_bytes=9)
