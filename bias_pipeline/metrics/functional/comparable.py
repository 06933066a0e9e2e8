"""Measures differences between two groups on comparable pictures (residual on residual).

Let G be the group (0 or 1), Y the value of captions and X the features of the picture. The
difference is theta = sum_i g_i r_i / sum_i g_i^2, with g = G - E[G | X] and r = Y - E[Y | X]
(Robinson 1988). If only one group has pictures of some kind, these pictures count little, since
weights are proportional to ``g_i^2`` (overlap weights). The two expectations come from ridge
regressions that are fitted on the other folds. The difference is right if one of the two
expectations is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg, sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.io.hashing import UIntArray, random_words

PENALTIES = (10.0, 30.0, 100.0, 300.0, 1000.0)
FOLDS = 5
BLOCK = 20  # groups are permuted within blocks of so many images
PERMUTATIONS = 200


@dataclass(frozen=True, eq=False)
class _Fold:
    """One fold, with the products of features over all images of the other folds."""

    tested: BoolArray  # (N,)
    features: sparse.csr_array  # (N_t, P) features of the fold
    training: sparse.csr_array  # (N - N_t, P) features of the other folds
    means: Float64Array  # (P,) means of features over the other folds
    gram: Float64Array  # (P, P) products over the other folds, centred


def _folds(features: sparse.csr_array, folds: IntArray) -> list[_Fold]:
    products = (features.T @ features).toarray()  # (P, P)
    totals = np.asarray(features.sum(axis=0)).ravel()
    parts = []
    for fold in np.unique(folds):
        flags = folds == fold
        tested, training = features[flags], features[~flags]
        means = (totals - np.asarray(tested.sum(axis=0)).ravel()) / training.shape[0]
        gram = products - (tested.T @ tested).toarray()
        gram -= training.shape[0] * np.outer(means, means)
        parts.append(_Fold(flags, tested, training, means, gram))
    return parts


class CrossFittedRidge:
    """Ridge regression on centred columns, fitted on the other folds; factorised once a fold."""

    def __init__(self, folds: Sequence[_Fold], penalty: float) -> None:
        self._folds = folds
        self._factors = [
            linalg.cho_factor(
                fold.gram + penalty * np.eye(len(fold.gram)),
                lower=True,
                overwrite_a=True,
                check_finite=False,
            )
            for fold in folds
        ]

    def predict(self, values: Float64Array) -> Float64Array:
        """(N, R): the values that are expected from pictures, by a fit on the other folds."""
        expected = np.empty(values.shape)
        for fold, factor in zip(self._folds, self._factors, strict=True):
            training = values[~fold.tested]
            level = training.mean(axis=0)
            covariances = fold.training.T @ training - np.outer(
                fold.means * len(training), level
            )  # (P, R)
            slopes = linalg.cho_solve(factor, covariances, check_finite=False)
            expected[fold.tested] = level + fold.features @ slopes - fold.means @ slopes
        return expected


@dataclass(frozen=True, eq=False)
class Comparison:
    """N images of two groups, compared by the features of their pictures."""

    groups: Float64Array  # (N,) 1 for the group whose excess is positive, 0 for the others
    ridge: CrossFittedRidge
    folds: IntArray  # (N,) each image's fold
    keys: UIntArray  # (N,) hashes of the images' ids, by which groups are permuted

    @classmethod
    def fit(
        cls,
        groups: Float64Array,
        features: sparse.csr_array,
        folds: IntArray,
        keys: UIntArray,
    ) -> Comparison:
        """Prepare the comparison of two groups of images by features of their pictures.

        ``groups`` (N,) has 0 or 1 for each image, and ``features`` is (N, P).
        """
        # The first penalty after which groups are predicted less well
        parts = _folds(features, folds)
        best, least = None, np.inf
        for penalty in PENALTIES:
            ridge = CrossFittedRidge(parts, penalty)
            error = float(np.mean((groups - ridge.predict(groups[:, None])[:, 0]) ** 2))
            if error >= least:
                break
            best, least = ridge, error
        assert best is not None
        return cls(groups, best, folds, keys)

    @cached_property
    def expected_group(self) -> Float64Array:
        """(N,): the expectation of the group, given the picture."""
        return self.ridge.predict(self.groups[:, None])[:, 0]

    @cached_property
    def residual(self) -> Float64Array:
        """(N,): the group minus the expected group."""
        return self.groups - self.expected_group

    @cached_property
    def weights(self) -> Float64Array:
        """(N,): how much each image counts. The sum of these weights is 1."""
        squared = self.residual**2
        return squared / squared.sum()

    @cached_property
    def influence(self) -> Float64Array:
        """(N,): factors of the images. The sum of residuals times factors is the difference."""
        return self.residual / (self.residual**2).sum()

    @property
    def overlap(self) -> float:
        """How similar the groups' pictures are: 1 if pictures do not predict the group."""
        share = float(self.groups.mean())
        return float((self.residual**2).mean() / (share * (1 - share)))

    @property
    def accuracy(self) -> float:
        """The share of images whose group is predicted from the picture, in [0, 1]."""
        return float(((self.expected_group > 0.5) == (self.groups > 0.5)).mean())

    @cached_property
    def permuted_influence(self) -> Float64Array:
        """(N, B): :attr:`influence` if groups are permuted among images of similar expectation.

        No image keeps its own group, because otherwise the mean over permutations would still
        contain a twentieth of the difference.
        """
        drawn = random_words(
            "permute", 0, self.keys[:, None], np.arange(PERMUTATIONS, dtype=np.uint64)
        )
        sign = 1 - 2 * self.groups[0]  # the same order, whichever group comes first
        order = np.lexsort((self.keys, np.round(sign * self.expected_group, 9)))
        permuted = np.repeat(self.groups[:, None], PERMUTATIONS, axis=1)
        for block in map(np.sort, np.array_split(order, max(2, len(order) // BLOCK))):
            cycle = drawn[block].argsort(axis=0)  # each image gets the next one's group
            passed = np.roll(self.groups[block][cycle], -1, axis=0)
            permuted[block[cycle], np.arange(PERMUTATIONS)] = passed
        residuals = permuted - self.ridge.predict(permuted)
        return residuals / (residuals**2).sum(axis=0)

    def residuals(self, values: Float64Array) -> Float64Array:
        """(N, R): values minus the values that are expected from pictures."""
        return values - self.ridge.predict(values)

    def differences(self, values: Float64Array) -> tuple[Float64Array, Float64Array]:
        """(R,): differences of (N, R) values between the groups, and their standard errors."""
        shares = self.influence[:, None] * self.residuals(values)
        return shares.sum(axis=0), self.standard_errors(shares)

    def standard_errors(self, shares: Float64Array) -> Float64Array:
        """(R,): standard errors of sums over images, from what each image adds, (N, R)."""
        return np.sqrt((self.centred_shares(shares) ** 2).sum(axis=0))

    def centred_shares(self, shares: Float64Array) -> Float64Array:
        """(N, R): how much each image changes sums over images, from what the image adds."""
        return shares - np.outer(self.weights, shares.sum(axis=0))

    def by_fold(self, shares: Float64Array) -> Float64Array:
        """(F, R): the sums over each fold of the images' (N, R) shares."""
        return np.stack([shares[self.folds == fold].sum(axis=0) for fold in np.unique(self.folds)])

    def permuted_by_fold(self, residuals: Float64Array) -> Float64Array:
        """(B, F, R): differences between permuted groups, by fold."""
        influence = self.permuted_influence
        parts = [
            influence[self.folds == fold].T @ residuals[self.folds == fold]
            for fold in np.unique(self.folds)
        ]
        return np.stack(parts, axis=1)
