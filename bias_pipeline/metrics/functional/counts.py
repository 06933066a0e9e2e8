"""Counts of groups and tasks in labels and in predictions, for all counting metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float64Array


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each of K groups occurs with each of T tasks; leading axes are free.

    *Labelled* means the ground truth, and *predicted* means what the captioner's captions name.
    """

    total: Float64Array  # (...) observations of the labels
    groups: Float64Array  # (..., K) labelled group
    tasks: Float64Array  # (..., T) labelled task
    labels: Float64Array  # (..., K, T) labelled group and labelled task
    captioned: Float64Array  # (..., K) labelled group, once for each of the captioner's captions
    task_given_group: Float64Array  # (..., K, T) labelled group and predicted task
    group_given_task: Float64Array  # (..., K, T) predicted group and labelled task
    joint: Float64Array  # (..., K, T) predicted group and predicted task

    @classmethod
    def from_rows(
        cls,
        groups: Float64Array,
        tasks: Float64Array,
        predicted_groups: Float64Array,
        predicted_tasks: Float64Array,
        weights: Float64Array | None = None,
    ) -> Counts:
        """Count N rows. Groups (N, K) and tasks (N, T) are given as 0 and 1.

        Groups are one-hot. If no single group is predicted, the row of predicted groups is all
        zero. ``weights`` (N,) says for how many images each row counts (default: one).

        Example:
            >>> one = np.eye(2)
            >>> Counts.from_rows(one, one, one, one, np.array([3.0, 2.0])).joint.tolist()
            [[3.0, 0.0], [0.0, 2.0]]
        """
        each = np.ones(len(groups)) if weights is None else np.asarray(weights, np.float64)
        a, t, a_hat, t_hat = (
            np.asarray(x, np.float64) for x in (groups, tasks, predicted_groups, predicted_tasks)
        )
        # One product for all counts of a table, since reading the table takes most of the time
        sides = np.concatenate([each[:, None], a * each[:, None], a_hat * each[:, None]], axis=1)
        (tasks, *pairs), (_, *predicted) = sides.T @ t, sides.T @ t_hat
        ends = slice(0, a.shape[1]), slice(a.shape[1], None)
        labels, group_given_task = (np.array(pairs)[rows] for rows in ends)
        task_given_group, joint = (np.array(predicted)[rows] for rows in ends)
        groups = each @ a
        return cls(
            total=each.sum(),
            groups=groups,
            tasks=tasks,
            labels=labels,
            captioned=groups,
            task_given_group=task_given_group,
            group_given_task=group_given_task,
            joint=joint,
        )


def share(part: Float64Array, whole: Float64Array) -> Float64Array:
    """The quotient ``part / whole``, which is NaN where the whole is 0.

    Example:
        >>> share(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
        [0.25, nan]
    """
    part, whole = np.broadcast_arrays(part, whole)
    quotient = np.full(part.shape, np.nan)
    return np.divide(part, whole, out=quotient, where=whole != 0)


def weighted_mean(values: Float64Array, weights: Float64Array) -> Float64Array:
    """The weighted mean over the last axis.

    NaN values are left out; without other values the result is NaN.

    Example:
        >>> weighted_mean(np.array([1.0, 3.0, np.nan]), np.array([3.0, 1.0, 9.0])).item()
        1.5
    """
    known = np.isfinite(values)
    used = np.where(known, weights, 0.0)
    return share((np.where(known, values, 0.0) * used).sum(axis=-1), used.sum(axis=-1))


def nanmean(values: Float64Array, axes: int) -> Float64Array:
    """The mean over the last ``axes`` axes without NaN values; NaN if all values are NaN.

    Example:
        >>> nanmean(np.array([[1.0, np.nan], [np.nan, np.nan]]), 1).tolist()
        [1.0, nan]
    """
    over = tuple(range(-axes, 0))
    known = np.isfinite(values)
    return share(np.where(known, values, 0.0).sum(axis=over), known.sum(axis=over))
