"""All other attributes of the same rankings: taking one out of vectors can bring another forth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus, Grouping
from bias_pipeline.corpus.intersection import crossed
from bias_pipeline.metrics.base import Part
from bias_pipeline.metrics.functional.fair_ranker import expected_entropy
from bias_pipeline.metrics.parts import PartName
from bias_pipeline.metrics.retrieval.estimates import narrowed
from bias_pipeline.metrics.retrieval.permuted import permuted_p
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate

IntArray = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]


def other_groupings(corpus: Corpus, attribute: Attribute) -> dict[str, Grouping]:
    """The groups of every other attribute that a corpus knows, and of every two together.

    Args:
        corpus: read with its other attributes.
        attribute: the one that is scored; with another one it makes an intersection too, unless it
            is one.
    """
    known = dict(corpus.groupings)
    if attribute.crossed:
        known.pop(attribute.name)
    pairs = {
        f"{one}_{other}": crossed([known[one], known[other]])
        for one, other in combinations(known, 2)
    }
    return {name: own for name, own in {**known, **pairs}.items() if name != attribute.name}


def ranked_others(
    queries: Vectors,
    pictures: Vectors,
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
        like: as they are ranked for the attribute that is scored.
        least: see :meth:`~bias_pipeline.metrics.retrieval.ranked.Ranked.of`.

    Returns:
        Attribute to rankings; without those of which fewer than k pictures are labelled.
    """
    found = {}
    for name, own in others.items():
        some = own.codes[rows] >= 0
        if some.sum() >= like.k:
            found[name] = Ranked.of(
                queries,
                pictures if some.all() else pictures[some],
                rows[some],
                own.codes[rows[some]],
                len(own.names),
                like.k,
                like.ties,
                least,
            )
    return found


def other_parts(
    ranked: Sequence[Mapping[str, Ranked]],
    corpus: Corpus,
    stats: Bootstrap,
    others: Mapping[str, Grouping],
    tested: IntArray,
) -> dict[str, Part]:
    """``other:ATTRIBUTE``, each with what a ranker has to whom its groups are nothing.

    Their p is that of permuted labels, as that of ``score``.

    Args:
        ranked: of each seed, see :func:`ranked_others`.
        corpus: whose rows they are.
        stats: how intervals are made.
        others: attribute to groups.
        tested: rows of the images that are retrieved from.
    """
    found: dict[str, Part] = {}
    for name in ranked[0]:
        if all(name in own for own in ranked):
            codes = others[name].codes
            n = int((codes[tested] >= 0).sum())
            held = n, n / int((codes >= 0).sum())
            found |= _parts(name, [own[name] for own in ranked], corpus, stats, held)
    return found


def _parts(
    name: str,
    ranked: Sequence[Ranked],
    corpus: Corpus,
    stats: Bootstrap,
    held: tuple[int, float],
) -> dict[str, Part]:
    nan = math.nan
    rows = np.unique(np.concatenate([own.images.ravel() for own in ranked]))
    part = PartName("other", detail=name)
    null = float(np.mean([expected_entropy(own.sizes, own.k) for own in ranked]))

    def evaluate(weights: npt.NDArray[np.float64]) -> dict[PartName, npt.NDArray[np.float64]]:
        means = [np.nanmean(own.entropies(weights, rows), axis=1) for own in ranked]
        return {part: np.stack(means, axis=-1)}

    estimates = stats.estimate_weighted(corpus.keys[rows], evaluate)
    p_value, _ = permuted_p(ranked, corpus.keys, stats.resamples, stats.seed)
    own = replace(narrowed(estimates, ranked, stats.level)[part], p_value=p_value)
    fair = Estimate(null, nan, nan, nan, nan, nan, n_seeds=0)
    return {
        part: Part(own, "fraction", *held, nan, range=(0.0, 1.0), neutral=null),
        PartName("null", detail=part): Part(fair, "fraction", *held, nan),
    }
