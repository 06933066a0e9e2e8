"""DBAC of real captioners depends neither on how many images there are nor on where rare begins."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import random_words
from bias_pipeline.metrics.attack.dbac_direction import Direction
from bias_pipeline.metrics.attack.dbac_scorer import DirectionScorer
from bias_pipeline.metrics.base import Score
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Estimate
from tests.corpora import DATA

FOLDER = DATA / "lic" / "bias_data"
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER.is_dir(), reason=f"no captions at {FOLDER}; set BIAS_PIPELINE_DATA"
    ),
]
CAPTIONERS = ("sat", "nic")
COMMON = (
    "metric=dbac", "split=dbac", "dataset=lic", f"dataset.root={FOLDER}", "stats.resamples=200",
    "probe.cache=null",
)  # fmt: skip


def sample(corpus: Corpus, part: int, of: int) -> Corpus:
    """One of several equal parts of the images, at random."""
    chosen = random_words("bundle", 1, corpus.keys) % np.uint64(of) == part
    grouping = corpus.groupings["gender"]
    return replace(
        corpus, groupings={"gender": replace(grouping, codes=np.where(chosen, grouping.codes, -1))}
    )


@cache
def score(captioner: str, support: float = 0.005, part: int = 0, of: int = 1) -> Score:
    """A→T alone: T→A has an attacker an object."""
    cell = compose.cell([*COMMON, f"captioner={captioner}", f"metric.min_support={support}"])
    corpus, metric = sample(cell.corpus(), part, of), cell.build("metric")
    splits = metric.draw_splits(corpus, (0, 12, 456))
    return DirectionScorer(Direction(metric.settings, "a_to_t", metric.see(corpus)), splits).score()


def a_to_t(*args: object) -> Estimate:
    return score(*args).parts["a_to_t"]


@pytest.mark.parametrize("captioner", CAPTIONERS)
@pytest.mark.parametrize("support", [0.0025, 0.01])
def test_where_rare_begins_hardly_matters(captioner, support):
    """Over a factor of four; the mean of pairs once went from 5.3 to 24.1 over one of eight."""
    one, other = a_to_t(captioner), a_to_t(captioner, support)
    assert one.ci_low <= other.value <= one.ci_high
    assert other.ci_low <= one.value <= other.ci_high


@pytest.mark.parametrize("captioner", CAPTIONERS)
@pytest.mark.parametrize("part", [0, 1])
def test_half_of_the_images_give_the_same_score(captioner, part):
    """The mean of pairs once was 16.4 on half of the images and 6.7 on all."""
    one, half = a_to_t(captioner), a_to_t(captioner, 0.005, part, 2)
    assert half.ci_low <= one.value <= half.ci_high
    assert abs(half.value - one.value) < 0.03


@pytest.mark.parametrize("captioner", CAPTIONERS)
def test_a_quarter_of_the_images_gives_the_same_score(captioner):
    one, quarter = a_to_t(captioner), a_to_t(captioner, 0.005, 0, 4)
    assert quarter.ci_low <= one.value <= quarter.ci_high


@pytest.mark.parametrize("of", [1, 2])
def test_captioners_keep_their_order(of):
    values = [a_to_t(captioner, 0.005, 0, of).value for captioner in CAPTIONERS]
    assert values == sorted(values)


def test_all_captioners_rest_on_the_same_pairs():
    one, two = (
        {name for name in score(captioner).parts if name.startswith(("a_to_t:male:", "a_to_t:f"))}
        for captioner in CAPTIONERS
    )
    assert one == two
