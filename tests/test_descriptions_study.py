"""The study of descriptions: its draws, its tables, and the level that it promises."""

import pandas as pd
import pytest

from experiments.descriptions import study, tables
from experiments.descriptions.speakers import ALIKE, FAIR
from tests.corpora import REPOSITORY

ROWS = pd.read_csv(REPOSITORY / "experiments" / "descriptions" / "rows.csv")


def test_the_tables_are_those_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "HERE", tmp_path)
    tables.write_tables()
    committed = REPOSITORY / "experiments" / "descriptions" / "RESULTS.md"
    assert (tmp_path / "RESULTS.md").read_text() == committed.read_text()


def test_every_draw_is_planned_once_and_a_stopped_study_goes_on():
    planned = list(study.cases())
    assert len(planned) == len(set(planned))
    assert study.known_cases() <= set(planned)


def test_a_fair_captioner_is_accused_in_at_most_one_of_twenty_draws():
    fair = ROWS[ROWS["speaker"].isin(FAIR)]
    assert (fair["answer"] == "yes").mean() <= 0.05
    cells = fair.groupby(["speaker", "style", "n_images"])["answer"]
    assert max((answers == "yes").mean() for _, answers in cells) <= 0.09
    score = fair.groupby(["style", "n_images"])["score"].mean() * 100
    assert (score.abs() < 2.5).all()


@pytest.mark.parametrize("speaker", ALIKE)
def test_who_says_the_same_of_whom_as_annotators_is_hardly_ever_accused(speaker):
    draws = ROWS[ROWS["speaker"] == speaker]
    assert (draws["answer"] == "yes").mean() <= 0.04


@pytest.mark.parametrize(
    ("speaker", "style"), [("focus", "gpt4o"), ("focus", "llava"), ("hair", "gpt4o")]
)
def test_a_large_difference_is_noticed_in_1500_images(speaker, style):
    draws = ROWS[(ROWS["speaker"] == speaker) & (ROWS["style"] == style)]
    assert (draws[draws["n_images"] == 1500]["answer"] == "yes").mean() >= 0.9
