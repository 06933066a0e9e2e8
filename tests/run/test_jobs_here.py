"""Jobs of this process leave what Hydra's launcher would."""

import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bias_pipeline.errors import UsageError
from bias_pipeline.report.page import write_page
from bias_pipeline.results.parquet import DRAWS, EXCLUSIVE
from bias_pipeline.results.store import RESULT
from bias_pipeline.run import launch
from bias_pipeline.run.compose import cell
from bias_pipeline.run.job import OUTCOME, done_in, outcome_in, record, run_recorded
from tests.cli.commands import own_choice

METRICS = ("gender_error", "group_accuracy", "cooccurrence")
SMALL = ("metric=gender_error", "dataset.n_images=50", "stats.resamples=20", "logger=csv")
SWEPT = ("captioner=faithful,'terse'", "seeds=[1, 2]", "hydra.verbose=[bias_pipeline.x]")
ODD = (
    "+a={one: '1', truth: 'yes', hex: '0x1F', e: '1e3', nothing: 'null', list: [true, 1, 'a: b']}",
    "+long='" + "é — word " * 40 + "'",
    '+lines="a\n b\n"',
    "+reference=${seeds}",
)


def files(folder: Path) -> dict[str, object]:
    """What is written for the jobs of a command, without the name of the command."""
    name = re.compile(rf"{re.escape(str(folder))}|(?<=\.hydra_jobs/)[\w-]+")
    return {
        name.sub("X", str(path)): yaml.safe_load(name.sub("X", path.read_text("utf-8")))
        for path in folder.glob("outputs/.hydra_jobs/**/*.yaml")
    }


def run_by_hydra(words: list[str]) -> None:
    """Run jobs that do nothing by Hydra's own launcher, which writes their files."""
    sweep = launch.parse_sweep(words)
    several = sweep.options.multirun or len(sweep) > 1
    with launch._hydra_instance(sweep.loader) as hydra:
        run = hydra.multirun if several else hydra.run
        run("config", lambda config: None, [*sweep.overrides])


@pytest.mark.parametrize(
    "words", [(), ODD, SWEPT, ("--multirun",)], ids=["one", "odd values", "sweep", "sweep of one"]
)
def test_the_files_of_jobs_are_those_of_hydra(tmp_path, monkeypatch, words):
    written = []
    for run in (run_by_hydra, lambda words: launch.run(words)):
        (folder := tmp_path / str(len(written))).mkdir()
        monkeypatch.chdir(folder)
        run([*SMALL, *words])
        written.append(files(folder))
    assert len(written[0]) >= 3
    assert written[0] == written[1]


def test_a_value_that_a_sweep_names_twice_is_run_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished = launch.run([*SMALL, "captioner=faithful,'terse',faithful"])
    assert [r.rows[0].captioner for r in finished.results] == ["faithful", "terse"]


def test_jobs_that_are_one_run_have_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    launch.run([*SMALL, "captioner=faithful", "alignment=constant,matched"])  # not used
    table = (tmp_path / "outputs" / "table.csv").read_text()
    lines = [line for line in capsys.readouterr().out.splitlines() if "faithful  " in line]
    assert (len(lines), table.count(",score,")) == (1, 1)


def test_values_in_hydras_sweeper_are_refused(tmp_path):
    """Nothing would run them: an experiment has them under `sweep:`."""
    text = yaml.safe_dump({"hydra": {"sweeper": {"params": {"seeds": "1,2"}}}})
    mine = own_choice(tmp_path, "experiment", f"# @package _global_\n{text}")
    with pytest.raises(UsageError, match="write key=a,b, or list it under sweep:"):
        launch.parse_sweep([*SMALL, mine, "experiment=own"])
    with pytest.raises(UsageError, match="array_parallelism"):
        launch.parse_sweep([*SMALL, "hydra.sweeper.max_batch_size=1"])


def test_a_key_of_the_files_that_are_swept_can_be_set(tmp_path, monkeypatch):
    """The usual metric has no `words`."""
    monkeypatch.chdir(tmp_path)
    swept = ("metric=gender_error,group_accuracy", "metric.words=hendricks")
    assert launch.run([*SMALL[1:], *swept]).exit_code == 0


def test_the_log_of_a_job_is_closed_when_it_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert launch.run([*SMALL, "attribute=ethnicity"]).exit_code == 2
    opened = [one for one in logging.getLogger().handlers if isinstance(one, logging.FileHandler)]
    assert ([*tmp_path.glob("outputs/.hydra_jobs/*/*.log")] != [], opened) == (True, [])


def test_a_job_that_slurm_takes_back_is_no_failed_cell(tmp_path, monkeypatch):
    end = sys.exit
    monkeypatch.setattr("sys.exit", lambda code: end(code))  # as wandb does
    handler: dict[str, Any] = {"__name__": "submitit.core.job_environment"}
    exec("import sys\ndef end():\n    sys.exit(-1)\n", handler)
    with pytest.raises(SystemExit):
        run_recorded(handler["end"], tmp_path, [], {})
    assert not done_in(tmp_path)


def test_what_a_process_made_is_not_read_back(tmp_path, monkeypatch):
    """Neither to know what became of jobs, nor for checksums, nor for the page."""
    monkeypatch.chdir(tmp_path)
    read, noting = set(), False

    def note(event: str, details: tuple[Any, ...]) -> None:
        if event == "open" and noting and details[1] == "r":
            read.add(Path(str(details[0])).name)

    sys.addaudithook(note)  # which cannot be removed
    words = [f"dataset.n_images=60 metric={m} logger=csv".split() for m in METRICS]
    noting = True
    finished = launch.run_cells([cell(one) for one in words])
    write_page(tmp_path / "outputs", tmp_path / "page.html", made=finished.made)
    noting = False
    assert len(finished.made) == len(METRICS)
    assert read & {OUTCOME, RESULT, EXCLUSIVE, DRAWS, "rows.csv", "misnamed.csv"} == set()
    known = (tmp_path / "page.html").read_text()
    write_page(tmp_path / "outputs", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == known


def test_an_outcome_that_another_process_wrote_is_read(tmp_path):
    record(tmp_path, {"status": "failed"})
    assert not done_in(tmp_path)
    (tmp_path / "new").write_text('{"status": "done"}')
    (tmp_path / "new").replace(tmp_path / OUTCOME)
    assert done_in(tmp_path)
    (tmp_path / OUTCOME).unlink()
    assert outcome_in(tmp_path) is None
