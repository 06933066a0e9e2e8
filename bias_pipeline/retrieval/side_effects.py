"""Measures side effects of a debiasing: on other attributes, on recall, on attackers' guesses.

Removing one attribute from vectors can strengthen another, so other attributes of the same rankings
are scored too. Recall says how often a caption still retrieves its picture, and a picture its
caption. Probes guess the group from vectors of held-out pictures or sentences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bias_pipeline.array_types import BoolArray, Float32Array, Float64Array, IntArray
from bias_pipeline.attack.newton import decide, fit
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Grouping
from bias_pipeline.corpus.regrouping import cross_attributes
from bias_pipeline.io.hashing import UIntArray, derived_seed, hash_ids, random_words
from bias_pipeline.metrics.base import Number
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.retrieval.estimates import (
    Folds,
    narrow_intervals,
    permuted_p,
    retrieved_rows,
)
from bias_pipeline.retrieval.formulas import ranks_of_own
from bias_pipeline.retrieval.ranked import Ranked, Reranker
from bias_pipeline.retrieval.skew import expected_entropy
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, with_p_value

if TYPE_CHECKING:
    from bias_pipeline.retrieval.dual_encoders import DualEncoder, Embedder


def other_groupings(corpus: Corpus, attribute: Attribute) -> dict[str, Grouping]:
    """The groups of every other attribute of a corpus, and of every two attributes together."""
    known = dict(corpus.groupings)
    if attribute.is_crossed:
        known.pop(attribute.name)
    pairs = {
        f"{one}_{other}": cross_attributes([known[one], known[other]])
        for one, other in combinations(known, 2)
    }
    return {
        name: grouping for name, grouping in {**known, **pairs}.items() if name != attribute.name
    }


def ranked_others(
    queries: Float32Array,
    pictures: Float32Array,
    rows: IntArray,
    others: Mapping[str, Grouping],
    like: Ranked,
    least: int = 0,
) -> dict[str, Ranked]:
    """The same rankings, restricted to pictures that have a group of the other attribute."""
    rankings = {}
    for name, grouping in others.items():
        some = grouping.codes[rows] >= 0
        if some.sum() >= like.k:
            rankings[name] = Ranked.rank(
                queries,
                pictures if some.all() else pictures[some],
                rows[some],
                grouping.codes[rows[some]],
                len(grouping.names),
                like.k,
                like.ties,
                least,
            )
    return rankings


def other_parts(
    ranked: Sequence[Mapping[str, Ranked]],
    corpus: Corpus,
    stats: Bootstrap,
    others: Mapping[str, Grouping],
    tested: IntArray,
    folds: Folds,
) -> dict[str, Number]:
    """``other:ATTRIBUTE`` with its null, the value of a ranker that ignores groups.

    The p comes from permuted labels, as the p of ``score`` does.
    """
    parts: dict[str, Number] = {}
    for name in ranked[0]:
        if all(name in rankings for rankings in ranked):
            codes = others[name].codes
            n = int((codes[tested] >= 0).sum())
            number = partial(Number, n_images=n, coverage=n / int((codes >= 0).sum()))
            part = PartName("other", detail=name)
            of_name = [rankings[name] for rankings in ranked]
            null = float(np.mean([expected_entropy(one.sizes, one.k) for one in of_name]))
            estimate = _mean_entropy(part, of_name, corpus, stats, folds)
            parts[part] = number(**vars(estimate), range=(0.0, 1.0), neutral=null)
            parts[PartName("null", detail=part)] = number(null)
    return parts


def _mean_entropy(
    part: PartName, ranked: Sequence[Ranked], corpus: Corpus, stats: Bootstrap, folds: Folds
) -> Estimate:
    rows = retrieved_rows(ranked)

    def evaluate(weights: Float64Array) -> dict[PartName, Float64Array]:
        means = [np.nanmean(ranking.entropies(weights, rows), axis=1) for ranking in ranked]
        return {part: folds.by_seed(means)}

    estimates = stats.estimate_weighted(corpus.keys[rows], evaluate)
    p_value, _ = permuted_p(ranked, corpus.keys, stats.resamples, stats.seed)
    return replace(narrow_intervals(estimates, ranked, stats.level)[part], p_value=p_value)


@dataclass(frozen=True, eq=False)
class Recall:
    """The ranks at which captions retrieve their pictures, and pictures their captions."""

    rows: IntArray  # (N,) rows of a corpus; each has one caption and one picture
    # `image`: (N,) rank of each caption's picture; `text`: of each picture's caption
    places: dict[str, IntArray]
    depths: Sequence[int]  # the k of recall at k

    @classmethod
    def measure(
        cls,
        dual: DualEncoder,
        captions: Sequence[str],
        pictures: Float32Array,
        rows: IntArray,
        depths: Sequence[int],
        again: Reranker | None = None,
    ) -> Recall:
        """Rank pictures (N, D) for captions, and captions for pictures."""
        texts = dual.texts.embed(captions)
        places = {"image": ranks_of_own(texts, pictures), "text": ranks_of_own(pictures, texts)}
        if again is not None:
            image, text = places.values()
            places = {
                "image": again.places(texts, pictures, image, captions, rows, of_texts=True),
                "text": again.places(pictures, texts, text, captions, rows, of_texts=False),
            }
        return cls(rows, places, depths)

    @classmethod
    def join_folds(cls, folds: Sequence[Recall]) -> Recall:
        """The ranks in all folds of a seed; a rank counts only items of the same fold."""
        places = {
            what: np.concatenate([fold.places[what] for fold in folds]) for what in folds[0].places
        }
        return cls(np.concatenate([fold.rows for fold in folds]), places, folds[0].depths)

    @property
    def names(self) -> list[PartName]:
        """``recall:image@k`` and ``recall:text@k``."""
        return [
            PartName("recall", detail=f"{what}@{k}") for what in self.places for k in self.depths
        ]

    def shares(self, weights: Float64Array, rows: IntArray) -> Float64Array:
        """(B, R) the recalls in the order of :attr:`names`, if rows (I,) have weights (B, I)."""
        row_weights = weights[:, np.searchsorted(rows, self.rows)]
        hits = np.stack(
            [places < k for places in self.places.values() for k in self.depths], axis=1
        )
        return share(row_weights @ hits, row_weights.sum(axis=1, keepdims=True))


def first_captions(captions: Captions, rows: IntArray) -> tuple[IntArray, list[str]]:
    """The rows of images with a caption, and the first caption of each such image.

    Example:
        >>> captions = Captions.from_texts(["a dog", "one dog", "a cat"], [0, 0, 2])
        >>> first_captions(captions, np.array([2, 1, 0]))
        (array([2, 0]), ['a cat', 'a dog'])
    """
    places = np.searchsorted(captions.image_rows, rows)
    described = places < len(captions.image_rows)
    described[described] = captions.image_rows[places[described]] == rows[described]
    return rows[described], [captions.text(place) for place in places[described].tolist()]


_INVERSE_PENALTY = 0.01  # on features of spread 1; our choice
_WAVES = 500  # random Fourier features of the kernel attacker; our choice
_MEASURED = 500  # pictures whose distances set the kernel's width


@dataclass(frozen=True, eq=False)
class Attacked:
    """The guesses of fresh attackers that are right, in one seed or fold."""

    rows: IntArray  # (N,) the picture of each vector, or its set of sentences
    groups: IntArray  # (N,) their groups
    right: Mapping[str, BoolArray]  # by attacker, (N,) whether it is right

    @classmethod
    def attack(
        cls,
        vectors: Float32Array,
        rows: IntArray,
        groups: IntArray,
        keys: UIntArray,
        seed: int,
    ) -> Attacked:
        """Let two attackers learn from half of the rows and guess the other half, and vice versa.

        ``linear`` is a logistic regression. ``kernel`` is a logistic regression on random Fourier
        features (Rahimi and Recht, NeurIPS 2007), which can use any smooth function of the vectors.
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
                inputs = _standardise(transform(vectors.astype(np.float64)), learnt)
                guessed = _guess(inputs, groups, learnt)
                correct[name][~learnt] = guessed == groups[~learnt]
        return cls(rows, groups, correct)

    @classmethod
    def join_folds(cls, folds: Sequence[Attacked]) -> Attacked:
        """The guesses in all folds of a seed; the attackers of each fold make its guesses."""
        right = {
            name: np.concatenate([fold.right[name] for fold in folds]) for name in folds[0].right
        }
        rows = np.concatenate([fold.rows for fold in folds])
        return cls(rows, np.concatenate([fold.groups for fold in folds]), right)

    def accuracies(self, weights: Float64Array, rows: IntArray) -> dict[str, Float64Array]:
        """(B,) the mean over groups of the weighted share of right guesses, for each attacker."""
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
    """Guesses of attackers on sentences; all sentences of a set are in the same half."""
    n_sets, n_groups = len(sentences), len(sentences[0])
    vectors = texts.embed([text for sentence_set in sentences for text in sentence_set])
    rows, groups = np.repeat(np.arange(n_sets), n_groups), np.tile(np.arange(n_groups), n_sets)
    return Attacked.attack(
        vectors, rows, groups, hash_ids(sentence_set[0] for sentence_set in sentences), seed
    )


def attacker_parts(
    attacked: Sequence[Attacked],
    keys: UIntArray,
    stats: Bootstrap,
    tested: tuple[int, float],
    of: str = "",
    *,
    cross_fitted: bool = False,
) -> dict[str, Number]:
    """``attacker:linear`` and ``attacker:kernel``, tested against chance."""
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

    estimates = stats.estimate_weighted(keys[rows], evaluate, cross_fitted=cross_fitted)
    return {
        name: Number(
            **vars(with_p_value(estimate, chance)),
            n_images=tested[0],
            coverage=tested[1],
            range=(0.0, 1.0),
            neutral=chance,
        )
        for name, estimate in estimates.items()
    }


def _standardise(vectors: Float64Array, learnt: BoolArray) -> Float64Array:
    """Columns with mean 0 and spread 1 in training rows, where constant columns become 0."""
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


def _guess(features: Float64Array, groups: IntArray, learnt: BoolArray) -> IntArray:
    """An attacker's guesses outside its training rows, where groups have equal weight."""
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
