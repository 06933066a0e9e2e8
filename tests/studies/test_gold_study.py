"""The committed rows of the study on gold labels, and what its README concludes from them."""

import numpy as np
import pandas as pd
import pytest

from bias_pipeline.run import compose
from experiments.gold.study import DRAWS, LABELS, NUMBERS, ROWS, by_machine, cell


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.read_csv(ROWS)


def test_every_captioner_number_and_amount_of_labels_has_a_row(rows: pd.DataFrame):
    numbers = sum(map(len, NUMBERS.values()))
    assert len(rows) == 3 * numbers * len(LABELS)
    assert set(rows["labels"]) == set(LABELS)
    assert (rows["draws"] == DRAWS).all()


def test_intervals_contain_the_number_of_people_as_often_as_they_should(rows: pd.DataFrame):
    shares = rows[rows["labels"] >= 400].groupby("metric")[["contain", "draws"]].sum()
    assert (shares["contain"] / shares["draws"]).min() > 0.92
    assert rows.loc[rows["labels"] >= 400, "contain"].min() >= 12


def test_machine_labels_alone_mislead_and_corrections_are_narrower_than_gold_labels_alone(
    rows: pd.DataFrame,
):
    wrong = rows[(rows["metric"] == "gender_error") & (rows["captioner"] == "oscar")]
    assert (wrong["machine"] - wrong["people"] > 3 * wrong["machine_half_width"]).all()
    known = rows[(rows["labels"] >= 400) & rows["half_width_alone"].notna()]
    assert (known["half_width"] < known["half_width_alone"]).mean() > 0.9
    leaks = known[(known["metric"] == "lic") & (known["part"] == "score")]
    assert (leaks["half_width"] < 0.75 * leaks["half_width_alone"]).all()


def test_a_cell_compares_machine_corrected_and_true_numbers():
    composed = compose.cell(["metric=gender_error", "dataset.n_images=1500", "stats.resamples=40"])
    people, metric = composed.corpus(), composed.build("metric")
    lines = list(cell("faithful", "gender_error", metric, people, by_machine(people), draws=1))
    assert [line["labels"] for line in lines] == list(np.repeat(LABELS, 3))
    assert all(line["half_width"] > 0 for line in lines)
