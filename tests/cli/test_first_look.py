"""``--limit``, ``--quick`` and ``--dry-run``, through the door."""

import re
from pathlib import Path

import pytest

from bias_pipeline.results.store import Result, ResultStore
from tests.cli.commands import SMALL, results, rows
from tests.results.test_store import row

COUNT = ("metric=gender_error", "logger=csv", "dataset.n_images=600")


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
    assert "4 cells: 4 to run; about" in text
    assert results(tmp_path) == []


def test_a_dry_run_knows_what_is_there(run):
    run(*COUNT, "captioner=terse")
    text = run(*COUNT, "--dry-run", "captioner=terse,faithful")[1]
    assert re.search(r"terse +cached\n +faithful +to run", text)
    assert "2 cells: 1 to run, 1 cached" in text


def test_a_dry_run_says_which_data_cannot_be_read(fails, tmp_path):
    (tmp_path / "labels.csv").write_text("id,gender\n" + "".join(f"{i},male\n" for i in range(9)))
    (tmp_path / "a.json").write_text("[")
    words = ("dataset=coco", "dataset.attributes=labels.csv", "captioner=a.json")
    assert "a.json" in fails(3, *COUNT[:2], *words, "--dry-run")


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


@pytest.mark.parametrize(("cached", "message"), [(0, "30 s"), (2, "unknown")])
def test_the_time_of_a_network_is_that_of_one_like_it(run, tmp_path, cached, message):
    """Twice the captions and seeds of a cell that took 15 s; none if attackers were there."""
    keep_a_result(tmp_path / "outputs", cached)
    text = run("encoder=lstm", "seeds=2", "--limit", "240", "--dry-run")[1]
    assert re.search(rf"to run +{message}\n", text)


def test_the_largest_cell_of_the_kind_tells_the_time(run, tmp_path):
    """What a small one takes to start would be counted for every caption."""
    keep_a_result(tmp_path / "outputs")
    keep_a_result(tmp_path / "outputs", images=4)
    text = run("encoder=lstm", "seeds=2", "--limit", "240", "--dry-run")[1]
    assert re.search(r"to run +30 s\n", text)


@pytest.mark.parametrize(("key", "message"), [("positions=1", "10 s"), ("sides=[model]", "5 s")])
def test_captions_that_a_metric_passes_over_take_no_time(run, tmp_path, key, message):
    keep_a_result(tmp_path / "outputs")
    words = ("encoder=lstm", "seeds=2", f"metric.{key}", "--limit", "240", "--dry-run")
    assert re.search(rf"to run +{message}\n", run(*words)[1])
