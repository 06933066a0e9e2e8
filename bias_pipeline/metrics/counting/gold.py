"""Corrects shares of captions by gold labels (``dataset.gold``), cell by cell.

If a machine labels images, most captions that seem wrong only disagree with a wrong label. A cell
contains all images with the same machine label whose captions name the same group (or none). True
labels of the images in a cell are drawn from the gold images in the cell.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import NO_GROUP, UNSURE, Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.errors import DataError
from bias_pipeline.metrics.base import Score
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import CountingMetric
from bias_pipeline.metrics.counting.numbers import CountedNumber, LargestGap, Numbers
from bias_pipeline.metrics.counting.true_labels import CaptionOutcomes, TrueLabels
from bias_pipeline.metrics.gold import (
    FEWEST_FOR_A_POINT,
    CorrectableByGold,
    Correction,
    label_notes,
    worth_of,
)
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    PartName,
)
from bias_pipeline.stats.bootstrap import Bootstrap, Draws, Estimate, estimate_with_ends, quantile
from bias_pipeline.stats.shares import difference_ends, wilson
from bias_pipeline.text.mentions import SEVERAL_GROUPS

FEWEST_ERRORS = 5  # errors in a group that gold labels must show
_LEAST_P = 0.001  # with a smaller p, gold labels were not drawn at random
_MOST_VOID = 0.02  # the largest share of draws that may lack a value

Tables = Mapping[PartName, Float64Array]  # part to (B, T, O) captions by true label and outcome
Interval = tuple[float, float, float]  # value, low, high


class CorrectedByGold(CountingMetric, CorrectableByGold):
    """A metric that depends only on image labels and on which group captions name."""

    def correct(self, score: Score, corpus: Corpus, gold: GoldLabels) -> Correction:
        """Draw the true labels in each cell from gold labels, and compute the numbers."""
        view = self.see(corpus)
        captions = _captions_by_part(self, view)
        labels = true_labels(corpus, gold, captions[MODEL])
        labels = replace(labels, draws=max(labels.draws, self.stats.resamples))
        _check_random(labels, captions[MODEL], gold)
        drawn = _Corrected.from_metric(self, view, labels, captions)
        names = [name for name in score.parts if isinstance(name, PartName) and name in drawn.drawn]
        corrected = {name: drawn.estimate(name) for name in names}
        alone = {name: drawn.estimate_of_gold(name) for name in names if not name.detail}
        machine = labels.machine[labels.rows]
        return Correction(
            corrected=corrected,
            alone=alone,
            worth={name: drawn.worth(name, corrected[name], one) for name, one in alone.items()},
            n_gold=drawn.n_gold,
            notes=label_notes(
                view.groups, machine, labels.truth, 1 / labels.chances, len(labels.machine)
            ),
        )

    def outcomes(self, view: CorpusView, side: str) -> CaptionOutcomes:
        return caption_outcomes(view, side, view.named_group(side))

    @abstractmethod
    def by_true_label(self, tables: Tables, view: CorpusView) -> Numbers:
        """The metric's numbers by true label.

        ``tables`` has a (B, T, O) count of captions for each part. The T true labels are the K
        groups, unsure, and other. The O outcomes are: one for each group that a caption names
        alone, then no group, several groups, and declined. ``:paired`` parts contain the captions
        of images that both sides describe. ``view`` has the machine labels.
        """


def caption_outcomes(view: CorpusView, side: str, named: IntArray) -> CaptionOutcomes:
    """The outcome of each of a side's C captions: the only group it names, no group, or several."""
    n_groups = len(view.groups)
    none = np.where(named == SEVERAL_GROUPS, n_groups + 1, n_groups)
    return CaptionOutcomes(view.images(side), np.where(named < 0, none, named), np.ones(len(named)))


def named_outcomes(table: Float64Array, n_groups: int) -> Float64Array:
    """(B, K, K + 1): the groups that captions of each group name, from a (B, T, O) table."""
    of_groups = table[:, :n_groups]
    other = of_groups[..., n_groups : n_groups + 2].sum(axis=-1, keepdims=True)
    return np.concatenate([of_groups[..., :n_groups], other], axis=-1)


def _captions_by_part(metric: CorrectedByGold, view: CorpusView) -> dict[PartName, CaptionOutcomes]:
    """The captions of each side, and those of images that both sides describe."""
    both = view.has("model") & view.has("human")
    parts = {}
    for part, paired in ((MODEL, MODEL_PAIRED), (HUMAN, HUMAN_PAIRED)):
        captions = metric.outcomes(view, part.side)
        if len(captions.rows):
            parts[part] = captions
        if both.any():
            chosen = both[captions.rows]
            parts[paired] = CaptionOutcomes(
                captions.rows[chosen], captions.outcomes[chosen], captions.weights[chosen]
            )
    return parts


def true_labels(corpus: Corpus, gold: GoldLabels, captions: CaptionOutcomes) -> TrueLabels:
    grouping = corpus.groupings[gold.attribute]
    n_groups = len(grouping.names)
    machine = grouping.codes.copy()
    machine[grouping.codes == UNSURE] = n_groups
    machine[grouping.codes == NO_GROUP] = n_groups + 1
    rows, truth, chances = gold.labels_in(corpus)
    described = np.zeros(len(corpus), bool)
    described[captions.rows] = True
    if not described[rows].any():
        raise DataError(f"{gold.file}: the captioner describes none of its images")
    return TrueLabels(
        n_groups, machine, corpus.keys, rows, truth, chances, drawn_evenly=not gold.chances
    )


def check_drawn_at_random(view: CorpusView, gold: GoldLabels) -> None:
    """Raise an error if gold images differ from all images in their captions or machine labels."""
    captions = caption_outcomes(view, "model", view.named_group("model"))
    _check_random(true_labels(view.corpus, gold, captions), captions, gold)


def _check_random(labels: TrueLabels, captions: CaptionOutcomes, gold: GoldLabels) -> None:
    if labels.drawn_evenly and (p_value := labels.p_random(captions)) < _LEAST_P:
        raise DataError(
            f"{gold.file}: these images were not drawn at random: their machine labels "
            f"and captions differ from the labels and captions of all images (p = {p_value:.1g}). "
            "Draw them with rate --gold-size N, or give each image's chance of having been drawn "
            "(column chance)"
        )


@dataclass(frozen=True)
class _Corrected:
    """A metric's numbers in three forms: corrected, from weighted and from counted gold images."""

    labels: TrueLabels
    groups: Sequence[str]
    stats: Bootstrap
    drawn: Mapping[PartName, CountedNumber | LargestGap]
    gold: Mapping[PartName, CountedNumber | LargestGap]
    counted: Mapping[PartName, CountedNumber | LargestGap]
    n_gold: int  # gold images with a caption

    @classmethod
    def from_metric(
        cls,
        metric: CorrectedByGold,
        view: CorpusView,
        labels: TrueLabels,
        captions: Mapping[PartName, CaptionOutcomes],
    ) -> _Corrected:
        digest = view.corpus.digest

        def numbers(table: Callable[[CaptionOutcomes, PartName], Float64Array]) -> Numbers:
            return metric.by_true_label(
                {part: table(each, part) for part, each in captions.items()}, view
            )

        described = np.isin(labels.rows, captions[MODEL].rows)
        return cls(
            labels,
            view.groups,
            metric.stats,
            numbers(lambda each, part: labels.counts(each, f"{digest}:{part}")),
            numbers(lambda each, part: labels.gold_counts(each)),
            numbers(lambda each, part: labels.labelled_counts(each)),
            int(described.sum()),
        )

    def estimate(self, name: PartName) -> Estimate:
        number = self.drawn[name]
        if isinstance(number, LargestGap):
            return self._gap(number, self.counted[name])
        return _summary(number.values, self.stats)

    def estimate_of_gold(self, name: PartName) -> Estimate:
        number, z = self.gold[name], quantile(self.stats.level)
        if isinstance(number, LargestGap):
            pair = self._extreme_groups(self.drawn[name])
            if pair is None:
                return Estimate(math.nan)
            ends = [_share(number.groups[group], z) for group in pair]
            value, low, high = _without_sign(_difference(*ends))
        elif len(number.shares) == 2:
            value, low, high = _difference(*(_share(share, z) for share in number.shares))
        else:
            value, low, high = _share(number, z)
        return Estimate(value, ci_low=low, ci_high=high)

    def _extreme_groups(self, gap: CountedNumber | LargestGap) -> tuple[int, int] | None:
        """The two compared groups, larger number first; None unless exactly two are known."""
        assert isinstance(gap, LargestGap)
        means = [float(np.median(group.values)) for group in gap.groups]
        known = [place for place, mean in enumerate(means) if not math.isnan(mean)]
        if len(known) != 2:
            return None
        first, second = sorted(known, key=lambda place: -means[place])
        return first, second

    def _gap(self, gap: LargestGap, counted: CountedNumber | LargestGap) -> Estimate:
        """The gap between two groups, which has no value if gold labels show too few errors."""
        pair = self._extreme_groups(gap)
        if pair is None:  # the largest of several differences is no smooth function
            return Estimate(math.nan)
        first, second = (gap.groups[group].values for group in pair)
        signed = _summary(first - second, self.stats)
        value, low, high = _without_sign((signed.value, signed.ci_low, signed.ci_high))
        tail = min(np.mean(first <= second), np.mean(first >= second))
        p_value = min(1.0, 2 * max(float(tail), 1 / len(first)))
        assert isinstance(counted, LargestGap)
        errors = [_rarer(counted.groups[group]) for group in pair]
        if self.n_gold < FEWEST_FOR_A_POINT or min(errors) < FEWEST_ERRORS:
            return Estimate(math.nan, ci_low=low, ci_high=high, p_value=p_value)
        return replace(signed, value=value, ci_low=low, ci_high=high, p_value=p_value)

    def worth(self, name: PartName, number: Estimate, alone: Estimate) -> float:
        """The factor by which evenly drawn gold labels must grow to give this interval alone."""
        width, drawn = number.ci_high - number.ci_low, self.counted[name]
        if self.labels.drawn_evenly or not width > 0:
            return worth_of(number, alone, drawn_evenly=self.labels.drawn_evenly)
        if isinstance(drawn, LargestGap) or drawn.observations is None or math.isnan(number.value):
            return math.nan
        gold = self.gold[name]
        assert isinstance(gold, CountedNumber)
        assert gold.observations is not None
        weights = 1 / self.labels.chances
        total = float(weights.sum() ** 2 / (weights**2).sum())  # images at equal chances
        table_share = gold.observations[0] / max(total, 1e-12)
        low, high = wilson(number.value, self.n_gold * table_share, quantile(self.stats.level))
        return ((high - low) / width) ** 2


def _summary(values: Float64Array, stats: Bootstrap) -> Estimate:
    """The estimate of a number from its draws, of which it stores as many as other numbers."""
    known = values[~np.isnan(values)]
    level = stats.level
    if len(known) < (1 - _MOST_VOID) * len(values):
        return Estimate(math.nan)
    tails = [(1 - level) / 2, 0.5, (1 + level) / 2]
    low, middle, high = np.quantile(known, tails).tolist()
    filled = np.where(np.isnan(values), middle, values)
    draws = Draws(np.array([middle]), filled[: stats.resamples, None], trained=False)
    return estimate_with_ends(middle, low, high, float(known.std(ddof=1)), level, draws)


def _share(number: CountedNumber, z: float) -> Interval:
    """A share of the gold images with Wilson's interval. Other numbers get no interval."""
    value = float(number.values[0])
    if math.isnan(value) or number.observations is None:
        return value, math.nan, math.nan
    return value, *wilson(value, float(number.observations[0]), z)


def _difference(first: Interval, second: Interval) -> Interval:
    value = first[0] - second[0]
    if math.isnan(value):
        return value, math.nan, math.nan
    return value, *difference_ends(first, second, 0.0)


def _without_sign(signed: Interval) -> Interval:
    """The absolute difference, with an interval from 0 if the signed interval contains 0."""
    value, low, high = signed
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return abs(value), least, max(abs(low), abs(high))


def _rarer(number: CountedNumber) -> float:
    """How many gold captions have the event of a share, or lack it, whichever is rarer."""
    value, observations = float(number.values[0]), number.observations
    if math.isnan(value) or observations is None:
        return 0.0
    return min(value, 1 - value) * float(observations[0])
