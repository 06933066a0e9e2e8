"""Sweeps on a real Slurm of one node, which these tests start and stop: ``make slurm``."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from bias_pipeline.models.merge_shards import read_embeddings
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate
from tests.cli.commands import SMALL, part, results, rows, wait_for
from tests.corpora import REPOSITORY
from tests.photo_folder import write_photos
from tests.slurm_cluster import CannotStartError, client, cluster

pytestmark = pytest.mark.slurm

# How long a command may take, in seconds; on a busy machine most take a minute.
PATIENCE = 300
SLURM = ("hydra/launcher=submitit_slurm", "hydra.launcher.timeout_min=60", "-m")
THREE = ("captioner=faithful,terse,amplifier",)
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Mapping[str, str]]:
    """The variables that lead to a running Slurm; skips with the reason where there is none."""
    with tempfile.TemporaryDirectory(prefix="slurm") as folder:
        running = cluster(Path(folder))
        try:
            variables = running.__enter__()
        except CannotStartError as error:
            pytest.skip(f"no Slurm: {error}")
        try:
            yield variables
        finally:
            running.__exit__(None, None, None)


def command(folder: Path, variables: Mapping[str, str]) -> Command:
    """Runs the door in a folder, within reach of Slurm."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bias_pipeline", *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    return run


@pytest.fixture
def run(slurm: Mapping[str, str], tmp_path: Path) -> Command:
    return command(tmp_path, slurm)


@pytest.fixture(scope="module")
def sweep(slurm: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of three cells that Slurm ran."""
    folder = tmp_path_factory.mktemp("sweep")
    done = command(folder, slurm)(*SMALL, *SLURM, *THREE)
    assert done.returncode == 0, done.stderr
    return folder


def job_of(path: Path) -> dict[str, str]:
    job: dict[str, str] = json.loads(path.read_text())["manifest"]["job"]
    return job


def test_slurm_gives_the_rows_of_a_local_run(sweep, run, tmp_path):
    run(*SMALL, *THREE)
    local, remote = (
        {path.parent.name: json.dumps(rows(path)) for path in results(folder)}
        for folder in (tmp_path, sweep)
    )
    assert len(local) == 3
    assert remote == local


def test_the_manifests_hold_the_ids_of_jobs_that_slurm_ran(sweep, slurm):
    jobs = [job_of(path) for path in results(sweep)]
    assert {job["launcher"] for job in jobs} == {"submitit_slurm"}
    assert len({job["id"] for job in jobs}) == 3
    for job in jobs:
        assert "JobState=COMPLETED" in client(slurm, "scontrol", "show", "job", job["id"])


def test_finished_cells_are_skipped(sweep, slurm):
    done = command(sweep, slurm)(*SMALL, *SLURM, *THREE)
    assert "cached, not run again: 3 of 3" in done.stdout


def test_failed_jobs_are_listed_and_seeds_spread_over_the_others(run, tmp_path):
    done = run(*SMALL, *SLURM, "dataset.n_images=20,300", "seeds=[0,12],[456,789]")
    assert done.returncode == 4
    assert "error: dataset.n_images=20 seeds=[0,12],[456,789]: " in done.stderr
    assert "2 of 4 jobs failed; the results of the others are saved" in done.stderr
    ordered = sorted(part(path, "score")["seeds"] for path in results(tmp_path))
    assert ordered == [[0, 12], [456, 789]]


# --- jobs that nobody waits for


@pytest.fixture(scope="module")
def submitted_folder(slurm: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of three cells that Slurm ran after the command that asked for them had ended."""
    folder = tmp_path_factory.mktemp("submitted")
    done = command(folder, slurm)("submit", *SMALL, *THREE)
    assert done.returncode == 0, done.stderr
    assert "submitted 3 jobs as array" in done.stdout
    wait_for(lambda: len(results(folder)) == 3, PATIENCE)
    return folder


def test_submitted_jobs_give_the_rows_of_others(submitted_folder, sweep):
    result, others = (
        {path.parent.name: json.dumps(rows(path)) for path in results(folder)}
        for folder in (submitted_folder, sweep)
    )
    assert result == others


def test_submitted_jobs_know_their_number(submitted_folder):
    array = {job_of(path)["id"].partition("_")[0] for path in results(submitted_folder)}
    assert len(array) == 1


def test_the_words_printed_give_the_table_of_what_was_submitted(submitted_folder, slurm):
    done = command(submitted_folder, slurm)(*SMALL, *THREE)
    assert "cached, not run again: 3 of 3" in done.stdout


def test_a_submitted_job_that_is_preempted_goes_on_where_it_was(run, slurm, tmp_path):
    run("submit", *SMALL, *LONG)
    wait_for(lambda: n_predicted(tmp_path) > 3, PATIENCE)
    preempted = job_id(slurm)
    client(slurm, "scancel", "--signal=USR2", preempted)
    wait_for(lambda: bool(results(tmp_path)), PATIENCE)
    assert "Restarts=1" in client(slurm, "scontrol", "show", "job", preempted)
    (path,) = results(tmp_path)
    assert json.loads(path.read_text())["manifest"]["training"]["cached"] > 3


def test_tasks_of_an_array_embed_the_photos_of_a_folder(run, slurm, clip, tmp_path):
    """Numbered from 5: how the array counts, and not the words, says whose share is whose."""
    photos = write_photos(tmp_path / "photos", 60)
    embed = f"-m bias_pipeline embed {photos} --model {clip} --out out --threads 1"
    wrapped = ["--wrap", f"exec {sys.executable} {embed}"]
    subprocess.run(
        ["sbatch", "--array=5-7", "--mem=2G", "--output=%a.log", *wrapped],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **slurm},
        check=True,
        timeout=PATIENCE,
    )
    # Not by sbatch --wait, which asks again after half a minute.
    wait_for(
        lambda: len([log for log in tmp_path.glob("?.log") if "--gather" in log.read_text()]) == 3,
        PATIENCE,
    )
    done = run("embed", "--gather", "out")
    assert done.returncode == 0, done.stderr
    assert len(read_embeddings(tmp_path / "out" / "embeddings.parquet")[0]) == 60
    logs = [(tmp_path / f"{task}.log").read_text() for task in (5, 6, 7)]
    assert sum(int(log.partition(" images in ")[0]) for log in logs) == 60


def test_the_sbatch_example_audits_each_captioner_of_a_folder(slurm, tmp_path):
    shown = {name: CAPTIONERS[name] for name in ("faithful", "terse")}
    write_scenes(generate(n_images=60), tmp_path / "data", shown)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        ["sbatch", "--array=0-1", "--mem=2G", str(REPOSITORY / "cluster/audit.sbatch"), "data"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PATH": path, **slurm},
        check=True,
        timeout=PATIENCE,
    )
    reports = [tmp_path / "data/outputs" / name / "report.html" for name in shown]
    logs = "*.log"
    wait_for(lambda: all(map(Path.is_file, reports)), PATIENCE)
    assert "Does it name the wrong gender?" in "".join(
        log.read_text() for log in tmp_path.glob(logs)
    )


# --- jobs that are killed, or asked to make room

# Ten seconds on a slow machine; a killed job may be longer, nobody waits for its end.
LONG = ("seeds=1000", "captioner=faithful")


@pytest.fixture
def start_sweep(
    slurm: Mapping[str, str], tmp_path: Path
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the door in a folder, within reach of Slurm, and does not wait for it.

    What a failing test left running is killed, with its jobs.
    """
    with ExitStack() as processes:

        def start(*words: str) -> subprocess.Popen[str]:
            process = processes.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "bias_pipeline", *SMALL, *SLURM, *words],
                    cwd=tmp_path,
                    env={**os.environ, "PYTHONPATH": str(REPOSITORY), **slurm},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            processes.callback(_end, process, slurm)
            return process

        yield start


def _end(process: subprocess.Popen[str], slurm: Mapping[str, str]) -> None:
    if process.poll() is None:
        process.kill()
        client(slurm, "scancel", "--partition=main")


def n_predicted(folder: Path) -> int:
    """How many attackers' predictions are kept."""
    return len(list(folder.glob("outputs/.cache/predictions/*/*")))


def job_id(slurm: Mapping[str, str]) -> str:
    """The one job that runs."""
    return client(slurm, "squeue", "--noheader", "--states=RUNNING", "--format=%i").split()[0]


def test_a_killed_job_is_listed_with_its_log_and_the_others_run(start_sweep, slurm, tmp_path):
    """Although this Slurm keeps no accounts, which submitit would wait for without end."""
    sweep = start_sweep("seeds=9000,2", "captioner=faithful", "hydra.launcher.array_parallelism=1")
    wait_for(lambda: n_predicted(tmp_path) > 3, PATIENCE)
    killed = job_id(slurm)
    client(slurm, "scancel", "--signal=KILL", killed)
    _, stderr = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 4, stderr
    assert f"error: seeds=9000: the job ended without an outcome; it was job {killed}" in stderr
    assert f"{killed}_0_log.err" in stderr
    assert [part(path, "score")["seeds"] for path in results(tmp_path)] == [[0, 12]]


def test_a_preempted_job_is_queued_again_and_goes_on_where_it_was(start_sweep, slurm, tmp_path):
    sweep = start_sweep(*LONG)
    wait_for(lambda: n_predicted(tmp_path) > 3, PATIENCE)
    preempted = job_id(slurm)
    client(slurm, "scancel", "--signal=USR2", preempted)
    _, stderr = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 0, stderr
    assert "Restarts=1" in client(slurm, "scontrol", "show", "job", preempted)
    (path,) = results(tmp_path)
    training = json.loads(path.read_text())["manifest"]["training"]
    assert training["cached"] > 3
    n_attackers = 1000 * 6 * 5  # seeds, trainings of a seed and folds
    assert training["trained"] + training["cached"] == n_attackers
    assert job_of(path)["id"] == preempted
    assert [p.parent.name for p in tmp_path.glob("outputs/.hydra_jobs/*/*/.hydra")] == ["0"]


def test_a_cluster_preset_reads_the_environment(slurm, tmp_path):
    """Without a sweep: Hydra alone would run the one cell on this machine."""
    variables = {**slurm, "BIAS_PIPELINE_PARTITION": "main", "BIAS_PIPELINE_MINUTES": "7"}
    done = command(tmp_path, variables)(*SMALL, "cluster=slurm")
    assert done.returncode == 0, done.stderr
    shown = client(slurm, "scontrol", "show", "job", job_of(results(tmp_path)[0])["id"])
    assert "Partition=main" in shown
    assert "TimeLimit=00:07:00" in shown


def test_what_slurm_refuses_is_told_in_its_words(run):
    done = run(*SMALL, *SLURM, "hydra.launcher.partition=absent")
    assert done.returncode == 2
    assert "invalid partition specified" in done.stderr
    assert "Traceback" not in done.stderr
