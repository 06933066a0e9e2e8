"""What the studies of ``experiments/`` share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest

from experiments.study import attempted, beyond_chance, rank_agreement
from tests.corpora import REPOSITORY

STUDIES = REPOSITORY / "experiments"
SMALL = ["dataset.n_images=60", "metric=gender_error,cooccurrence", "logger=csv"]


def test_a_sweep_goes_on_without_the_cells_that_the_data_do_not_permit(tmp_path: Path) -> None:
    rows, refused = attempted("both", tmp_path, *SMALL)
    assert set(rows["metric"]) == {"gender_error"}
    assert refused["metric"].tolist() == ["cooccurrence"]
    assert "min_support" in refused["reason"].iloc[0]


def test_a_sweep_that_fails_for_another_reason_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        attempted("both", tmp_path, *SMALL, "captioner=absent,faithful")


def test_rank_agreement_is_corrected_for_the_number_of_pairs() -> None:
    table = pd.DataFrame({"one": range(7), "two": range(7), "three": [3, 1, 6, 0, 5, 2, 4]})
    found = rank_agreement(table)
    assert found.loc["one and two", "Kendall"] == 1
    assert found.loc["one and two", "p (Holm)"] == pytest.approx(3 * found.loc["one and two", "p"])
    assert list(beyond_chance(found).index) == ["one and two"]


def headlines(study: str) -> pd.Series:
    """Value by metric, part and captioner, for gender and the default settings."""
    rows = pd.read_csv(STUDIES / study / "rows.csv", keep_default_na=False, na_values=[""])
    own = rows[(rows["attribute"] == "gender") & rows["part"].isin(["score", "a_to_t", "t_to_a"])]
    if "study" in own:
        own = own[own["study"].isin(["gender", "attackers", "dbac", "dpa", "counting"])]
    return own.set_index(["metric", "part", "captioner"])["value"]


@pytest.mark.parametrize("study", ["lic_reproduction", "metric_comparison"])
def test_studies_of_the_same_cells_have_the_same_numbers(study: str) -> None:
    """Within what another version of the attackers may round off."""
    both = pd.concat([headlines("leaderboard"), headlines(study)], axis=1, join="inner")
    assert len(both) >= 7
    assert both.iloc[:, 0].tolist() == pytest.approx(both.iloc[:, 1].tolist(), abs=1e-5)
