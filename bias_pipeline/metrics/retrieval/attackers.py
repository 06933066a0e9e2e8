"""What attackers still learn of the group from vectors that nothing was fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.attackers.logistic import decide, fit
from bias_pipeline.inference.embedders import Embedder
from bias_pipeline.io.hashing import UIntArray, derived_seed, keys_of, stream
from bias_pipeline.metrics.base import Part
from bias_pipeline.metrics.parts import PartName
from bias_pipeline.stats.bootstrap import Bootstrap, against

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_INVERSE_PENALTY = 0.01  # on features of spread 1; ours
_WAVES = 500  # of the attacker that is not linear; ours
_MEASURED = 500  # pictures whose distances set the length of the waves


@dataclass(frozen=True, eq=False)
class Attacked:
    """Whom fresh attackers tell right, in one seed.

    Attributes:
        rows: (N,) which picture each vector is of, or which sentence: one of every group.
        groups: (N,) their groups.
        right: attacker to (N,) whether it is right.
    """

    rows: IntArray
    groups: IntArray
    right: Mapping[str, BoolArray]

    @classmethod
    def of(
        cls,
        vectors: npt.NDArray[np.float32],
        rows: IntArray,
        groups: IntArray,
        keys: UIntArray,
        seed: int,
    ) -> Attacked:
        """Two attackers learn from one half of the rows and are asked of the other, and back.

        ``linear`` is a logistic regression; ``kernel`` one on random Fourier features (Rahimi and
        Recht, NeurIPS 2007), which sees whatever a smooth function of the vectors tells.

        Args:
            vectors: (N, D) such as debiased ones.
            rows: (N,) their rows.
            groups: (N,) their groups.
            keys: of all rows; they decide the halves.
            seed: of the halves and the features.
        """
        half = stream("attackers", seed, keys[rows]) % np.uint64(2) == 0
        random = np.random.default_rng(derived_seed("attackers", seed, 0))
        features: Mapping[str, Callable[[FloatArray], FloatArray]] = {
            "linear": lambda own: own,
            "kernel": _waves(vectors.shape[1], random),
        }
        found = {name: np.zeros(len(rows), bool) for name in features}
        for learnt in (half, ~half):
            for name, seen in features.items():
                own = _standardised(seen(vectors.astype(np.float64)), learnt)
                guessed = _guessed(own, groups, learnt)
                found[name][~learnt] = guessed == groups[~learnt]
        return cls(rows, groups, found)

    def accuracies(self, weights: FloatArray, rows: IntArray) -> dict[str, FloatArray]:
        """Attacker to (B,) mean over groups of the share that it tells right, rows weighted.

        Args:
            weights: (B, I) how often each row counts.
            rows: (I,) rows, ascending, all that are asked of among them.
        """
        own = weights[:, np.searchsorted(rows, self.rows)]
        members = np.eye(int(self.groups.max()) + 1)[self.groups]  # (N, K)
        members = members[:, members.any(axis=0)]
        counts = own @ members
        found = {}
        for name, right in self.right.items():
            hits = own @ (members * right[:, None])
            shares = np.divide(hits, counts, out=np.full(hits.shape, np.nan), where=counts > 0)
            found[name] = np.nanmean(shares, axis=1)
        return found


def attacked_texts(texts: Embedder, told: Sequence[Sequence[str]], seed: int) -> Attacked:
    """Whom attackers tell of sentences; those of one set are learnt from together, or not.

    Args:
        texts: whose vectors.
        told: S sets of K sentences, one of every group.
        seed: see :meth:`Attacked.of`.
    """
    n_sets, n_groups = len(told), len(told[0])
    vectors = texts.embed([text for own in told for text in own])
    rows, groups = np.repeat(np.arange(n_sets), n_groups), np.tile(np.arange(n_groups), n_sets)
    return Attacked.of(vectors, rows, groups, keys_of(own[0] for own in told), seed)


def attacker_parts(
    attacked: Sequence[Attacked],
    keys: UIntArray,
    stats: Bootstrap,
    held: tuple[int, float],
    of: str = "",
) -> dict[str, Part]:
    """``attacker:linear`` and ``attacker:kernel``, tested against chance.

    Args:
        attacked: of each seed.
        keys: of all rows, which are resampled.
        stats: how intervals are made.
        held: number of images and coverage.
        of: what the vectors are of, where that is not pictures.
    """
    rows = np.unique(np.concatenate([own.rows for own in attacked]))
    chance = float(np.mean([1 / len(np.unique(own.groups)) for own in attacked]))

    def evaluate(weights: FloatArray) -> dict[PartName, FloatArray]:
        found = [own.accuracies(weights, rows) for own in attacked]
        return {
            PartName("attacker", object=of, detail=name): np.stack([own[name] for own in found], -1)
            for name in found[0]
        }

    found = stats.estimate_weighted(keys[rows], evaluate)
    return {
        name: Part(against(own, chance), "fraction", *held, math.nan, (0.0, 1.0), chance)
        for name, own in found.items()
    }


def _standardised(vectors: FloatArray, learnt: BoolArray) -> FloatArray:
    """Numbers of mean 0 and spread 1 among those that are learnt from; those that never vary, 0."""
    own = vectors[learnt]
    spread = own.std(axis=0)
    some = spread > 1e-6 * spread.max(initial=0.0)
    return np.where(some, (vectors - own.mean(axis=0)) / np.where(some, spread, 1.0), 0.0)


def _waves(size: int, random: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
    """Random Fourier features of a Gaussian kernel as wide as the median distance."""
    directions = random.standard_normal((size, _WAVES))
    phases = random.uniform(0, 2 * np.pi, _WAVES)

    def seen(vectors: FloatArray) -> FloatArray:
        some = vectors[:: max(1, len(vectors) // _MEASURED)]
        squares = (some**2).sum(axis=1)
        distances = squares[:, None] + squares - 2 * some @ some.T
        width = math.sqrt(max(float(np.median(distances[np.triu_indices(len(some), 1)])), 1e-12))
        return np.asarray(np.cos(vectors @ directions / width + phases))

    return seen


def _guessed(features: FloatArray, groups: IntArray, learnt: BoolArray) -> IntArray:
    """The groups that an attacker tells of the others; it learns from all groups alike."""
    known, own = np.unique(groups[learnt], return_inverse=True)
    if len(known) < 2:
        return np.full(int((~learnt).sum()), known[0] if len(known) else -1)
    counts = len(own) / len(known) / np.bincount(own)[own]
    truths = np.eye(len(known))[own] * counts[:, None]
    if len(known) == 2:
        truths = truths[:, 1:]
    weights = fit(features[learnt], counts[:, None], truths[:, None], _INVERSE_PENALTY)
    scores = decide(features[~learnt], weights[:, 0])
    if len(known) == 2:
        return np.asarray(known[(scores[:, 0] > 0).astype(int)])
    return np.asarray(known[scores.argmax(axis=1)])
