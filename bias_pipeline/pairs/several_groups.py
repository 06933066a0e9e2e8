"""Tests whether a class of captions differs between any of three groups or more.

Cochran's Q compares the groups' sums over sets (Cochran 1950). The p of Q comes from exchanges of
the groups within each set, since the chi-squared law of Q rejects too rarely in rare classes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.io.hashing import UIntArray, hash_ids, random_words
from bias_pipeline.pairs.comparison import SetPictures
from bias_pipeline.pairs.said_of_people import DECLINES, NAMED, WRONG, declined_shares
from bias_pipeline.stats.compare import holm
from bias_pipeline.stats.sign_flips import FEWEST_SETS, p_of_null

_MOST_LISTED, _DRAWN, _AT_ONCE = 1 << 16, 9_999, 500


@dataclass(frozen=True)
class GroupShares:
    """The share of each group's captions that belong to a class."""

    name: str
    shares: tuple[float, ...]  # of the K groups, over sets that have all
    adjusted_p: float  # of equal shares, after Holm over classes, times the number of attributes

    @property
    def range(self) -> float:
        """The largest share minus the smallest."""
        return max(self.shares) - min(self.shares)


@dataclass(frozen=True, eq=False)
class SeveralGroups:
    """K groups compared at once, over the sets that have all groups in one context."""

    pictures: SetPictures
    codes: Sequence[int]  # the groups

    @property
    def groups(self) -> list[str]:
        return [self.pictures.groups[code] for code in self.codes]

    @property
    def has_enough_sets(self) -> bool:
        return len(self._captioned_sets.sets) >= FEWEST_SETS

    @cached_property
    def _captioned_sets(self) -> CompleteSets:
        return CompleteSets.of_pictures(self.pictures, self.codes, self.pictures.n_captions > 0)

    @cached_property
    def classes(self) -> list[GroupShares]:
        """The classes about the person, with the p of Cochran's Q."""
        pictures, captioned = self.pictures, self._captioned_sets
        about = (NAMED, WRONG, *pictures.wordings.classes)
        tested: dict[str, tuple[Float64Array, float]] = {}
        for name, values, people in pictures.classes:
            if name in about:
                shares = captioned.means(values)
                theirs = 0 if people is None else captioned.means(people)
                tested[name] = shares.mean(axis=0), captioned.p_value(shares - theirs)
        declined, answers = declined_shares(pictures.corpus)
        if np.nansum(declined) > 0:
            answered = CompleteSets.of_pictures(pictures, self.codes, answers > 0)
            shares = answered.means(declined)
            tested[DECLINES] = shares.mean(axis=0), answered.p_value(shares)
        adjusted = holm([p_value for _, p_value in tested.values()])
        n_attributes = len(pictures.wordings.attributes)
        return [
            GroupShares(name, tuple(shares.tolist()), float(np.minimum(1.0, n_attributes * p)))
            for (name, (shares, _)), p in zip(tested.items(), adjusted, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class CompleteSets:
    """J sets with pictures of all K groups in the same context, or in several contexts."""

    sets: tuple[str, ...]
    weights: Sequence[
        sparse.csr_array
    ]  # K, each (J, N): all complete contexts of a set count alike

    @classmethod
    def of_pictures(
        cls, pictures: SetPictures, codes: Sequence[int], used: BoolArray
    ) -> CompleteSets:
        cells: dict[str, dict[int, dict[int, list[int]]]] = defaultdict(dict)
        names = pictures.corpus.set_ids or ()
        for row in np.flatnonzero(used & np.isin(pictures.codes, codes)).tolist():
            if names[row]:
                of_context = cells[names[row]].setdefault(int(pictures.contexts[row]), {})
                of_context.setdefault(int(pictures.codes[row]), []).append(row)
        complete = {
            name: whole
            for name in sorted(cells)
            if (whole := [one for one in cells[name].values() if len(one) == len(codes)])
        }
        weights = []
        for code in codes:
            entries = [
                (1 / (len(whole) * len(context[code])), number, row)
                for number, whole in enumerate(complete.values())
                for context in whole
                for row in context[code]
            ]
            table = np.array(entries, np.float64).reshape(-1, 3)
            places = (table[:, 1].astype(np.int64), table[:, 2].astype(np.int64))
            shape = (len(complete), len(pictures.corpus))
            weights.append(sparse.csr_array((table[:, 0], places), shape=shape))
        return cls(tuple(complete), weights)

    def means(self, values: Float64Array) -> Float64Array:
        """(J, K) the mean over the pictures of each set and group, from (N,) values."""
        return np.stack([of_group @ values for of_group in self.weights], axis=1)

    def p_value(self, values: Float64Array) -> float:
        """The p if all groups were equal, from (J, K) values; NaN if fewer than six sets differ."""
        differing = np.ptp(values, axis=1) > 1e-12
        if differing.sum() < FEWEST_SETS:
            return math.nan
        return exchange_p(hash_ids(self.sets)[differing], values[differing])


def exchange_p(keys: UIntArray, values: Float64Array) -> float:
    """The p of Cochran's Q of (J, K) values, under exchanges of the groups within sets.

    A hash identifies each set. If there are at most 65,536 exchanges, all are used. Otherwise 9,999
    exchanges are drawn. Exchanges that give exactly the observed Q count half.

    Example:
        >>> exchange_p(np.arange(3, dtype=np.uint64), np.array([[1.0, 0.0, 0.0]] * 3)).__round__(4)
        0.0556
    """
    n_sets, n_groups = values.shape
    complete = math.factorial(n_groups) ** n_sets <= _MOST_LISTED
    orders = _all_orders(n_sets, n_groups) if complete else _drawn_orders(keys, n_groups)
    null = np.concatenate([_squares(np.take_along_axis(values[None], o, axis=2)) for o in orders])
    observed = _squares(values[None])[0]
    return float(p_of_null(observed, null, complete=complete, mid=True))


def _squares(values: Float64Array) -> Float64Array:
    """(B,) the sum of squares of the groups' sums, from (B, J, K) values; Q depends on it."""
    squares: Float64Array = (values.sum(axis=1) ** 2).sum(axis=1)
    return squares


def _all_orders(n_sets: int, n_groups: int) -> Iterator[IntArray]:
    """All orders of the groups in all sets, as one block (B, J, K)."""
    of_set = list(permutations(range(n_groups)))
    yield np.array(list(product(of_set, repeat=n_sets)), np.int64)


def _drawn_orders(keys: UIntArray, n_groups: int) -> Iterator[IntArray]:
    """Blocks (B, J, K) of random orders of the groups in each set."""
    for first in range(0, _DRAWN, _AT_ONCE):
        numbers = np.arange(first * n_groups, min(first + _AT_ONCE, _DRAWN) * n_groups)
        words = random_words("exchanged groups", 0, keys, numbers.astype(np.uint64)[:, None])
        drawn = words.reshape(-1, n_groups, len(keys)).transpose(0, 2, 1)
        yield np.argsort(drawn, axis=2)
