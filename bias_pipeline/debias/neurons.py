"""``debias=zero_neuron|mean_neuron``: the numbers of a vector in which groups differ, overwritten.

Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, section 4.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bias_pipeline.debias.base import Debias, Examples, FloatArray, IntArray, means_of


def relevance(examples: Examples) -> FloatArray:
    """(D,) how much groups differ in each number of a vector: (m_1 - m_2)^2 / (s_1 s_2).

    m are means of groups and s their standard deviations; of more than two groups the largest over
    all pairs counts (ours). Infinite where groups differ and one of them never varies, NaN where
    they are equal and never vary.

    Raises:
        DataError: if a group has no example.

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
    found = np.full(means.shape[1], np.nan)
    for one, other in combinations(range(len(means)), 2):
        with np.errstate(invalid="ignore", divide="ignore"):
            own = (means[one] - means[other]) ** 2 / (spread[one] * spread[other])
        found = np.fmax(found, own)
    return found


def most_relevant(found: FloatArray, k: int) -> IntArray:
    """(k,) the most relevant numbers, the first of equal ones; NaN comes last."""
    order: IntArray = np.argsort(-np.where(np.isnan(found), -np.inf, found), kind="stable")
    return order[:k]


def reversed_neurons(examples: Examples, means: FloatArray, neurons: IntArray) -> FloatArray:
    """(N, D) vectors whose most relevant numbers are those of the other group.

    Each keeps its own deviation: the mean of its group is taken off and that of the other put in
    its place. It needs to know the group of each vector, so it is no debiasing.

    Source: Chen and Dou, section 4.2, Figure 10.

    Args:
        examples: N vectors of two groups.
        means: (2, D) of the groups, of other examples.
        neurons: (k,) which numbers.

    Example:
        >>> examples = Examples(np.array([[1.0, 7.0], [5.0, 7.0]]), np.array([0, 1]),
        ...                     np.full(2, -1), ("a", "b"), 0)
        >>> means = np.array([[0.0, 7.0], [4.0, 7.0]])
        >>> reversed_neurons(examples, means, np.array([0])).tolist()
        [[5.0, 7.0], [1.0, 7.0]]
    """
    found = examples.vectors.copy()
    apart = means[1 - examples.groups] - means[examples.groups]
    found[:, neurons] += apart[:, neurons]
    return found


@dataclass(frozen=True, eq=False)
class Overwriting:
    """Vectors with some numbers overwritten.

    Attributes:
        neurons: (k,) which.
        values: (k,) by what.
    """

    neurons: IntArray
    values: FloatArray

    @property
    def spec(self) -> Mapping[str, object]:
        """Which, and by what."""
        return {
            "edit": "overwriting",
            "neurons": self.neurons.tolist(),
            "values": self.values.tolist(),
        }

    def __call__(self, vectors: FloatArray) -> FloatArray:
        """(N, D) the vectors."""
        found = vectors.copy()
        found[:, self.neurons] = self.values
        return found


@dataclass(frozen=True)
class NeuronDebias(Debias, ABC):
    """Overwrites the k numbers of a vector in which groups differ most (:func:`relevance`).

    Pictures are all overwritten alike, which adds the same to each one's similarity to a query:
    unless vectors are of length 1 again (``renormalise``), what they are overwritten by does not
    change whom a query retrieves.
    """

    def fit(self, examples: Examples) -> Overwriting:
        """The neurons of one side, and what stands there instead.

        Raises:
            DataError: if a group has no example.
            UsageError: if there are not so many neurons.
        """
        self.check_size(examples.vectors)
        neurons = most_relevant(relevance(examples), self.k)
        return Overwriting(neurons, self.instead(means_of(examples)[:, neurons]))

    @abstractmethod
    def instead(self, means: FloatArray) -> FloatArray:
        """(k,) what stands there, by the groups' means (K, k)."""


@dataclass(frozen=True)
class ZeroNeuron(NeuronDebias):
    """By 0."""

    def instead(self, means: FloatArray) -> FloatArray:
        """See the base."""
        return np.zeros(means.shape[1])


@dataclass(frozen=True)
class MeanNeuron(NeuronDebias):
    """By the mean of the groups' means, each group counting alike."""

    def instead(self, means: FloatArray) -> FloatArray:
        """See the base."""
        return np.asarray(means.mean(axis=0))
