"""Estimates counts by true label from machine labels of all images and gold labels of some.

Images with the same machine label and the same group in the caption form a cell. The gold images of
a cell show how true labels are distributed in the cell, so not every image needs a true label.
Scores of attackers' guesses are corrected by PPI++ instead, which weights machine labels by their
usefulness (:func:`machine_weight`).
"""

from __future__ import annotations

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.functional.counts import share

# The prior of Dirichlet distributions, counted in gold images: Jeffreys' 1/2. If it were 1/2 for an
# error in each of the large cells that almost never err, rare rates would seem too high.
PRIOR = 0.5
PRIOR_AGAINST_BOTH = 0.25  # prior of a label if machine and caption agree on another
# How many values there are besides the K groups: of labels (unsure, other), and of captions (no
# group, several, declined).
NO_GROUP_LABELS, NO_GROUP_OUTCOMES = 2, 3


def label_priors(n_groups: int) -> Float64Array:
    """(K + 3, K + 2, K + 2): the prior of each true label, by caption and machine label.

    Example:
        >>> label_priors(2)[0, 0].tolist(), label_priors(2)[0, 1].tolist()
        ([0.5, 0.25, 0.25, 0.25], [0.5, 0.5, 0.5, 0.5])
    """
    n_labels = n_groups + NO_GROUP_LABELS
    priors = np.full((n_groups + NO_GROUP_OUTCOMES, n_labels, n_labels), PRIOR)
    for group in range(n_groups):
        priors[group, group] = PRIOR_AGAINST_BOTH
        priors[group, group, group] = PRIOR
    return priors


def true_label_counts(cells: Float64Array, gold: Float64Array) -> Float64Array:
    """(..., C, T): estimated numbers of images by true label in (..., C) cells.

    ``gold`` has (..., C, T) gold images, plus the prior.

    Example:
        >>> true_label_counts(np.array([90.0, 10.0]), np.array([[3.0, 0.0], [2.0, 2.0]])).tolist()
        [[90.0, 0.0], [5.0, 5.0]]
    """
    shares = share(gold, gold.sum(axis=-1, keepdims=True))
    counts: Float64Array = np.where(cells[..., None] > 0, cells[..., None] * shares, 0.0)
    return counts


def machine_weight(
    true: Float64Array, machine: Float64Array, spread: float, n_gold: int, n_rest: int
) -> float:
    """The lambda of PPI++, in [0, 1]: the weight of machine labels that minimises the variance.

    Lambda is 0 if machine labels say nothing about true labels, or if every image has a gold label.
    ``true`` and ``machine`` (n,) are what each gold image adds to the number under its true label
    and under its machine label. ``spread`` is the variance of what images add under machine labels.

    Source: Angelopoulos et al. 2023 (PPI++).

    Example:
        >>> labels = np.array([0.0, 1.0, 1.0, 0.0])
        >>> round(machine_weight(labels, labels, labels.var(ddof=1), 4, 36), 3)
        0.9
    """
    if not n_rest or not spread > 0 or n_gold < 2:
        return 0.0
    covariance = float(np.cov(true, machine)[0, 1])
    return float(min(max(covariance / ((1 + n_gold / n_rest) * spread), 0.0), 1.0))
