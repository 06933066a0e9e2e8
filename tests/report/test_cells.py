"""Finished cells side by side."""

from __future__ import annotations

from bias_pipeline.report.cells import latest, passed_over
from bias_pipeline.results.store import Result
from tests.report.test_tables import row


def run(run_id: str, captioner: str, started: str) -> Result:
    return Result(run_id, [row(run_id=run_id, captioner=captioner)], {"started": started})


def test_of_two_runs_of_a_cell_the_later_is_shown() -> None:
    found = latest([run("late", "sat", "2026-01-02"), run("early", "sat", "2026-01-01")])
    assert [own.run_id for own in found] == ["late"]


def test_runs_of_a_cell_with_other_settings_are_told() -> None:
    runs = [run("1", "sat", "2026-01-01"), run("2", "sat", "2026-01-02")]
    assert passed_over(runs) == []
    other = Result("3", runs[0].rows, {"started": "2026-01-03", "config": {"labels": "each"}})
    assert passed_over([*runs, other]) == ["x"]
