"""Are the groups at the top those of a fair ranker? Exact for a query, permuted for many together.

Entropy cannot tell: from a pool with more men than women a query that retrieves too few men is as
even as a fair one, or more so. Counts of groups can.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.metrics.functional.retrieval import normalised_entropy

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ENUMERATED = 200_000  # ways to fill the top that are listed one by one
DRAWN = 100_000  # such ways that are drawn where there are more
PERMUTATIONS = 4_999
_EQUAL = 1e-7  # probabilities that differ by a smaller share are one
_CELLS = 20_000_000  # numbers of permuted labels that are held at once


class Permuted(NamedTuple):
    """What permuting the images' labels says of all queries together.

    Attributes:
        p_value: of counts at least as far from a fair ranker's, in (0, 1].
        score_std: standard deviation of the mean entropy.
        concept_std: (C,) that of each query's entropy.
    """

    p_value: float
    score_std: float
    concept_std: FloatArray


def p_of_counts(counts: FloatArray, sizes: IntArray, k: int) -> FloatArray:
    """(C,) exact two-sided p of the groups that queries retrieve, each query by itself.

    A ranker to whom groups are nothing has multivariate hypergeometric counts. P is the chance of
    all counts that are no likelier than those found, as in Fisher's test; of very many groups it
    rests on 100,000 draws, which the counts themselves are added to.

    Several splits of one data set share images in a manner that nobody knows; twice the mean of
    their p holds whatever it is (Ruschendorf 1982; Vovk and Wang 2020).

    Args:
        counts: (S, C, K) images of each group at the top, a line a split; they need not be whole.
        sizes: (S, K) images of each group that are retrieved from.
        k: depth, at most all images.

    Example:
        >>> counts, sizes = np.array([[[0.0, 2.0], [1.0, 1.0]]]), np.array([[2, 2]])
        >>> p_of_counts(counts, sizes, 2).round(4).tolist()
        [0.3333, 1.0]
    """
    splits = [
        _p_of_split(own, tuple(size), k) for own, size in zip(counts, sizes.tolist(), strict=True)
    ]
    several = 2.0 if len(splits) > 1 else 1.0
    return np.clip(several * np.mean(splits, axis=0), sys.float_info.min, 1.0)


def _p_of_split(counts: FloatArray, sizes: tuple[int, ...], k: int) -> FloatArray:
    observed = log_chances(scaled(counts, k), np.array(sizes), k)
    chances, weights, added = _chances(sizes, k)
    reached = np.concatenate([[0.0], np.cumsum(weights)])
    place = np.searchsorted(chances, observed + _EQUAL, side="right")
    return np.minimum((reached[place] + added) / (reached[-1] + added), 1.0)


@lru_cache(maxsize=64)
def _chances(sizes: tuple[int, ...], k: int) -> tuple[FloatArray, FloatArray, float]:
    """(W,) logarithms of the chances of ways to fill the top, ascending; weights; what is added."""
    groups = np.array(sizes)
    if is_listed(groups, k):
        logs = log_chances(ways_to_fill(groups, k).astype(np.float64), groups, k)
        weights, added = np.exp(logs), 0.0
    else:
        draws = np.random.default_rng(0).multivariate_hypergeometric(groups, k, DRAWN)
        logs = log_chances(draws.astype(np.float64), groups, k)
        weights, added = np.full(DRAWN, 1 / DRAWN), 1 / DRAWN
    order = np.argsort(logs, kind="stable")
    return logs[order], weights[order], added


def is_listed(sizes: IntArray, k: int) -> bool:
    """Whether the ways to fill the top are few enough to be listed one by one."""
    return math.comb(k + len(sizes) - 1, len(sizes) - 1) <= ENUMERATED


def ways_to_fill(sizes: IntArray, k: int) -> IntArray:
    """(W, K) all ways to fill the top with images of the groups.

    Example:
        >>> ways_to_fill(np.array([1, 2]), 2).tolist()
        [[0, 2], [1, 1]]
    """
    ways = np.zeros((1, 0), np.int64)
    for size in sizes[:-1]:
        left = k - ways.sum(axis=1)
        added = np.concatenate([np.arange(min(int(size), int(most)) + 1) for most in left])
        repeats = np.minimum(int(size), left) + 1
        ways = np.column_stack([np.repeat(ways, repeats, axis=0), added])
    ways = np.column_stack([ways, k - ways.sum(axis=1)])
    return np.asarray(ways[ways[:, -1] <= sizes[-1]])


def log_chances(counts: FloatArray, sizes: IntArray, k: int) -> FloatArray:
    """(...) logarithms of multivariate hypergeometric chances.

    Args:
        counts: (..., K) that sum to k.
        sizes: (K,).
        k: depth.
    """
    return np.asarray(_log_binomial(sizes, counts).sum(axis=-1) - _log_binomial(sizes.sum(), k))


def _log_binomial(n: IntArray, k: FloatArray | int) -> FloatArray:
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def scaled(counts: FloatArray, k: int) -> FloatArray:
    """Counts that sum to k, where equally near images make them more."""
    return np.asarray(counts * (k / counts.sum(axis=-1, keepdims=True)))


def excess(counts: FloatArray, sizes: IntArray, k: int) -> FloatArray:
    """(..., K) how many standard deviations of a fair ranker groups lie above its expectation.

    Args:
        counts: (..., K) that sum to k.
        sizes: (K,).
        k: depth.

    Example:
        >>> excess(np.array([32.0, 68.0]), np.array([620, 380]), 100).round(1).tolist()
        [-6.5, 6.5]
    """
    total = sizes.sum()
    share = sizes / total
    variance = k * share * (1 - share) * (total - k) / max(total - 1, 1)
    away = counts - k * share
    return np.divide(away, np.sqrt(variance), out=np.zeros_like(away), where=variance > 0)


def permuted(top: FloatArray, sizes: IntArray, k: int, counts: FloatArray) -> Permuted:
    """Permute the images' labels while rankings stay as they are.

    The level is exact however queries depend on each other. What is compared is the sum over
    queries and groups of the squared :func:`excess`, so each query counts in its own direction.

    Args:
        top: (C, I) how much each of the images that some query retrieves counts for it.
        sizes: (K,) images of each group that are retrieved from, I of them or more.
        k: depth.
        counts: (C, K) images of each group at the top, as they are labelled.

    Returns:
        P with one added to both counts, so never 0, and the spread of entropies.
    """
    n_images, generator = top.shape[1], np.random.default_rng(0)
    batch = max(1, _CELLS // (max(top.shape) * len(sizes)))
    observed = float((excess(scaled(counts, k), sizes, k) ** 2).sum())
    reached, entropies = 0, []
    for start in range(0, PERMUTATIONS, batch):
        size = min(batch, PERMUTATIONS - start)
        ends = generator.multivariate_hypergeometric(sizes, n_images, size).cumsum(axis=1)
        ordered = (np.arange(n_images) >= ends[:, :-1, None]).sum(axis=1)
        labels = generator.permuted(ordered, axis=1)  # (b, I)
        groups = [(labels == group).astype(np.float64) @ top.T for group in range(len(sizes))]
        fair = scaled(np.stack(groups, axis=-1), k)  # (b, C, K)
        far = (excess(fair, sizes, k) ** 2).sum(axis=(1, 2))
        reached += int((far >= observed * (1 - _EQUAL)).sum())
        entropies.append(normalised_entropy(fair))
    every = np.concatenate(entropies)
    return Permuted(
        (1 + reached) / (1 + PERMUTATIONS),
        float(every.mean(axis=1).std(ddof=1)),
        np.asarray(every.std(axis=0, ddof=1)),
    )
