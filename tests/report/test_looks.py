"""Looks at the same pictures are counted, by files of captions, whatever else happens."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bias_pipeline.errors import DataError, UndecidedError, UsageError
from bias_pipeline.report.gate import Comparison
from bias_pipeline.report.looks import FILE, LookCount, counted_look
from bias_pipeline.results.rows import Result, Row

ROW = Row(
    run_id="x",
    metric="gender_error",
    metric_version=3,
    part="score",
    attribute="gender",
    dataset="coco",
    captioner="new",
    encoder="",
    head="",
    masking="",
    alignment="",
    scoring="",
    value=0.1,
    unit="fraction",
    seed_std=0.0,
    ci_low=0.0,
    ci_high=0.2,
    p_value=0.5,
    neutral_rate=0.0,
    n_images=10,
    n_seeds=0,
    coverage=1.0,
    seeds=(0,),
)


def comparison(captions: str, pictures: str = "p", metrics: Sequence[str] = ("a",)) -> Comparison:
    def result(captioner: str, digest: str, metric: str) -> Result:
        corpus = {"digest": digest, "reference": pictures}
        row = replace(ROW, captioner=captioner, metric=metric)
        return Result(f"{captioner}-{metric}", [row], {"corpus": corpus})

    first = [result("new", captions, metric) for metric in metrics]
    return Comparison([], [], results=[*first, result("old", "base", metrics[0])])


def test_versions_on_the_same_pictures_are_counted(tmp_path: Path):
    numbers = [counted_look(tmp_path, comparison(name)).number for name in "abcabd"]
    assert numbers == [1, 2, 3, 1, 2, 4]  # a repeated file is no new look


def test_several_metrics_of_a_version_are_one_look(tmp_path: Path):
    assert counted_look(tmp_path, comparison("a", metrics=("a", "b"))).number == 1
    assert counted_look(tmp_path, comparison("b", metrics=("a", "b"))).number == 2
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert [line["metric"] for line in lines] == ["a", "b"] * 2
    assert lines[0].keys() == {
        *("time", "pictures", "baseline", "metric", "attribute", "captions", "verdict")
    }


def test_new_pictures_begin_a_new_count(tmp_path: Path):
    for name in "abcdef":
        counted_look(tmp_path, comparison(name))
    again = counted_look(tmp_path, comparison("g", pictures="q"))
    assert (again.number, again.n_pictures) == (1, 2)
    assert "equally fair, 0.05 gates would fail by chance" in again.sentences()[0]


def test_the_sixth_look_decides_nothing():
    LookCount(5, 1).check(5)
    with pytest.raises(UndecidedError, match=r"look 6 on these pictures.*new pictures"):
        LookCount(6, 1).check(5)
    assert LookCount(12, 1).sentences() == [
        "This is look 12 on these pictures: a pass found by retrying is no evidence."
    ]
    assert LookCount(1, 1).sentences() == []


@pytest.mark.parametrize("text", ["not json\n", "{}\n", '{"time": "x"}\n', "[1]\n", "half a line"])
def test_a_folder_that_another_program_writes_is_refused(tmp_path: Path, text: str):
    counted_look(tmp_path, comparison("a"))
    with (tmp_path / FILE).open("a") as file:
        file.write(text)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(DataError, match=r"line 2.*written by compare"):
        counted_look(tmp_path, comparison("b"))
    assert (tmp_path / FILE).read_bytes() == before


def test_other_files_of_the_folder_do_not_matter(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("x")
    assert counted_look(tmp_path, comparison("a")).number == 1


def test_a_file_is_no_folder(tmp_path: Path):
    (tmp_path / "looks").write_text("")
    with pytest.raises(UsageError, match="is a file; name a folder"):
        counted_look(tmp_path / "looks", comparison("a"))


def test_a_clock_that_goes_back_is_noted_and_changes_no_count(tmp_path: Path, capsys):
    for name in "ab":
        counted_look(tmp_path, comparison(name))
    text = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text(text.replace('"time": "2', '"time": "3'))
    assert counted_look(tmp_path, comparison("c")).number == 3
    assert "looks count in the order of their lines" in capsys.readouterr().err
