"""``--limit``, ``--quick`` and ``--dry-run``, through the door."""

import re
from pathlib import Path

import pytest

from bias_pipeline.errors import AbsentModelError
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import planning
from bias_pipeline.run.compose import Cell
from bias_pipeline.run.launch import parse_sweep
from tests.cli.commands import SMALL, results, rows
from tests.results.test_store import row

COUNT = ("metric=gender_error", "logger=csv", "dataset.n_images=600", "stats.resamples=50")


def test_a_limited_result_is_marked_everywhere(ok, tmp_path):
    text = ok(*COUNT, "--limit", "300")
    assert "dataset scenes (limit 300)" in text
    assert re.search("limit=300: 300 of the 5[0-9]{2} labelled images", text)
    (path,) = results(tmp_path)
    assert "limit_300" in path.parent.name
    assert {row["dataset"] for row in rows(path)} == {"scenes (limit 300)"}


def test_a_limit_and_the_whole_are_two_results(run, tmp_path):
    run(*COUNT, "limit=300,400,null")
    assert len(results(tmp_path)) == 3


def test_a_quick_run_is_small(run, tmp_path):
    run("--quick", "stats.resamples=50", "logger=csv")
    (path,) = results(tmp_path)
    assert {(row["dataset"], row["n_seeds"]) for row in rows(path) if row["part"] == "score"} == {
        ("scenes (limit 500)", 2)
    }


def test_a_limit_without_its_number_is_a_usage_error(run):
    assert run("metric=lic", "--limit") == (
        2,
        "error: --limit needs a number of images, as --limit 300\n",
    )


def test_a_dry_run_tells_what_would_run_and_writes_nothing(run, tmp_path):
    code, text = run(*SMALL, "--dry-run", "metric=lic,gender_error", "captioner=terse,faithful")
    assert (code, len(re.findall(r"to run +1 s", text))) == (0, 4)
    assert "4 jobs: 4 to run; about" in text
    assert results(tmp_path) == []


def test_a_dry_run_knows_what_is_there(run):
    run(*COUNT, "captioner=terse")
    text = run(*COUNT, "--dry-run", "captioner=terse,faithful")[1]
    assert re.search(r"terse +cached\n +faithful +to run", text)
    assert "2 jobs: 1 to run, 1 cached" in text


def test_a_dry_run_of_all_metrics_calls_those_skipped_that_the_run_skips(ok, monkeypatch):
    original = Cell.require

    def require(cell: Cell) -> None:
        if cell.metric.name == "lic":
            raise AbsentModelError("no weights")
        original(cell)

    monkeypatch.setattr(Cell, "require", require)
    text = ok("metric=all", "captioner=terse", "dataset.n_images=10", "logger=csv", "--dry-run")
    assert re.search(r"\blic +skipped", text)
    assert " fails" not in text


def test_a_dry_run_says_which_data_cannot_be_read(ends, tmp_path):
    (tmp_path / "labels.csv").write_text("id,gender\n" + "".join(f"{i},male\n" for i in range(9)))
    (tmp_path / "a.json").write_text("[")
    words = ("dataset=coco", "dataset.attributes=labels.csv", "captioner=a.json")
    assert "a.json" in ends(3, *COUNT[:2], *words, "--dry-run")


def keep_a_result(outputs: Path, cached: int = 0, images: int = 120) -> None:
    """LIC of an LSTM, five human captions an image, which took 15 s."""
    name = f"lic-lstm-{images}"
    manifest = {
        "corpus": {
            "n_images": images,
            "n_model_captions": images,
            "n_human_captions": 5 * images,
        },
        "config": {"positions": 5, "sides": ["model", "human"]},
        "training": {"trained": 12 - cached, "cached": cached},
        "seconds": 15.0,
    }
    lstm = row(name, metric="lic", encoder="lstm", n_seeds=2)
    ResultStore(outputs).save(Result(name, [lstm], manifest))


@pytest.mark.parametrize(
    ("results_there", "words", "time"),
    [
        ([{}], (), "30 s"),  # twice the captions and seeds of a cell that took 15 s
        ([{"cached": 2}], (), "unknown"),  # attackers were there
        ([{}, {"images": 4}], (), "30 s"),  # its start would be counted for every caption
        ([{}], ("metric.positions=1",), "10 s"),
        ([{}], ("metric.sides=[model]",), "5 s"),
    ],
    ids=["one like it", "not of a cached one", "the largest", "positions", "sides"],
)
def test_the_time_of_a_network_is_that_of_one_like_it(ok, tmp_path, results_there, words, time):
    for settings in results_there:
        keep_a_result(tmp_path / "outputs", **settings)
    text = ok("encoder=lstm", "seeds=2", *words, "--limit", "240", "--dry-run")
    assert re.search(rf"to run +{time}\n", text)


def test_long_work_says_its_metrics_and_seconds_before_it_starts(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "_SHORT_S", 0.01)
    sweep = parse_sweep([*COUNT[1:], "metric=lic,gender_error", f"paths.outputs={tmp_path}/runs"])
    planning.announce(sweep)
    message = capfd.readouterr().err
    assert re.fullmatch(
        r"2 jobs of lic, gender_error, 5 seeds: about \d+ s, one after another\n", message
    )


def test_short_work_and_finished_work_say_nothing_before(capfd, ok, monkeypatch):
    ok(*COUNT)
    monkeypatch.setattr(planning, "_SHORT_S", 0.0)
    planning.announce(parse_sweep(COUNT))
    monkeypatch.undo()
    planning.announce(parse_sweep([*COUNT, "captioner=terse"]))
    assert capfd.readouterr().err == ""


def test_where_nothing_is_known_of_a_network_that_is_said(capfd, tmp_path):
    planning.announce(parse_sweep(["encoder=lstm", "logger=csv", f"paths.outputs={tmp_path}/runs"]))
    message = capfd.readouterr().err
    assert (
        message
        == "1 job of lic, 5 seeds: no job with lstm has run here yet, so its time is unknown\n"
    )
