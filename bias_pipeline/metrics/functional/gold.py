"""Numbers under true labels, from a machine's labels of all images and gold labels of some.

Images fall into cells by what their caption says and by the machine's label. The true labels of a
cell are those of its gold images, so numbers of captions and true labels need no image's true
label (:func:`true_label_counts`). Means over images, and smooth functions of means, are corrected
by how far the machine's labels move them where the true labels are known
(:func:`prediction_powered`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.functional.counts import share

# Of Dirichlet distributions, in gold images: Jeffreys' 1/2. With 1/2 for an error in each of the
# large cells that almost never err, rare rates would seem too high.
PRIOR = 0.5
PRIOR_AGAINST_BOTH = 0.25  # of a label that contradicts machine and caption where these agree
# What is beside the K groups: of labels (unsure, other), of captions (no group, several, declined).
NO_GROUP_LABELS, NO_GROUP_OUTCOMES = 2, 3


def label_priors(n_groups: int) -> Float64Array:
    """(K + 3, K + 2, K + 2) the prior of each true label, by caption and machine label.

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
    """(..., C, T) images of each cell by true label, of which gold shows only some.

    Args:
        cells: (..., C) images in each cell.
        gold: (..., C, T) its gold images by true label, with the prior.

    Example:
        >>> true_label_counts(np.array([90.0, 10.0]), np.array([[3.0, 0.0], [2.0, 2.0]])).tolist()
        [[90.0, 0.0], [5.0, 5.0]]
    """
    shares = share(gold, gold.sum(axis=-1, keepdims=True))
    counts: Float64Array = np.where(cells[..., None] > 0, cells[..., None] * shares, 0.0)
    return counts


class PredictionPowered(NamedTuple):
    """A number corrected by gold labels."""

    value: float
    error: float  # its standard deviation
    weight: float  # lambda: how much the machine's labels count, 0 (not at all) to 1


Smooth = Callable[[Float64Array], float]  # of M means
Gradient = Callable[[Float64Array], Float64Array]  # (M,) at M means


def prediction_powered(
    number: Smooth,
    gradient: Gradient,
    gold: Float64Array,
    machine: Float64Array,
    rest: Float64Array,
) -> PredictionPowered:
    """A smooth function of means over images, corrected by gold labels of images drawn at random.

    The mean is mean(gold) + lambda (mean(rest) - mean(machine)). Lambda gives the smallest
    variance, so the interval is at most as wide as that of gold labels alone. It holds from about
    30 gold images with the rarer outcome on.

    Args:
        number: of the M means.
        gradient: of the same.
        gold: (n, M) what each gold image adds to the means by its true label.
        machine: (n, M) the same by the machine's label.
        rest: (N - n, M) by the machine's label, of all other images.

    Source: Angelopoulos et al. 2023 (PPI++).

    Example:
        >>> labels = np.array([[0.0], [1.0], [1.0], [0.0]])
        >>> first = (lambda means: float(means[0])), (lambda means: np.ones(1))
        >>> prediction_powered(*first, labels, labels, np.repeat(labels, 9, axis=0)).value
        0.5
    """
    n, others = len(gold), len(rest)
    apart = rest.mean(axis=0) - machine.mean(axis=0)
    start = gold.mean(axis=0) + apart
    slope = gradient(np.where(start > 0, start, gold.mean(axis=0)))
    guessed = machine @ slope
    variance = float(np.var(np.append(guessed, rest @ slope), ddof=1))
    covariance = float(np.cov(gold @ slope, guessed)[0, 1])
    weight = covariance / ((1 + n / others) * variance) if variance > 0 else 0.0
    weight = float(np.clip(weight, 0.0, 1.0))
    means = np.maximum(gold.mean(axis=0) + weight * apart, 0.0)
    slope = gradient(means)
    left = gold @ slope - weight * (machine @ slope)
    spread = float(np.var(left, ddof=1)) / n
    spread += weight**2 * float(np.var(rest @ slope, ddof=1)) / others
    return PredictionPowered(number(means), math.sqrt(spread), weight)
