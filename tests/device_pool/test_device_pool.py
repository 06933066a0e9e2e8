"""Devices that are only names, shared out among processes that are real."""

from __future__ import annotations

import doctest
import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from bias_pipeline.config import compose, overrides
from bias_pipeline.errors import UsageError
from bias_pipeline.sweeps.slurm import check_slurm
from hydra_plugins.device_pool import _locks, launcher
from hydra_plugins.device_pool._locks import folder_of_locks, take
from hydra_plugins.device_pool.launcher import device_names
from tests.attackers.test_neural import TINY
from tests.cli.commands import SMALL, results, start
from tests.corpora import REPOSITORY

pytestmark = pytest.mark.slow

APP = Path(__file__).with_name("app.py")
POOL = ("hydra/launcher=device_pool", "hydra.launcher.devices=[a,b]")


def app(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Somebody else's sweep, with results and locks in a folder."""
    overrides = [f"hydra.launcher.locks={folder / 'locks'}", f"hydra.sweep.dir={folder / 'sweep'}"]
    return subprocess.Popen(
        [sys.executable, str(APP), "-m", *POOL, *overrides, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        # A test run in the background ignores SIGINT, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def notes(folder: Path) -> list[dict[str, Any]]:
    contents = [json.loads(path.read_text()) for path in folder.glob("sweep/*/note.json")]
    return sorted(contents, key=lambda note: float(note["began"]))


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What five jobs of a foreign application noted."""
    folder = tmp_path_factory.mktemp("pool")
    process = app(folder, "+job=0,1,2,3,4")
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 0, errors
    return notes(folder)


def test_a_foreign_application_has_all_its_jobs_run(swept: list[dict[str, Any]]) -> None:
    assert sorted(note["job"] for note in swept) == [0, 1, 2, 3, 4]


def test_every_device_has_work(swept: list[dict[str, Any]]) -> None:
    assert {note["device"] for note in swept} == {"a", "b"}


def test_no_device_has_two_jobs_at_a_time(swept: list[dict[str, Any]]) -> None:
    for device in ("a", "b"):
        lines = [note for note in swept if note["device"] == device]
        assert all(before["ended"] <= after["began"] for before, after in pairwise(lines))


def test_sweeps_that_share_devices_stay_out_of_each_others_way(tmp_path: Path) -> None:
    locks = f"hydra.launcher.locks={tmp_path / 'locks'}"
    sweeps = [app(tmp_path / name, locks, "+job=0,1,2") for name in ("one", "two")]
    for process in sweeps:
        process.communicate(timeout=120)
    ordered = sorted(notes(tmp_path / "one") + notes(tmp_path / "two"), key=lambda n: n["began"])
    overlaps = [
        (before, after)
        for device in ("a", "b")
        for before, after in pairwise(note for note in ordered if note["device"] == device)
        if before["ended"] > after["began"]
    ]
    assert (len(ordered), overlaps) == (6, [])


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, list[dict[str, Any]]]:
    """A sweep two of whose six jobs are killed: exit code, messages, notes of the others."""
    folder = tmp_path_factory.mktemp("struck")
    process = app(folder, "+dies=true,false,false", "+job=0,1")
    errors = process.communicate(timeout=120)[1]
    return process.returncode, errors, notes(folder)


def test_a_killed_job_takes_no_other_with_it(
    struck: tuple[int, str, list[dict[str, Any]]],
) -> None:
    assert len(struck[2]) == 4


def test_a_killed_job_is_named(struck: tuple[int, str, list[dict[str, Any]]]) -> None:
    assert (struck[0], "was ended by signal 9 and left no answer" in struck[1]) == (1, True)


def test_a_job_that_fails_tells_its_own_error(tmp_path: Path) -> None:
    process = app(tmp_path, "+fails=true", "+job=0")
    assert "ValueError: as it was told to" in process.communicate(timeout=120)[1]


def test_a_job_that_outlives_its_sweep_keeps_its_device(tmp_path: Path) -> None:
    process = app(tmp_path, "+job=0", "+seconds=3")
    wait_for(tmp_path / "sweep" / "0" / ".hydra")
    process.kill()
    process.wait()  # its job goes on
    present_take = take(["a"], folder_of_locks(str(tmp_path / "locks")))
    process.communicate(timeout=60)  # until the job has closed what it prints to
    assert present_take is None


def test_a_sweep_that_is_stopped_ends_its_jobs(tmp_path: Path) -> None:
    process = app(tmp_path, "+job=0,1,2", "+seconds=60")
    wait_for(tmp_path / "sweep" / "0" / ".hydra")
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert take(["a"], folder_of_locks(str(tmp_path / "locks"))) is not None


@pytest.mark.parametrize("module", [launcher, _locks])
def test_examples_hold(module: ModuleType) -> None:
    """Collected by pytest the plugin would be imported under another name, beside its own."""
    outcome = doctest.testmod(module)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


def test_devices_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert device_names([], "CUDA_VISIBLE_DEVICES") == ("2", "3")


def test_cells_note_their_device(tmp_path: Path) -> None:
    sweep = start(tmp_path, *SMALL, *POOL, "captioner=faithful,terse,amplifier,dampener")
    assert sweep.wait(120) == 0
    manifests = [json.loads(path.read_text())["manifest"] for path in results(tmp_path)]
    assert {manifest["job"]["device"] for manifest in manifests} == {"a", "b"}


def test_a_killed_cell_is_a_failed_job_of_the_sweep(tmp_path: Path) -> None:
    sweep = start(tmp_path, *SMALL, *POOL, "captioner=faithful,terse,amplifier")
    process = psutil.Process(sweep.pid)
    deadline = time.monotonic() + 60
    while not (jobs := process.children()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    jobs[0].kill()
    assert (sweep.wait(120), len(results(tmp_path))) == (4, 2)


# Run by every process at its start: device a has room for eight captions.
SHORT_OF_MEMORY = """
import os

if os.environ.get("CUDA_VISIBLE_DEVICES") == "a":
    import torch
    from bias_pipeline.attackers.attacker import Attacker

    step = Attacker.training_step

    def limited(self, batch, batch_idx):
        if len(batch[1]) > 8:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return step(self, batch, batch_idx)

    Attacker.training_step = limited
"""


def test_e15_a_device_without_memory_leaves_its_neighbour_unharmed(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SHORT_OF_MEMORY)
    places = f"{tmp_path}{os.pathsep}{REPOSITORY}"
    words = [*TINY, "stats.resamples=20", *POOL]
    sweep = start(tmp_path, *words, "captioner=faithful,terse", PYTHONPATH=places)
    assert sweep.wait(300) == 0
    lines = [json.loads(path.read_text())["manifest"] for path in results(tmp_path)]
    short = {item["job"]["device"]: bool(item["training"]["out_of_memory"]) for item in lines}
    assert short == {"a": True, "b": False}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([POOL[0], "hydra.launcher.devices=[0,0]"], "name each device once"),
        ([POOL[0], "hydra.launcher.devices=[../a]"], "name each device once"),
        ([POOL[0]], "name the devices"),
    ],
)
def test_what_could_not_end_well_is_refused(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    options = overrides.options_of(words)
    with pytest.raises(UsageError, match=message):
        check_slurm(compose.composer(options).job(words))
