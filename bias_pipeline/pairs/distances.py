"""Measures distances between captions of a set, and compares them between groups in three ways.

Every distance is half of a squared distance between vectors; :class:`BeyondPictures` needs this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.pairs.contrasts import Contrasts
from bias_pipeline.stats.bootstrap import Estimate, quantile
from bias_pipeline.stats.sign_flips import FEWEST_NORMAL, SignFlips

Kernel = Callable[[sparse.csr_array], Float64Array]


def jaccard_distances(words: sparse.csr_array) -> Float64Array:
    """(n, n) 1 minus the share of words (n, V) that two captions share; 0 if neither has words."""
    shared = (words @ words.T).toarray()
    sizes = np.asarray(words.sum(axis=1)).ravel()
    either = sizes[:, None] + sizes - shared
    return 1.0 - np.where(either > 0, shared / np.maximum(either, 1), 1.0)


def cosine_distances(vectors: sparse.csr_array) -> Float64Array:
    """(n, n) 1 minus the cosine of vectors of length 1; 0 if both vectors are 0."""
    similar = (vectors @ vectors.T).toarray()
    empty = np.diff(vectors.indptr) == 0
    return 1.0 - np.where(empty[:, None] & empty, 1.0, similar)


def tf_idf(words: sparse.csr_array) -> sparse.csr_array:
    """(C, V) captions as vectors of length 1, made of indicators; rare words weigh more."""
    n_captions = words.shape[0]
    frequent = np.asarray(words.sum(axis=0)).ravel()
    weighted = sparse.csr_array(words * (np.log((1 + n_captions) / (1 + frequent)) + 1))
    lengths = np.sqrt(np.asarray((weighted * weighted).sum(axis=1)).ravel())
    scaled = sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ weighted
    return sparse.csr_array(scaled)


def means_of_pictures(vectors: sparse.csr_array, pictures: IntArray, n: int) -> sparse.csr_array:
    """(N, V) the mean over the captions of each picture, computed from (C, V) captions."""
    counts = np.bincount(pictures, minlength=n)
    rows = np.arange(len(pictures))
    weights = sparse.csr_array((1 / counts[pictures], (pictures, rows)), shape=(n, len(pictures)))
    return sparse.csr_array(weights @ vectors)


@dataclass(frozen=True, eq=False)
class SetDistances:
    """Distances between the captions of the pictures that are compared.

    ``pairs`` has, for each pair, the mean distance between captions of its two pictures.
    ``samples`` has the mean distance between two captions of the same picture, which is NaN if a
    picture of the pair has only one caption. ``crossed`` has the value of every two pairs of a set
    (:class:`BeyondPictures`).
    """

    pairs: Float64Array  # (M,)
    samples: Float64Array  # (M,)
    crossed: Float64Array  # (P,)

    @property
    def excess(self) -> Float64Array:
        """(M,) how much more captions of two pictures differ than captions of one picture."""
        return self.pairs - self.samples

    @classmethod
    def from_vectors(
        cls, contrasts: Contrasts, vectors: sparse.csr_array, pictures: IntArray, kernel: Kernel
    ) -> SetDistances:
        """The distances between (C, V) captions, which are in the order of their pictures."""
        n_pairs = len(contrasts.first)
        pairs, samples = np.full(n_pairs, np.nan), np.full(n_pairs, np.nan)
        crossed = np.full(len(contrasts.crossings), np.nan)
        crossing_set = contrasts.set_of[contrasts.crossings[:, 0]]
        for number in range(len(contrasts)):
            chosen = np.flatnonzero(contrasts.set_of == number)
            place, between, within = _between_pictures(
                np.union1d(contrasts.first[chosen], contrasts.second[chosen]),
                vectors,
                pictures,
                kernel,
            )
            one, two = place(contrasts.first[chosen]), place(contrasts.second[chosen])
            pairs[chosen] = between[one, two]
            samples[chosen] = (within[one] + within[two]) / 2
            here = np.flatnonzero(crossing_set == number)
            a, b = (contrasts.crossings[here] - chosen[0]).T  # places among the chosen pairs
            unlike = between[one[a], two[b]] + between[two[a], one[b]]
            alike = between[one[a], one[b]] + between[two[a], two[b]]
            crossed[here] = (unlike - alike) / 2
        return cls(pairs, samples, crossed)


def _between_pictures(
    chosen: IntArray, vectors: sparse.csr_array, pictures: IntArray, kernel: Kernel
) -> tuple[Callable[[IntArray], IntArray], Float64Array, Float64Array]:
    """A map from pictures to places, and the mean distances between and within pictures."""
    bounds = np.searchsorted(pictures, [chosen, chosen + 1])
    rows = np.concatenate([np.arange(start, end) for start, end in bounds.T.tolist()])
    counts = bounds[1] - bounds[0]
    of = np.repeat(np.arange(len(chosen)), counts)
    weights = (of == np.arange(len(chosen))[:, None]) / counts[:, None]
    between = weights @ kernel(vectors[rows]) @ weights.T
    several = np.where(counts > 1, counts / np.maximum(counts - 1, 1), np.nan)
    return lambda wanted: np.searchsorted(chosen, wanted), between, np.diag(between) * several


@dataclass(frozen=True, eq=False)
class BeyondPictures:
    """How much more captions of different groups differ than captions of equal groups, in one set.

    For two pairs of a set, (a, b) and (a', b'), the value is half of D(a, b') + D(b, a') - D(a, a')
    - D(b, b'). The value is the effect of the group in one pair times its effect in the other pair.
      Chance differences between pictures are independent in the two pairs and cancel on average, so
      the mean is 0 if the group has no effect. Exchanging the pictures of one pair flips the sign
      of the value.
    """

    contrasts: Contrasts
    crossed: Float64Array  # (P,) values of every two pairs of a set

    @cached_property
    def weights(self) -> Float64Array:
        """(P,) the weight of each combination of two pairs; weights of a set sum to 1."""
        of = self.contrasts.set_of[self.contrasts.crossings[:, 0]]
        return 1 / np.bincount(of, minlength=len(self.contrasts))[of]

    @property
    def by_set(self) -> Float64Array:
        """(J,) the mean over each set, or NaN if the set has only one pair."""
        of, n_sets = self.contrasts.set_of[self.contrasts.crossings[:, 0]], len(self.contrasts)
        sums = np.bincount(of, self.weights * self.crossed, n_sets)
        return np.where(np.bincount(of, minlength=n_sets) > 0, sums, np.nan)

    @property
    def value(self) -> float:
        """The mean over sets with two pairs or more, or NaN if there is no such set."""
        by_set = self.by_set[~np.isnan(self.by_set)]
        return float(by_set.mean()) if len(by_set) else float("nan")

    def estimate(self, level: float) -> Estimate:
        """The value with Student's interval over sets, or no interval if under ten sets differ."""
        by_set = self.by_set[~np.isnan(self.by_set)]
        if (np.abs(by_set) > 1e-12).sum() < FEWEST_NORMAL:
            return Estimate(self.value)
        error = float(by_set.std(ddof=1)) / math.sqrt(len(by_set))
        half = quantile(level, len(by_set) - 1) * error
        return Estimate(self.value, ci_low=self.value - half, ci_high=self.value + half)

    def p_value(self) -> float:
        """The exact, one-sided p of a mean this large if there is no effect."""
        if not len(self.crossed):
            return float("nan")
        set_of, crossings = self.contrasts.set_of, self.contrasts.crossings
        # Flipping all pairs of a set changes nothing, so the first pair of each set stays.
        turned = np.flatnonzero(np.append(False, set_of[1:] == set_of[:-1]))
        order = np.arange(len(set_of)) - np.searchsorted(set_of, set_of)
        names = [f"{self.contrasts.sets[set_of[pair]]}\n{order[pair]}" for pair in turned.tolist()]
        flips = SignFlips(hash_ids(names))
        amounts = self.weights * self.crossed

        def statistic(signs: Float64Array) -> Float64Array:
            every = np.ones((len(signs), len(set_of)))
            every[:, turned] = signs
            total: Float64Array = (every[:, crossings[:, 0]] * every[:, crossings[:, 1]]) @ amounts
            return total

        return float(flips.p_value(float(amounts.sum()), flips.null(statistic)))


def common_shift(differences: sparse.csr_array) -> float:
    """The mean inner product of two sets' (J, V) differences, which says how far sets agree.

    Example:
        >>> common_shift(sparse.csr_array(np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])))
        -0.3333333333333333
    """
    n_sets = differences.shape[0]
    total = np.asarray(differences.sum(axis=0))
    return float((total**2).sum() - (differences.data**2).sum()) / (n_sets * (n_sets - 1))


def shift_p(flips: SignFlips, differences: sparse.csr_array) -> float:
    """The exact, one-sided p of a common shift this large if there is no effect."""
    table = sparse.csr_array(differences.T)

    def statistic(signs: Float64Array) -> Float64Array:
        square: Float64Array = ((table @ signs.T) ** 2).sum(axis=0)
        return square

    observed = statistic(np.ones((1, differences.shape[0])))[0]
    return float(flips.p_value(float(observed), flips.null(statistic)))
