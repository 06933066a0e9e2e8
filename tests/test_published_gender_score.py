"""The printed tables of the Gender Score, as the repository has them, against themselves."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from bias_pipeline.metrics.functional.gender_score import bias_ratio, ratio_to_neutral
from experiments.study import published


def cut(values: object) -> list[float]:
    """Two decimals, the rest cut off, as the paper prints; a hair above for what is exact."""
    return [math.floor(number * 100 + 1e-6) / 100 for number in np.asarray(values, float)]


def hits(computed: object, printed: pd.Series) -> int:
    return sum(ours == theirs for ours, theirs in zip(cut(computed), printed, strict=True))


def pair(table: pd.DataFrame, first: str, second: str) -> np.ndarray:
    return table[[first, second]].to_numpy(float)


@pytest.mark.parametrize("data", ["coco", "flickr30k"])
def test_table_2_follows_from_its_averages(data: str) -> None:
    table = published("gender_score", "2", "")
    means = pair(table, f"{data}_distance_man", f"{data}_distance_woman")
    assert hits(bias_ratio(means), table[f"{data}_to_m"]) == 7
    assert hits(bias_ratio(means, 1), table[f"{data}_to_w"]) == 7


def test_table_3_follows_from_its_averages_but_for_one_cell() -> None:
    result = 0
    for block in ("gender_object_distance", "gender_score"):
        table = published("gender_score", "3", block)
        man, woman, person = (table[name].to_numpy(float) for name in ("man", "woman", "person"))
        result += hits(ratio_to_neutral(man, person), table["ratio_m"])
        result += hits(ratio_to_neutral(woman, person), table["ratio_w"])
        result += hits(bias_ratio(pair(table, "man", "woman")), table["to_m"])
    assert result == 41


@pytest.mark.parametrize("block", ["object_gender_co_occ", "estimation"])
def test_table_5_follows_from_its_counts(block: str) -> None:
    table = published("gender_score", "5", block)
    counts = pair(table, "n_m", "n_w")
    assert hits(bias_ratio(counts), table["to_m"]) == 7
    assert hits(bias_ratio(counts, 1), table["to_w"]) == 7


def test_every_cell_of_table_4_is_there() -> None:
    for block in ("object_gender_co_occ", "gender_score"):
        assert published("gender_score", "4", block).filter(regex=r"^to_[mw]_\w+$").size >= 7 * 8
