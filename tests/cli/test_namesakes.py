"""A/model.json and B/model.json, through the door."""

import csv
from pathlib import Path

import pytest

from bias_pipeline.api import load
from tests.coco_folder import CAPTIONS, LABELS, results, write_folder

QUICK = ("seeds=1", "stats.resamples=20", "logger=csv")
LEAKAGE = ("metric=leakage", "metric.positions=1")


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Two files of one name in two folders, the captions of one all of women."""
    women = [{**caption, "caption": "a woman " + caption["caption"]} for caption in results()]
    files = {"A/model.json": results(), "B/model.json": women}
    root = write_folder(tmp_path / "data", files)
    named = {"captions": CAPTIONS, "attributes": LABELS}
    return [
        "dataset=coco",
        *(f"dataset.{key}={root / name}" for key, name in named.items()),
        *QUICK,
    ]


def captioners(tmp_path: Path, table: str = "table.csv") -> set[str]:
    with (tmp_path / "outputs" / table).open(newline="") as file:
        return {line["captioner"] for line in csv.DictReader(file)}


def test_a_sweep_of_both_has_two_names(ok, words, tmp_path):
    printed = ok(*words, "captioner=data/A/model.json,data/B/model.json", "metric=gender_error")
    assert captioners(tmp_path) == {"A_model", "B_model"}
    assert "2 files are called model: A_model (" in printed


def test_loggers_who_see_one_run_at_a_time_name_them_by_their_paths(run, words, tmp_path):
    for name in ("A", "B"):
        run(*words, f"captioner=data/{name}/model.json", "metric=gender_error")
    assert captioners(tmp_path, "rows.csv") == {"data_A_model", "data_B_model"}


def test_a_report_of_one_metric_of_each_has_two_lines(run, ok, words, tmp_path):
    run(*words, "captioner=data/A/model.json", *LEAKAGE)
    run(*words, "captioner=data/B/model.json", "metric=gender_error")
    ok("report", "outputs", "--export", "exported")
    (table,) = (tmp_path / "exported/tables").glob("*gender-data-set-coco*.csv")
    names = [line.split(",")[0] for line in table.read_text().splitlines()[1:]]
    assert sorted(names) == ["A_model †", "B_model †"]
    page = (tmp_path / "outputs" / "report.html").read_text()
    assert "2 captioners, 2 runs" in page
    assert "2 files are called model" in page


def test_both_are_compared_by_their_names(ok, words):
    both = ("data/A/model.json", "data/B/model.json")
    assert "leakage: no verdict on A_model and B_model" in ok("compare", *both, *words, *LEAKAGE)


def test_two_files_of_one_name_in_the_captioners_folder_are_refused(ends, words, tmp_path):
    (tmp_path / "data/A/model.csv").write_text("image_id,caption\n100,a man\n")
    assert "model.csv and model.json are both captioner 'model'" in ends(
        3, *words, "dataset.captioners=data/A", "captioner=model"
    )


def test_python_names_them_as_the_table_does(run, words, tmp_path):
    pair = ("captioner=data/A/model.json,data/B/model.json", "metric=gender_error,gender_ratio")
    run(*words, *pair)
    loaded = load(tmp_path / "outputs")
    named = (
        set(loaded.frame()["captioner"]),
        {row.captioner for pair in loaded for row in pair.rows},
    )
    assert named == ({"A_model", "B_model"}, {"A_model", "B_model"})
    assert captioners(tmp_path) == captioners(tmp_path, "rows.csv") == {"A_model", "B_model"}
