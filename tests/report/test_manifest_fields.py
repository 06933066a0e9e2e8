"""Finished cells side by side."""

from dataclasses import replace

from bias_pipeline.report.tables import latest_results
from bias_pipeline.results.rows import Result
from tests.report.test_tables import row


def run(run_id: str, captioner: str, started: str) -> Result:
    return Result(run_id, [row(run_id=run_id, captioner=captioner)], {"started": started})


def test_of_two_runs_of_a_cell_the_later_is_shown():
    shown = latest_results([run("late", "sat", "2026-01-02"), run("early", "sat", "2026-01-01")])
    assert [item.run_id for item in shown] == ["late"]


def test_runs_of_other_settings_are_all_shown():
    runs = [run("1", "sat", "2026-01-01"), run("2", "sat", "2026-01-02")]
    lines = [replace(item, settings={"encoder.order": item.run_id}) for item in runs]
    assert len(latest_results(lines)) == 2
