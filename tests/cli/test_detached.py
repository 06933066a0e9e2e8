"""``submit`` without a Slurm: what is written and what is refused. With one: ``test_slurm.py``."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import SMALL


@pytest.fixture
def sbatch(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """An sbatch that notes what it is asked for and answers 7, 8, ..."""
    commands: list[list[str]] = []

    def answer(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(words)
        return subprocess.CompletedProcess(words, 0, f"{6 + len(commands)}\n", "")

    monkeypatch.setattr("bias_pipeline.run.slurm.subprocess.run", answer)
    monkeypatch.setattr("bias_pipeline.run.slurm.shutil.which", lambda _: "sbatch")
    return commands


def written(folder: Path, name: str) -> str:
    (path,) = folder.glob(f"outputs/.hydra_jobs/*/{name}")
    return path.read_text()


def test_a_job_is_a_line_of_overrides(ok, sbatch, tmp_path):
    ok("submit", *SMALL, "captioner=faithful,terse", "seeds=[0],[12]")
    lines = [shlex.split(line) for line in written(tmp_path, "jobs.txt").splitlines()]
    assert [line[-2:] for line in lines] == [
        [f"captioner={captioner}", f"seeds=[{seed}]"]
        for captioner in ("faithful", "terse")
        for seed in (0, 12)
    ]


def test_a_job_is_told_of_the_users_own_configuration(ok, sbatch, tmp_path):
    folder = tmp_path / "my own"
    (folder / "experiment").mkdir(parents=True)
    (folder / "experiment" / "one.yaml").write_text("# @package _global_\n# One seed.\nseeds: 1\n")
    words = ("--config-dir", "my own", "experiment=one", "captioner=faithful,terse")
    ok("submit", *words)
    lines = [shlex.split(line) for line in written(tmp_path, "jobs.txt").splitlines()]
    assert [line[:4] for line in lines] == [
        ["run", "--config-dir", str(folder), "experiment=one"]
    ] * 2


def test_how_to_submit_is_for_slurm_alone(run, sbatch, tmp_path):
    run("submit", *SMALL, "cluster=slurm", "hydra.launcher.timeout_min=7")
    assert "#SBATCH --time=7\n" in written(tmp_path, "array_0.sh")
    assert "launcher" not in written(tmp_path, "jobs.txt")


@pytest.mark.parametrize("name", ["embed", "caption", "data detect"])
def test_a_job_is_a_share_of_the_images(name, ok, sbatch, tmp_path):
    words = ("submit", *name.split(), "my photos", "--model", "m", "--out", "o", "--shards", "3")
    printed = ok(*words, "hydra.launcher.timeout_min=7")
    lines = [shlex.split(line) for line in written(tmp_path, "jobs.txt").splitlines()]
    command = [*name.split(), "my photos", "--model", "m", "--out", "o", "--shard"]
    assert lines == [[*command, f"{number}/3"] for number in range(3)]
    assert "#SBATCH --time=7\n" in written(tmp_path, "array_0.sh")
    assert printed.endswith(f"python -m bias_pipeline {name} --gather o\n")


PHOTOS = "photos --model m --out o --shards"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("photos --model m --out o", "required: --shards"),
        ("photos --model m --shards 2", "--out is missing"),
        (f"{PHOTOS} 0", "at least 1"),
        ("--gather o --shards 2", "neither --shard nor --gather"),
        (f"{PHOTOS} 2 --shard 0/2", "neither --shard nor"),
        ("photos --modl m --out o --shards 2", "unrecognized arguments: --modl"),
    ],
)
def test_shares_that_make_no_sense_are_refused_before_any_runs(words, message, ends, sbatch):
    assert message in ends(2, "submit", "caption", *words.split())
    assert sbatch == []


def test_large_sweeps_are_several_arrays(run, sbatch, tmp_path, monkeypatch):
    monkeypatch.setattr("bias_pipeline.run.slurm.MOST_TASKS", 2)
    _, printed = run("submit", *SMALL, "captioner=faithful,terse,amplifier")
    assert "submitted 2 jobs as array 7" in printed
    assert "submitted 1 job as array 8" in printed
    assert "SLURM_ARRAY_TASK_ID + 3" in written(tmp_path, "array_2.sh")


def test_without_slurm_it_ends_with_5(ends, monkeypatch):
    monkeypatch.setattr("bias_pipeline.run.slurm.shutil.which", lambda _: None)
    assert "sbatch is absent" in ends(5, "submit", *SMALL)


@pytest.mark.parametrize(
    ("words", "code", "printed", "error", "message"),
    [
        (("captioner='a\nb'",), 0, "7", "", "a job is one line; leave out line breaks"),
        ((), 1, "", "x\nno such partition\n", "array_0.sh: no such partition"),
        ((), 1, "", "", "array_0.sh: no reason given"),
        ((), 0, "welcome\n", "", "'welcome\\n', which is no job number"),
    ],
)
def test_what_cannot_be_submitted_is_one_sentence(
    run, sbatch, monkeypatch, words, code, printed, error, message
):
    done = subprocess.CompletedProcess("sbatch", code, printed, error)
    monkeypatch.setattr("bias_pipeline.run.slurm.subprocess.run", lambda *_, **__: done)
    ended, text = run("submit", *SMALL, *words)
    assert (ended in (2, 3), message in text) == (True, True), text


def test_another_launcher_is_refused(ends):
    assert "submit needs Slurm" in ends(2, "submit", *SMALL, "hydra/launcher=submitit_local")


def test_a_job_that_does_not_compose_is_refused_before_any_runs(run, sbatch):
    code, _ = run("submit", *SMALL, "seeds=1,2", "metric.nonsense=1,2")
    assert (code, sbatch) == (2, [])
