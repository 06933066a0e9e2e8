"""Helpers take the cells of a sweep from its end."""

import json
import time
from pathlib import Path

import pytest

from bias_pipeline.run import launch, worker_processes
from bias_pipeline.run.compose import Sweep
from bias_pipeline.run.job import OUTCOME, VISIBLE, run_sweep

SWEEP = (
    "captioner=faithful,terse,stereotyper",
    "metric=gender_error",
    "dataset.n_images=200",
    "stats.resamples=20",
    "logger=csv",
)


def prepare_sweep(outputs: Path, *words: str) -> Sweep:
    return launch.parse_sweep([*SWEEP, f"paths.outputs={outputs}", *words])


def run_jobs(sweep: Sweep) -> Path:
    """Run the jobs of a sweep; returns their folder."""
    folder = Path(sweep.config.hydra.sweep.dir)
    folder.mkdir(parents=True, exist_ok=True)
    run_sweep(sweep, folder)
    return folder


def outcomes(folder: Path) -> dict[str, dict[str, object]]:
    """What the jobs of a sweep have left, by their number."""
    return {path.parent.name: json.loads(path.read_bytes()) for path in folder.glob(f"*/{OUTCOME}")}


def take(sweep: Sweep, folder: Path) -> None:
    worker_processes._take_cells(sweep, folder)


def test_a_helper_leaves_the_word_that_the_sweep_would_which_leaves_it_as_it_is(tmp_path):
    folder = run_jobs(prepare_sweep(tmp_path / "alone"))
    pooled = prepare_sweep(tmp_path / "helped")
    jobs = Path(pooled.config.hydra.sweep.dir)
    take(pooled, jobs)
    words = [
        {n: [one[key] for key in ("run_id", "status", "exit_code")] for n, one in left.items()}
        for left in (outcomes(folder), outcomes(jobs))
    ]
    assert len(words[0]) == 3
    assert words[0] == words[1]
    before = {path: path.stat().st_mtime_ns for path in jobs.glob(f"*/{OUTCOME}")}
    run_jobs(pooled)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_helper_writes_values_as_the_sweep_does(tmp_path):
    """Else a table of both would have a column in which False and false differ."""
    words = ("text.keep_unknown=false", "stats.level=0.950")
    alone, pooled = (prepare_sweep(tmp_path / name, *words) for name in ("alone", "helped"))
    folder = run_jobs(alone)
    jobs = Path(pooled.config.hydra.sweep.dir)
    take(pooled, jobs)
    mine, theirs = (outcomes(one)["0"]["overrides"] for one in (jobs, folder))
    assert mine[-2:] == theirs[-2:] == ["text.keep_unknown=False", "stats.level=0.95"]


def test_a_cell_that_somebody_is_at_work_on_is_passed_over(tmp_path):
    sweep = prepare_sweep(tmp_path / "outputs")
    take(sweep, tmp_path / "first")
    done = outcomes(tmp_path / "first")
    again = prepare_sweep(tmp_path / "again")
    store = worker_processes.ResultStore(tmp_path / "again")
    with store.claim(str(done["1"]["run_id"])):
        take(again, tmp_path / "second")
    assert sorted(outcomes(tmp_path / "second")) == ["0", "2"]


def test_a_cell_that_fails_is_left_to_the_sweep(tmp_path):
    words = ["captioner=faithful,absent", *SWEEP[1:], f"paths.outputs={tmp_path / 'outputs'}"]
    sweep = launch.parse_sweep(words)
    take(sweep, tmp_path / "jobs")
    assert sorted(outcomes(tmp_path / "jobs")) == ["0"]


def wait_for_outcomes(folder: Path, n_jobs: int, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while len(outcomes(folder)) < n_jobs and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.fixture
def begun_sweep(tmp_path, monkeypatch) -> Path:
    """The folder of a sweep whose first cell has ended and shows that helpers are worth it."""
    monkeypatch.setattr(worker_processes, "WORTH_S", 0.0)
    first = tmp_path / "jobs" / "0" / OUTCOME
    first.parent.mkdir(parents=True)
    first.write_text('{"status": "done"}')
    return tmp_path / "jobs"


def test_helpers_start_where_the_first_cell_shows_that_they_are_worth_it(tmp_path, begun_sweep):
    sweep = prepare_sweep(tmp_path, "processes=2")
    with worker_processes.worker_pool(sweep, 2, begun_sweep):
        wait_for_outcomes(begun_sweep, 3)
    assert sorted(outcomes(begun_sweep)) == ["0", "1", "2"]


def devices_of(outputs: Path) -> set[str]:
    """The devices of the runs in a folder."""
    manifests = [json.loads(path.read_text())["manifest"] for path in outputs.glob("*/result.json")]
    return {manifest["job"]["device"] for manifest in manifests}


def test_a_helper_sees_its_own_device_alone(tmp_path):
    sweep, jobs = prepare_sweep(tmp_path, "devices=[a,b]"), tmp_path / "jobs"
    with worker_processes.worker_pool(sweep, 2, jobs, sweep.devices):
        wait_for_outcomes(jobs, 3)
    assert devices_of(tmp_path) == {"b"}


def test_the_sweeps_own_process_has_the_first_device(tmp_path, monkeypatch):
    monkeypatch.setenv(VISIBLE, "all of them")
    one = ["captioner=terse", *SWEEP[1:]]
    assert launch.run([*one, f"paths.outputs={tmp_path}", "devices=[a,b]"]).exit_code == 0
    assert devices_of(tmp_path) == {"a"}


@pytest.mark.slow
def test_a_helper_has_processes_of_its_own(tmp_path):
    """It once could not start them, and once waited for them at its end."""
    attackers = ("encoder=lstm", "probe.processes=2", "trainer.max_epochs=1", "seeds=2")
    words = ["captioner=terse,faithful", "metric=lic", *SWEEP[2:], *attackers]
    sweep = launch.parse_sweep([*words, f"paths.outputs={tmp_path}", "devices=[a,b]"])
    jobs = tmp_path / "jobs"
    with worker_processes.worker_pool(sweep, 2, jobs, sweep.devices):
        wait_for_outcomes(jobs, 2, 100)
    assert devices_of(tmp_path) == {"b"}


def test_no_helper_outlives_a_sweep_that_is_stopped(tmp_path, begun_sweep, monkeypatch):
    started: list[worker_processes._Helpers] = []
    start = worker_processes._Helpers.start

    def note_start(self: worker_processes._Helpers, number: int) -> None:
        start(self, number)
        started.append(self)

    monkeypatch.setattr(worker_processes._Helpers, "start", note_start)
    sweep = prepare_sweep(tmp_path, "processes=2")

    def stop_sweep() -> None:
        with worker_processes.worker_pool(sweep, 2, begun_sweep):
            while not started:
                worker_processes.time.sleep(0.05)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_sweep()
    assert [helper.is_alive() for helper in started[0].started] == [False]


def test_short_sweeps_stay_in_one_process(tmp_path, monkeypatch):
    started: list[int] = []
    monkeypatch.setattr(
        worker_processes._Helpers, "start", lambda _, number: started.append(number)
    )
    assert launch.run([*SWEEP, f"paths.outputs={tmp_path}"]).exit_code == 0
    assert started == []


@pytest.mark.parametrize(
    ("words", "processes"),
    [
        ((), "auto"),
        (("encoder=lstm", "metric=lic"), 1),
        (("processes=3",), 3),
        (("encoder=lstm", "metric=lic", "processes=3"), 3),
        (("encoder=lstm", "metric=lic", "devices=[0,1]"), 2),
        (("metric=gender_distance",), 1),
    ],
)
def test_networks_share_no_cores_unless_requested(tmp_path, words, processes):
    assert prepare_sweep(tmp_path, *words).processes == processes


def test_memory_bounds_the_processes(monkeypatch):
    monkeypatch.setattr(worker_processes, "n_cores", lambda: 16)
    monkeypatch.setattr(worker_processes, "own_memory", lambda: 1_000)
    monkeypatch.setattr(worker_processes, "free_memory", lambda: 3_500)
    assert worker_processes.n_wanted("auto") == 4


def test_processes_is_auto_or_a_number(tmp_path):
    with pytest.raises(launch.UsageError, match="processes"):
        prepare_sweep(tmp_path, "processes=many")


def pace_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *looks: tuple[float, str | None]
) -> list[tuple[float, int]]:
    """What is told at each time, where one more cell has ended so, or none."""
    (folder / "0").mkdir(parents=True)
    pace, message = worker_processes._Pace(folder), []
    for number, (now, status) in enumerate(looks):
        if status:
            (folder / str(number)).mkdir(exist_ok=True)
            (folder / str(number) / OUTCOME).write_text(json.dumps({"status": status}))
        monkeypatch.setattr(worker_processes.time, "monotonic", lambda now=now: now)
        message.append(pace.update())
    return message


@pytest.mark.parametrize(
    ("looks", "paces"),
    [
        ([(5.0, None), (5.5, "cached"), (6.0, "cached")], [(0.0, 0), (0.0, 1), (0.0, 2)]),
        ([(5.0, None), (5.5, None), (7.0, None)], [(0.0, 0), (0.0, 0), (2.0, 0)]),
        ([(5.0, None), (8.0, "done"), (9.0, "done")], [(0.0, 0), (3.0, 1), (2.0, 2)]),
    ],
    ids=[
        "cells that were there call for no helper",
        "a first cell that takes long tells before it ends",
        "computed cells tell by their mean",
    ],
)
def test_the_pace_of_a_sweep(tmp_path, monkeypatch, looks, paces):
    assert pace_of(tmp_path, monkeypatch, *looks) == paces


def test_a_helper_leaves_attackers_to_the_process_that_has_begun_them(tmp_path):
    """LIC and Leakage share attackers, so one process runs both."""
    metrics = "metric=leakage,lic"
    words = ["captioner=faithful", metrics, *SWEEP[2:], "seeds=1", "metric.learning_curve=false"]
    first = launch.parse_sweep([*words, f"paths.outputs={tmp_path / 'outputs'}"])
    take(first, tmp_path / "first")
    done = outcomes(tmp_path / "first")
    assert sorted(done) == ["0", "1"]
    again = launch.parse_sweep([*words, f"paths.outputs={tmp_path / 'again'}"])
    store = worker_processes.ResultStore(tmp_path / "again")
    with store.claim(str(done["0"]["run_id"])):
        take(again, tmp_path / "second")
    assert not outcomes(tmp_path / "second")


def test_a_helper_trains_the_attackers_of_two_metrics_once(tmp_path):
    words = ["captioner=faithful", "metric=leakage,lic", *SWEEP[2:], "seeds=1"]
    sweep = launch.parse_sweep([*words, f"paths.outputs={tmp_path}"])
    take(sweep, tmp_path / "jobs")
    manifests = {
        path.parent.name.partition("-")[0]: json.loads(path.read_text())["manifest"]
        for path in tmp_path.glob("*/result.json")
    }
    trained = [manifest["training"]["trained"] for manifest in manifests.values()]
    assert sorted(map(bool, trained)) == [False, True]
