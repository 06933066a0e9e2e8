"""``debias=clip_clip``: vectors without the numbers that tell most of the group.

Wang, Liu and Wang, Are Gender-Neutral Queries Really Gender-Neutral? (EMNLP 2021), section 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bias_pipeline.debias.base import Debias, Examples, FloatArray, edited, means_of
from bias_pipeline.debias.neurons import Overwriting, most_relevant
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.inference.embedders import DualEncoder


@dataclass(frozen=True)
class ClipClip(Debias):
    """Cuts the k numbers of a vector off that have most mutual information with the group.

    Numbers are judged on pictures alone, and the same ones are cut from texts and pictures. Without
    ``renormalise``, as in their code, cutting them from either side cuts them from the similarity,
    so ``side`` then changes no ranking. They cut 112 of 512 numbers (112 is no default here: other
    vectors are shorter). The first release of their code found those numbers and then cut the last
    112 instead; a later one is as the paper says, and so is this.

    Attributes:
        bins: of the histogram from which the information is read.
        smoothing: how far it is smoothed along the number, in bins; 0: not. Theirs smooths along
            the group too, which spreads groups without mixing them.
    """

    bins: Count = 64
    smoothing: NotNegative = 1.0
    renormalise: bool = False

    @property
    def sides(self) -> tuple[str, ...]:
        """Pictures: whatever side is edited, they alone are learnt from."""
        return ("image",)

    def fit(self, examples: Examples) -> Overwriting:
        """The numbers that are cut.

        Raises:
            DataError: if a group has no example.
            UsageError: if there are not so many numbers.
        """
        means_of(examples)  # every group is there
        self.check_size(examples.vectors)
        told = information(examples, self.bins, self.smoothing)
        return Overwriting(most_relevant(told, self.k), np.zeros(self.k))

    def around(self, dual: DualEncoder, examples: Mapping[str, Examples]) -> DualEncoder:
        """See the base; texts lose what pictures lose."""
        own = self.fit(examples["image"])
        return edited(dual, dict.fromkeys(super().sides, own), renormalise=self.renormalise)


def information(examples: Examples, bins: int, smoothing: float) -> FloatArray:
    """(D,) mutual information of each number of a vector and the group, in nats.

    Args:
        examples: of each group.
        bins: equally wide ones, from the least to the largest value of a number.
        smoothing: standard deviation of the Gaussian that the histogram of each group is smoothed
            with, in bins; what falls off its ends is lost.

    Example:
        >>> vectors = np.array([[0.0, 1.0], [0.1, 0.0], [0.9, 1.0], [1.0, 0.0]])
        >>> examples = Examples(vectors, np.array([0, 0, 1, 1]), np.full(4, -1), ("a", "b"), 0)
        >>> information(examples, 4, 0.0).round(3).tolist()
        [0.693, 0.0]
    """
    from scipy import ndimage

    found = np.zeros(examples.vectors.shape[1])
    for number, own in enumerate(examples.vectors.T):
        span = (float(own.min()), float(own.max()))
        joint = np.stack(
            [
                np.histogram(own[examples.groups == group], bins, span)[0].astype(np.float64)
                for group in range(len(examples.names))
            ]
        )
        if smoothing > 0:
            joint = ndimage.gaussian_filter1d(joint, smoothing, axis=1, mode="constant")
        joint /= joint.sum()
        apart = joint.sum(axis=0) * joint.sum(axis=1, keepdims=True)
        some = joint > 0
        found[number] = max((joint[some] * np.log(joint[some] / apart[some])).sum(), 0.0)
    return found
