"""Draws the images from which an attacker learns, and the images on which it is tested.

An attacker must not learn from an image and be tested on a copy of the image. Two images are copies
if annotators wrote the same captions for both (at least two different captions), or if their
pictures are equal files or have the same ``picture_id``. One common caption is not enough, since
many pictures of a surfer get the same five words. Captions that more than ten images share are
ignored as set phrases.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import Captions, offsets
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.declared import Configurable
from bias_pipeline.errors import NotApplicableError, UsageError, inflect

PUBLISHED_SEEDS = (0, 12, 456, 789, 100, 200, 300, 400, 500, 1234)
SMALLEST_GROUP = 10
MOST_SEEDS = 10_000
_FEWEST_TEXTS = 2  # different captions that two images share at least if they are copies
_MOST_IMAGES = 10  # images that may share captions and still count as copies


@dataclass(frozen=True)
class Copies:
    """The images that are copies of other images."""

    images: int  # how many of the drawn images are copies
    together: bool  # whether each is in the same part as its original

    def note(self) -> str:
        """A sentence for readers of the result, or an empty text without copies."""
        if not self.images:
            return ""
        placement = (
            "each is in the same part of a split as its original"
            if self.together
            else "attackers learn from some whose originals are tested (split.together)"
        )
        return f"{inflect(self.images, 'images are copies of others')}: {placement}"


NO_COPIES = Copies(0, together=True)


@dataclass(frozen=True, eq=False)
class Split:
    """One split: the rows of the images for training and of the images for testing."""

    seed: int  # the seed of the draw and of the attackers trained on it
    train: IntArray  # rows of the corpus
    # Rows of the corpus, disjoint from `train` except under `split=same`
    test: IntArray
    # Rows of the corpus, disjoint from both; empty unless the rule asks for them
    validation: IntArray
    # Whether every group is cut to the size of the smallest; the rows drawn last are dropped
    balanced: bool
    copies: Copies = NO_COPIES  # copies among the drawn images
    whole_test: bool = False  # whether the test part is not cut
    # The last table's images, labels and positions: most tables of a run have the same images
    _selected: list[IntArray] = field(default_factory=list, init=False, repr=False)

    def notes(self) -> list[str]:
        """Sentences for readers of the result."""
        warning = ""
        if np.array_equal(self.train, self.test):
            warning = "attackers are tested on the captions that they learnt from (split=same)"
        return [*filter(None, [self.copies.note(), warning])]

    def select(self, images: IntArray, labels: IntArray) -> tuple[IntArray, IntArray]:
        """The positions of training and test captions in a table of labelled captions.

        The part of an image does not depend on the rest of the table. So a seed tests the same
        images on both sides and for all captioners. Groups are balanced again within the table.
        ``images`` (N,) has the corpus row of each caption, where each image occurs at most once.
        ``labels`` (N,) has the class.
        """
        known = self._selected and all(map(np.array_equal, self._selected[:2], (images, labels)))
        if not known:
            self._selected[:] = images, labels, *self._select(images, labels)
        return self._selected[2], self._selected[3]

    def _select(self, images: IntArray, labels: IntArray) -> tuple[IntArray, IntArray]:
        train, test = (_positions(part, images) for part in (self.train, self.test))
        tested = test if self.whole_test else self._balance(test, labels)
        return _ascending(self._balance(train, labels)), _ascending(tested)

    def select_validation(self, images: IntArray, labels: IntArray) -> IntArray:
        """The positions of validation captions in a table of labelled captions."""
        return _ascending(self._balance(_positions(self.validation, images), labels))

    def with_fewer(self, share: float) -> Split:
        """The same test images, but only every (1 / share)-th training image of each group.

        Example:
            >>> rows = np.arange(6)
            >>> Split(0, rows, rows[:0], rows[:0], balanced=True).with_fewer(1 / 2).train.tolist()
            [0, 2, 4]
        """
        return replace(self, train=self.train[:: round(1 / share)])

    def _balance(self, positions: IntArray, labels: IntArray) -> IntArray:
        if not self.balanced or not len(positions):
            return positions
        classes = labels[positions]
        size = np.bincount(classes, minlength=int(labels.max()) + 1).min()
        # How many earlier entries carry the same label
        sizes = np.bincount(classes)
        order = np.argsort(classes.astype(np.min_scalar_type(len(sizes))), kind="stable")
        rank = np.empty(len(classes), np.int64)
        rank[order] = np.arange(len(classes)) - np.repeat(offsets(sizes)[:-1], sizes)
        return positions[rank < size]

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the draw."""
        sha = hashlib.sha256(f"{self.seed} {self.balanced}".encode())
        sha.update(b" whole" if self.whole_test else b"")
        for part in (self.train, self.test, self.validation):
            sha.update(part.astype("<i8").tobytes() + b"|")
        return sha.hexdigest()


class SplitRule(Configurable, ABC):
    """A rule by which splits are drawn."""

    @abstractmethod
    def draw(self, corpus: Corpus, attribute: str, seeds: Sequence[int]) -> list[Split]:
        """For each seed, split all images that belong to a group of the attribute."""

    def check_trains(self) -> None:
        return


def rows_by_group(corpus: Corpus, attribute: str) -> dict[str, IntArray]:
    grouping = corpus.groupings[attribute]
    rows = {name: np.flatnonzero(grouping.codes == k) for k, name in enumerate(grouping.names)}
    small = [name for name, group in rows.items() if len(group) < SMALLEST_GROUP]
    if not small:
        return rows
    needed = (
        f"attackers need two groups or more with at least {SMALLEST_GROUP} images each"
        if len(rows) - len(small) < 2
        else f"every group needs {SMALLEST_GROUP} images; leave out {', '.join(small)} "
        "(metric.groups=[...])"
    )
    sizes = ", ".join(f"{name} {len(group)}" for name, group in rows.items())
    raise NotApplicableError(
        f"dataset {corpus.dataset!r}, attribute {attribute!r}: {needed}; found {sizes}"
    )


def seeds_of(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """The seeds that ``seeds=`` means.

    A list is used as it is; a number n means the first n published seeds.

    The ten seeds of the published runs are followed by 1235, 1236 and so on.

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


def seeds_in(splits: Sequence[Split]) -> tuple[int, ...]:
    """The seeds of splits, each once and in order. Several folds may have the same seed."""
    return tuple(dict.fromkeys(split.seed for split in splits))


def with_fewer_images(splits: Sequence[Split], share: float) -> list[Split]:
    """The splits of the first seed, with a share of their training images."""
    return [split.with_fewer(share) for split in splits if split.seed == splits[0].seed]


def every_image_tested(splits: Sequence[Split]) -> bool:
    """Whether some seed has several tested folds, as in cross-fitting."""
    return len(splits) > len(seeds_in(splits))


def reunite_copies(part: IntArray, first: IntArray) -> IntArray:
    """Move every copy into the part of its original.

    ``part`` (N,) is -1 for images that are not drawn; ``first`` (N,) is the result of
    :func:`originals`.
    """
    drawn = np.flatnonzero(part >= 0)
    _, leader, which = np.unique(first[drawn], return_index=True, return_inverse=True)
    together = part.copy()
    together[drawn] = part[drawn][leader][which]
    return together


def _ascending(positions: IntArray) -> IntArray:
    """Distinct positions in order. Marking positions is faster than sorting them."""
    chosen = np.zeros(positions.max(initial=-1) + 1, bool)
    chosen[positions] = True
    return np.flatnonzero(chosen)


def _positions(rows: IntArray, images: IntArray) -> IntArray:
    """The positions of ``rows`` in ``images``, without absent rows."""
    place = np.full(max(rows.max(initial=0), images.max(initial=0)) + 1, -1, np.int64)
    place[images] = np.arange(len(images))
    positions = place[rows]
    return positions[positions >= 0]


def originals(corpus: Corpus) -> IntArray:
    """(N,): the first image that each image is a copy of, or the image itself; read-only."""
    return corpus.read(_originals)


def _originals(corpus: Corpus) -> IntArray:
    from scipy import sparse  # imported here, since reports need no scipy

    pairs = [
        (copies[0], row)
        for copies in (
            *_same_captions(corpus.human),
            *_same_ids(corpus.picture_ids or ()),
            *(corpus.pictures.copies() if corpus.pictures else ()),
        )
        for row in copies[1:]
    ]
    one, two = np.array(pairs, np.int64).reshape(-1, 2).T
    shape = (len(corpus), len(corpus))
    graph = sparse.csr_array((np.ones(len(pairs)), (one, two)), shape=shape)
    _, member = sparse.csgraph.connected_components(graph, directed=False)
    _, first = np.unique(member, return_index=True)
    original_rows: IntArray = first[member]
    original_rows.setflags(write=False)  # all callers get the same array
    return original_rows


def _same_ids(pictures: Sequence[str]) -> Iterator[IntArray]:
    """For each picture that several records share, the rows of these records."""
    _, which, counts = np.unique(pictures, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    for rows in np.split(order, np.cumsum(counts)[:-1]):
        if len(rows) > 1:
            yield rows


def _same_captions(captions: Captions) -> Iterator[IntArray]:
    """Sets of two or more images that have the same captions in any order."""
    images, starts, counts = np.unique(captions.image_rows, return_index=True, return_counts=True)
    for count in np.unique(counts[counts >= _FEWEST_TEXTS]):
        chosen = counts == count
        texts = np.sort(captions.identities[starts[chosen][:, None] + np.arange(count)], axis=1)
        several = 1 + (np.diff(texts, axis=1) > 0).sum(axis=1) >= _FEWEST_TEXTS
        sets = _rows_of_equal_keys(images[chosen][several], texts[several])
        yield from (rows for rows in sets if len(rows) <= _MOST_IMAGES)


def _rows_of_equal_keys(rows: IntArray, keys: IntArray) -> Iterator[IntArray]:
    """Sets of two or more ``rows`` (M,) that have equal ``keys`` (M, C)."""
    _, which, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(which.ravel(), kind="stable")
    for alike in np.split(rows[order], np.cumsum(counts)[:-1]):
        if len(alike) > 1:
            yield alike
