"""What attackers are asked, as outputs of a linear model, and its scores as probabilities."""

from __future__ import annotations

import numpy as np
from scipy import special

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.predictions import LabelledCaptions


def outputs_of(data: LabelledCaptions) -> Float64Array:
    """(N, T, K) the truth: T tasks under a sigmoid each, else one task.

    Two groups have one output under a sigmoid, K > 2 one each under a softmax.
    """
    if data.multi_label:
        return data.labels[:, :, None].astype(np.float64)
    if data.n_classes == 2:
        return data.labels[:, None, None].astype(np.float64)
    return np.eye(data.n_classes)[data.labels][:, None]


def probabilities_of(scores: Float64Array, data: LabelledCaptions) -> Float64Array:
    """(M, T, K) scores to (M, T) for tasks, else (M, n_classes)."""
    if data.multi_label:
        return special.expit(scores[:, :, 0])
    if data.n_classes == 2:
        p = special.expit(scores[:, 0])
        return np.hstack([1 - p, p])
    return np.asarray(special.softmax(scores[:, 0], axis=1), np.float64)
