"""Which words give the attribute away, to the very attackers that a score comes from.

An ``ngram`` attacker is a logistic regression, so its log-odds are a sum over the n-grams of a
caption and nothing is approximated. Of every n-gram there are two numbers:

* its *coefficient*: by how much it moves the log-odds towards a group wherever it stands;
* its *gain*: what it adds to the log-odds of the true group, mean over the test captions of a
  split. A strong word that nobody writes gains nothing. The gains of all n-grams and of the
  intercept add up to the mean log-odds of the truth.

A network's log-odds are no sum over words; integrated gradients make one (``gradients.py``). Its
coefficient of a word is what the word adds at its places in test captions, on average, and its
"intercept" the prediction for a caption without information.

Both are made as the score is: fresh attackers for every seed, on both sides, on the same splits of
the images that both sides describe. The human side is the mean over caption positions, each with
attackers of its own. The difference of the sides is what the captioner added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bias_pipeline.attackers.convex import ConvexProbe
from bias_pipeline.attackers.neural import NeuralProbe
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.corpus.split import SMALLEST_GROUP, Split
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.explain import gradients, linear
from bias_pipeline.explain.gradients import Gradients
from bias_pipeline.explain.linear import Example, FloatArray, Gram, IntArray, WordFit
from bias_pipeline.io.progress import track
from bias_pipeline.metrics.attack.attacked import labelled
from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.base import Metric
from bias_pipeline.metrics.parts import PartName
from bias_pipeline.stats.bootstrap import quantile, spread
from bias_pipeline.text.transform import applied

RESAMPLES = 100  # each trains every attacker again: more cost more than they tell
MOST_KEPT = 300
EXAMPLES = 4
EXACT = "coefficients"
DEFAULT = Gradients()

Fits = Callable[[Labelled, Split, FloatArray], WordFit]


@dataclass(frozen=True)
class Interval:
    """A number, mean over seeds, with the interval that other scores have.

    Attributes:
        value: NaN where an n-gram has none.
        low: lower end.
        high: upper end.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Word:
    """An n-gram on one side.

    Attributes:
        side: ``model``, ``human`` or ``difference`` (model minus human).
        gram: its words; empty for all n-grams and the intercept together.
        captions: in how many captions it stands; of both sides for the difference.
        coefficients: group to log-odds; for two groups the second alone, whose negative is the
            first's.
        gain: see the module.
    """

    side: str
    gram: Gram
    captions: int
    coefficients: Mapping[str, Interval]
    gain: Interval


@dataclass(frozen=True)
class Words:
    """What gives an attribute away in the captions of one captioner and of people.

    Attributes:
        attribute: its name.
        dataset: of the captions.
        captioner: whose captions the model side has.
        groups: of the attribute.
        n_seeds: attackers a side and caption position.
        method: ``EXACT``, or how gradients were taken.
        words: those that gain or differ most, the largest gain of the model side first.
        examples: test captions that give most away.
    """

    attribute: str
    dataset: str
    captioner: str
    groups: tuple[str, ...]
    n_seeds: int
    method: str
    words: Sequence[Word]
    examples: Sequence[Example]


def words(
    metric: Metric,
    corpus: Corpus,
    seeds: Sequence[int],
    resamples: int = RESAMPLES,
    how: Gradients = DEFAULT,
) -> Words:
    """Explain the attackers of a metric.

    Args:
        metric: ``lic`` or ``leakage``; the two have the same attackers.
        corpus: raw captions.
        seeds: one split and fresh attackers each.
        resamples: of the images; every ``ngram`` attacker is trained again on each, from its
            weights, a network is not. At least 2.
        how: of the gradients, for networks.

    Returns:
        The ``MOST_KEPT`` n-grams of largest gain on each side and of largest difference.

    Raises:
        UsageError: if the metric has no such attackers, or a number is out of its range.
        DataError: if the captions cannot be attacked.
        ResourceError: if a network is to be explained and captum is absent.
    """
    if resamples < 2:
        raise UsageError(f"--resamples={resamples} must be at least 2")
    attack, fits, method = _explained(metric, how)
    ready = applied(attack.transforms, corpus)
    tables = _tables(attack, ready)
    splits = attack.draw_splits(corpus, seeds)
    stats = replace(attack.stats, resamples=resamples)
    drawn = np.concatenate(list(stats.weights(corpus.keys)))  # (B, images)
    work = [
        (side, table, split) for side, own in tables.items() for table in own for split in splits
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
        if seed == splits[0].seed and fit.table in ("model", "human:0"):
            examples += fit.examples(side, corpus.ids, EXAMPLES)
    grouping = ready.groupings[attack.attribute.name]
    return Words(
        attribute=attack.attribute.name,
        dataset=corpus.dataset,
        captioner=corpus.captioner,
        groups=grouping.names,
        n_seeds=len(splits),
        method=method,
        words=list(_listed(sums, grouping.names, stats.level)),
        examples=examples,
    )


def _explained(metric: Metric, how: Gradients) -> tuple[CaptionAttack, Fits, str]:
    """The metric, how its attackers are taken apart, and what that is called.

    Raises:
        UsageError: if they cannot be.
    """
    if not isinstance(metric, CaptionAttack):
        raise UsageError(
            f"analysis words explains attackers on captions; metric={metric.info.name} has none "
            "of them, metric=lic has"
        )
    probe = metric.probe
    if isinstance(probe, NeuralProbe) and probe.encoder.sees:
        raise UsageError(
            "analysis words explains attackers that read captions alone; those of "
            f"metric={metric.info.name} see pictures too, metric=lic has some"
        )
    if isinstance(probe, ConvexProbe):
        return metric, partial(linear.fits, probe), EXACT
    if isinstance(probe, NeuralProbe):
        return metric, partial(gradients.fits, probe, how=how), str(how)
    raise UsageError(
        "analysis words explains encoder=ngram, whose log-odds are sums over words, and networks "
        f"over word vectors such as encoder=lstm; it does not know {type(probe).__name__}"
    )


def _tables(attack: CaptionAttack, ready: Corpus) -> dict[str, list[Labelled]]:
    """Side to its captions by position, on the images that both sides describe.

    Raises:
        DataError: if nothing can be attacked.
    """
    codes = ready.groupings[attack.attribute.name].codes
    captions = {side: ready.side(side) for side in attack.sides if len(ready.side(side))}
    images = codes >= 0
    for own in captions.values():
        images &= np.bincount(own.image_rows, minlength=len(ready)) > 0
    tables = {
        side: list(_labelled(attack, ready, own.take(images[own.image_rows]), side))
        for side, own in captions.items()
    }
    found = {side: own for side, own in tables.items() if own}
    if not found:
        raise DataError(
            f"captioner {ready.captioner!r}: attackers need two groups or more with at least "
            f"{SMALLEST_GROUP} captioned images each"
        )
    return found


def _labelled(
    attack: CaptionAttack, ready: Corpus, captions: Captions, side: str
) -> Iterator[Labelled]:
    grouping = ready.groupings[attack.attribute.name]
    return labelled(PartName(side=side), captions, grouping, attack.positions)


class _Sums:
    """Coefficients and gains added up over caption positions, by side, seed and resampling.

    Columns are n-grams; an n-gram that an attacker does not see has weight 0 in it.
    """

    def __init__(
        self, tables: Mapping[str, Sequence[Labelled]], splits: Sequence[Split], resamples: int
    ) -> None:
        self.sides = tuple(tables)
        self.columns: dict[Gram, int] = {}
        self.seeds = [split.seed for split in splits]
        self.counts = {side: np.zeros(0, np.int64) for side in tables}
        self._parts = {side: len(own) for side, own in tables.items()}
        numbers = next(iter(tables.values()))[0].n_classes
        width = 1 + (1 if numbers == 2 else numbers)  # the gain, then a coefficient a group
        self.per_seed = {side: np.zeros((len(splits), 0, width)) for side in tables}
        self.resampled = {side: np.zeros((resamples, 0, width)) for side in tables}

    def add(self, side: str, seed: int, fit: WordFit) -> None:
        """Add one attacker."""
        at = np.array([self.columns.setdefault(g, len(self.columns)) for g in fit.grams])
        self._widen()
        share = 1 / self._parts[side]
        self.per_seed[side][self.seeds.index(seed), at] += share * fit.numbers
        self.resampled[side][:, at] += share / len(self.seeds) * fit.resampled
        if seed == self.seeds[0]:
            self.counts[side][at] += fit.captions

    def _widen(self) -> None:
        """Room for n-grams that were not met before."""
        for side in self.sides:
            lacking = len(self.columns) - len(self.counts[side])
            if lacking:
                self.counts[side] = np.pad(self.counts[side], (0, lacking))
                for kept in (self.per_seed, self.resampled):
                    kept[side] = np.pad(kept[side], ((0, 0), (0, lacking), (0, 0)))

    def by_side(self) -> Iterator[tuple[str, FloatArray, FloatArray, IntArray]]:
        """Side, its numbers (S, F, 1 + K) and (B, F, 1 + K), and how many captions (F,)."""
        for side in self.sides:
            yield side, self.per_seed[side], self.resampled[side], self.counts[side]
        if set(SIDES) <= set(self.sides):
            model, human = SIDES
            yield (
                "difference",
                self.per_seed[model] - self.per_seed[human],
                self.resampled[model] - self.resampled[human],
                self.counts[model] + self.counts[human],
            )


def groups_told(groups: Sequence[str]) -> Sequence[str]:
    """The groups of which a coefficient is told; of two the second's says all."""
    return groups[1:] if len(groups) == 2 else groups


def _listed(sums: _Sums, groups: Sequence[str], level: float) -> Iterator[Word]:
    """The n-grams worth telling of, on every side, and the total of each side first."""
    told = groups_told(groups)
    sides = list(sums.by_side())
    grams = list(sums.columns)
    chosen: dict[int, None] = {}
    for _, per_seed, _, _ in sides:
        gains = np.abs(per_seed[:, :, 0].mean(axis=0))
        chosen |= dict.fromkeys(np.argsort(-gains, kind="stable")[:MOST_KEPT].tolist())
    chosen.pop(sums.columns[()], None)  # the intercept is no word
    first = sides[0][1][:, :, 0].mean(axis=0)
    order = sorted(chosen, key=lambda f: (-first[f], grams[f]))
    nowhere = {name: Interval(math.nan, math.nan, math.nan) for name in told}
    for side, per_seed, resampled, counts in sides:
        total = _interval(per_seed[:, :, 0].sum(axis=1), resampled[:, :, 0].sum(axis=1), level)
        yield Word(side, (), 0, nowhere, total)
        for f in order:
            own = [
                _interval(per_seed[:, f, k], resampled[:, f, k], level)
                for k in range(1 + len(told))
            ]
            coefficients = dict(zip(told, own[1:], strict=True))
            yield Word(side, grams[f], int(counts[f]), coefficients, own[0])


def _interval(per_seed: FloatArray, resampled: FloatArray, level: float) -> Interval:
    """From (S,) values and (B,) means over seeds under resampling."""
    value = float(per_seed.mean())
    seed_std = float(np.std(per_seed, ddof=1)) if len(per_seed) > 1 else math.nan
    # Attackers are trained again on resampled images: one seed alone leaves nothing out.
    n_seeds = len(per_seed) if len(per_seed) > 1 else 0
    error, freedom = spread(seed_std, float(np.std(resampled, ddof=1)), n_seeds)
    half = quantile(level, freedom) * error
    return Interval(value, value - half, value + half)
