"""Multi-attribute bias amplification (Zhao et al. 2023): tasks taken in sets.

Functions take :class:`~bias_pipeline.metrics.functional.counts.Counts` whose T tasks are sets
(:mod:`bias_pipeline.metrics.functional.task_sets`). Each returns the mean and the population
variance of the signed differences, over all groups and sets.
"""

from __future__ import annotations

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.metrics.functional.amplification import association
from bias_pipeline.metrics.functional.counts import Counts, nanmean, share


def multi_pairs(
    counts: Counts, direction: str, *, denominator: str = "images", training: Counts | None = None
) -> Float64Array:
    """(..., K, M) predicted less labelled conditional probability, without any sign.

    Args:
        counts: of the images that are scored.
        direction: ``a_to_t`` (groups to sets) or ``t_to_a``.
        denominator: see
            :func:`bias_pipeline.metrics.functional.amplification.directional_pairs`.
        training: labels that are subtracted, as in the paper; those of ``counts`` (as in the
            public code) if left out.
    """
    base = training or counts
    if direction == "a_to_t":
        predicted = share(counts.task_given_group, counts.captioned[..., :, None])
        return predicted - share(base.labels, base.groups[..., :, None])
    named = counts.group_given_task.sum(axis=-2) if denominator == "named" else counts.tasks
    predicted = share(counts.group_given_task, named[..., None, :])
    return predicted - share(base.labels, base.tasks[..., None, :])


def multi_directional(
    counts: Counts,
    direction: str,
    *,
    absolute: bool = True,
    denominator: str = "images",
    training: Counts | None = None,
) -> tuple[Float64Array, Float64Array]:
    """Multi-> in one direction: mean and variance of the differences.

    Args:
        counts: see :func:`multi_pairs`.
        direction: see there.
        absolute: the paper's mean of absolute differences, in [0, 1], which cannot show that bias
            shrinks; else the signed mean of BA->, in [-1, 1].
        denominator: see there.
        training: see there.

    Example:
        >>> a, t = np.eye(2)[[0, 0, 1, 1]], np.array([[1], [0], [1], [0]])
        >>> more = np.array([[1], [1], [0], [0]])
        >>> mean, variance = multi_directional(Counts.of(a, t, a, more), "a_to_t")
        >>> mean.item(), variance.item()
        (0.5, 0.25)
    """
    pairs = multi_pairs(counts, direction, denominator=denominator, training=training)
    whole, signed, variance = multi_summary(pairs, association(training or counts))
    return (whole if absolute else signed), variance


def multi_summary(
    pairs: Float64Array, signs: IntArray
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Mean of absolute differences, mean of signed ones, population variance.

    Args:
        pairs: (..., K, M) differences.
        signs: (..., K, M) :func:`~bias_pipeline.metrics.functional.amplification.association`.

    Example:
        >>> [x.item() for x in multi_summary(np.array([[0.5, -0.5]]), np.array([[1, 1]]))]
        [0.5, 0.0, 0.25]
    """
    return nanmean(np.abs(pairs), 2), nanmean(signs * pairs, 2), _variance(pairs)


def multi_mals(
    counts: Counts, *, training: Counts | None = None
) -> tuple[Float64Array, Float64Array]:
    """Multi_MALS: mean over sets of the absolute changes with the groups they lean to; variance.

    Args:
        counts: see :func:`multi_pairs`.
        training: labels that give the groups that sets lean to and the shares before.

    Example:
        >>> a, t = np.array([[1, 0], [1, 0], [0, 1]]), np.ones((3, 1))
        >>> all_men = np.array([[1, 0], [1, 0], [1, 0]])
        >>> multi_mals(Counts.of(a, t, all_men, t))[0].round(4).item()
        0.3333
    """
    labels = (training or counts).labels
    before = share(labels, labels.sum(axis=-2, keepdims=True))
    after = share(counts.joint, counts.joint.sum(axis=-2, keepdims=True))
    whole = np.rint(labels).astype(np.int64)
    leaning = labels.shape[-2] * whole > whole.sum(axis=-2, keepdims=True)
    pairs = np.where(leaning, after - before, 0.0 * (after - before))
    return nanmean(np.abs(pairs).sum(axis=-2), 1), _variance(pairs)


def _variance(pairs: Float64Array) -> Float64Array:
    mean = nanmean(pairs, 2)
    return nanmean((pairs - mean[..., None, None]) ** 2, 2)
