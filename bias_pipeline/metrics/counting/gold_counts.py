"""Corrects counts in many small cells by gold labels, in one step from numbers by machine labels.

A pair of a group and an object may have only a handful of gold images, too few to divide by.
Therefore the number by machine labels of all images is computed first. Then the change that true
labels of gold images would cause is added, to first order.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.metrics.base import Score
from bias_pipeline.metrics.counting.base import CountingMetric
from bias_pipeline.metrics.counting.gold import check_drawn_at_random
from bias_pipeline.metrics.counting.numbers import COUNT, CountedNumber, LargestGap, Tally
from bias_pipeline.metrics.gold import (
    CorrectableByGold,
    Correction,
    GoldSample,
    one_step_correction,
)
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate

_STEP = 1e-6  # images; so small that no number crosses zero or a threshold
_JUMP = 100 * _STEP  # a number that changes more in such a step does not change smoothly
_AT_ONCE = 200  # images that are computed together


class CountedInOneStep(CountingMetric, CorrectableByGold):
    """A metric that counts labelled images in many cells and is corrected in one step."""

    def correct(self, score: Score, corpus: Corpus, gold: GoldLabels) -> Correction:
        """Add to each number the change that gold images' true labels would cause (first order)."""
        view = self.see(corpus)
        check_drawn_at_random(view, gold)
        sample = GoldSample.from_rows(np.flatnonzero(view.has("model")), corpus, gold)
        true_view = self.see(sample.relabel(corpus, self.attribute.name))
        tallies = _GoldTallies(self.tally(view), self.tally(true_view), sample)
        numbers = tallies.tally.counted_numbers(tallies.tally.totals)
        uncorrected = {name for name, number in numbers.items() if number.unit == COUNT}
        changes = {
            name: change
            for name, change in tallies.changes().items()
            if name not in uncorrected | tallies.gaps
        }
        return one_step_correction(
            self, score, changes, tallies.estimates_of_gold(self.stats), sample
        )


class _GoldTallies:
    """Tables of all images under machine labels, and of the gold images under true labels."""

    def __init__(self, tally: Tally, true_tally: Tally, sample: GoldSample) -> None:
        self.tally, self.sample = tally, sample
        self.machine = {name: table[sample.rows] for name, table in tally.tables.items()}
        self.truth = {name: true_tally.tables[name][sample.rows] for name in tally.tables}

    @property
    def gaps(self) -> set[PartName]:
        """The names of numbers that are largest differences; they do not change smoothly."""
        numbers = self.tally.numbers(self.tally.totals)
        return {name for name, number in numbers.items() if isinstance(number, LargestGap)}

    def changes(self) -> dict[PartName, Float64Array]:
        """(n, 1): for each gold image, the change of numbers if all images changed like it."""
        whole = self._numbers(0.0, np.zeros(1, np.int64))
        changes = {name: np.zeros((len(self.sample.rows), 1)) for name in whole}
        differ = self.sample.differ
        for first in range(0, len(differ), _AT_ONCE):
            some = differ[first : first + _AT_ONCE]
            more, less = (self._numbers(step, some) for step in (_STEP, -_STEP))
            for name, change in changes.items():
                step = more[name].values - less[name].values
                smooth = np.where(np.abs(step) < _JUMP, step, np.nan)
                change[some, 0] = smooth / (2 * _STEP) * self.sample.population
        return changes

    def _numbers(self, step: float, images: np.ndarray) -> dict[PartName, CountedNumber]:
        """The numbers after a small step of each gold image towards its true label."""
        sums = {
            name: total + step * (self.truth[name][images] - self.machine[name][images]).toarray()
            for name, total in self.tally.totals.items()
        }
        return self.tally.counted_numbers(sums)

    def estimates_of_gold(self, stats: Bootstrap) -> dict[PartName, Estimate]:
        """The numbers computed from the gold images alone."""
        tables = {
            name: sparse.csr_array(table.multiply(self.sample.weights[:, None]))
            for name, table in self.truth.items()
        }

        def evaluate(weights: Float64Array) -> dict[PartName, Float64Array]:
            sums = {name: np.asarray(weights @ table) for name, table in tables.items()}
            numbers = self.tally.counted_numbers(sums)
            return {
                name: number.values[:, None]
                for name, number in numbers.items()
                if number.unit != COUNT and name not in self.gaps
            }

        return stats.estimate_weighted(self.sample.keys, evaluate, trained=lambda _: False)
