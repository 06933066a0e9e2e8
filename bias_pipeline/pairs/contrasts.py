"""Pairs the pictures of a set that show two groups and agree in all other attributes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.io.hashing import UIntArray, hash_ids


@dataclass(frozen=True, eq=False)
class Contrasts:
    """M pairs of pictures in J sets; each pair has a picture of each of the two groups."""

    sets: tuple[str, ...]  # the J sets by name
    set_of: IntArray  # (M,) the set of each pair, ascending
    first: IntArray  # (M,) its picture of the first group
    second: IntArray  # (M,) its picture of the second group
    weights: Float64Array  # (M,) weight in a set's mean: all contexts count alike

    @classmethod
    def of_groups(
        cls,
        sets: Sequence[str],
        groups: IntArray,
        contexts: IntArray,
        compared: tuple[int, int],
        used: BoolArray,
    ) -> Contrasts:
        """Pair the pictures of two groups that share a set and a context.

        The k-th picture of one group is paired with the k-th picture of the other group, in the
        given order. All arguments describe N pictures: ``sets`` has the set (empty for none),
        ``groups`` the group, ``contexts`` a number for the other attributes, and ``used`` whether
        the picture may be paired.
        """
        cells: dict[str, dict[int, tuple[list[int], list[int]]]] = defaultdict(dict)
        for row in np.flatnonzero(used & np.isin(groups, compared)).tolist():
            if sets[row]:
                cell = cells[sets[row]].setdefault(int(contexts[row]), ([], []))
                cell[compared.index(int(groups[row]))].append(row)
        pairs: list[tuple[int, int, int, float]] = []
        names: list[str] = []
        for name in sorted(cells):
            by_context = [
                list(zip(*cells[name][number], strict=False)) for number in sorted(cells[name])
            ]
            paired = [context for context in by_context if context]
            for context in paired:
                weight = 1 / (len(paired) * len(context))
                pairs += [(len(names), one, two, weight) for one, two in context]
            names += [name] * bool(paired)
        table = np.array(pairs, np.float64).reshape(-1, 4)
        set_of, first, second = table[:, :3].astype(np.int64).T
        return cls(tuple(names), set_of, first, second, table[:, 3])

    def __len__(self) -> int:
        return len(self.sets)

    @cached_property
    def keys(self) -> UIntArray:
        """(J,) a hash of each set."""
        return hash_ids(self.sets)

    def means(self, group: int, n_pictures: int) -> sparse.csr_array:
        """(J, N) weights that average the pictures of the first (0) or the second (1) group."""
        pictures = (self.first, self.second)[group]
        return sparse.csr_array(
            (self.weights, (self.set_of, pictures)), shape=(len(self), n_pictures)
        )

    def of_sets(self, group: int, values: Float64Array) -> Float64Array:
        """(J,) the mean over the pictures of each set in the first (0) or the second (1) group."""
        pictures = (self.first, self.second)[group]
        weighted = self.weights * values[pictures]
        return np.bincount(self.set_of, weighted, len(self)).astype(np.float64)

    def differences(self, values: sparse.csr_array) -> sparse.csr_array:
        """(J, V) the second group minus the first, from (N, V) values of pictures."""
        n_pictures = values.shape[0]
        means = self.means(1, n_pictures) - self.means(0, n_pictures)
        return sparse.csr_array(means @ values)

    @cached_property
    def crossings(self) -> IntArray:
        """(P, 2) all combinations of two pairs of the same set."""
        bounds = np.searchsorted(self.set_of, np.arange(len(self) + 1)).tolist()
        crossed = [
            two for start, end in pairwise(bounds) for two in combinations(range(start, end), 2)
        ]
        return np.array(crossed, np.int64).reshape(-1, 2)
