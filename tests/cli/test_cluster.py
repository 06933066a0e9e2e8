"""What is known of jobs that ran elsewhere; a real Slurm is in test_slurm.py."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from submitit.core.utils import FailedJobError, UncompletedJobError

from bias_pipeline.errors import UsageError
from bias_pipeline.run import launch, slurm
from tests.cli.commands import SMALL, results

SQUEUE = "12_0 RUNNING\n12_1 COMPLETED\n13 PENDING\n"


def answer(monkeypatch: pytest.MonkeyPatch, text: str | Exception) -> None:
    """What the queue says."""

    def run(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        if isinstance(text, Exception):
            raise text
        return subprocess.CompletedProcess([], 0, stdout=text)

    monkeypatch.setattr(subprocess, "run", run)


def test_the_queue_tells_states(monkeypatch):
    answer(monkeypatch, SQUEUE)
    assert slurm.queue_states() == {"12_0": "RUNNING", "12_1": "COMPLETED", "13": "PENDING"}


@pytest.mark.parametrize(
    ("job", "over"), [("12_0", False), ("12_1", True), ("13", False), ("11", True)]
)
def test_a_job_is_over_when_it_ended_or_is_forgotten(monkeypatch, job, over):
    answer(monkeypatch, SQUEUE)
    assert slurm.is_over(job, slurm.queue_states()) == over


@pytest.mark.parametrize("error", [OSError(), subprocess.CalledProcessError(1, "squeue")])
def test_no_job_is_over_because_the_queue_does_not_answer(monkeypatch, error):
    answer(monkeypatch, error)
    assert not slurm.is_over("12_0", slurm.queue_states())


class Executor:
    """Takes jobs as submitit does, and runs none: one after the other ends without an outcome."""

    def __init__(self, folder: str, cluster: str, **_: object) -> None:
        self.folder = Path(folder)
        assert cluster == "local"

    def update_parameters(self, **parameters: object) -> None:
        assert parameters["timeout_min"] == 60

    def map_array(self, job: object, arguments: Sequence[object]) -> list[SimpleNamespace]:
        refusal = "Command failed\nsbatch: error: invalid partition specified: x\nsbatch: error: Ba"
        if self.folder.parts[0] == "refused":
            raise FailedJobError(refusal)
        jobs = []
        for number in range(len(arguments)):
            paths = SimpleNamespace(
                result_pickle=self.folder / str(number), stderr=self.folder / f"{number}.err"
            )
            states = iter([number == 0, True])
            jobs.append(SimpleNamespace(job_id=f"{number}", paths=paths, done=states.__next__))
        return jobs


def test_a_job_that_was_killed_is_named_with_its_overrides_and_log(monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("submitit.AutoExecutor", Executor)
    monkeypatch.setattr(slurm, "POLL_S", 0.0)
    words = [*SMALL, "hydra/launcher=submitit_local", "captioner=faithful,terse"]
    assert launch.run(words).exit_code == 4
    message = capfd.readouterr().err
    for number, captioner in enumerate(["faithful", "terse"]):
        sentence = (
            f"captioner={captioner}: the job ended without an outcome; it was job {number}; its log"
        )
        assert sentence in message
    assert "0.err" in message


def test_a_refusal_is_in_slurms_words(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("submitit.AutoExecutor", Executor)
    words = [*SMALL, "hydra/launcher=submitit_local", "paths.outputs=refused"]
    with pytest.raises(UsageError, match="jobs were refused: sbatch: error: invalid partition"):
        launch.run(words)


def test_a_job_whose_time_was_up_is_no_bug():
    ran_out_of_time = slurm.ran_out_of_time(UncompletedJobError("timed-out too many times"))
    assert ran_out_of_time is not None
    assert "hydra.launcher.max_num_timeout" in ran_out_of_time
    assert slurm.ran_out_of_time(ValueError()) is None


@pytest.fixture
def _no_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_: None)


@pytest.mark.usefixtures("_no_slurm")
@pytest.mark.parametrize("word", ["cluster=slurm", "hydra/launcher=submitit_slurm"])
def test_no_slurm_is_said_before_anything_is_written(ends, tmp_path, word):
    assert "there is no Slurm here" in ends(5, *SMALL, word)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", ["tasks_per_node=2", "nodes=2"])
def test_a_cell_is_one_task(ends, word):
    assert "each task would run the same job" in ends(
        2, *SMALL, "hydra/launcher=submitit_local", f"hydra.launcher.{word}"
    )


@pytest.mark.slow
def test_jobs_of_submitit_on_this_machine_give_results(ok, tmp_path):
    ok(*SMALL, "hydra/launcher=submitit_local", "captioner=faithful,terse")
    assert len(results(tmp_path)) == 2
