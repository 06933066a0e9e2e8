"""How a score grows with the number of images that attackers learn from.

The same attackers learn from half and from a quarter of their images, and are tested on all.
Attackers learn more from more images, so a score that still grows has no meaning without their
number.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.metrics.base import Part
from bias_pipeline.metrics.value_names import PartName

SHARES = {"half": 1 / 2, "quarter": 1 / 4}
LEAST_TO_LEARN_FROM = 20  # images of each group
_OF_THEM = {"half": "half", "quarter": "a quarter"}
_WHOSE = {"": "", "a_to_t": " of A→T", "t_to_a": " of T→A"}


def learning_parts(curve: Mapping[str, Part], direction: str = "") -> dict[str, Part]:
    """Parts such as ``learning:half`` and ``a_to_t:learning:half``, from those of the shares."""
    return {
        PartName("learning", direction=direction, detail=share): part
        for share, part in curve.items()
    }


def smaller_shares(codes: IntArray) -> dict[str, float]:
    """The shares that leave every group enough images to learn from.

    Args:
        codes: (N,) the group of each image.

    Example:
        >>> smaller_shares(np.repeat([0, 1], 50))
        {'half': 0.5}
    """
    fewest = np.bincount(codes).min()
    return {name: share for name, share in SHARES.items() if fewest * share >= LEAST_TO_LEARN_FROM}


def learning_note(
    whole: Part, curve: Mapping[str, Part], error: float, direction: str = ""
) -> list[str]:
    """How far a score is from level, in a sentence; none without a curve.

    Args:
        whole: the score of attackers that learn from all of their images.
        curve: share to the score of those that learn from fewer, the largest share first.
        error: of the score, from its images; what grows by less counts as level.
        direction: of the score, empty if it has none.
    """
    if not curve:
        return []
    values = ", ".join(
        f"{100 * part.estimate.value:.1f} on {_OF_THEM[share]} of them"
        for share, part in curve.items()
    )
    score, half = (one.estimate.value for one in (whole, next(iter(curve.values()))))
    grows = not abs(score) <= abs(half) + error
    meaning = "it still grows: compare captioners on equally many images" if grows else "level"
    everything = f"{100 * score:.1f} on all training images"
    return [f"learning curve{_WHOSE[direction]}: {everything}, {values}; {meaning}"]
