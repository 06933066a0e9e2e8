"""Drafts of killed processes: cleared by the next, those of living ones left alone."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bias_pipeline.io.files import clear_drafts, draft_of, replacing
from bias_pipeline.models.blocks import BlockStore
from tests.corpora import REPOSITORY


def age(path: Path) -> Path:
    os.utime(path, (time.time() - 3600, time.time() - 3600))
    return path


def run_and_kill(code: str, place: Path) -> None:
    """Run code that kills its own process."""
    preamble = "import os, signal\nfrom pathlib import Path\n"
    code = f"{preamble}place = Path({str(place)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(REPOSITORY)}
    )
    assert done.returncode == -9


def test_a_killed_fit_s_draft_is_cleared_by_the_next(tmp_path):
    run_and_kill(
        "from bias_pipeline.io.files import draft_of\n"
        "with draft_of(place / 'o') as draft: os.kill(os.getpid(), signal.SIGKILL)\n",
        tmp_path,
    )
    (draft,) = tmp_path.iterdir()
    age(draft)
    with draft_of(tmp_path / "o"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["o"]


def test_a_killed_embedding_s_draft_is_cleared_by_the_next(tmp_path):
    store = BlockStore(tmp_path, {"prompt": ""}, "a model")
    place = store.folder / "blocks" / "ab"
    place.mkdir(parents=True)
    run_and_kill(
        "from bias_pipeline.io.files import replacing\n"
        "with replacing(place / 'x.block') as file: os.kill(os.getpid(), signal.SIGKILL)\n",
        place,
    )
    (draft,) = place.iterdir()
    age(draft)
    store.plan(["1"])
    assert list(place.iterdir()) == []


def test_a_draft_that_a_process_holds_stays(tmp_path):
    with replacing(tmp_path / "a") as file:
        file.write(b"1")
        file.flush()
        (draft,) = tmp_path.iterdir()
        clear_drafts([age(draft)])
        assert draft.exists()
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_fit_that_takes_hours_keeps_its_draft(tmp_path):
    with draft_of(tmp_path / "o") as draft:
        age(draft)
        with draft_of(tmp_path / "o") as other:
            assert draft.is_dir()
            assert other != draft
        (tmp_path / "o").rmdir()


def test_a_young_draft_stays(tmp_path):
    (tmp_path / "young").touch()
    clear_drafts([tmp_path / "young"])
    assert (tmp_path / "young").exists()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_abandoned_draft_goes(tmp_path, kind):
    draft = tmp_path / "old"
    draft.touch() if kind == "file" else draft.mkdir()
    clear_drafts([age(draft)])
    assert not draft.exists()


def test_a_write_that_the_disk_refuses_names_its_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as error, replacing(tmp_path / "a"):
        raise OSError(28, "No space left on device")  # as a write without the file's name
    assert error.value.filename == str(tmp_path / "a")
