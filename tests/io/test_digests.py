"""Digests of files: read anew whenever somebody wrote, and only then."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bias_pipeline.errors import ResourceError
from bias_pipeline.io import digests, kept_files
from bias_pipeline.io.digests import (
    digest_mismatch,
    digest_of,
    digests_of,
    seal,
    sha256_of,
    unseal,
)
from bias_pipeline.io.files import hashed_file, write_hashed
from bias_pipeline.io.kept_files import Traits

LONG_AGO = 1_000_000_000_000_000_000  # nanoseconds


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose small files are worth being noted, and settled at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "_WORTH", 1)
    monkeypatch.setattr(kept_files, "TICK", -(10**12))
    made = tmp_path / "files"
    made.mkdir()
    return made


def write_old_file(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content)
    return path


def as_another_process() -> None:
    """Forget what this one knows."""
    digests._ledger.cache_clear()


def unreadable(*args: object) -> str:
    raise AssertionError(f"{args} was read")


def test_known_files_are_not_read_again(folder, monkeypatch):
    paths = [write_old_file(folder, str(n), str(n)) for n in range(5)]
    first = digests_of(paths)
    as_another_process()
    monkeypatch.setattr(digests, "sha256_of", unreadable)
    assert digests_of(paths) == first
    assert digest_of(paths[0]) == first[0]


def test_a_file_that_is_gone_has_no_digest(folder):
    path = write_old_file(folder, "a", "one")
    assert digests_of([path, folder / "b"]) == [sha256_of(path), None]


def test_a_file_that_is_gone_is_refused(folder):
    with pytest.raises(ResourceError, match="No such file"):
        digest_of(folder / "b")


def test_a_rewritten_file_of_equal_size_and_time_is_read(folder):
    path = write_old_file(folder, "a", "one")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    digest_of(path)
    as_another_process()
    path.write_text("two")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    assert digest_of(path) == sha256_of(path)


def test_a_file_under_anothers_name_is_read(folder):
    path, other = write_old_file(folder, "a", "one"), write_old_file(folder, "b", "two")
    digests_of([path, other])
    other.replace(path)
    assert digest_of(path) == sha256_of(path)


def test_what_was_just_written_is_not_noted(folder, monkeypatch):
    monkeypatch.setattr(kept_files, "TICK", 10**12)
    path = write_old_file(folder, "a", "one")
    digest_of(path)
    assert not (folder.parent / "cache").exists()


@pytest.mark.parametrize(("changed", "tick"), [(7, 20_000_000), (3_000_000_000, 2_000_000_000)])
def test_traits_settle_after_a_tick_of_the_file_systems_clock(changed, tick):
    traits = Traits(3, 5, changed, 1)
    assert [traits.is_settled(changed + tick + late) for late in (0, 1)] == [False, True]


@pytest.mark.parametrize("retained", ["", "[]", '{"a": []}', '{"a": [1, 2, 3, 4, 5]}', "{"])
def test_a_damaged_ledger_is_none(folder, retained):
    path = write_old_file(folder, "a", "one")
    digest_of(path)
    as_another_process()
    (ledger,) = (folder.parent / "cache/bias_pipeline/digests").iterdir()
    ledger.write_text(retained)
    assert digest_of(path) == sha256_of(path)


def test_an_unwritable_cache_costs_only_time(folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(write_old_file(folder, "file", "in the way")))
    path = write_old_file(folder, "a", "one")
    assert digest_of(path) == sha256_of(path)


def test_who_has_no_home_has_no_ledger(folder, monkeypatch):
    def homeless() -> Path:
        raise ResourceError("Could not determine home directory")

    monkeypatch.setattr(digests, "user_cache", homeless)
    path = write_old_file(folder, "a", "one")
    assert digest_of(path) == sha256_of(path)


def test_files_that_are_gone_are_forgotten(folder):
    paths = [write_old_file(folder, name, name) for name in "ab"]
    digests_of(paths)
    paths[0].unlink()
    write_old_file(folder, "c", "c")
    digest_of(folder / "c")
    (ledger,) = (folder.parent / "cache/bias_pipeline/digests").iterdir()
    assert '"a"' not in ledger.read_text()


def test_processes_add_to_each_other(folder, monkeypatch):
    paths = [write_old_file(folder, str(n), str(n)) for n in range(6)]
    code = (
        "import sys; from pathlib import Path; from bias_pipeline.io import digests, kept_files\n"
        "digests._WORTH, kept_files.TICK = 1, -(10**12)\n"
        "digests.digests_of(map(Path, sys.argv[1:]))"
    )
    subprocess.run([sys.executable, "-c", code, *map(str, paths[:3])], check=True)
    as_another_process()
    digests_of(paths[3:])
    as_another_process()
    monkeypatch.setattr(digests, "sha256_of", unreadable)
    assert None not in digests_of(paths)


def noted_wrongly(path: Path) -> None:
    """Have the ledger say something else of a file, as if the disk had changed it."""
    digest = digest_of(path)
    (ledger,) = (path.parent.parent / "cache/bias_pipeline/digests").iterdir()
    ledger.write_text(ledger.read_text().replace(digest, "0" * 64))
    as_another_process()


def test_files_that_belie_their_digest_are_named_and_put_right(folder):
    path, sound = write_old_file(folder, "a", "one"), write_old_file(folder, "b", "two")
    noted_wrongly(path)
    assert digest_mismatch([path, sound]) == [path]
    as_another_process()
    assert digest_of(path) == sha256_of(path)


def test_two_folders_have_a_ledger_each(folder):
    other = folder.parent / "others"
    other.mkdir()
    digests_of([write_old_file(folder, "a", "one"), write_old_file(other, "a", "two")])
    assert len([*(folder.parent / "cache/bias_pipeline/digests").iterdir()]) == 2


@pytest.mark.parametrize("place", ["a", "checksum"])
def test_a_file_as_it_is_is_checked_as_its_content_is(place):
    written = seal({"a": {place: "1"}, "b": {"x": 1}}, within="b")
    assert unseal(json.loads(written), within="b", written=written) == {
        "a": {place: "1"},
        "b": {"x": 1},
    }
    changed = written.replace(b'"x": 1', b'"x": 2')
    with pytest.raises(ValueError, match="does not fit"):
        unseal(json.loads(changed), within="b", written=changed)
    spaced = json.dumps(json.loads(written)).encode()  # written again by another program
    assert unseal(json.loads(spaced), within="b", written=spaced)["b"] == {"x": 1}


def test_the_checksum_of_a_file_in_pieces_is_that_of_the_whole(tmp_path):
    with hashed_file(tmp_path / "a") as file:
        file.write(b"one ")
        file.write(memoryview(b"two"))
    assert (tmp_path / "a").read_bytes() == b"one two"
    assert file.sha.hexdigest() == write_hashed(tmp_path / "b", b"one two")
