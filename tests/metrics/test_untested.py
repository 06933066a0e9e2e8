"""Headlines that human captions move too have no p and no arrow, or those of people."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.report.tables import pointing
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell

UNTESTED = [
    ("dpa", "a_to_t"),
    ("ba_directional", "a_to_t"),
    ("ba_directional", "t_to_a"),
    ("multi_directional", "t_to_a"),
]


def score_metric(metric: str, people: bool = True) -> Result:
    cell = compose.cell([f"metric={metric}", "dataset.n_images=400", "stats.resamples=100"])
    corpus: Corpus = cell.corpus()
    if not people:
        corpus = replace(corpus, human=Captions.from_texts([]))
    return run_cell(corpus, cell.build("metric"), (0, 12), run_id="x")


def row(result: Result, part: str) -> Row:
    return next(row_of_part for row_of_part in result.rows if row_of_part.part == part)


@pytest.mark.parametrize(("metric", "part"), UNTESTED)
def test_a_number_that_people_move_has_no_p_and_no_arrow(metric, part):
    result = score_metric(metric)
    headline = row(result, part)
    assert headline.p_value is None or math.isnan(headline.p_value)
    assert pointing(headline, result) == ""


def test_the_ratio_is_tested_against_peoples_captions():
    result = score_metric("gender_ratio")
    increase = row(result, "captions:increase")
    p_value = row(result, "score").p_value
    assert p_value is not None
    assert (p_value < 0.05) == (increase.ci_low > 0 or increase.ci_high < 0)
    assert pointing(row(result, "score"), result) == ""


def test_a_table_says_what_the_p_of_the_ratio_compares():
    described = score_metric("gender_ratio").manifest["metric"]["direction"]
    assert "the p value compares captions with human captions" in described


def test_without_peoples_captions_the_ratio_has_no_p():
    p_value = row(score_metric("gender_ratio", people=False), "score").p_value
    assert p_value is None or np.isnan(p_value)
