"""What the studies of ``experiments/`` share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest

from experiments.study import attempted, beyond_chance, rank_agreement

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
