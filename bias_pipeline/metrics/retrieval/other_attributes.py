"""Other attributes of the same rankings: removing one from vectors can strengthen another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus, Grouping
from bias_pipeline.corpus.intersection import cross_attributes
from bias_pipeline.metrics.base import Part
from bias_pipeline.metrics.functional.skew import expected_entropy
from bias_pipeline.metrics.retrieval.estimates import narrowed, permuted_p
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate


def other_groupings(corpus: Corpus, attribute: Attribute) -> dict[str, Grouping]:
    """The groups of every other attribute of a corpus, and of every two together.

    Args:
        corpus: read with its other attributes.
        attribute: the one that is scored; it is also crossed with the others, unless it is an
            intersection itself.
    """
    known = dict(corpus.groupings)
    if attribute.crossed:
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
    """The same rankings, of the pictures that belong to a group of another attribute.

    Args:
        queries: (C, D).
        pictures: (N, D).
        rows: (N,) the pictures' rows of a corpus.
        others: attribute to groups.
        like: the rankings for the attribute that is scored, for k and ties.
        least: see :meth:`~bias_pipeline.metrics.retrieval.ranked.Ranked.of`.

    Returns:
        Attribute to rankings; without attributes that have fewer than k labelled pictures.
    """
    rankings = {}
    for name, grouping in others.items():
        some = grouping.codes[rows] >= 0
        if some.sum() >= like.k:
            rankings[name] = Ranked.of(
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
) -> dict[str, Part]:
    """``other:ATTRIBUTE``, each with its null: the value of a ranker that ignores its groups.

    As for ``score``, p permutes labels.

    Args:
        ranked: of each seed, see :func:`ranked_others`.
        corpus: whose rows they are.
        stats: how intervals are made.
        others: attribute to groups.
        tested: rows of the images that are retrieved from.
    """
    parts: dict[str, Part] = {}
    for name in ranked[0]:
        if all(name in rankings for rankings in ranked):
            codes = others[name].codes
            n = int((codes[tested] >= 0).sum())
            size_and_coverage = n, n / int((codes >= 0).sum())
            parts |= _parts(
                name, [rankings[name] for rankings in ranked], corpus, stats, size_and_coverage
            )
    return parts


def _parts(
    name: str,
    ranked: Sequence[Ranked],
    corpus: Corpus,
    stats: Bootstrap,
    size_and_coverage: tuple[int, float],
) -> dict[str, Part]:
    nan = math.nan
    rows = np.unique(np.concatenate([ranking.images.ravel() for ranking in ranked]))
    part = PartName("other", detail=name)
    null = float(np.mean([expected_entropy(ranking.sizes, ranking.k) for ranking in ranked]))

    def evaluate(weights: Float64Array) -> dict[PartName, Float64Array]:
        means = [np.nanmean(ranking.entropies(weights, rows), axis=1) for ranking in ranked]
        return {part: np.stack(means, axis=-1)}

    estimates = stats.estimate_weighted(corpus.keys[rows], evaluate)
    p_value, _ = permuted_p(ranked, corpus.keys, stats.resamples, stats.seed)
    estimate = replace(narrowed(estimates, ranked, stats.level)[part], p_value=p_value)
    fair = Estimate(null, nan, nan, nan, nan, nan, n_seeds=0)
    return {
        part: Part(estimate, "fraction", *size_and_coverage, nan, range=(0.0, 1.0), neutral=null),
        PartName("null", detail=part): Part(fair, "fraction", *size_and_coverage, nan),
    }
