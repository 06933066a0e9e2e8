"""``debias=clip_clip``: removes the dimensions with most information on the group.

Wang, Liu and Wang, Are Gender-Neutral Queries Really Gender-Neutral? (EMNLP 2021), section 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.debias.base import Debias, Examples, edited, means_of
from bias_pipeline.debias.neurons import Overwriting, most_relevant
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.inference.embedders import DualEncoder


@dataclass(frozen=True)
class ClipClip(Debias):
    """Sets the k dimensions with most mutual information with the group to 0.

    The dimensions are chosen on pictures and cut from texts and pictures. Without ``renormalise``,
    as in their code, cutting one side removes them from the similarity, so ``side`` changes no
    ranking. They cut 112 of 512 dimensions (not the default here: other vectors are shorter). The
    first release of their code cut the last 112 dimensions by mistake; a later one follows the
    paper, as we do.

    Attributes:
        bins: of the histogram that estimates the information.
        smoothing: width of the smoothing over values, in bins; 0: none. Theirs also smooths over
            groups, which spreads groups without mixing them.
    """

    bins: Count = 64
    smoothing: NotNegative = 1.0
    renormalise: bool = False

    @property
    def sides(self) -> tuple[str, ...]:
        """Pictures: it is fitted to them whatever side is edited."""
        return ("image",)

    def fit(self, examples: Examples) -> Overwriting:
        """The dimensions that are cut.

        Raises:
            DataError: if a group has no example.
            UsageError: if there are too few dimensions.
        """
        means_of(examples)  # every group has an example
        self.check_size(examples.vectors)
        scores = information(examples, self.bins, self.smoothing)
        return Overwriting(most_relevant(scores, self.k), np.zeros(self.k))

    def around(self, dual: DualEncoder, examples: Mapping[str, Examples]) -> DualEncoder:
        """See the base; texts lose the same dimensions as pictures."""
        overwriting = self.fit(examples["image"])
        return edited(dual, dict.fromkeys(super().sides, overwriting), renormalise=self.renormalise)


def information(examples: Examples, bins: int, smoothing: float) -> Float64Array:
    """(D,) mutual information of each dimension and the group, in nats.

    Args:
        examples: of each group.
        bins: equally wide bins, from the least to the largest value of a dimension.
        smoothing: standard deviation, in bins, of the Gaussian that smooths each group's histogram;
            mass beyond the ends is lost.

    Example:
        >>> vectors = np.array([[0.0, 1.0], [0.1, 0.0], [0.9, 1.0], [1.0, 0.0]])
        >>> examples = Examples(vectors, np.array([0, 0, 1, 1]), np.full(4, -1), ("a", "b"), 0)
        >>> information(examples, 4, 0.0).round(3).tolist()
        [0.693, 0.0]
    """
    from scipy import ndimage

    scores = np.zeros(examples.vectors.shape[1])
    for number, dimension in enumerate(examples.vectors.T):
        span = (float(dimension.min()), float(dimension.max()))
        joint = np.stack(
            [
                np.histogram(dimension[examples.groups == group], bins, span)[0].astype(np.float64)
                for group in range(len(examples.names))
            ]
        )
        if smoothing > 0:
            joint = ndimage.gaussian_filter1d(joint, smoothing, axis=1, mode="constant")
        joint /= joint.sum()
        apart = joint.sum(axis=0) * joint.sum(axis=1, keepdims=True)
        some = joint > 0
        scores[number] = max((joint[some] * np.log(joint[some] / apart[some])).sum(), 0.0)
    return scores
