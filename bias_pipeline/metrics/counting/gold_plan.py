"""Plans gold labels that correct machine labels: which images people should label, and how many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.errors import DataError
from bias_pipeline.io.hashing import UIntArray, random_words
from bias_pipeline.metrics.counting.gold import CorrectedByGold, true_labels
from bias_pipeline.metrics.counting.true_labels import CaptionOutcomes
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.gold import NO_GROUP_LABELS, label_priors

APART = 0.5  # the share of gold images whose machine label and caption name different groups


@dataclass(frozen=True)
class CaptionedImages:
    """The images that a captioner describes, their machine labels and the groups in captions."""

    rows: IntArray  # (n,) the rows of the images in the corpus
    apart: BoolArray  # (n,) whether machine label and caption name different groups

    @classmethod
    def from_corpus(cls, corpus: Corpus, metric: CorrectedByGold) -> CaptionedImages:
        captions = metric.outcomes(metric.see(corpus), "model")
        return cls(captions.rows, _disagreements(corpus, metric, captions))


def _disagreements(corpus: Corpus, metric: CorrectedByGold, captions: CaptionOutcomes) -> BoolArray:
    grouping = corpus.groupings[metric.attribute.name]
    machine = grouping.codes[captions.rows]
    both = (machine >= 0) & (captions.outcomes < len(grouping.names))
    return both & (machine != captions.outcomes)


def draw_images(images: CaptionedImages, keys: UIntArray, n: int) -> tuple[IntArray, Float64Array]:
    """(n,) rows of images drawn by their ids, and the chance with which each image was drawn.

    Half of the drawn images are images whose machine label and caption name different groups. If
    there are fewer than n images, all are drawn. ``keys`` (N,) are hashes of all image ids of the
    corpus.
    """
    order = random_words("gold draw", 0, keys[images.rows])
    n = min(n, len(images.rows))
    n_apart = int(images.apart.sum())
    wanted = max(min(round(APART * n), n_apart), n - (len(images.rows) - n_apart))
    rows, chances = [], []
    for which, number in ((images.apart, wanted), (~images.apart, n - wanted)):
        members = np.flatnonzero(which)
        chosen = members[np.argsort(order[members], kind="stable")[:number]]
        rows.append(images.rows[chosen])
        chances.append(np.full(number, number / max(len(members), 1)))
    together = np.concatenate(rows)
    places = np.argsort(together)
    return together[places], np.concatenate(chances)[places]


@dataclass(frozen=True)
class NeededLabels:
    """How many gold labels the share of wrong captions needs, for an interval of a given width.

    A number is infinite if no number of gold labels would be enough.
    """

    wrong: float  # by the pilot, the share of wrong captions among those that name one group
    evenly: float  # labels drawn evenly, if machine labels are not used
    drawn: float  # labels drawn as by rate --gold-size
    best: float  # labels drawn optimally, from each cell as many as reduce the error most
    floor: float  # the half width that no number of gold labels can reduce

    @classmethod
    def from_pilot(
        cls, corpus: Corpus, metric: CorrectedByGold, pilot: GoldLabels, half_width: float, z: float
    ) -> NeededLabels:
        """The needed labels, estimated from a pilot of about a hundred gold labels."""
        captions = metric.outcomes(metric.see(corpus), "model")
        labels = true_labels(corpus, pilot, captions)
        n_groups = labels.n_groups
        cell, n_cells = labels.cells(captions)
        outcome = np.arange(n_cells) // (n_groups + NO_GROUP_LABELS)
        naming = outcome < n_groups
        weights = np.bincount(cell, captions.weights, n_cells) / captions.weights.sum()
        wrong = _wrong_in_cells(labels.gold_cells(captions), n_groups)
        named = weights[naming].sum()
        if not named > 0:
            raise DataError("no caption names one group")
        of_named = np.where(naming, weights, 0.0) / named
        rate = float(of_named @ wrong)
        spread = of_named**2 * wrong * (1 - wrong)
        apart = np.bincount(cell, _disagreements(corpus, metric, captions), n_cells) > 0
        drawn = np.zeros(n_cells)
        for which, part in ((apart, APART), (~apart, 1 - APART)):
            drawn[which] = part * share(weights[which], weights[which].sum())
        used = spread > 0
        floor = float(of_named @ (wrong - rate) ** 2) / (named * len(captions.rows))
        left = half_width**2 / z**2 - floor

        def number(variance: float) -> float:
            return variance / left if left > 0 else math.inf

        return cls(
            rate,
            z**2 * rate * (1 - rate) / half_width**2 / named,
            number(float((spread[used] / drawn[used]).sum())),
            number(float(np.sqrt(spread).sum() ** 2)),
            z * math.sqrt(floor),
        )


def _wrong_in_cells(gold: Float64Array, n_groups: int) -> Float64Array:
    """(C,): the share of captions that name a wrong group, estimated from (C, T) gold images."""
    n_labels = n_groups + NO_GROUP_LABELS
    of_groups = (gold + label_priors(n_groups).reshape(-1, n_labels))[:, :n_groups]
    outcome = np.arange(len(gold)) // n_labels
    right = np.where(
        outcome < n_groups, of_groups[np.arange(len(gold)), np.minimum(outcome, n_groups - 1)], 0.0
    )
    return np.where(outcome < n_groups, 1 - share(right, of_groups.sum(axis=1)), 0.0)
