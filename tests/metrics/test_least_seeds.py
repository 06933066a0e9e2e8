"""How many attackers a p of a headline needs."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Split
from bias_pipeline.metrics.base import Metric, Number, Score
from bias_pipeline.results.rows import Result
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.stats.bootstrap import Draws, summary


def make_result(metric: str, n_seeds: int, *, trained: bool = True) -> Result:
    """A result whose attackers agree so well, by chance, that next to nothing seems possible."""
    cell = compose.cell([f"metric={metric}", "dataset.n_images=60"])
    built = cell.build("metric")
    per_seed = np.full(n_seeds, 0.2) + 1e-4 * np.arange(n_seeds)
    draws = Draws(per_seed, per_seed + 0.01 * np.random.default_rng(0).normal(size=(200, n_seeds)))
    estimate = summary(Draws(draws.per_seed, draws.resampled, trained=trained))

    class Agreeing(Metric):
        info = built.info
        attribute = built.attribute

        def draw_splits(self, corpus: Corpus, seeds: Sequence[int]) -> list[Split]:
            none = np.empty(0, np.int64)
            return [Split(seed, none, none, none, balanced=False) for seed in seeds]

        def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
            del splits
            part = Number(**vars(estimate), n_images=len(corpus), coverage=1.0)
            return Score({"score": part}, audit={}, notes=[])

    return run_cell(cell.corpus(), Agreeing(), range(n_seeds), run_id="x")


def p_of(result: Result) -> float:
    return result.rows[0].p_value


@pytest.mark.parametrize("n_seeds", [2, 3, 4])
def test_imagecaptioner2_has_no_p_of_fewer_than_five_seeds(n_seeds):
    result = make_result("imagecaptioner2", n_seeds)
    assert math.isnan(p_of(result))
    assert f"{n_seeds} seeds: imagecaptioner2 has a p only with 5 or more (seeds=5)" in str(
        result.manifest["notes"]
    )


@pytest.mark.parametrize(
    ("metric", "n_seeds", "trained"),
    [("imagecaptioner2", 5, True), ("lic", 3, True), ("imagecaptioner2", 3, False)],
)
def test_enough_seeds_and_a_captioner_that_judges_untrained_have_a_p(metric, n_seeds, trained):
    result = make_result(metric, n_seeds, trained=trained)
    assert p_of(result) < 0.001
    assert "has a p only with" not in str(result.manifest["notes"])


def test_the_interval_stays():
    row = make_result("imagecaptioner2", 3).rows[0]
    assert 0 < row.ci_low < row.value < row.ci_high
