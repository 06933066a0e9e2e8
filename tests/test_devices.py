"""Devices that are only names, shared out among processes that are real."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bias_pipeline import composition, devices
from bias_pipeline.cluster import check
from bias_pipeline.errors import UsageError
from tests.cli.commands import SMALL, results, start

HOLD = (
    "import sys; from pathlib import Path; from bias_pipeline.devices import take\n"
    "print(take(sys.argv[2:], Path(sys.argv[1])).name, flush=True); sys.stdin.read()"
)


def holder(folder: Path, *names: str) -> subprocess.Popen[str]:
    """A process that takes a device and holds it until it is ended."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), *names],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_no_two_processes_have_the_same(tmp_path: Path) -> None:
    processes = [holder(tmp_path, "0", "1") for _ in range(2)]
    assert sorted(map(told, processes)) == ["0", "1"]
    for process in processes:
        end(process)


def test_a_killed_process_leaves_its_device_to_who_waits(tmp_path: Path) -> None:
    first = holder(tmp_path, "0")
    assert told(first) == "0"
    second = holder(tmp_path, "0")
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(1)
    end(first)
    assert told(second) == "0"
    end(second)


def test_what_was_released_can_be_taken(tmp_path: Path) -> None:
    devices.take(["0"], tmp_path).release()
    devices.take(["0"], tmp_path).release()


def test_jobs_at_once_have_devices_of_their_own(tmp_path: Path) -> None:
    words = ("devices=[a,b]", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    sweep = start(tmp_path, *SMALL, *words, "captioner=faithful,terse,amplifier,dampener")
    assert sweep.wait(120) == 0
    owners: dict[str, set[int]] = {}
    for path in results(tmp_path):
        manifest = json.loads(path.read_text())["manifest"]
        owners.setdefault(manifest["job"]["device"], set()).add(manifest["machine"]["pid"])
    assert set(owners) <= {"a", "b"}
    assert all(len(processes) == 1 for processes in owners.values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["devices=[0,0]"], "name each once"),
        (["devices=[0]", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"], "must be 1 to 1"),
        (["devices=[0]", "hydra/launcher=joblib"], "must be 1 to 1"),
    ],
)
def test_what_could_not_end_well_is_refused(words: list[str], message: str) -> None:
    options = composition.options_of(words)
    with pytest.raises(UsageError, match=message):
        check(composition.compose_config(words, options))
