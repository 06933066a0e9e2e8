"""Errors over runs in exported tables, as papers print them."""

import csv
import io
import math

import numpy as np
import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.report.exports import RUN_ERRORS, files, half_width, with_run_error
from bias_pipeline.report.page import report_of
from bias_pipeline.report.section import Section
from bias_pipeline.report.table import NumberCell, Runs, Table
from bias_pipeline.results.store import ResultStore
from tests.report.test_page import result

VALUES = {"value": 0.123, "ci_low": 0.1, "ci_high": 0.15, "seed_std": 0.02, "n_seeds": 10}


def shown_texts(number: NumberCell, error: str) -> tuple[str, str]:
    """How a number and its table's caption read."""
    section = Section("s", tables=[Table("Scores", ["who", "score"], [["sat", number]])])
    (table,) = with_run_error(section, RUN_ERRORS[error]).tables
    (cell,) = (cell for cell in table.rows[0] if isinstance(cell, NumberCell))
    return cell.text, table.caption


NUMBER = NumberCell(0.123, 0.1, 0.15, fraction=True, digits=1, mark="↑", runs=Runs(0.02, 10))


def test_a_standard_deviation_takes_the_place_of_the_interval():
    caption = "Scores. ± is the standard deviation over seeds"
    assert shown_texts(NUMBER, "seeds") == ("12.3 ± 2.0 ↑", caption)
    assert shown_texts(NumberCell(1939, digits=0), "seeds") == ("1939", "Scores")


def test_a_half_width_is_that_of_the_mean_over_runs():
    """2.262 is Student's 97.5 % point of nine degrees of freedom."""
    assert half_width(Runs(0.02, 10)) == pytest.approx(2.262 * 0.02 / 10**0.5, rel=1e-3)
    assert shown_texts(NUMBER, "interval")[0] == "12.3 ± 1.4 ↑"


def test_the_half_width_covers_the_mean_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(0.5, 0.1, (4000, 5))
    halves = [half_width(Runs(float(std), 5)) for std in draws.std(axis=1, ddof=1)]
    assert np.mean(np.abs(draws.mean(axis=1) - 0.5) <= halves) == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize("runs", [Runs(math.nan, 0), Runs(math.nan, 1)])
@pytest.mark.parametrize("error", RUN_ERRORS)
def test_a_number_without_several_runs_has_none(error, runs):
    number = NumberCell(0.123, 0.1, 0.15, fraction=True, digits=1, runs=runs)
    assert shown_texts(number, error) == ("12.3", "Scores")


def exported_files(error: str) -> dict[str, bytes]:
    report = report_of([result("sat", **VALUES), result("oscar", **VALUES)], {})
    return dict(files(report, RUN_ERRORS[error]))


@pytest.mark.parametrize(("error", "column"), [("seeds", "std"), ("interval", "ci95")])
def test_files_have_the_error_in_a_column_of_its_own(error, column):
    heads = [
        text.splitlines()[0] for path, text in exported_files(error).items() if path[-4:] == ".csv"
    ]
    assert any(f" {column}" in head.decode() for head in heads)


def test_latex_has_a_sign_for_it_and_rows_keep_their_intervals():
    files = exported_files("seeds")
    latex = "".join(text.decode() for path, text in files.items() if path[-4:] == ".tex")
    rows = csv.DictReader(io.StringIO(files["rows.csv"].decode()))
    assert r"12.3 $\pm$ 2.0" in latex
    assert "{[}10.0" not in latex
    assert {row["ci_low"] for row in rows} == {"0.1"}


def test_the_door_exports_with_it(tmp_path, capsys):
    ResultStore(tmp_path / "runs").save(result("sat", **VALUES))
    out = tmp_path / "paper"
    assert main(["report", str(tmp_path / "runs"), "--export", str(out), "--error", "seeds"]) == 0
    assert any("12.3 ± 2.0" in path.read_text("utf-8") for path in out.rglob("*.md"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["runs", "--error", "seeds"], "--error is for the tables of --export DIR"),
        (["runs", "--export", "runs"], "is the folder of the runs, and would replace its rows.csv"),
        (["runs", "--export", "runs/run-c"], "is the folder of a run"),
    ],
    ids=["an error without an export", "files of the runs", "files of a run"],
)
def test_an_export_that_would_replace_or_lacks_files_is_refused(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    ResultStore(tmp_path / "runs").save(result("c"))
    assert main(["report", *words]) == 2
    assert message in capsys.readouterr().err
