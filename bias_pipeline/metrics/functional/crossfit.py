"""Measures amplification. The direction and the size of a bias come from different images.

The published formulas take direction and size from the same labels. Then noise in the labels can
choose the direction, and this noise is later subtracted as if it were a bias that captions lack. So
with fewer images the result lies further below the truth. Here images are split into F folds. Each
fold uses the directions found on the other folds. This method is ours; ``experiments/inference``
measures both ways.

In all functions, the first axis of counts is the fold. Other leading axes are free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.functional.amplification import (
    association,
    leaning,
    of_task,
    predicted_pairs,
)
from bias_pipeline.metrics.functional.counts import Counts, nanmean, share


def sum_folds(folds: Counts) -> Counts:
    return Counts(**{field.name: getattr(folds, field.name).sum(axis=0) for field in fields(folds)})


def _folds_with_others(folds: Counts) -> Iterator[tuple[Counts, Counts]]:
    together = sum_folds(folds)
    for k in range(len(folds.total)):
        values = {field.name: getattr(folds, field.name)[k] for field in fields(folds)}
        others = {name: getattr(together, name) - value for name, value in values.items()}
        yield Counts(**values), Counts(**others)


def t_to_a_pairs(folds: Counts, *, tie: str = "zero", denominator: str = "images") -> Float64Array:
    """(..., K, T): the value that each pair adds to BA-> T→A.

    The value is NaN where a probability is undefined.

    Example:
        One image of each group in each fold; both folds and the captions agree.

        >>> one = np.eye(2)
        >>> counts = Counts.from_rows(one, one, one, one)
        >>> folds = Counts(*(np.stack([getattr(counts, f.name)] * 2) for f in fields(counts)))
        >>> t_to_a_pairs(folds).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """
    together = sum_folds(folds)
    named, labelled = of_task(together, denominator)[..., None, :], together.tasks[..., None, :]
    total = np.zeros_like(together.labels)
    for fold, others in _folds_with_others(folds):
        signs = association(others)
        signs = np.where(signs == 0, -1 if tie == "negative" else 0, signs)
        total += signs * (share(fold.group_given_task, named) - share(fold.labels, labelled))
    return total


def mals_tasks_of_folds(folds: Counts, *, predictions: str = "joint") -> Float64Array:
    """(..., T): the value that each task adds to BA_MALS.

    The value is NaN where labels or predictions lack the task.
    """
    together = sum_folds(folds)
    predicted = predicted_pairs(together, predictions).sum(axis=-2, keepdims=True)
    labelled = together.labels.sum(axis=-2, keepdims=True)
    total = np.zeros_like(together.labels)
    for fold, others in _folds_with_others(folds):
        change = share(predicted_pairs(fold, predictions), predicted) - share(fold.labels, labelled)
        total += np.where(leaning(others), change, 0 * change)  # NaN stays NaN
    sums: Float64Array = total.sum(axis=-2)
    return sums


def mean_of_tasks(tasks: Float64Array, absent: str) -> Float64Array:
    """BA_MALS, the mean of the values that (..., T) tasks add."""
    return nanmean(np.nan_to_num(tasks, nan=0.0) if absent == "keep" else tasks, 1)
