"""What is known of jobs that ran elsewhere; a real Slurm is in test_slurm.py."""

import subprocess
from pathlib import Path

import pytest
from submitit.core.utils import DelayedSubmission, FailedJobError, UncompletedJobError

from bias_pipeline.errors import UsageError
from bias_pipeline.run import slurm
from tests.cli.commands import SMALL, results

SQUEUE = "12_0 RUNNING\n12_1 COMPLETED\n13 PENDING\n"


def hand_over(folder: Path, job_id: str, *overrides: str) -> None:
    """A job as submitit leaves it."""
    (folder / ".submitit" / job_id).mkdir(parents=True)
    handed_over = DelayedSubmission(print, list(overrides))
    handed_over.dump(folder / ".submitit" / job_id / f"{job_id}_submitted.pkl")


def answer(monkeypatch: pytest.MonkeyPatch, text: str | Exception) -> None:
    """What the queue says."""

    def run(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        if isinstance(text, Exception):
            raise text
        return subprocess.CompletedProcess([], 0, stdout=text)

    monkeypatch.setattr(subprocess, "run", run)


@pytest.mark.parametrize(
    ("started", "ordered"),
    [
        (["12_10", "12_2", "12_0"], ["12_0", "12_2", "12_10"]),
        (["71", "9", "500"], ["71", "9", "500"]),
    ],
    ids=["an array is in the order of the sweep", "this machine's are as they started"],
)
def test_jobs_stand_in_order(tmp_path, started, ordered):
    for job in started:
        hand_over(tmp_path, job)
    assert [job.id for job in slurm.submitted(tmp_path)] == ordered


def test_a_job_that_never_started_counts(tmp_path):
    hand_over(tmp_path, "12_0")
    hand_over(tmp_path, "12_1")
    (tmp_path / "0" / ".hydra").mkdir(parents=True)
    assert [path.name for path in slurm.job_folders(tmp_path)] == ["0", "1"]


def test_a_job_that_left_no_word_is_told_with_its_overrides_and_log(tmp_path):
    hand_over(tmp_path, "12_0", "seeds=3")
    last_words = slurm.last_words(tmp_path / "0")
    assert last_words["overrides"] == ["seeds=3"]
    assert "job 12_0" in last_words["error"]
    assert last_words["error"].endswith("12_0_0_log.err")


def test_what_was_handed_over_may_be_unreadable(tmp_path):
    hand_over(tmp_path, "12_0", "seeds=3")
    (tmp_path / ".submitit" / "12_0" / "12_0_submitted.pkl").write_bytes(b"")
    assert slurm.last_words(tmp_path / "0")["overrides"] == []


def test_the_queue_tells_states(monkeypatch):
    answer(monkeypatch, SQUEUE)
    assert slurm.queue_states() == {"12_0": "RUNNING", "12_1": "COMPLETED", "13": "PENDING"}


@pytest.mark.parametrize(
    ("job", "over"), [("12_0", False), ("12_1", True), ("13", False), ("11", True)]
)
def test_a_job_is_over_when_it_ended_or_is_forgotten(monkeypatch, job, over):
    answer(monkeypatch, SQUEUE)
    assert slurm._queue_watcher().is_done(job) == over


@pytest.mark.parametrize("error", [OSError(), subprocess.CalledProcessError(1, "squeue")])
def test_no_job_is_over_because_the_queue_does_not_answer(monkeypatch, error):
    answer(monkeypatch, error)
    assert not slurm._queue_watcher().is_done("12_0")


def test_the_others_are_waited_for_when_a_launcher_gives_up(tmp_path, monkeypatch):
    hand_over(tmp_path, "12_0")
    hand_over(tmp_path, "12_1")
    (tmp_path / ".submitit" / "12_1" / "12_1_0_result.pkl").touch()
    answers = iter([False, False, True])
    requested: list[str] = []

    def is_over(job: slurm.Submitted, _: str) -> bool:
        requested.append(job.id)
        return job.ended or next(answers)

    monkeypatch.setattr(slurm, "POLL_S", 0.0)
    monkeypatch.setattr(slurm, "_is_over", is_over)
    with slurm.waiting(slurm.LOCAL, tmp_path):
        raise FailedJobError("killed")
    assert requested == ["12_0", "12_1", "12_0", "12_0"]


def test_a_refusal_is_told_in_slurms_words(tmp_path):
    refusal = "Command failed\nsbatch: error: invalid partition specified: x\nsbatch: error: Batch"
    with (
        pytest.raises(UsageError, match="jobs were refused: sbatch: error: invalid partition"),
        slurm.waiting(slurm.LOCAL, tmp_path),
    ):
        raise FailedJobError(refusal)


def test_errors_that_are_not_the_launchers_pass(tmp_path):
    with pytest.raises(RuntimeError, match="mine"), slurm.waiting(slurm.LOCAL, tmp_path):
        raise RuntimeError("mine")


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
