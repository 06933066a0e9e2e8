"""Finds which words reveal the attribute to the attackers of a score.

An ``ngram`` attacker is a logistic regression, so its log-odds are exactly a sum over the n-grams
of a caption. Every n-gram has two numbers.

* Its *coefficient* says by how much the n-gram moves the log-odds towards a group at each place.
* Its *gain* is the value that the n-gram adds to the log-odds of the true group, as a mean over the
  test captions of a split. A strong word that nobody writes gains nothing. The gains of all n-grams
  and of the intercept sum to the mean log-odds of the true group.

A network's log-odds are not a sum over words, but integrated gradients approximate them by such a
sum (``gradients.py``). The coefficient of a word is then the mean of the values that it adds at its
places in test captions. The "intercept" is the prediction for a caption without information.

Both methods use attackers like the score's attackers. New attackers learn for every seed, on both
sides, on the same splits of the images that both sides describe. The human side is the mean over
caption positions, and each position has its own attackers. The captioner's addition is the model's
side minus the human side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.regrouping import without_small_groups
from bias_pipeline.corpus.split import SMALLEST_GROUP, Split, seeds_in
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io.progress import track
from bias_pipeline.metrics.attack.attack_runner import label_captions
from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.base import Metric
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.report.explain import gradients, linear
from bias_pipeline.report.explain.gradients import Gradients
from bias_pipeline.report.explain.linear import Example, Gram, WordFit
from bias_pipeline.stats.bootstrap import Interval, combined_error, quantile
from bias_pipeline.text.transform import apply_transforms

RESAMPLES = 100  # each resample trains every attacker again, so more would cost too much
MOST_KEPT = 300
EXAMPLES = 4
EXACT = "coefficients"
DEFAULT = Gradients()

Fits = Callable[[LabelledCaptions, Split, Float64Array], WordFit]


@dataclass(frozen=True)
class RevealingWord:
    """An n-gram in the captions of one side."""

    side: str  # `model`, `human` or `difference` (model minus human)
    gram: Gram  # its words; empty for all n-grams and the intercept together
    captions: int  # how many captions have it; of both sides together for the difference
    # Group to log-odds; of two groups only the second, since the first has the negative
    coefficients: Mapping[str, Interval]
    gain: Interval  # see the module


@dataclass(frozen=True)
class RevealingWords:
    """The words that reveal an attribute in one captioner's captions and in human captions."""

    attribute: str  # its name
    dataset: str  # the captions' data set
    captioner: str  # whose captions the model side has
    groups: tuple[str, ...]  # the attribute's groups
    n_seeds: int  # the attackers' seeds; under cross-fitting a seed has an attacker for each fold
    method: str  # `EXACT`, or the settings of gradients
    # The words that gain or differ most; the largest gain of the model side is first
    words: Sequence[RevealingWord]
    examples: Sequence[Example]  # the test captions that reveal most


def words(
    metric: Metric,
    corpus: Corpus,
    seeds: Sequence[int],
    resamples: int = RESAMPLES,
    how: Gradients = DEFAULT,
) -> RevealingWords:
    """The words by which a metric's attackers recognise groups."""
    if resamples < 2:
        raise UsageError(f"--resamples={resamples} must be at least 2")
    attack, fits, method = _explainer(metric, how)
    corpus = without_small_groups(corpus, attack.attribute.name)  # as the score does
    ready = apply_transforms(attack.transforms, corpus)
    tables = _tables(attack, ready)
    splits = attack.draw_splits(corpus, seeds)
    stats = replace(attack.stats, resamples=resamples)
    drawn = np.concatenate(list(stats.weights(corpus.keys)))  # (B, images)
    work = [
        (side, table, split)
        for side, tables_of_side in tables.items()
        for table in tables_of_side
        for split in splits
    ]
    made = (
        (side, split.seed, fit)
        for side, table, split in work
        for fit in [fits(table, split, drawn)]
    )
    sums = _Sums(tables, splits, resamples)
    examples: list[Example] = []
    for side, seed, fit in track(made, len(work)):
        sums.add(side, seed, fit)
        if seed == sums.seeds[0] and fit.table in ("model", "human:0"):
            examples += fit.examples(side, corpus.ids, EXAMPLES)
    grouping = ready.groupings[attack.attribute.name]
    return RevealingWords(
        attribute=attack.attribute.name,
        dataset=corpus.dataset,
        captioner=corpus.captioner,
        groups=grouping.names,
        n_seeds=len(sums.seeds),
        method=method,
        words=list(_words_to_list(sums, grouping.names, stats.level)),
        examples=list(_best(examples)),
    )


def _best(examples: Sequence[Example]) -> Iterator[Example]:
    """The examples with the largest log-odds in all folds, for each side and group."""
    chosen: dict[tuple[str, str], dict[tuple[str, ...], Example]] = {}
    for one in sorted(examples, key=lambda one: (-one.log_odds, one.image)):
        alike = chosen.setdefault((one.side, one.group), {})
        alike.setdefault(tuple(word for word, _ in one.words), one)
    for side, group in dict.fromkeys((one.side, one.group) for one in examples):
        yield from list(chosen[side, group].values())[:EXAMPLES]


def _explainer(metric: Metric, how: Gradients) -> tuple[CaptionAttack, Fits, str]:
    """The metric, the function that explains its attackers, and the name of that method."""
    if not isinstance(metric, CaptionAttack):
        raise UsageError(
            f"analysis words explains attackers on captions, which metric={metric.info.name} does "
            "not have; choose metric=lic"
        )
    probe = metric.probe
    if isinstance(probe, NeuralProbe) and probe.encoder.sees:
        raise UsageError(
            "analysis words explains attackers that read captions only; the attackers of "
            f"metric={metric.info.name} use pictures too; choose metric=lic"
        )
    if isinstance(probe, ConvexProbe):
        return metric, partial(linear.fits, probe), EXACT
    if isinstance(probe, NeuralProbe):
        return metric, partial(gradients.fits, probe, how=how), str(how)
    raise UsageError(
        "analysis words explains encoder=ngram, whose log-odds are sums over words, and networks "
        f"over word vectors such as encoder=lstm; it cannot explain {type(probe).__name__}"
    )


def _tables(attack: CaptionAttack, ready: Corpus) -> dict[str, list[LabelledCaptions]]:
    """The captions of each side by position, on the images that both sides describe."""
    codes = ready.groupings[attack.attribute.name].codes
    captions: dict[str, Captions] = {
        side: ready.side(side) for side in attack.sides if len(ready.side(side))
    }
    images = codes >= 0
    for side_captions in captions.values():
        images &= np.bincount(side_captions.image_rows, minlength=len(ready)) > 0
    tables = {
        side: list(
            _label_captions(
                attack, ready, side_captions.take(images[side_captions.image_rows]), side
            )
        )
        for side, side_captions in captions.items()
    }
    nonempty = {side: tables_of_side for side, tables_of_side in tables.items() if tables_of_side}
    if not nonempty:
        raise DataError(
            f"attackers need two groups or more with at least {SMALLEST_GROUP} captioned images "
            "each"
        )
    return nonempty


def _label_captions(
    attack: CaptionAttack, ready: Corpus, captions: Captions, side: str
) -> Iterator[LabelledCaptions]:
    grouping = ready.groupings[attack.attribute.name]
    return label_captions(PartName(side=side), captions, grouping, attack.positions)


class _Sums:
    """Coefficients and gains by side, seed and resample, as means over caption positions and folds.

    Columns are n-grams. An n-gram that an attacker does not use has weight 0.
    """

    def __init__(
        self,
        tables: Mapping[str, Sequence[LabelledCaptions]],
        splits: Sequence[Split],
        resamples: int,
    ) -> None:
        self.sides = tuple(tables)
        self.columns: dict[Gram, int] = {}
        self.seeds = seeds_in(splits)
        self._folds = len(splits) // len(self.seeds)  # folds of a seed
        self._counts = {side: {table.name: np.zeros(0, np.int64) for table in tables[side]}
                        for side in tables}  # fmt: skip
        self._parts = {side: len(tables_of_side) for side, tables_of_side in tables.items()}
        numbers = next(iter(tables.values()))[0].n_classes
        width = 1 + (1 if numbers == 2 else numbers)  # the gain, then a coefficient a group
        self.per_seed = {side: np.zeros((len(self.seeds), 0, width)) for side in tables}
        self.resampled = {side: np.zeros((resamples, 0, width)) for side in tables}

    def add(self, side: str, seed: int, fit: WordFit) -> None:
        at = np.array([self.columns.setdefault(g, len(self.columns)) for g in fit.grams])
        self._widen()
        share = 1 / self._parts[side] / self._folds
        self.per_seed[side][self.seeds.index(seed), at] += share * fit.numbers
        self.resampled[side][:, at] += share / len(self.seeds) * fit.resampled
        counts = self._counts[side][fit.table]  # equal in all folds that have the n-gram
        counts[at] = np.maximum(counts[at], fit.captions)

    def _widen(self) -> None:
        """Add columns for new n-grams."""
        for side in self.sides:
            lacking = len(self.columns) - self.per_seed[side].shape[1]
            if lacking:
                for table, counts in self._counts[side].items():
                    self._counts[side][table] = np.pad(counts, (0, lacking))
                for sums in (self.per_seed, self.resampled):
                    sums[side] = np.pad(sums[side], ((0, 0), (0, lacking), (0, 0)))

    def counts(self, side: str) -> IntArray:
        """(F,) the number of captions of a side that contain each n-gram."""
        return np.sum([*self._counts[side].values()], axis=0)

    def by_side(self) -> Iterator[tuple[str, Float64Array, Float64Array, IntArray]]:
        """By side: numbers by seed (S, F, 1 + K), by resample (B, F, 1 + K), and captions (F,)."""
        for side in self.sides:
            yield side, self.per_seed[side], self.resampled[side], self.counts(side)
        if set(SIDES) <= set(self.sides):
            model, human = SIDES
            yield (
                "difference",
                self.per_seed[model] - self.per_seed[human],
                self.resampled[model] - self.resampled[human],
                self.counts(model) + self.counts(human),
            )


def coefficient_groups(groups: Sequence[str]) -> Sequence[str]:
    """The groups whose coefficients are listed; of two groups only the second group."""
    return groups[1:] if len(groups) == 2 else groups


def _words_to_list(sums: _Sums, groups: Sequence[str], level: float) -> Iterator[RevealingWord]:
    """The n-grams to list, where each side begins with its total."""
    shown_groups = coefficient_groups(groups)
    sides = list(sums.by_side())
    grams = list(sums.columns)
    chosen: dict[int, None] = {}
    for _, per_seed, _, _ in sides:
        gains = np.abs(per_seed[:, :, 0].mean(axis=0))
        chosen |= dict.fromkeys(np.argsort(-gains, kind="stable")[:MOST_KEPT].tolist())
    chosen.pop(sums.columns[()], None)  # the intercept is not a word
    first = sides[0][1][:, :, 0].mean(axis=0)
    order = sorted(chosen, key=lambda f: (-first[f], grams[f]))
    nowhere = {name: Interval(math.nan) for name in shown_groups}
    for side, per_seed, resampled, counts in sides:
        total = _interval(per_seed[:, :, 0].sum(axis=1), resampled[:, :, 0].sum(axis=1), level)
        yield RevealingWord(side, (), 0, nowhere, total)
        for f in order:
            intervals = [
                _interval(per_seed[:, f, k], resampled[:, f, k], level)
                for k in range(1 + len(shown_groups))
            ]
            coefficients = dict(zip(shown_groups, intervals[1:], strict=True))
            yield RevealingWord(side, grams[f], int(counts[f]), coefficients, intervals[0])


def _interval(per_seed: Float64Array, resampled: Float64Array, level: float) -> Interval:
    """The interval from (S,) values by seed and from (B,) means over seeds under resampling."""
    value = float(per_seed.mean())
    seed_std = float(np.std(per_seed, ddof=1)) if len(per_seed) > 1 else math.nan
    # Attackers are trained again on resampled images, so one seed already covers all variance.
    n_seeds = len(per_seed) if len(per_seed) > 1 else 0
    error, freedom = combined_error(seed_std, float(np.std(resampled, ddof=1)), n_seeds)
    half = quantile(level, freedom) * error
    return Interval(value, value - half, value + half)
