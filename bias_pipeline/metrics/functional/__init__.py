"""The formulas as plain functions on arrays, usable from a notebook without any configuration.

Example:
    >>> import numpy as np
    >>> from bias_pipeline.metrics import functional
    >>> probs, truth = np.array([[0.1, 0.9], [0.6, 0.4]]), np.array([1, 1])
    >>> functional.lic(probs, truth)
    0.45
"""

from bias_pipeline.metrics.functional.amplification import directional, mals
from bias_pipeline.metrics.functional.attack import (
    accuracy_and_confidence_parts,
    expected_calibration_error,
    image_captioner2,
    inverse_cross_entropy,
    leakage,
    lic,
)
from bias_pipeline.metrics.functional.counts import Counts
from bias_pipeline.metrics.functional.fairness import epsilon
from bias_pipeline.metrics.functional.multi import multi_directional, multi_mals
from bias_pipeline.metrics.functional.relation import RELATIONS, difference, normalised, ratio

__all__ = [
    "RELATIONS",
    "Counts",
    "accuracy_and_confidence_parts",
    "difference",
    "directional",
    "epsilon",
    "expected_calibration_error",
    "image_captioner2",
    "inverse_cross_entropy",
    "leakage",
    "lic",
    "mals",
    "multi_directional",
    "multi_mals",
    "normalised",
    "ratio",
]
