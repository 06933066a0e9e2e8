"""What images and captions say, before any metric; and where they say nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import SMALLEST_GROUP
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.text.mentions import attribute_mentions, named_group, neutral_rate, one_of
from bias_pipeline.text.tasks import task_mentions

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

OTHERS = "other tasks"
LEAST_NAMED = 0.01  # share of captions; ours, like the ten of a split's smallest group


class Seen:
    """The one reader of a corpus for metrics: what images and captions say of groups and tasks.

    Args:
        corpus: raw captions.
        attribute: whose groups are read.
        words: a preset of the attribute, None for its own words.
        vocabulary: whose tasks are read, if any.
        exclude: tasks left out.
    """

    def __init__(
        self,
        corpus: Corpus,
        attribute: Attribute,
        words: str | None,
        vocabulary: TaskVocabulary | None = None,
        exclude: Sequence[str] = (),
    ) -> None:
        grouping = corpus.groupings[attribute.name]
        self.corpus, self.attribute, self.vocabulary = corpus, attribute, vocabulary
        self.groups, self.codes = grouping.names, grouping.codes
        self.words = words
        known = vocabulary.tasks if vocabulary else {}
        self.tasks = tuple(name for name in known if name not in exclude)
        self.labelled: Mask = self.codes >= 0
        self._read_tasks = self.tasks
        self._member: sparse.csr_array | None = None

    def check_captioned(self) -> None:
        """Refuse a corpus of which nothing can be counted.

        Raises:
            DataError: if no image has both a group and a caption of the model.
        """
        if not (self.labelled & self.has("model")).any():
            raise DataError(
                f"captioner {self.corpus.captioner!r}: no image has both a group of "
                f"{self.attribute.name!r} and a caption"
            )

    def of_tasks(self, kept: IntArray, merged: IntArray) -> Seen:
        """The same with some tasks left out and others, together, as one more task.

        Args:
            kept: numbers of the tasks that stay as they are.
            merged: numbers of those that become :data:`OTHERS`, which is named where any of them
                is; none for no such task.
        """
        columns = [[task] for task in kept.tolist()] + ([merged.tolist()] if len(merged) else [])
        rows = np.concatenate([*map(np.array, columns), []]).astype(np.int64)
        column = np.repeat(np.arange(len(columns)), [len(own) for own in columns])
        found = copy(self)
        found.__dict__.pop("objects", None)
        found.tasks = (*(self.tasks[t] for t in kept), *([OTHERS] if len(merged) else []))
        found._member = cells(rows, column, (len(self.tasks), len(columns)))
        return found

    def has(self, side: str) -> Mask:
        """(N,) images that a side describes."""
        described = np.zeros(len(self.corpus), bool)
        described[self.corpus.side(side).image_rows] = True
        return described

    def n_captions(self, side: str) -> IntArray:
        """(N,) how many captions a side has of each image."""
        return np.bincount(self.images(side), minlength=len(self.corpus))

    def images(self, side: str) -> IntArray:
        """(C,) image of each caption of a side."""
        return self.corpus.side(side).image_rows

    def named(self, side: str) -> IntArray:
        """(C,) the one group that each caption names, below 0 for none or several."""
        return named_group(self.corpus.side(side), self.attribute, self.groups, self.words)

    def named_together(self, side: str) -> IntArray:
        """(N,) the one group that all captions of an image together name."""
        return one_of(self.by_image(side, self.groups_named(side)))

    def groups_named(self, side: str) -> sparse.csr_array:
        """(C, K) groups that each caption names."""
        return attribute_mentions(self.corpus.side(side), self.attribute, self.groups, self.words)

    def unsaid(self, side: str) -> str:
        """Why nothing can be said of whom a side's captions name; empty if something can.

        Of captions of labelled images one in a hundred must name one group, and ten (a tenth where
        there are fewer than a hundred): who names nobody names nobody wrongly.
        """
        named = self.named(side)[self.labelled[self.images(side)]]
        found, needed = int((named >= 0).sum()), _fewest_named(len(named))
        if found >= needed:
            return ""
        who = f"captioner {self.corpus.captioner!r}" if side == "model" else "the human side"
        return (
            f"{who} names one group of {self.attribute.name!r} in {found} of {len(named)} captions "
            f"of labelled images, fewer than {needed}: nothing can be said of whom it names"
        )

    def mentions(self, side: str) -> sparse.csr_array:
        """(C, T) tasks that each caption names."""
        assert self.vocabulary is not None
        found = task_mentions(self.corpus.side(side), self.vocabulary, self._read_tasks)
        return found if self._member is None else _any(found @ self._member)

    def by_image(self, side: str, captions: sparse.csr_array) -> sparse.csr_array:
        """(N, ...) sums over each image's captions."""
        images = self.images(side)
        if np.array_equal(images, np.arange(len(self.corpus))):  # one caption an image
            return captions.copy()
        shape = (len(self.corpus), len(images))
        gather = sparse.csr_array((np.ones(len(images)), (images, np.arange(len(images)))), shape)
        return sparse.csr_array(gather @ captions)

    @cached_property
    def objects(self) -> sparse.csr_array:
        """(N, T) tasks that are in each image.

        Raises:
            NotApplicableError: if the data set has no objects.
        """
        if not self.has_objects:
            raise NotApplicableError(
                f"dataset {self.corpus.dataset!r} has no objects for these images; give them with "
                "dataset.instances=FILE (audit --objects FILE), or read labels from human captions "
                "where the metric has labels=union"
            )
        found = self.corpus.read(_objects, self._read_tasks)
        return found if self._member is None else _any(found @ self._member)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, T)."""
        return len(self.corpus), len(self.tasks)

    @cached_property
    def known(self) -> Mask:
        """(N,) images whose objects are known; an image without any is taken for unknown."""
        return self.corpus.read(_known)

    @property
    def has_objects(self) -> bool:
        """Whether any image's objects are known."""
        return bool(self.known.any())

    def neutral_rate(self, side: str, images: Mask) -> float:
        """Share of a side's captions of some images that name no group."""
        return neutral_rate(self.corpus.side(side), self.attribute, images)


def cells(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    """A table that counts (row, column) pairs.

    Example:
        >>> cells(np.array([0, 0]), np.array([1, 1]), (1, 2)).toarray().tolist()
        [[0.0, 2.0]]
    """
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _any(counts: sparse.csr_array) -> sparse.csr_array:
    """1 where something was counted."""
    found = sparse.csr_array(counts)
    found.data = np.ones_like(found.data)
    return found


def _fewest_named(n_captions: int) -> int:
    """How many of the captions must name a group; see :meth:`Seen.unsaid`."""
    return max(1, min(SMALLEST_GROUP, n_captions // 10), math.ceil(LEAST_NAMED * n_captions))


def _known(corpus: Corpus) -> Mask:
    """(N,) images whose objects are known."""
    objects = corpus.objects or [()] * len(corpus)
    known = np.fromiter(map(bool, objects), bool, len(corpus))
    known.setflags(write=False)
    return known


def _objects(corpus: Corpus, tasks: tuple[str, ...]) -> sparse.csr_array:
    """(N, T) tasks in each image."""
    column: defaultdict[str, int] = defaultdict(lambda: -1)
    column.update({task: number for number, task in enumerate(tasks)})
    objects = corpus.objects or ()
    lengths = np.fromiter(map(len, objects), np.int64, len(corpus))
    names = map(column.__getitem__, chain.from_iterable(objects))
    found = np.fromiter(names, np.int64, lengths.sum())
    rows = np.repeat(np.arange(len(corpus)), lengths)
    return cells(rows[found >= 0], found[found >= 0], (len(corpus), len(tasks)))
