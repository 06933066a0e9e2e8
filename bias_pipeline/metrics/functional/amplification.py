"""Bias amplification by counting: BA_MALS (Zhao 2017) and BA-> (Wang and Russakovsky 2021).

All functions take :class:`~bias_pipeline.metrics.functional.counts.Counts` of K groups and T tasks;
leading axes are free. Undefined pairs are NaN and left out of means; the caller reports them.
"""

from __future__ import annotations

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.metrics.functional.counts import Counts, nanmean, share

TIES = ("zero", "negative")
DENOMINATORS = ("images", "named")
PREDICTIONS = ("joint", "task", "group")
ABSENT = ("keep", "drop")
UNDEFINED = ("drop", "keep")


def association(counts: Counts) -> IntArray:
    """Which way group and task are correlated in the labels: 1, -1, and 0 if independent.

    Computed with integers, n c(a, t) against c(a) c(t): in floating point 3/15 is not 5/15 9/15.

    Args:
        counts: only the labels' counts are used; they must be whole numbers.

    Returns:
        (..., K, T).
    """
    n, a, t, both = (
        np.rint(x).astype(np.int64)
        for x in (counts.total, counts.groups, counts.tasks, counts.labels)
    )
    return np.sign(n[..., None, None] * both - a[..., :, None] * t[..., None, :])


def directional_pairs(
    counts: Counts,
    direction: str,
    *,
    tie: str = "zero",
    denominator: str = "images",
    training: Counts | None = None,
) -> Float64Array:
    """Amplification of each pair in one direction, above 0 where a correlation grows.

    ``y D - (1 - y) D`` with y = 1 where P(a, t) > P(a) P(t) in the labels, and D the predicted
    minus the labelled conditional probability: P(t^ | a) - P(t | a) for ``a_to_t``, P(a^ | t) -
    P(a | t) for ``t_to_a``.

    Args:
        counts: of the images that are scored.
        direction: ``a_to_t`` or ``t_to_a``.
        tie: sign of exact independence: ``zero`` (as the authors' code) or ``negative``
            (y = 0, as the paper writes).
        denominator: of P(a^ | t): ``images`` with task t, where a caption that names no group
            counts as 0 for every group (the authors' first code), or ``named``: only those whose
            caption names a group (their count tables).
        training: labels that give the correlation; the same labels if left out.

    Returns:
        (..., K, T) in [-1, 1], NaN where a conditional probability is undefined.

    Source: Wang and Russakovsky 2021, eq. 2-3.
    """
    if direction == "a_to_t":
        labelled = share(counts.labels, counts.groups[..., :, None])
        predicted = share(counts.task_given_group, counts.captioned[..., :, None])
    else:
        labelled = share(counts.labels, counts.tasks[..., None, :])
        predicted = share(counts.group_given_task, of_task(counts, denominator)[..., None, :])
    signs = association(training or counts)
    return np.where(signs == 0, -1 if tie == "negative" else 0, signs) * (predicted - labelled)


def directional(
    counts: Counts,
    direction: str,
    *,
    tie: str = "zero",
    denominator: str = "images",
    undefined: str = "drop",
    training: Counts | None = None,
) -> Float64Array:
    """BA-> in one direction: mean of :func:`directional_pairs`, in [-1, 1], 0 if nothing changes.

    Args:
        counts: see :func:`directional_pairs`.
        direction: see there.
        tie: see there.
        denominator: see there.
        undefined: whether undefined pairs leave the mean (``drop``, as the authors' first code)
            or count as no change in it (``keep``, as their count tables).
        training: see there.

    Example:
        From the authors: one task, two groups, eight images.

        >>> groups = np.array([[0, 1]] * 3 + [[1, 0]] * 5)
        >>> labels = np.array([[0, 1, 1, 0, 0, 0, 0, 1]]).T
        >>> predicted = np.array([[1, 1, 1, 0, 0, 0, 0, 0]]).T
        >>> directional(Counts.of(groups, labels, groups, predicted), "a_to_t").round(4).item()
        0.2667
    """
    pairs = directional_pairs(
        counts, direction, tie=tie, denominator=denominator, training=training
    )
    return nanmean(np.nan_to_num(pairs, nan=0.0) if undefined == "keep" else pairs, 2)


def mals_tasks(
    counts: Counts, *, predictions: str = "joint", training: Counts | None = None
) -> Float64Array:
    """What each task adds to BA_MALS: how much its share with the groups it leans to grows.

    ``sum over groups a with b*(a, t) > 1/K of b~(a, t) - b*(a, t)``, where b(a, t) is the share of
    a among the images with t. The threshold is strict, and computed with integers.

    Args:
        counts: of the images that are scored.
        predictions: b~ of ``joint`` predictions (the paper), of the predicted ``task`` with the
            labelled group, or of the predicted ``group`` with the labelled task.
        training: labels that give b*; the same labels if left out.

    Returns:
        (..., T) in [-1, 1], NaN where the task is absent from labels or predictions (0/0).
    """
    of_labels = training or counts
    before, after = _shares(of_labels.labels), _shares(predicted_pairs(counts, predictions))
    change = after - before
    total: Float64Array = np.where(leaning(of_labels), change, 0.0).sum(axis=-2)
    return np.where(np.isnan(change).any(axis=-2), np.nan, total)


def mals(
    counts: Counts,
    *,
    predictions: str = "joint",
    absent: str = "keep",
    training: Counts | None = None,
) -> Float64Array:
    """BA_MALS: (1 / number of tasks) times the sum of :func:`mals_tasks`, in [-1, 1].

    Args:
        counts: see :func:`mals_tasks`.
        predictions: see there.
        absent: whether a task that is 0/0 counts as no change (``keep``, as the public code) or
            leaves the number of tasks too (``drop``).
        training: see there.

    Returns:
        (...), NaN where no task counts.

    Source: Zhao et al. 2017, section 3.

    Example:
        >>> a, t = np.array([[1, 0], [1, 0], [0, 1]]), np.ones((3, 1))
        >>> all_men = np.array([[1, 0], [1, 0], [1, 0]])
        >>> mals(Counts.of(a, t, all_men, t)).round(4).item()
        0.3333
    """
    tasks = mals_tasks(counts, predictions=predictions, training=training)
    return nanmean(np.nan_to_num(tasks, nan=0.0) if absent == "keep" else tasks, 1)


def mals_of_ratios(before: Float64Array, after: Float64Array, n_groups: int = 2) -> float:
    """BA_MALS of published tables, which give each task's ratio to one of two groups.

    Args:
        before: (T,) b* of the first group.
        after: (T,) b~ of the first group.
        n_groups: K; only 2 tables of this form exist.

    Example:
        >>> round(mals_of_ratios(np.array([0.6, 0.3]), np.array([0.7, 0.2])), 3)
        0.1
    """
    leaning = np.sign(before - 1 / n_groups)
    return float((leaning * (after - before)).mean())


def predicted_pairs(counts: Counts, predictions: str) -> Float64Array:
    """(..., K, T) pairs by prediction, see :func:`mals_tasks`."""
    return {
        "joint": counts.joint,
        "task": counts.task_given_group,
        "group": counts.group_given_task,
    }[predictions]


def leaning(counts: Counts) -> BoolArray:
    """(..., K, T) whether more than 1/K of a task's labels are of a group, computed with integers.

    Args:
        counts: only the labels' counts are used; they must be whole numbers.
    """
    labels = np.rint(counts.labels).astype(np.int64)
    return np.asarray(labels.shape[-2] * labels > labels.sum(axis=-2, keepdims=True))


def of_task(counts: Counts, denominator: str) -> Float64Array:
    """(..., T) observations that P(a^ | t) is a share of, see :func:`directional_pairs`."""
    if denominator == "images":
        return counts.tasks
    named: Float64Array = counts.group_given_task.sum(axis=-2)
    return named


def _shares(pairs: Float64Array) -> Float64Array:
    """(..., K, T) share of each group among the observations of a task."""
    return share(pairs, pairs.sum(axis=-2, keepdims=True))
