"""Reports and trackers show corrected numbers beside those by machine labels and by gold labels."""

from functools import cache

import pytest

from bias_pipeline.report.corrected import correction_sections, correction_sentences
from bias_pipeline.report.table import NumberCell
from bias_pipeline.results.rows import Result
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.run.loggers import WandbLogger
from tests.machine_labels import drawn_rows, gold_labels, with_errors


@cache
def corrected_result() -> Result:
    cell = compose.cell(["metric=gender_error", "dataset.n_images=1200", "stats.resamples=40"])
    corpus, rows = cell.corpus(), drawn_rows(cell.corpus(), 500)
    gold = gold_labels(corpus, rows)
    machine = with_errors(corpus, (0.03, 0.1))
    return run_cell(machine, cell.build("metric"), [0], run_id="x", gold=gold)


def test_a_report_has_each_headline_before_and_after_its_correction():
    result = corrected_result()
    values = {row.part: row.value for row in result.rows}
    (section,) = correction_sections([result])
    lines = {line[0]: line[1:] for line in section.tables[0].rows}
    before, after, alone, worth, n_gold = lines[f"{result.rows[0].captioner}: gender_error score"]
    assert (before.value, after.value) == (values["score:machine"], values["score"])
    assert (alone.value, n_gold.value) == (values["score:gold"], 500)
    assert worth.value > 0
    assert any("group:female" in name for name in lines)


def test_a_screen_has_the_machines_and_golds_numbers_beside_the_corrected_one():
    result = corrected_result()
    rows = {row.part: NumberCell.of_row(row).text for row in result.rows}
    (sentence,) = correction_sentences([result])
    assert sentence.startswith(
        f"Gold labels correct gender_error (machine {rows['score:machine']}, corrected "
        f"{rows['score']}, gold alone {rows['score:gold']}, worth "
    )


def test_a_tracker_has_each_headline_before_and_after_its_correction():
    result = corrected_result()
    summary = WandbLogger("unused").content(result)["summary"]
    values = {row.part: row.value for row in result.rows}
    for part in ("score", "score:machine", "score:gold", "named"):
        assert summary[part] == pytest.approx(values[part])
    assert summary["score/worth"] > 0
