"""Counts of many small cells corrected by gold labels: one step from the numbers by machine labels.

A pair of a group and an object may have a handful of gold images, too few for a denominator.
Therefore the number by machine labels of all images is moved, to first order, by what true labels
of the gold images change.
"""

from __future__ import annotations

from dataclasses import replace

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
    FEWEST_FOR_A_POINT,
    CorrectableByGold,
    Correction,
    GoldSample,
    interval_alone,
    one_step_from_machine,
    worth_of,
)
from bias_pipeline.metrics.value_names import HEADLINES, PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate

_STEP = 1e-6  # images; so small that no number crosses zero or a threshold
_JUMP = 100 * _STEP  # a number that changes more in such a step does not change smoothly
_AT_ONCE = 200  # images that are computed together


class CountedInOneStep(CountingMetric, CorrectableByGold):
    """A metric that counts images by label in many cells."""

    def correct(self, score: Score, corpus: Corpus, gold: GoldLabels) -> Correction:
        """Move each number by what true labels of the gold images change, to first order."""
        view = self.see(corpus)
        check_drawn_at_random(view, gold)
        sample = GoldSample.from_rows(np.flatnonzero(view.has("model")), corpus, gold)
        true_view = self.see(sample.relabel(corpus, self.attribute.name))
        tallies = _GoldTallies(self.tally(view), self.tally(true_view), sample)
        changes = tallies.changes()
        alone = tallies.estimates_of_gold(self.stats)
        corrected = {}
        decide = {*HEADLINES, *(rule.part for rule in self.info.readings.values())}
        for name, number in tallies.tally.counted_numbers(tallies.tally.totals).items():
            if name not in score.parts or number.unit == COUNT or name in tallies.gaps:
                continue
            estimate = one_step_from_machine(score.parts[name], changes[name], sample, self.stats)
            if len(sample.rows) < FEWEST_FOR_A_POINT:
                tested = name in decide and name not in self.info.untested
                estimate = interval_alone(estimate, self.info.neutral, tested)
            corrected[name] = estimate
        return Correction(
            corrected=corrected,
            alone=alone,
            worth={
                name: worth_of(one, alone[name], drawn_evenly=sample.drawn_evenly)
                for name, one in corrected.items()
                if name in alone
            },
            n_gold=len(sample.rows),
            notes=sample.label_notes(),
        )


class _GoldTallies:
    """Tables of all images by machine labels, and of the gold images by true labels."""

    def __init__(self, tally: Tally, true_tally: Tally, sample: GoldSample) -> None:
        self.tally, self.sample = tally, sample
        self.machine = {name: table[sample.rows] for name, table in tally.tables.items()}
        self.truth = {name: true_tally.tables[name][sample.rows] for name in tally.tables}

    @property
    def gaps(self) -> set[PartName]:
        """Names of numbers that are a largest difference, which is not a smooth function."""
        numbers = self.tally.numbers(self.tally.totals)
        return {name for name, number in numbers.items() if isinstance(number, LargestGap)}

    def changes(self) -> dict[PartName, Float64Array]:
        """(n, 1) how each number changes if all images change as each gold image does."""
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
        """The numbers if each gold image takes a step towards its true label."""
        sums = {
            name: total + step * (self.truth[name][images] - self.machine[name][images]).toarray()
            for name, total in self.tally.totals.items()
        }
        return self.tally.counted_numbers(sums)

    def estimates_of_gold(self, stats: Bootstrap) -> dict[PartName, Estimate]:
        """The numbers of the gold images alone."""
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

        estimates = stats.estimate_weighted(self.sample.keys, evaluate, trained=lambda _: False)
        return {name: replace(one, draws=None) for name, one in estimates.items()}
