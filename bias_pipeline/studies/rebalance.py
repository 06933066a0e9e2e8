"""Computes weights of training images under which groups and objects are paired as by annotators.

A finished run of ``cooccurrence`` says how often captions name an object o together with the first
of two groups: q_M(o) for the captioner, q_H(o) for annotators. The captioner pairs an object with a
group too often if two intervals lie above 0: the interval of the object's increase in skew, and the
interval of the mean increase over objects. Captions of a group g that name one of these objects are
drawn r(g, o) = q_H(g | o) / q_M(g | o) times as often. r is kept between 1/5 and 5. The factor of a
caption is the mean of r over these objects in the caption, or 1 if the caption names none. The
weight of an image is the mean factor of its captions, divided by the mean over all images of its
group. So every group keeps its share of the images. Images without a group have weight 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import NotApplicableError, UsageError, did_you_mean, inflect
from bias_pipeline.metrics.value_names import HUMAN, MODEL, SCORE, PartName, object_of
from bias_pipeline.results.rows import Result, mapping_in
from bias_pipeline.text.mentions import task_mentions

METRIC = "cooccurrence"
_MOST = 5.0  # the largest factor; our choice, so that rare pairs do not dominate


@dataclass(frozen=True)
class TooOften:
    """An object that a captioner names with one of two groups more often than annotators do.

    Example:
        >>> TooOften("skateboard", model=0.9, human=0.75).factors.round(2).tolist()
        [0.83, 2.5]
    """

    name: str  # the object's name
    model: float  # the first group's share of captioner's captions with the object and a group
    human: float  # the same share for human captions

    @property
    def factors(self) -> Float64Array:
        """(2,): for each group, how many times as often captions with the object are drawn."""
        people = np.array([self.human, 1 - self.human])
        captioner = np.array([self.model, 1 - self.model])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = people / captioner
        bounded: Float64Array = np.clip(np.nan_to_num(ratio, nan=1.0), 1 / _MOST, _MOST)
        return bounded


def too_often(result: Result) -> list[TooOften]:
    """The objects of a run whose skew exceeds annotators' skew by an interval above 0.

    Even for a fair captioner, some objects have an interval above 0 by chance. So the interval of
    the mean over all objects must also lie above 0.
    """
    if result.rows[0].metric != METRIC:
        raise UsageError(
            f"{result.run_id}: is a run of {result.rows[0].metric}; name one of metric={METRIC}"
        )
    groups_of(result)
    rows = {row.part: row for row in result.rows}
    if SCORE not in rows:
        raise NotApplicableError(
            f"{result.run_id}: has no score, since no image has captions of both the captioner "
            "and people; score data that have both"
        )
    objects = {name: row for part, row in rows.items() if (name := object_of(part))}
    increased = [
        name
        for name, row in objects.items()
        if row.ci_low > 0 and PartName(object=name, side=MODEL.side) in rows
    ]
    if not (rows[SCORE].ci_low > 0 and increased):
        raise NotApplicableError(
            f"{result.run_id}: no object occurs with a group more often than in human captions, "
            "up to chance; there is nothing to rebalance"
        )
    return [
        TooOften(
            name,
            rows[PartName(object=name, side=MODEL.side)].value,
            rows[PartName(object=name, side=HUMAN.side)].value,
        )
        for name in increased
    ]


def groups_of(result: Result) -> tuple[str, str]:
    """The two groups of a run of the metric ``cooccurrence``.

    Shares are shares of the first group.
    """
    groups = list(mapping_in(result.facts.config, "attribute").get("groups", ()))
    if len(groups) != 2:
        raise UsageError(
            f"{result.run_id}: has {inflect(len(groups), 'groups')}; weights are made for two "
            "groups"
        )
    first = result.facts.config.get("numerator") or groups[0]
    (second,) = set(groups) - {first}
    return first, second


def image_weights(
    corpus: Corpus,
    side: str,
    attribute: str,
    vocabulary: TaskVocabulary,
    groups: Sequence[str],
    objects: Sequence[TooOften],
) -> Float64Array:
    """(N,): the weight of each image from which a captioner learns."""
    for item in objects:
        if item.name not in vocabulary.tasks:
            hint = did_you_mean(item.name, vocabulary.tasks)
            raise UsageError(f"the task vocabulary has no object {item.name!r}; {hint}")
    grouping = corpus.groupings[attribute]
    if set(grouping.names) != set(groups):
        raise UsageError(
            f"dataset {corpus.dataset!r} labels {', '.join(grouping.names)}, the run's groups are "
            f"{', '.join(groups)}; fit to data with labels of the same groups"
        )
    captions = corpus.side(side)
    named = task_mentions(captions, vocabulary, tuple(item.name for item in objects))
    counts = np.asarray(named.sum(axis=1))
    if not counts.any():
        raise NotApplicableError(
            f"dataset {corpus.dataset!r}: no caption names an object of the run, such as "
            f"{objects[0].name}; fit to captions of the same objects"
        )
    totals = named @ np.stack([item.factors for item in objects])  # (C, 2)
    column = np.array([groups.index(name) for name in grouping.names])
    codes = grouping.codes[captions.image_rows]
    own_group = totals[np.arange(len(codes)), column[np.maximum(codes, 0)]]
    factors = np.where((counts > 0) & (codes >= 0), own_group / np.maximum(counts, 1), 1.0)
    n_captions = np.bincount(captions.image_rows, minlength=len(corpus))
    sums = np.bincount(captions.image_rows, weights=factors, minlength=len(corpus))
    weights = np.where(n_captions > 0, sums / np.maximum(n_captions, 1), 1.0)
    for group in range(len(grouping.names)):
        members = grouping.codes == group
        if members.any():
            weights[members] /= weights[members].mean()
    return weights


def effective_share(weights: Float64Array) -> float:
    """The share of images that would be as informative with equal weights: (sum w)^2 / (N sum w^2).

    Example:
        >>> effective_share(np.array([1.0, 1.0])), effective_share(np.array([1.0, 0.0]))
        (1.0, 0.5)
    """
    return float(weights.sum() ** 2 / (len(weights) * (weights**2).sum()))
