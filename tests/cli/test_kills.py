"""A sweep that is killed again and again ends as one that never was."""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bias_pipeline.results.store import LOGGED
from tests.cli.commands import COUNTING, fork, results

KILLS = 20
AT_ONCE = 2
MOST_SWEEPS = 200  # of one chain; ten kills take some fifteen
CELLS = (
    "metric=lic,gender_error",
    "dataset.n_images=200",
    "seeds=1",
    "logger=csv",
    "stats.resamples=20",
)


def kill(folder: Path, seconds: float) -> bool:
    """Run the sweep for at most so long; whether it had to be killed."""
    folder.mkdir(exist_ok=True)
    process = fork(folder, *CELLS, "captioner=amplifier")
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join(30)
        return True
    assert process.exitcode == 0
    return False


def table(folder: Path) -> bytes:
    """The table that a sweep leaves."""
    return (folder / "outputs" / "table.csv").read_bytes()


def kill_often(folder: Path, n_kills: int, whole_run: float) -> list[Path]:
    """Sweeps killed so many times in all, each resumed until it ends; their folders.

    A sweep that was not interrupted may take less time than the measured one, beside which the
    server of processes started; from then on the next are killed earlier.
    """
    generator = random.Random(folder.name)
    finished: list[Path] = []
    resumed = False
    for _ in range(MOST_SWEEPS):
        sweep = folder.with_name(f"{folder.name}-{len(finished)}")
        seconds = generator.uniform(0.3, 1.0) * whole_run if n_kills else 120
        started = time.monotonic()
        if not kill(sweep, seconds):
            finished.append(sweep)
            if not n_kills:
                return finished
            if not resumed:
                whole_run = min(whole_run, time.monotonic() - started)
            resumed = False
            continue
        resumed = True
        n_kills -= 1
        for path in results(sweep):  # whole, or not there
            assert json.loads(path.read_text(encoding="utf-8"))["rows"]
    return pytest.fail(
        f"after {MOST_SWEEPS} sweeps {n_kills} kills are left: sweeps end before they are killed, "
        f"{len(finished)} so far; the last took {time.monotonic() - started:.1f} s"
    )


def test_sweeps_too_fast_to_be_killed_end_the_test_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.kill", lambda *_: False)
    with pytest.raises(pytest.fail.Exception, match="after 200 sweeps 3 kills are left"):
        kill_often(tmp_path / "chain", 3, 1.0)


@pytest.mark.slow
def test_twenty_random_kills_leave_the_table_of_an_unbroken_run(tmp_path):
    started = time.monotonic()
    assert not kill(tmp_path / "whole", 120)
    whole_run = time.monotonic() - started
    with ThreadPoolExecutor(AT_ONCE) as pool:
        chains = [
            pool.submit(kill_often, tmp_path / f"chain-{n}", KILLS // AT_ONCE, whole_run)
            for n in range(AT_ONCE)
        ]
        sweeps = [sweep for chain in chains for sweep in chain.result()]
    assert len(sweeps) >= AT_ONCE
    assert {table(sweep) for sweep in sweeps} == {table(tmp_path / "whole")}


@pytest.mark.slow
def test_eight_sweeps_at_once_write_one_store(tmp_path):
    """Each of the cells is computed once, and no line of the common table is torn or doubled."""
    alone, together = (tmp_path / name for name in ("alone", "together"))
    alone.mkdir()
    together.mkdir()
    words = (*CELLS, "captioner=amplifier,faithful")
    processes = [fork(folder, *words) for folder in (alone, *[together] * 8)]
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 9
    assert len(results(together)) == 4
    assert table(together) == table(alone)
    # Cells end in any order, so the lines of all of them may stand in any.
    lines = [sorted((f / "outputs/rows.csv").read_text().splitlines()) for f in (alone, together)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("lost", [True, False], ids=["before it was logged", "after"])
def test_a_cell_is_logged_once_though_a_kill_came_after_saving_it(ok, tmp_path, lost):
    ok(*COUNTING)
    log, (path,) = tmp_path / "outputs/rows.csv", results(tmp_path)
    whole = log.read_text()
    (path.parent / LOGGED).unlink()
    if lost:
        log.unlink()
    ok(*COUNTING)
    assert log.read_text() == whole
