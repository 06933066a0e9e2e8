"""When two numbers agree that were made with different splits of the same images.

The difference of two means over independent splits has the standard error
sqrt(s1^2 / S1 + s2^2 / S2). They agree where they differ by three of those at most, or four where
ten numbers are looked at together, plus what comes of two solvers that stop early.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

ALONE = 3.0
TOGETHER = 4.0
SOLVERS = 5e-4


@dataclass(frozen=True)
class Mean:
    """A mean over splits and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f}"


def mean(values: npt.ArrayLike) -> Mean:
    """The mean of one number a split, absent ones left out.

    Example:
        >>> print(mean([0.1, 0.3]))
        0.2000 ± 0.1000
    """
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    return Mean(float(known.mean()), float(known.std(ddof=1) / math.sqrt(len(known))))


def agree(ours: Mean, witness: Mean, errors: float = ALONE) -> bool:
    """Whether they differ by no more than chance and solvers explain; absent ones never agree.

    Example:
        >>> agree(Mean(0.20, 0.01), Mean(0.24, 0.01)), agree(Mean(0.20, 0.01), Mean(0.25, 0.01))
        (True, False)
    """
    allowed = errors * math.hypot(ours.error, witness.error) + SOLVERS
    return abs(ours.value - witness.value) <= allowed


def odd_ones(
    ours: Mapping[str, Mean], witness: Mapping[str, Mean], errors: float = TOGETHER
) -> dict[str, str]:
    """Those of the witness's numbers that do not agree, with what they are."""
    return {
        name: f"{ours[name]}, the witness {number}"
        for name, number in witness.items()
        if not agree(ours[name], number, errors)
    }
