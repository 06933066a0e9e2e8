"""Permutation tests on stored scores: exchange two sides image by image."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bias_pipeline.stats.scores import ScoreTable

FloatArray = npt.NDArray[np.float64]

_BATCH_BYTES = 64_000_000


def exchange_test(
    first: ScoreTable,
    second: ScoreTable,
    relation: Callable[[FloatArray, FloatArray], FloatArray],
    *,
    neutral: float,
    seed_std: float,
    permutations: int,
    seed: int,
) -> float:
    """p-value of the hypothesis that the two sides are exchangeable within images.

    Whole images are exchanged, for all seeds and caption positions at once, so captions of one
    image are never treated as independent. Exchanging images cannot undo what the attackers have
    learnt, so alone it finds differences too often (measured: 13 % at a level of 5 %). Each
    exchange therefore gets the noise that attackers leave in a mean over S seeds, as the
    interval does: ``seed_std / sqrt(S)`` times Student's t with S - 1 degrees of freedom.

    Args:
        first: scores of one side.
        second: scores of the other, of the same seeds.
        relation: what is tested, a function of the two sides' scores (..., S).
        neutral: the relation's value when the sides are alike.
        seed_std: standard deviation of the relation over the S seeds; NaN for one seed, whose
            noise is unknown and left out.
        permutations: how many random exchanges are drawn; the smallest p is 1 / (1 + that).
        seed: of the exchanges.

    Returns:
        Two-sided p in (0, 1]; NaN if no image was tested on both sides or the relation has no
        value.
    """
    images = np.intersect1d(first.images, second.images)
    if not len(images):
        return float("nan")
    sides = [_Totals(table.at(images)) for table in (first, second)]
    keep = np.ones((1, len(images)))
    observed = abs(relation(*_exchanged(sides, keep)).mean() - neutral)
    if math.isnan(observed):
        return math.nan
    generator = np.random.default_rng(seed)
    extreme = 0
    batch = max(1, _BATCH_BYTES // (8 * len(images)))
    for start in range(0, permutations, batch):
        size = min(batch, permutations - start)
        keep = generator.integers(0, 2, (size, len(images))).astype(np.float64)
        drawn = relation(*_exchanged(sides, keep)).mean(axis=-1)
        if first.n_seeds > 1:
            noise = generator.standard_t(first.n_seeds - 1, size)
            drawn = drawn + seed_std / math.sqrt(first.n_seeds) * noise
        # An exchange that has no value cannot speak against the hypothesis.
        extreme += int((~(np.abs(drawn - neutral) < observed - 1e-12)).sum())
    return (1 + extreme) / (1 + permutations)


class _Totals:
    """Sums and counts per image and seed, so that an exchange is one matrix product."""

    def __init__(self, table: ScoreTable) -> None:
        tested = np.isfinite(table.values)
        member = np.eye(table.n_seeds)[table.seed_of]
        self.total = np.where(tested, table.values, 0.0) @ member
        self.count = tested.astype(np.float64) @ member
        self.link = table.scoring.link
        # A side with several captions an image counts as one: its images weigh what they weigh
        # on the other side.
        weight = np.maximum(self.count, 1)
        self.total, self.count = self.total / weight, (self.count > 0).astype(np.float64)


def _exchanged(sides: list[_Totals], keep: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both sides' scores (B, S) when images with ``keep`` 0 change sides."""
    a, b = sides
    with np.errstate(invalid="ignore", divide="ignore"):
        one = (keep @ a.total + (1 - keep) @ b.total) / (keep @ a.count + (1 - keep) @ b.count)
        two = (keep @ b.total + (1 - keep) @ a.total) / (keep @ b.count + (1 - keep) @ a.count)
    return a.link(one), b.link(two)
