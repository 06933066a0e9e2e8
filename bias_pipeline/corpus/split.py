"""Which images an attacker learns from and which it is scored on."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.copies import originals
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.declared import Configurable, InnerShare, Range
from bias_pipeline.errors import NotApplicableError, UsageError, did_you_mean
from bias_pipeline.io.hashing import stream

IntArray = npt.NDArray[np.int64]

PUBLISHED_SEEDS = (0, 12, 456, 789, 100, 200, 300, 400, 500, 1234)
SMALLEST_GROUP = 10
MOST_SEEDS = 10_000

_TEST, _HELD, _TRAIN = range(3)


@dataclass(frozen=True)
class Copies:
    """Images that are copies of others.

    Attributes:
        images: how many of those drawn.
        together: whether each was kept in the part of the image that it is a copy of.
    """

    images: int
    together: bool

    def note(self) -> str:
        """What a reader must know; empty where there are none."""
        if not self.images:
            return ""
        kept = (
            "each is learnt from or tested together with its original"
            if self.together
            else "some are learnt from while their originals are tested (split.together)"
        )
        return f"{self.images} images are copies of others: {kept}"


NO_COPIES = Copies(0, together=True)


@dataclass(frozen=True, eq=False)
class Split:
    """One draw: image rows to train on and to test on, each in the order they were drawn.

    Attributes:
        seed: the seed of the draw and of the attackers trained on it.
        train: rows of the corpus.
        test: rows of the corpus, disjoint from ``train``.
        validation: rows of the corpus, disjoint from both; empty unless the rule asks for them.
        balanced: whether every group is cut to the size of the smallest, dropping the rows that
            were drawn last.
        copies: of images, see :class:`Copies`.
    """

    seed: int
    train: IntArray
    test: IntArray
    validation: IntArray
    balanced: bool
    copies: Copies = NO_COPIES

    def select(self, images: IntArray, labels: IntArray) -> tuple[IntArray, IntArray]:
        """Train and test positions within a table of labelled captions.

        An image keeps its part whatever else the table holds: the same seed tests the same
        images on both sides and for all captioners. Balance is restored within the table.

        Args:
            images: (N,) corpus row of each caption, each image at most once.
            labels: (N,) class of each caption.

        Returns:
            Two index arrays into the table, ascending.
        """
        return tuple(  # type: ignore[return-value]
            np.sort(self._balance(_positions(part, images), labels))
            for part in (self.train, self.test)
        )

    def validated(self, images: IntArray, labels: IntArray) -> IntArray:
        """Validation positions within a table, as :meth:`select` gives the others."""
        return np.sort(self._balance(_positions(self.validation, images), labels))

    def _balance(self, positions: IntArray, labels: IntArray) -> IntArray:
        if not self.balanced or not len(positions):
            return positions
        own = labels[positions]
        size = np.bincount(own, minlength=int(labels.max()) + 1).min()
        return positions[_rank_within(own) < size]

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the draw."""
        sha = hashlib.sha256(f"{self.seed} {self.balanced}".encode())
        for part in (self.train, self.test, self.validation):
            sha.update(part.astype("<i8").tobytes() + b"|")
        return sha.hexdigest()


@dataclass(frozen=True)
class SplitRule(Configurable):
    """How splits are drawn.

    Attributes:
        test_share: share of each group that is tested, in (0, 1).
        validation_share: share of each group kept for validation, in [0, 1).
        balanced: cut every group to the size of the smallest.
        order: ``hashed`` draws an image by its id and the seed alone, so captioners that lack a
            few images still share the split; ``file`` pops images at random from the captioner's
            own file, as the published LIC code does (so the same seed gives every captioner
            another split).
        together: keep images that are copies of one another (:mod:`bias_pipeline.corpus.copies`)
            in one part, that of the first; an attacker tested on what it has learnt by heart says
            nothing (ours). Without copies a split is the same either way. Where that would leave a
            group without images to test or to learn from they are torn apart, which is said. Plays
            no part where ``order`` is ``file``, since the published code knows no copies.
    """

    test_share: InnerShare = 0.1
    validation_share: Annotated[float, Range(low=0, below=1)] = 0.0
    balanced: bool = True
    order: str = "hashed"
    together: bool = True

    def __post_init__(self) -> None:
        """Check the shares.

        Raises:
            UsageError: if the shares leave nothing to train on or ``order`` is unknown.
        """
        if not (0 < self.test_share < 1 and 0 <= self.validation_share < 1 - self.test_share):
            raise UsageError(
                f"split: test_share={self.test_share} and validation_share="
                f"{self.validation_share} must be positive and leave images to train on"
            )
        if self.order not in _DRAWS:
            raise UsageError(
                f"split.order: {self.order!r} is unknown; {did_you_mean(self.order, _DRAWS)}"
            )

    def draw(self, corpus: Corpus, attribute: str, seeds: Sequence[int]) -> list[Split]:
        """One split a seed, over all images that belong to a group of the attribute.

        Raises:
            DataError: if a group has fewer than ten images.
            UsageError: if the shares leave a group without test or training images.
        """
        grouping = corpus.groupings[attribute]
        rows = [np.flatnonzero(grouping.codes == k) for k in range(len(grouping.names))]
        sizes = {name: len(group) for name, group in zip(grouping.names, rows, strict=True)}
        if min(sizes.values()) < SMALLEST_GROUP:
            raise NotApplicableError(
                f"dataset {corpus.dataset!r}, attribute {attribute!r}: attackers need two groups "
                f"or more with at least {SMALLEST_GROUP} images each; found "
                + ", ".join(f"{name} {size}" for name, size in sizes.items())
            )
        self._check_sizes(sizes)
        return [_DRAWS[self.order](self, corpus, rows, seed) for seed in seeds]

    def _check_sizes(self, sizes: Mapping[str, int]) -> None:
        for name, size in sizes.items():
            tested = round(self.test_share * size)
            held = round(self.validation_share * size)
            if tested < 1 or size - tested - held < 1:
                raise UsageError(
                    f"split: test_share={self.test_share} and validation_share="
                    f"{self.validation_share} make {tested} of the {size} images of group {name} "
                    f"test images and leave {size - tested - held} to train on; each needs one"
                )


def _draw_hashed(rule: SplitRule, corpus: Corpus, groups: Sequence[IntArray], seed: int) -> Split:
    keys = stream("split", seed, corpus.keys)
    orders = [group[np.argsort(keys[group], kind="stable")] for group in groups]
    part = np.full(len(corpus), -1)
    for order in orders:
        tested = round(rule.test_share * len(order))
        held = tested + round(rule.validation_share * len(order))
        part[order] = np.repeat([_TEST, _HELD, _TRAIN], [tested, held - tested, len(order) - held])
    first = originals(corpus)
    whole = _reunited(part, first) if rule.together else part
    torn = any(not {_TEST, _TRAIN} <= set(whole[order].tolist()) for order in orders)
    test, held_out, train = (
        np.concatenate([order[(part if torn else whole)[order] == number] for order in orders])
        for number in (_TEST, _HELD, _TRAIN)
    )
    drawn = first[part >= 0]
    copies = Copies(len(drawn) - len(np.unique(drawn)), rule.together and not torn)
    return Split(seed, train, test, held_out, rule.balanced, copies)


def _reunited(part: IntArray, first: IntArray) -> IntArray:
    """Parts in which copies are where the first of their kind is.

    Args:
        part: (N,) part of each image, -1 for those that are not drawn.
        first: (N,) from :func:`~bias_pipeline.corpus.copies.originals`.
    """
    drawn = np.flatnonzero(part >= 0)
    _, leader, which = np.unique(first[drawn], return_index=True, return_inverse=True)
    found = part.copy()
    found[drawn] = part[drawn][leader][which]
    return found


def _draw_from_file(
    rule: SplitRule, corpus: Corpus, groups: Sequence[IntArray], seed: int
) -> Split:
    """The order of draws of the published code: every group's training set, then the test sets."""
    generator = random.Random(seed)  # noqa: S311 - the published draws, not a secret
    pools = [group[np.argsort(corpus.source_order[group])].tolist() for group in groups]
    smallest = min(len(pool) for pool in pools)
    sizes = [smallest if rule.balanced else len(pool) for pool in pools]
    tested = [round(rule.test_share * size) for size in sizes]

    def pop(counts: Sequence[int]) -> IntArray:
        rows = [
            pool.pop(generator.randrange(len(pool)))
            for pool, count in zip(pools, counts, strict=True)
            for _ in range(count)
        ]
        return np.array(rows, np.int64)

    train = pop([size - test for size, test in zip(sizes, tested, strict=True)])
    return Split(seed, train, pop(tested), np.empty(0, np.int64), rule.balanced)


_DRAWS: Mapping[str, Callable[[SplitRule, Corpus, Sequence[IntArray], int], Split]] = {
    "hashed": _draw_hashed,
    "file": _draw_from_file,
}


def seeds_of(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """The seeds that ``seeds=`` names: a list as it is, a number the first n published ones.

    After the ten seeds of the published runs come 1235, 1236 and so on.

    Raises:
        UsageError: on fewer than one seed, more than ten thousand, one that is negative or has more
            than 62 bits, or one named twice.

    Example:
        >>> seeds_of(3), seeds_of([7, 8])
        ((0, 12, 456), (7, 8))
    """
    if isinstance(seeds, int):
        wanted = min(max(seeds, 0), MOST_SEEDS + 1)
        further = range(PUBLISHED_SEEDS[-1] + 1, PUBLISHED_SEEDS[-1] + 1 + wanted)
        chosen = (*PUBLISHED_SEEDS, *further)[:wanted]
    else:
        chosen = tuple(seeds)
    if not chosen or len(set(chosen)) < len(chosen) or not 0 <= min(chosen) <= max(chosen) < 2**62:
        raise UsageError(
            f"seeds={seeds}: give a positive number or a list of distinct seeds >= 0, below 2^62"
        )
    if len(chosen) > MOST_SEEDS:
        raise UsageError(f"seeds={seeds}: more than {MOST_SEEDS} seeds are not run at once")
    return chosen


def _positions(rows: IntArray, images: IntArray) -> IntArray:
    """Where the given rows stand in ``images``, in the order of ``rows``; absent ones left out."""
    place = np.full(max(rows.max(initial=0), images.max(initial=0)) + 1, -1, np.int64)
    place[images] = np.arange(len(images))
    found = place[rows]
    return found[found >= 0]


def _rank_within(labels: IntArray) -> IntArray:
    """How many earlier entries carry the same label."""
    order = np.argsort(labels, kind="stable")
    first = np.searchsorted(labels[order], labels[order], side="left")
    rank = np.empty(len(labels), np.int64)
    rank[order] = np.arange(len(labels)) - first
    return rank
