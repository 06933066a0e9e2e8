"""``debias=zero_neuron|mean_neuron|clip_clip``: changes the dimensions that differ most.

The neurons are overwritten: Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language
Models, section 4.1. CLIP-clip removes the dimensions with most information on the group: Wang, Liu
and Wang, Are Gender-Neutral Queries Really Gender-Neutral? (EMNLP 2021), section 4.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.retrieval.debias.base import Debias, Examples, edited, means_of
from bias_pipeline.retrieval.dual_encoders import DualEncoder


def relevance(examples: Examples) -> Float64Array:
    """(D,) difference of groups in each dimension: (m_1 - m_2)^2 / (s_1 s_2).

    m are means of groups and s their standard deviations; with more than two groups, the maximum
    over pairs (ours). Infinite if groups differ and one has no variance, NaN if they are equal and
    have none.

    Example:
        >>> vectors = np.array([[0.0, 5.0], [2.0, 5.0], [4.0, 5.0], [6.0, 5.0]])
        >>> groups, sets = np.array([0, 0, 1, 1]), np.full(4, -1)
        >>> relevance(Examples(vectors, groups, sets, ("a", "b"), 0)).tolist()
        [16.0, nan]
    """
    means = means_of(examples)
    spread = np.stack(
        [examples.vectors[examples.groups == k].std(axis=0) for k in range(len(means))]
    )
    best = np.full(means.shape[1], np.nan)
    for one, other in combinations(range(len(means)), 2):
        with np.errstate(invalid="ignore", divide="ignore"):
            separation = (means[one] - means[other]) ** 2 / (spread[one] * spread[other])
        best = np.fmax(best, separation)
    return best


def most_relevant(scores: Float64Array, k: int) -> IntArray:
    """(k,) the most relevant dimensions, the first among equals; NaN comes last."""
    order: IntArray = np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable")
    return order[:k]


def reversed_neurons(examples: Examples, means: Float64Array, neurons: IntArray) -> Float64Array:
    """(N, D) vectors with the most relevant dimensions moved to the other group's mean.

    Each keeps its own deviation: the mean of its group is replaced by the other's. It needs each
        vector's group, so it is not a debiasing.

    Source: Chen and Dou, section 4.2, Figure 10.

    Example:
        >>> examples = Examples(np.array([[1.0, 7.0], [5.0, 7.0]]), np.array([0, 1]),
        ...                     np.full(2, -1), ("a", "b"), 0)
        >>> means = np.array([[0.0, 7.0], [4.0, 7.0]])
        >>> reversed_neurons(examples, means, np.array([0])).tolist()
        [[5.0, 7.0], [1.0, 7.0]]
    """
    vectors = examples.vectors.copy()
    apart = means[1 - examples.groups] - means[examples.groups]
    vectors[:, neurons] += apart[:, neurons]
    return vectors


@dataclass(frozen=True, eq=False)
class Overwriting:
    """An edit that overwrites some dimensions."""

    neurons: IntArray  # (k,) which
    values: Float64Array  # (k,) the new values

    @property
    def spec(self) -> Mapping[str, object]:
        """The dimensions and their new values."""
        return {
            "edit": "overwriting",
            "neurons": self.neurons.tolist(),
            "values": self.values.tolist(),
        }

    def __call__(self, vectors: Float64Array) -> Float64Array:
        """(N, D) the vectors."""
        result = vectors.copy()
        result[:, self.neurons] = self.values
        return result


@dataclass(frozen=True)
class NeuronDebias(Debias, ABC):
    """Overwrites the k dimensions in which groups differ most (:func:`relevance`).

    All pictures get the same values, which adds the same number to each similarity with a query:
    without ``renormalise`` these values do not change a ranking.
    """

    def fit(self, examples: Examples) -> Overwriting:
        """The neurons of one side and their new values."""
        self.check_size(examples.vectors)
        neurons = most_relevant(relevance(examples), self.k)
        return Overwriting(neurons, self.instead(means_of(examples)[:, neurons]))

    @abstractmethod
    def instead(self, means: Float64Array) -> Float64Array:
        """(k,) the new values, from the groups' means (K, k)."""


@dataclass(frozen=True)
class ZeroNeuron(NeuronDebias):
    """Overwrites with 0."""

    def instead(self, means: Float64Array) -> Float64Array:
        return np.zeros(means.shape[1])


@dataclass(frozen=True)
class MeanNeuron(NeuronDebias):
    """Overwrites with the mean of the groups' means, with equal weights."""

    def instead(self, means: Float64Array) -> Float64Array:
        return np.asarray(means.mean(axis=0))


@dataclass(frozen=True)
class ClipClip(Debias):
    """Sets the k dimensions with most mutual information with the group to 0.

    The dimensions are chosen on pictures and cut from texts and pictures. Without ``renormalise``,
    as in their code, cutting one side removes them from the similarity, so ``side`` changes no
    ranking. They cut 112 of 512 dimensions (not the default here: other vectors are shorter). The
    first release of their code cut the last 112 dimensions by mistake; a later one follows the
    paper, as we do.
    """

    bins: Count = 64  # of the histogram that estimates the information
    # Width of the smoothing over values, in bins; 0: none. Theirs also smooths over groups, which
    # spreads groups without mixing them.
    smoothing: NotNegative = 1.0
    renormalise: bool = False

    @property
    def sides(self) -> tuple[str, ...]:
        """Pictures: it is fitted to them whatever side is edited."""
        return ("image",)

    def fit(self, examples: Examples) -> Overwriting:
        """The dimensions that are cut."""
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
