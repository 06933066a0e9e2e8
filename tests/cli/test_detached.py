"""``submit`` without a Slurm: what is handed over and refused. With one: ``test_slurm.py``."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from submitit.core.utils import FailedJobError

from bias_pipeline.io import signals
from tests.cli.commands import SMALL, results


@dataclass
class Queue:
    """What submitit was asked for."""

    jobs: list[Sequence[str]] = field(default_factory=list)  # the words of each
    functions: list[Any] = field(default_factory=list)  # of each array
    parameters: dict[str, object] = field(default_factory=dict)
    refusal: str = ""


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """A queue that numbers its arrays 7, 8, ... and runs nothing."""
    queue = Queue()

    class Executor:
        def __init__(self, folder: str, cluster: str, **_: object) -> None:
            assert cluster == "slurm"

        def update_parameters(self, **parameters: object) -> None:
            queue.parameters |= parameters

        def map_array(self, function: Any, jobs: Sequence[Sequence[str]]) -> list[Any]:
            if queue.refusal:
                raise FailedJobError(queue.refusal)
            queue.jobs += jobs
            queue.functions.append(function)
            array = 6 + len(queue.functions)
            return [SimpleNamespace(job_id=f"{array}_{number}") for number in range(len(jobs))]

    monkeypatch.setattr("submitit.AutoExecutor", Executor)
    monkeypatch.setattr("bias_pipeline.run.slurm.shutil.which", lambda _: "sbatch")
    return queue


def test_a_job_is_the_words_of_a_command(ok, queue):
    printed = ok("submit", *SMALL, "captioner=faithful,terse", "seeds=[0],[12]")
    assert [job[-2:] for job in queue.jobs] == [
        [f"captioner={captioner}", f"seeds=[{seed}]"]
        for captioner in ("faithful", "terse")
        for seed in (0, 12)
    ]
    assert "submitted 4 jobs as array 7" in printed


def test_a_job_is_told_of_the_users_own_configuration(ok, queue, tmp_path):
    folder = tmp_path / "my own"
    (folder / "experiment").mkdir(parents=True)
    (folder / "experiment" / "one.yaml").write_text("# @package _global_\n# One seed.\nseeds: 1\n")
    ok("submit", "--config-dir", "my own", "experiment=one", "captioner=faithful,terse")
    assert [job[:4] for job in queue.jobs] == [
        ["run", "--config-dir", str(folder), "experiment=one"]
    ] * 2


def test_how_to_submit_is_for_slurm_alone(ok, queue):
    ok("submit", *SMALL, "cluster=slurm", "hydra.launcher.timeout_min=7")
    assert queue.parameters["timeout_min"] == 7
    assert not [word for word in queue.jobs[0] if "launcher" in word or "cluster" in word]


def test_a_submitted_command_ends_with_its_exit_code(run, queue, tmp_path):
    run("submit", *SMALL, "captioner=faithful")
    queue.functions[0](queue.jobs[0])
    assert len(results(tmp_path)) == 1
    with pytest.raises(SystemExit, match="2"):
        queue.functions[0](["run", "metric=absent"])
    assert not signals.stop_is_requested()


@pytest.mark.parametrize("name", ["embed", "caption", "data detect"])
def test_a_job_is_a_share_of_the_images(name, ok, queue):
    words = ("submit", *name.split(), "my photos", "--model", "m", "--out", "o", "--shards", "3")
    printed = ok(*words, "hydra.launcher.timeout_min=7")
    command = [*name.split(), "my photos", "--model", "m", "--out", "o", "--shard"]
    assert queue.jobs == [[*command, f"{number}/3"] for number in range(3)]
    assert queue.parameters["timeout_min"] == 7
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
def test_shares_that_make_no_sense_are_refused_before_any_runs(words, message, ends, queue):
    assert message in ends(2, "submit", "caption", *words.split())
    assert queue.jobs == []


def test_large_sweeps_are_several_arrays(run, queue, monkeypatch):
    monkeypatch.setattr("bias_pipeline.run.slurm.MOST_TASKS", 2)
    _, printed = run("submit", *SMALL, "captioner=faithful,terse,amplifier")
    assert "submitted 2 jobs as array 7" in printed
    assert "submitted 1 job as array 8" in printed


def test_without_slurm_it_ends_with_5(ends, monkeypatch):
    monkeypatch.setattr("bias_pipeline.run.slurm.shutil.which", lambda _: None)
    assert "sbatch is absent" in ends(5, "submit", *SMALL)


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [("x\nsbatch: error: no such partition\n", "sbatch: error: no such partition"), ("why", "why")],
)
def test_a_refusal_of_slurm_is_one_sentence(ends, queue, refusal, reason):
    queue.refusal = refusal
    assert f"the jobs were refused: {reason}" in ends(2, "submit", *SMALL)


def test_another_launcher_is_refused(ends):
    assert "submit needs Slurm" in ends(2, "submit", *SMALL, "hydra/launcher=submitit_local")


def test_a_job_that_does_not_compose_is_refused_before_any_runs(run, queue):
    code, _ = run("submit", *SMALL, "seeds=1,2", "metric.nonsense=1,2")
    assert (code, queue.jobs) == (2, [])
