"""Computes directional predictability amplification (DPA), in closed form and by label vectors.

Tables (..., G, O) say how often each of G values of the given variable occurs with each of O
classes of the other variable. Leading axes are free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.io.hashing import UIntArray
from bias_pipeline.metrics.functional.attack import normalised_difference


def flip_labels(labels: IntArray, predicted: IntArray, n_classes: int, keys: UIntArray) -> IntArray:
    """Add random errors to labels until labels are as accurate as the predictions.

    The number of changed labels is the number of wrong predictions. Each changed label becomes one
    of the other classes.

    Args:
        labels: (N,) true classes.
        predicted: (N,) predicted classes.
        n_classes: at least 2.
        keys: (N,) random numbers that decide which labels change.

    Returns:
        (N,) classes.

    Example:
        >>> truth, keys = np.array([0, 0, 1, 1]), np.array([7, 3, 9, 8], np.uint64)
        >>> flip_labels(truth, np.array([0, 0, 1, 0]), 2, keys).tolist()
        [0, 1, 1, 1]
    """
    n_wrong = int((labels != predicted).sum())
    changed = np.argsort(keys, kind="stable")[:n_wrong]
    step = 1 + (keys[changed] // np.uint64(2) % np.uint64(n_classes - 1)).astype(np.int64)
    classes = labels.copy()
    classes[changed] = (classes[changed] + step) % n_classes
    return classes


def exchange_labels(
    labels: IntArray, predicted: IntArray, n_classes: int, keys: UIntArray
) -> IntArray:
    """Exchange labels between random images until as many labels are wrong as predictions.

    Unlike :func:`flip_labels` this does not change how frequent each class is (ours). The number of
    wrong labels may differ by one from the number of wrong predictions. For two classes these
    numbers always differ by one if the number of wrong predictions is odd. There cannot be more
    wrong labels than after an exchange of all labels.

    Args:
        labels: see :func:`flip_labels`.
        predicted: see :func:`flip_labels`.
        n_classes: see :func:`flip_labels`.
        keys: (N,) random numbers that decide which images exchange labels.

    Returns:
        (N,) the same labels in another order.

    Example:
        >>> truth, keys = np.array([0, 0, 1, 1]), np.array([7, 3, 9, 8], np.uint64)
        >>> exchange_labels(truth, np.array([0, 1, 0, 1]), 2, keys).tolist()
        [0, 1, 1, 0]
    """
    del n_classes
    order = np.argsort(keys, kind="stable")
    each = labels[order]
    changes = np.cumsum(np.append(0, each[1:] != each[:-1]))
    wrong = changes + (each != each[0])  # if the first m images exchange labels in a circle
    target = (labels != predicted).sum()
    moved = order[: 1 + np.argmin(np.abs(wrong - target))]
    classes = labels.copy()
    classes[moved] = labels[np.roll(moved, 1)]
    return classes


def keep_labels(labels: IntArray, predicted: IntArray, n_classes: int, keys: UIntArray) -> IntArray:
    """The labels, unchanged; see :func:`flip_labels` for the arguments."""
    del predicted, n_classes, keys
    return labels


Equalise = Literal["flip", "exchange", "none"]
EQUALISE: Mapping[Equalise, Callable[[IntArray, IntArray, int, UIntArray], IntArray]] = {
    "flip": flip_labels,
    "exchange": exchange_labels,
    "none": keep_labels,
}


def ideal_accuracy(table: Float64Array) -> Float64Array:
    """The accuracy if the most frequent class of the given value is always predicted.

    ``sum over given values of max over classes of P(given, class)``.

    Args:
        table: (..., G, O) counts.

    Returns:
        (...) in [1/O, 1].

    Example:
        >>> ideal_accuracy(np.array([[8.0, 2.0], [2.0, 8.0]])).item()
        0.8
    """
    return np.asarray(table.max(axis=-1).sum(axis=-1) / table.sum(axis=(-2, -1)), np.float64)


def expected_equalised(table: Float64Array, accuracy: float) -> Float64Array:
    """The expected table of the labels that :func:`flip_labels` returns.

    Args:
        table: (..., G, O) counts of the true labels.
        accuracy: share of predictions that are right, in [0, 1].

    Returns:
        (..., G, O).
    """
    others = table.sum(axis=-1, keepdims=True) - table
    return accuracy * table + (1 - accuracy) * others / (table.shape[-1] - 1)


def ideal_dpa(labels: Float64Array, predicted: Float64Array, accuracy: float) -> Float64Array:
    """The DPA of an ideal attacker on very many images, where the attacker is scored by accuracy.

    Args:
        labels: (..., G, O) counts of given value and true class.
        predicted: (..., G, O) counts of given value and predicted class.
        accuracy: accuracy of the predictions, to which the labels are brought too; 1 leaves the
            labels unchanged.

    Returns:
        (...) in (-1, 1), above 0 if predictions are easier to guess than labels.

    Source: Tokas et al. 2024, in closed form (ours).

    Example:
        >>> even, uneven = np.array([[6.0, 4.0], [4.0, 6.0]]), np.array([[9.0, 1.0], [1.0, 9.0]])
        >>> ideal_dpa(even, uneven, 1.0).round(3).item()
        0.2
    """
    human = ideal_accuracy(expected_equalised(labels, accuracy))
    return normalised_difference(ideal_accuracy(predicted), human)
