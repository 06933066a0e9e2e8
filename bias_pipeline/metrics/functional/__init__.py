"""The formulas as plain functions on arrays, usable from a notebook without any configuration.

Example:
    >>> import numpy as np
    >>> from bias_pipeline.metrics import functional
    >>> probs, truth = np.array([[0.1, 0.9], [0.6, 0.4]]), np.array([1, 1])
    >>> functional.lic(probs, truth)
    0.45
"""

from bias_pipeline.metrics.functional.amplification import (
    ba_directional,
    ba_mals,
    multi_directional,
    multi_mals,
)
from bias_pipeline.metrics.functional.attack import (
    RELATIONS,
    accuracy_and_confidence_parts,
    difference,
    expected_calibration_error,
    imagecaptioner2,
    inverse_cross_entropy,
    leakage,
    lic,
    normalised_difference,
    ratio,
)
from bias_pipeline.metrics.functional.counts import Counts
from bias_pipeline.metrics.functional.groups import (
    differential_fairness,
    gender_error,
    gender_ratio,
)

__all__ = [
    "RELATIONS",
    "Counts",
    "accuracy_and_confidence_parts",
    "ba_directional",
    "ba_mals",
    "difference",
    "differential_fairness",
    "expected_calibration_error",
    "gender_error",
    "gender_ratio",
    "imagecaptioner2",
    "inverse_cross_entropy",
    "leakage",
    "lic",
    "multi_directional",
    "multi_mals",
    "normalised_difference",
    "ratio",
]
