"""The printed tables that the repository has: as printed, and against themselves."""

import csv
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bias_pipeline.language.formulas import bias_ratio, ratio_to_neutral
from experiments.study import printed_table
from tests.corpora import DATA, REPOSITORY

PUBLISHED = REPOSITORY / "experiments" / "published"
SOURCES = DATA.parent


def lines_of(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        pytest.skip(f"no published tables at {path}")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def printed_lines(paper: str) -> Iterator[list[str]]:
    """The lines of a paper's text, cut at tabs, as its tables are."""
    path = SOURCES / "papers" / f"{paper}.txt"
    if not path.is_file():
        pytest.skip(f"no text of the paper at {path}")
    with path.open(encoding="utf-8") as file:
        yield from (line.rstrip("\n").split("\t") for line in file)


@pytest.mark.parametrize("paper", ["relic", "dbac", "imagecaptioner2"])
def test_published_cells_are_as_printed(paper):
    keys = ("table", "part", "row", "column", "value")
    source = lines_of(SOURCES / "oracles" / "published_tables.csv")
    printed = {tuple(x[k] for k in keys) for x in source if x["paper"] == paper}
    ours = [tuple(x[k] for k in keys) for x in lines_of(PUBLISHED / f"{paper}.csv")]
    tables = {cells[0] for cells in printed}
    assert {cells for cells in ours if cells[0] in tables} - printed == set()


def test_the_gender_scores_cells_are_as_printed():
    """By table, row and value: the source names columns and parts otherwise."""

    def cells(lines: list[dict[str, str]]) -> Counter[tuple[str, ...]]:
        return Counter((x["table"], x["row"].replace("_", ""), x["value"]) for x in lines)

    source = lines_of(SOURCES / "oracles" / "published_tables.csv")
    printed = cells([x for x in source if x["paper"] == "gender_score"])
    ours = cells([x for x in lines_of(PUBLISHED / "gender_score.csv") if x["table"] != "1"])
    assert ours - printed == Counter()


def test_the_marks_of_imagecaptioner2s_table_1_are_as_printed():
    table = printed_table("imagecaptioner2", "1", "").filter(regex=r"(?<!_std)$")
    named = {name.replace("_", " "): name for name in table.columns}
    rows = {
        named[key]: [float(cell == "✓") for cell in cells]
        for name, *cells in printed_lines("imagecaptioner2")
        if (key := name.lower().replace("-", " ")) in named and len(cells) == len(table)
    }
    assert table.to_dict("list") == rows


def test_the_words_of_the_gender_scores_table_1_are_as_printed():
    lines = list(printed_lines("gender_score"))
    start = next(i for i, line in enumerate(lines) if line[0].startswith("GloVe Gender Dist"))
    printed = lines[start + 2 : start + 7]
    nouns = ("person", "man", "woman")
    for first, part in ((0, "glove"), (3, "gn_glove")):
        table = printed_table("gender_score", "1", part)
        for column, noun in enumerate(nouns, first):
            words = table[noun].dropna().sort_values()
            assert words.index.tolist() == [line[column] for line in printed]
            assert words.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("version", ["V1", "V2"])
@pytest.mark.parametrize("metric", ["LIC", "OURS"])
def test_amplification_in_imagecaptioner2s_table_7_is_model_minus_data(metric, version):
    table = printed_table("imagecaptioner2", "7", f"{metric}_{version}")
    assert (table["m"] - table["d"]).round(2).tolist() == table["amp"].tolist()


@pytest.mark.parametrize("table", ["7", "8a", "8b", "16", "17a", "17b"])
def test_each_table_of_substitution_has_13_captioners_and_their_average(table):
    cells = printed_table("dbac", table, "").filter(
        regex=r"^(constant|glove|fasttext)(_increase)?$"
    )
    assert cells.shape == (14, 5)
    assert "average" in cells.index


def cut(values: object) -> list[float]:
    """Two decimals, the rest cut off, as the paper prints; a hair above for what is exact."""
    return [math.floor(number * 100 + 1e-6) / 100 for number in np.asarray(values, float)]


def hits(computed: object, printed: pd.Series) -> int:
    return sum(ours == theirs for ours, theirs in zip(cut(computed), printed, strict=True))


def pair(table: pd.DataFrame, first: str, second: str) -> np.ndarray:
    return table[[first, second]].to_numpy(float)


@pytest.mark.parametrize("data", ["coco", "flickr30k"])
def test_table_2_follows_from_its_averages(data):
    table = printed_table("gender_score", "2", "")
    means = pair(table, f"{data}_distance_man", f"{data}_distance_woman")
    assert hits(bias_ratio(means), table[f"{data}_to_m"]) == 7
    assert hits(bias_ratio(means, 1), table[f"{data}_to_w"]) == 7


def test_table_3_follows_from_its_averages_but_for_one_cell():
    result = 0
    for block in ("gender_object_distance", "gender_score"):
        table = printed_table("gender_score", "3", block)
        man, woman, person = (table[name].to_numpy(float) for name in ("man", "woman", "person"))
        result += hits(ratio_to_neutral(man, person), table["ratio_m"])
        result += hits(ratio_to_neutral(woman, person), table["ratio_w"])
        result += hits(bias_ratio(pair(table, "man", "woman")), table["to_m"])
    assert result == 41


@pytest.mark.parametrize("block", ["object_gender_co_occ", "estimation"])
def test_table_5_follows_from_its_counts(block):
    table = printed_table("gender_score", "5", block)
    counts = pair(table, "n_m", "n_w")
    assert hits(bias_ratio(counts), table["to_m"]) == 7
    assert hits(bias_ratio(counts, 1), table["to_w"]) == 7


def test_every_cell_of_table_4_is_there():
    for block in ("object_gender_co_occ", "gender_score"):
        assert (
            printed_table("gender_score", "4", block).filter(regex=r"^to_[mw]_\w+$").size >= 7 * 8
        )
