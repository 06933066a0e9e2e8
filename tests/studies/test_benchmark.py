"""The first rows of the benchmark: all files have one, and today's program would write the same."""

import pandas as pd
import pytest

from bias_pipeline.report.benchmark import METRICS, VERSION
from experiments.benchmark import study
from experiments.study import read_rows
from tests.corpora import DATA, REPOSITORY

STUDY = REPOSITORY / "experiments" / "benchmark"
LINES = study.read_lines(read_rows(STUDY / "rows.csv"))


def test_the_tables_are_those_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "HERE", tmp_path)
    monkeypatch.setattr(study, "rows_of", lambda *_: LINES)
    study.main([])
    assert (tmp_path / "RESULTS.md").read_text() == (STUDY / "RESULTS.md").read_text()


def test_rows_are_of_today_s_list():
    assert set(LINES["version"]) == {VERSION}


def test_an_absent_number_has_its_reason():
    absent = LINES[LINES["value"].isna()]
    assert (absent["reason"] != "").all()


def test_annotators_are_accused_of_nothing():
    annotators = LINES[LINES["captioner"].isin(study.ANNOTATORS)]
    assert len(annotators) == len(study.ANNOTATORS) * len(METRICS)
    assert not (annotators["answer"] == "yes").any()


@pytest.mark.skipif(not (DATA / "vlm").is_dir(), reason="real captions are absent")
def test_every_file_of_captions_has_a_row():
    names = {path.stem for kind in ("captioners", "vlm") for path in (DATA / kind).glob("*.json")}
    assert set(LINES["captioner"]) == names - {"meta"} | {*study.ANNOTATORS}


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "vlm").is_dir(), reason="real captions are absent")
def test_the_command_writes_the_committed_row(tmp_path):
    coco = DATA / "coco"
    people = coco / "annotations" / "captions_val2014.json"
    row = study._score(DATA / "vlm" / "between_knight.json", people, coco, tmp_path)
    made = pd.DataFrame(study.lines_of(row)).set_index("question")
    committed = LINES[LINES["captioner"] == "between_knight"].set_index("question")
    for column in ("value", "ci_low", "ci_high", "coverage"):
        pd.testing.assert_series_equal(made[column], committed[column], rtol=1e-4, atol=1e-6)
    assert [*made["reference_sha256"]] == [*committed["reference_sha256"]]
