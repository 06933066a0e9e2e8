"""Multi-attribute bias amplification (Zhao et al. 2023): tasks taken in sets.

Functions take :class:`~bias_pipeline.metrics.functional.counts.Counts` whose T tasks are sets
(:mod:`bias_pipeline.metrics.functional.task_sets`). Each returns the mean and the population
variance of the signed differences, over all groups and sets.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bias_pipeline.metrics.functional.amplification import association
from bias_pipeline.metrics.functional.counts import Counts, known_mean, share

FloatArray = npt.NDArray[np.float64]


def multi_pairs(
    counts: Counts, direction: str, *, denominator: str = "images", training: Counts | None = None
) -> FloatArray:
    """(..., K, M) predicted less labelled conditional probability, without any sign.

    Args:
        counts: of the images that are scored.
        direction: ``a_to_t`` (groups to sets) or ``t_to_a``.
        denominator: see
            :func:`bias_pipeline.metrics.functional.amplification.directional_pairs`.
        training: labels that are subtracted, as the paper has it; those of ``counts`` (as the
            public code does) if left out.
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
) -> tuple[FloatArray, FloatArray]:
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
    whole, signed, variance = summary(pairs, association(training or counts))
    return (whole if absolute else signed), variance


def summary(
    pairs: FloatArray, signs: npt.NDArray[np.int64]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean of absolute differences, mean of signed ones, population variance.

    Args:
        pairs: (..., K, M) differences.
        signs: (..., K, M) :func:`~bias_pipeline.metrics.functional.amplification.association`.

    Example:
        >>> [x.item() for x in summary(np.array([[0.5, -0.5]]), np.array([[1, 1]]))]
        [0.5, 0.0, 0.25]
    """
    return known_mean(np.abs(pairs), 2), known_mean(signs * pairs, 2), _variance(pairs)


def multi_mals(counts: Counts, *, training: Counts | None = None) -> tuple[FloatArray, FloatArray]:
    """Multi_MALS: mean over sets of the absolute changes with the groups they lean to; variance.

    Args:
        counts: see :func:`multi_pairs`.
        training: where the leaning and the share before are read off.

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
    return known_mean(np.abs(pairs).sum(axis=-2), 1), _variance(pairs)


def _variance(pairs: FloatArray) -> FloatArray:
    mean = known_mean(pairs, 2)
    return known_mean((pairs - mean[..., None, None]) ** 2, 2)
