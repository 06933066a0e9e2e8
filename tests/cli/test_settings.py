"""Runs of one captioner with several settings are never one: in no table, page or file."""

import csv
import io
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main

CELL = ("dataset.n_images=60", "stats.resamples=20", "metric.positions=1", "logger=csv")
RUNS = (
    ("captioner=terse,faithful", "seeds=2"),
    ("captioner=terse", "encoder.order=1", "seeds=2"),
    ("captioner=terse", "seeds=3"),
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three commands' runs, and an export of their report."""
    folder = tmp_path_factory.mktemp("settings") / "outputs"
    for words in RUNS:
        assert main([*words, *CELL, f"paths.outputs={folder}"]) == 0
    assert main(["report", str(folder), "--export", str(folder / "export")]) == 0
    return folder


def lines(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


def test_a_report_and_its_exports_name_each_setting(outputs):
    (path,) = (outputs / "export" / "tables").glob("*-headlines.csv")
    heads = [name for name in lines(path)[0] if name.startswith("lic") and "ci_" not in name]
    assert sorted(heads) == [
        "lic encoder.order=1 seeds=2",
        "lic encoder.order=2 seeds=2",
        "lic encoder.order=2 seeds=3",
    ]
    contents = (outputs / "export" / "contents.md").read_text(encoding="utf-8")
    titles = [line for line in contents.splitlines() if line.startswith("## ")]
    assert len(titles) == len(set(titles))
    page = (outputs / "report.html").read_text(encoding="utf-8")
    assert "lic encoder.order=1 seeds=2, gender" in page
    assert {line["encoder.order"] for line in lines(outputs / "export" / "rows.csv")} == {"1", "2"}


def test_rows_of_every_cell_say_what_was_set(outputs):
    names = {line["settings"] for line in lines(outputs / "rows.csv")}
    assert "dataset.n_images=60 stats.resamples=20 metric.positions=1 encoder.order=1" in {
        " ".join(sorted(item.split(), key=lambda word: word.startswith("encoder")))
        for item in names
    }


def test_a_sweep_has_a_column_for_what_it_spreads(tmp_path):
    words = ["captioner=terse", "seeds=1", "encoder.order=1,2", *CELL]
    assert main([*words, f"paths.outputs={tmp_path}"]) == 0
    assert {line["encoder.order"] for line in lines(tmp_path / "table.csv")} == {"1", "2"}


def test_comparisons_of_several_settings_are_titled_by_them(outputs, capsys):
    words = ["compare", "terse", "faithful", "encoder.order=1,2", "seeds=2", *CELL]
    assert main([*words, f"paths.outputs={outputs}"]) == 0
    out = capsys.readouterr().out
    assert ("lic score encoder.order=1\n" in out, "lic encoder.order=2:" in out) == (True, True)
