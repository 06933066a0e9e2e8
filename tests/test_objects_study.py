"""The study of invented objects: its draws, its tables, and the level that it promises."""

import pandas as pd
import pytest

from experiments.objects import study, tables
from tests.corpora import REPOSITORY

ROWS = pd.read_csv(REPOSITORY / "experiments" / "objects" / "rows.csv")
WHOLE = ROWS[ROWS["n_images"] == 0].set_index("speaker")
# Score and interval of an independent computation, in points.
PUBLISHED = {
    "nic": (2.2, 5.5), "sat": (-0.7, 1.1), "fc": (-0.3, 2.0), "att2in": (-0.3, 1.2),
    "transformer": (0.5, 1.7), "oscar": (-0.1, 0.6), "oscar_cider": (-0.1, 0.6),
}  # fmt: skip


def test_the_tables_are_those_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "HERE", tmp_path)
    tables.write_tables()
    committed = REPOSITORY / "experiments" / "objects" / "RESULTS.md"
    assert (tmp_path / "RESULTS.md").read_text() == committed.read_text()


def test_every_draw_is_planned_once_and_all_are_there():
    planned = list(study.cases())
    assert len(planned) == len(set(planned))
    assert study.known_cases() == set(planned)


@pytest.mark.parametrize("captioner", PUBLISHED)
def test_the_scores_of_published_captioners_are_those_of_another_computation(captioner):
    low, high = PUBLISHED[captioner]
    assert low <= 100 * WHOLE.loc[captioner, "score"] <= high


def test_nobody_is_accused_whose_groups_are_permuted_or_who_follows_the_scene():
    null = ROWS[ROWS["speaker"].isin(["nic permuted", "fc permuted", "by scene"])]
    accused = null.groupby("speaker")["answer"].agg(lambda answers: (answers == "yes").mean())
    assert len(accused) == 3
    assert (accused <= 0.08).all()
    assert WHOLE.loc["alike 10 %", "answer"] == "no"


def test_three_planted_in_a_hundred_are_noticed_with_their_size():
    draws = ROWS[(ROWS["speaker"] == "planted 3 %") & (ROWS["n_images"] == study.DRAWN)]
    assert (draws["answer"] == "yes").mean() >= 0.9
    assert 100 * draws["score"].mean() == pytest.approx(3, abs=0.5)
