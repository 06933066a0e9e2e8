"""Differential fairness (Foulds et al. 2020) of what captions name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bias_pipeline.array_types import Float64Array

PRIORS: Mapping[str, float] = {
    "none": 0.0,
    "jeffreys": 0.5,
    "laplace": 1.0,
    "proportional": 1.0,
    "share": 0.02,
}


def pseudo_counts(groups: Float64Array, prior: str) -> Float64Array:
    """(..., K) alpha of each group, see :func:`epsilons`.

    Args:
        groups: (..., K) captions of a group.
        prior: of :data:`PRIORS`.

    Example:
        >>> pseudo_counts(np.array([30.0, 10.0]), "proportional").tolist()
        [1.5, 0.5]
    """
    if prior == "share":
        return PRIORS[prior] * groups
    if prior == "proportional":
        return np.asarray(groups / groups.mean(axis=-1, keepdims=True), np.float64)
    return PRIORS[prior] * np.ones_like(groups)


def epsilons(
    joint: Float64Array, groups: Float64Array, prior: str = "proportional"
) -> Float64Array:
    """How unequally groups get each task: max over pairs of groups of |ln P(t|a) - ln P(t|a')|.

    P(t|a) = (c(a, t) + alpha) / (c(a) + 2 alpha), the mean of a beta posterior. The same alpha for
    all groups is not neutral if groups differ in size: the smaller group then seems to get more of
    a task that is never named. ``proportional`` distributes it by size (ours).

    Args:
        joint: (..., K, T) captions of a group that name a task.
        groups: (..., K) captions of a group.
        prior: name of alpha: ``laplace`` 1, ``jeffreys`` 1/2, ``none`` 0, ``proportional`` 1 on
            average, K c(a) / c for a group, ``share`` 0.02 c(a): it adds 2 % of captions to every
            task whatever the number of images. Under the others epsilon depends on that number,
            since few captions make a largest ratio larger (ours).

    Returns:
        (..., T), 0 or more; NaN without captions of some group, and, with no prior, where a group
        is never given the task.

    Example:
        >>> counts = np.array([[20.0], [10.0]])
        >>> epsilons(counts, np.array([100.0, 100.0]), "none").round(4).tolist()
        [0.6931]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = pseudo_counts(groups, prior)
        rate = (joint + alpha[..., :, None]) / (groups + 2 * alpha)[..., :, None]
        logs = np.log(np.where((rate > 0) & (groups > 0)[..., :, None], rate, np.nan))
    spread: Float64Array = logs.max(axis=-2) - logs.min(axis=-2)
    return spread


def differential_fairness(
    joint: Float64Array, groups: Float64Array, prior: str = "proportional"
) -> Float64Array:
    """Differential fairness: the largest of :func:`epsilons`, NaN if none is known.

    Example:
        >>> joint, groups = np.array([[20.0, 5], [10, 5]]), np.array([100.0, 100])
        >>> differential_fairness(joint, groups, "none").round(4).item()
        0.6931
    """
    each = epsilons(joint, groups, prior)
    known = np.isfinite(each)
    largest = np.where(known, each, -np.inf).max(axis=-1, initial=-np.inf)
    return np.where(known.any(axis=-1), largest, np.nan)
