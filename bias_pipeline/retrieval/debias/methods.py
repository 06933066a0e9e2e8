"""The edits ``debias=none|mean_difference|subspace|erasure|zero_neuron|mean_neuron|clip_clip``.

``mean_difference`` removes the directions between the groups' means. ``subspace`` removes the
directions in which groups differ most. ``erasure`` removes everything that linear attackers can
learn about the group (LEACE). ``zero_neuron`` and ``mean_neuron`` overwrite neurons. Source: Chen
and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, section 4.1. ``clip_clip``
sets the dimensions that tell most about the group to 0. Source: Wang, Liu and Wang, Are
Gender-Neutral Queries Really Gender-Neutral? (EMNLP 2021), section 4.2.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.errors import DataError
from bias_pipeline.io.hashing import derived_seed
from bias_pipeline.retrieval.debias.base import Debias, Examples, edit_encoder, means_of
from bias_pipeline.retrieval.dual_encoders import DualEncoder


def principal_directions(vectors: Float64Array, k: int) -> Float64Array:
    """(k', D) the k' <= k orthonormal directions in which (N, D) vectors with mean 0 vary most.

    Example:
        >>> principal_directions(np.array([[2.0, 0.0], [-2.0, 0.0]]), 2).round(6).tolist()
        [[1.0, 0.0]]
    """
    _, sizes, directions = np.linalg.svd(vectors, full_matrices=False)
    some = sizes > sizes.max(initial=0.0) * 1e-6
    chosen = directions[some][:k]
    largest = np.argmax(abs(chosen), axis=1)  # fixes the sign, equal on all machines
    signs = np.sign(chosen[np.arange(len(chosen)), largest])
    return np.asarray(chosen * signs[:, None])


@dataclass(frozen=True, eq=False)
class Projection:
    """Removes directions from vectors, as ``h - sum_j <h, v_j> v_j``."""

    directions: Float64Array  # (k, D) orthonormal

    @property
    def spec(self) -> Mapping[str, object]:
        numbers = self.directions.astype("<f8").tobytes()
        return {"edit": "projection", "directions": hashlib.sha256(numbers).hexdigest()}

    def __call__(self, vectors: Float64Array) -> Float64Array:
        return np.asarray(vectors - (vectors @ self.directions.T) @ self.directions)


@dataclass(frozen=True)
class Untouched(Debias):
    """No edit, with the settings of the other debiasings, so that a sweep can include it."""

    unused: ClassVar[tuple[str, ...]] = ("k", "side", "renormalise", "pairing", "bins", "smoothing")

    pairing: str = "random"  # of `subspace`
    bins: Count = 64  # of `clip_clip`
    smoothing: NotNegative = 1.0  # of `clip_clip`

    @property
    def sides(self) -> tuple[str, ...]:
        return ()

    def fit(self, examples: Examples) -> Projection:
        return Projection(np.empty((0, examples.vectors.shape[1])))


@dataclass(frozen=True)
class MeanDifference(Debias):
    """Projects out the K - 1 directions between the means of K groups; ``k`` is ignored.

    ``mean_difference`` is the simplest method without pairs: for two groups, it uses the direction
    from one mean to the other.
    """

    unused: ClassVar[tuple[str, ...]] = ("k",)

    def fit(self, examples: Examples) -> Projection:
        means = means_of(examples)
        return Projection(principal_directions(means - means.mean(axis=0), len(means) - 1))


Pairing = Literal["random", "nearest"]


@dataclass(frozen=True)
class Subspace(Debias):
    """Projects out the first k principal components of the differences between groups.

    Source: Chen and Dou (Measuring and Mitigating Bias in Vision-and-Language Models, 4.1), after
    Liang et al. (Towards Debiasing Sentence Representations, ACL 2020). First, the mean of its
    definition set is subtracted from each vector. A set has one vector per group and differs only
    in the group. The paper's text subtracts each *group's* mean, which would remove the difference
    between groups. Texts come in definition sets. Pictures do not, so one picture of each group is
    put into each set, at random or by similarity.
    """

    # How pictures form sets: `random`, or `nearest` in the embedding, so that other differences
    # between pictures do not hide the group
    pairing: Pairing = "random"

    def fit(self, examples: Examples) -> Projection:
        vectors, sets = examples.vectors, examples.sets
        if (sets < 0).all():
            rows, sets = match_pictures(examples, self.pairing)
            vectors = vectors[rows]
        self.check_size(vectors)
        return Projection(principal_directions(centre_sets(vectors, sets), self.k))


def centre_sets(vectors: Float64Array, sets: IntArray) -> Float64Array:
    """(N, D) vectors minus the mean of their definition sets.

    Example:
        >>> centre_sets(np.array([[1.0], [3.0], [7.0]]), np.array([0, 0, 1])).ravel().tolist()
        [-1.0, 1.0, 0.0]
    """
    _, which = np.unique(sets, return_inverse=True)
    sums = np.zeros((int(which.max(initial=-1)) + 1, vectors.shape[1]))
    np.add.at(sums, which, vectors)
    return np.asarray(vectors - (sums / np.bincount(which)[:, None])[which])


def match_pictures(examples: Examples, pairing: Pairing) -> tuple[IntArray, IntArray]:
    """(M,) rows of pictures and (M,) their sets, each of which has one picture per group.

    The number of sets is the number of pictures in the smallest group.
    """
    vectors = examples.vectors
    rows = [np.flatnonzero(examples.groups == k) for k in range(len(examples.names))]
    empty = [
        name for name, group_rows in zip(examples.names, rows, strict=True) if not len(group_rows)
    ]
    if empty:
        raise DataError(f"debias: no picture of group {empty[0]!r} to learn its direction from")
    random = np.random.default_rng(derived_seed("pairing", examples.seed, 0))
    shuffled = [random.permutation(group_rows) for group_rows in rows]
    anchors = min(shuffled, key=len)
    columns = [
        group_rows[: len(anchors)]
        if pairing == "random" or group_rows is anchors
        # One picture may be the nearest of several anchors.
        else group_rows[np.argmax(vectors[anchors] @ vectors[group_rows].T, axis=1)]
        for group_rows in shuffled
    ]
    sets = np.arange(len(anchors))
    return np.concatenate(columns), np.tile(sets, len(columns))


_LEAST = 1e-6  # share of the largest variance; directions with less variance are noise and stay


@dataclass(frozen=True)
class Erasure(Debias):
    """The smallest change after which groups have the same mean (Belrose et al. 2023, LEACE).

    The edit is the closed form of their theorem 4.3: whiten the vectors, remove the directions that
    correlate with the group, and undo the whitening. Then no linear attacker beats chance on the
    examples. On other images this holds if there are many more examples than dimensions. ``k`` is
    ignored: K groups need K - 1 directions.
    """

    unused: ClassVar[tuple[str, ...]] = ("k",)

    def fit(self, examples: Examples) -> Affine:
        means_of(examples)  # every group has an example
        vectors = examples.vectors
        centre = vectors.mean(axis=0)
        deviations = vectors - centre
        shown = np.eye(len(examples.names))[examples.groups]
        together = deviations.T @ (shown - shown.mean(axis=0)) / len(deviations)  # (D, K)
        sizes, axes = np.linalg.eigh(deviations.T @ deviations / len(deviations))
        some = sizes > _LEAST * max(sizes.max(), 0.0)
        spread, axes = np.sqrt(sizes[some]), axes[:, some]
        basis, strengths, _ = np.linalg.svd((axes / spread).T @ together, full_matrices=False)
        directions = basis[:, strengths > 1e-9 * strengths.max(initial=0.0)]  # (R, K') whitened
        matrix = (axes * spread) @ directions @ directions.T @ (axes / spread).T
        return Affine(matrix, centre)


@dataclass(frozen=True, eq=False)
class Affine:
    """An edit of the form ``x - M (x - c)``."""

    matrix: Float64Array  # (D, D), M
    centre: Float64Array  # (D,), c

    @property
    def spec(self) -> Mapping[str, object]:
        numbers = b"".join(array.astype("<f8").tobytes() for array in (self.matrix, self.centre))
        return {"edit": "affine", "numbers": hashlib.sha256(numbers).hexdigest()}

    def __call__(self, vectors: Float64Array) -> Float64Array:
        return np.asarray(vectors - (vectors - self.centre) @ self.matrix.T)


def relevance(examples: Examples) -> Float64Array:
    """(D,) how much groups differ in each dimension: (m_1 - m_2)^2 / (s_1 s_2).

    The groups' means are m, and their standard deviations s. With more than two groups, the value
    is the maximum over pairs of groups (our choice). The value is infinite if the means differ and
    a group has no variance. The value is NaN if the means are equal and a group has no variance.

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
    """(k,) the most relevant dimensions; the first of equal scores wins, and NaN comes last."""
    order: IntArray = np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable")
    return order[:k]


def reversed_neurons(examples: Examples, means: Float64Array, neurons: IntArray) -> Float64Array:
    """(N, D) vectors whose most relevant dimensions are moved to the other group's mean.

    Each vector keeps its deviation from its group's mean. Only the mean is replaced by the other
    group's mean. The function needs the group of each vector, so it is not a debiasing. Source:
    Chen and Dou, section 4.2, Figure 10.

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

    neurons: IntArray  # (k,) the dimensions that are overwritten
    values: Float64Array  # (k,) the new values

    @property
    def spec(self) -> Mapping[str, object]:
        return {
            "edit": "overwriting",
            "neurons": self.neurons.tolist(),
            "values": self.values.tolist(),
        }

    def __call__(self, vectors: Float64Array) -> Float64Array:
        result = vectors.copy()
        result[:, self.neurons] = self.values
        return result


@dataclass(frozen=True)
class NeuronDebias(Debias, ABC):
    """Overwrites the k dimensions in which groups differ most (:func:`relevance`).

    All pictures get the same values, so each picture's similarity to a query changes by the same
    number. Without ``renormalise`` these values change no ranking.
    """

    def fit(self, examples: Examples) -> Overwriting:
        self.check_size(examples.vectors)
        neurons = most_relevant(relevance(examples), self.k)
        return Overwriting(neurons, self.instead(means_of(examples)[:, neurons]))

    @abstractmethod
    def instead(self, means: Float64Array) -> Float64Array:
        """(k,) the new values, computed from the (K, k) means of the groups."""


@dataclass(frozen=True)
class ZeroNeuron(NeuronDebias):
    """Overwrites the dimensions with 0."""

    def instead(self, means: Float64Array) -> Float64Array:
        return np.zeros(means.shape[1])


@dataclass(frozen=True)
class MeanNeuron(NeuronDebias):
    """Overwrites the dimensions with the mean of the groups' means, so all groups count equally."""

    def instead(self, means: Float64Array) -> Float64Array:
        return np.asarray(means.mean(axis=0))


@dataclass(frozen=True)
class ClipClip(Debias):
    """Sets to 0 the k dimensions that have the most mutual information with the group.

    The dimensions are chosen on pictures and cut from texts and pictures. Without ``renormalise``,
    as in the authors' code, a dimension that is cut on one side no longer counts in similarities.
    So ``side`` then changes no ranking. The authors cut 112 of 512 dimensions. We do not cut so
    many by default, since other vectors are shorter. The first release of their code cut the last
    112 dimensions by mistake. A later release follows the paper, as this program does.
    """

    bins: Count = 64  # of the histogram that estimates the information
    # Width of the smoothing over values, in bins; 0: no smoothing. The authors' code also smooths
    # over groups, which spreads groups without mixing them.
    smoothing: NotNegative = 1.0
    renormalise: bool = False

    @property
    def sides(self) -> tuple[str, ...]:
        """``image`` alone, since the debiasing is fitted to pictures, even if texts are edited."""
        return ("image",)

    def fit(self, examples: Examples) -> Overwriting:
        means_of(examples)  # every group has an example
        self.check_size(examples.vectors)
        scores = information(examples, self.bins, self.smoothing)
        return Overwriting(most_relevant(scores, self.k), np.zeros(self.k))

    def wrap(self, dual: DualEncoder, examples: Mapping[str, Examples]) -> DualEncoder:
        """The pair of embedders with edits; texts lose the same dimensions as pictures."""
        overwriting = self.fit(examples["image"])
        return edit_encoder(
            dual, dict.fromkeys(super().sides, overwriting), renormalise=self.renormalise
        )


def information(examples: Examples, bins: int, smoothing: float) -> Float64Array:
    """(D,) the mutual information between each dimension and the group, in nats.

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
