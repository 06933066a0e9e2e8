"""Attackers that guess the group from vectors of held-out pictures or sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import BoolArray, Float32Array, Float64Array, IntArray
from bias_pipeline.attackers.logistic import decide, fit
from bias_pipeline.inference.embedders import Embedder
from bias_pipeline.io.hashing import UIntArray, derived_seed, hash_ids, random_words
from bias_pipeline.metrics.base import Part
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Bootstrap, against

_INVERSE_PENALTY = 0.01  # on features of spread 1; ours
_WAVES = 500  # of the attacker that is not linear; ours
_MEASURED = 500  # pictures whose distances set the kernel's width


@dataclass(frozen=True, eq=False)
class Attacked:
    """Which guesses of fresh attackers are right, in one seed."""

    rows: IntArray  # (N,) the picture of each vector, or its set of sentences, one of every group
    groups: IntArray  # (N,) their groups
    right: Mapping[str, BoolArray]  # attacker to (N,) whether it is right

    @classmethod
    def of(
        cls,
        vectors: Float32Array,
        rows: IntArray,
        groups: IntArray,
        keys: UIntArray,
        seed: int,
    ) -> Attacked:
        """Two attackers learn from one half of the rows and guess the other, and vice versa.

        ``linear`` is a logistic regression; ``kernel`` is one on random Fourier features (Rahimi
        and Recht, NeurIPS 2007), which can use any smooth function of the vectors.

        Args:
            vectors: (N, D) such as debiased ones.
            rows: (N,) their rows.
            groups: (N,) their groups.
            keys: of all rows, for drawing the halves.
            seed: of the halves and the features.
        """
        half = random_words("attackers", seed, keys[rows]) % np.uint64(2) == 0
        random = np.random.default_rng(derived_seed("attackers", seed, 0))
        features: Mapping[str, Callable[[Float64Array], Float64Array]] = {
            "linear": lambda x: x,
            "kernel": _waves(vectors.shape[1], random),
        }
        correct = {name: np.zeros(len(rows), bool) for name in features}
        for learnt in (half, ~half):
            for name, transform in features.items():
                inputs = _standardised(transform(vectors.astype(np.float64)), learnt)
                guessed = _guessed(inputs, groups, learnt)
                correct[name][~learnt] = guessed == groups[~learnt]
        return cls(rows, groups, correct)

    def accuracies(self, weights: Float64Array, rows: IntArray) -> dict[str, Float64Array]:
        """Attacker to (B,) mean over groups of the share of right guesses, rows weighted.

        Args:
            weights: (B, I) how often each row counts.
            rows: (I,) rows, ascending, with all rows that were guessed.
        """
        row_weights = weights[:, np.searchsorted(rows, self.rows)]
        members = np.eye(int(self.groups.max()) + 1)[self.groups]  # (N, K)
        members = members[:, members.any(axis=0)]
        counts = row_weights @ members
        accuracies = {}
        for name, right in self.right.items():
            hits = row_weights @ (members * right[:, None])
            shares = np.divide(hits, counts, out=np.full(hits.shape, np.nan), where=counts > 0)
            accuracies[name] = np.nanmean(shares, axis=1)
        return accuracies


def attacked_texts(texts: Embedder, sentences: Sequence[Sequence[str]], seed: int) -> Attacked:
    """Guesses of attackers on sentences; all sentences of a set are in the same half.

    Args:
        texts: whose vectors.
        sentences: S sets of K sentences, one of every group.
        seed: see :meth:`Attacked.of`.
    """
    n_sets, n_groups = len(sentences), len(sentences[0])
    vectors = texts.embed([text for sentence_set in sentences for text in sentence_set])
    rows, groups = np.repeat(np.arange(n_sets), n_groups), np.tile(np.arange(n_groups), n_sets)
    return Attacked.of(
        vectors, rows, groups, hash_ids(sentence_set[0] for sentence_set in sentences), seed
    )


def attacker_parts(
    attacked: Sequence[Attacked],
    keys: UIntArray,
    stats: Bootstrap,
    tested: tuple[int, float],
    of: str = "",
) -> dict[str, Part]:
    """``attacker:linear`` and ``attacker:kernel``, tested against chance.

    Args:
        attacked: of each seed.
        keys: of all rows, which are resampled.
        stats: how intervals are made.
        tested: number of images and coverage.
        of: what the vectors are of, if not pictures.
    """
    rows = np.unique(np.concatenate([one.rows for one in attacked]))
    chance = float(np.mean([1 / len(np.unique(one.groups)) for one in attacked]))

    def evaluate(weights: Float64Array) -> dict[PartName, Float64Array]:
        accuracies = [one.accuracies(weights, rows) for one in attacked]
        return {
            PartName("attacker", object=of, detail=name): np.stack(
                [of_seed[name] for of_seed in accuracies], -1
            )
            for name in accuracies[0]
        }

    estimates = stats.estimate_weighted(keys[rows], evaluate)
    return {
        name: Part(against(estimate, chance), "fraction", *tested, math.nan, (0.0, 1.0), chance)
        for name, estimate in estimates.items()
    }


def _standardised(vectors: Float64Array, learnt: BoolArray) -> Float64Array:
    """Columns with mean 0 and spread 1 in the training rows; constant columns become 0."""
    training = vectors[learnt]
    spread = training.std(axis=0)
    some = spread > 1e-6 * spread.max(initial=0.0)
    return np.where(some, (vectors - training.mean(axis=0)) / np.where(some, spread, 1.0), 0.0)


def _waves(size: int, random: np.random.Generator) -> Callable[[Float64Array], Float64Array]:
    """Random Fourier features of a Gaussian kernel as wide as the median distance."""
    directions = random.standard_normal((size, _WAVES))
    phases = random.uniform(0, 2 * np.pi, _WAVES)

    def features(vectors: Float64Array) -> Float64Array:
        some = vectors[:: max(1, len(vectors) // _MEASURED)]
        squares = (some**2).sum(axis=1)
        distances = squares[:, None] + squares - 2 * some @ some.T
        width = math.sqrt(max(float(np.median(distances[np.triu_indices(len(some), 1)])), 1e-12))
        return np.asarray(np.cos(vectors @ directions / width + phases))

    return features


def _guessed(features: Float64Array, groups: IntArray, learnt: BoolArray) -> IntArray:
    """An attacker's guesses of the other rows; all groups weigh alike in its training."""
    classes, labels = np.unique(groups[learnt], return_inverse=True)
    if len(classes) < 2:
        return np.full(int((~learnt).sum()), classes[0] if len(classes) else -1)
    counts = len(labels) / len(classes) / np.bincount(labels)[labels]
    truths = np.eye(len(classes))[labels] * counts[:, None]
    if len(classes) == 2:
        truths = truths[:, 1:]
    weights = fit(features[learnt], counts[:, None], truths[:, None], _INVERSE_PENALTY)
    scores = decide(features[~learnt], weights[:, 0])
    if len(classes) == 2:
        return np.asarray(classes[(scores[:, 0] > 0).astype(int)])
    return np.asarray(classes[scores.argmax(axis=1)])
