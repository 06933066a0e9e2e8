"""Finds the groups and tasks that are in images and that captions name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from itertools import chain, repeat
from operator import is_not

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Int16Array, IntArray
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.captions import Captions, offsets
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.image_ids import first_ids
from bias_pipeline.corpus.object_names import MOST_UNKNOWN, ObjectsRead
from bias_pipeline.corpus.split import SMALLEST_GROUP
from bias_pipeline.errors import DataError, NotApplicableError, inflect
from bias_pipeline.text.mentions import (
    NO_GROUP,
    attribute_mentions,
    named_group,
    neutral_rate,
    one_of,
    task_mentions,
)

OTHERS = "other tasks"
LEAST_NAMED = 0.01  # share of captions; ours, like the ten of a split's smallest group


class CorpusView:
    """A corpus for metrics, with the groups and tasks that are in images and that captions name."""

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
        self._excluded = tuple(exclude)
        self.labelled, self.unsure = grouping.labelled, grouping.unsure
        self._read_tasks = self.tasks
        self._member: sparse.csr_array | None = None

    def check_captioned(self) -> None:
        if not (self.labelled & self.has("model")).any():
            raise DataError(f"no image has both a group of {self.attribute.name!r} and a caption")

    def check_compared(self, codes: IntArray) -> None:
        """Raise an error if (M,) group codes have fewer than two groups; -1 means no group."""
        present = np.unique(codes[codes >= 0])
        if len(present) < 2:
            names = ", ".join(self.groups[k] for k in present) or "no group"
            raise NotApplicableError(
                f"two groups are compared, and the captioned images are of {names} alone "
                f"({(codes >= 0).sum()})"
            )

    def compared_groups(self, images: BoolArray) -> IntArray:
        """The groups that occur in the (N,) flagged images; all groups if fewer than two occur."""
        present = np.unique(self.codes[images & self.labelled])
        return present if len(present) > 1 else np.arange(len(self.groups))

    def of_tasks(self, single: IntArray, merged: IntArray) -> CorpusView:
        """A view in which rare tasks are left out or merged into one task."""
        columns = [[task] for task in single.tolist()] + ([merged.tolist()] if len(merged) else [])
        rows = np.concatenate([*map(np.array, columns), []]).astype(np.int64)
        column = np.repeat(np.arange(len(columns)), [len(tasks) for tasks in columns])
        view = copy(self)
        view.__dict__.pop("objects", None)
        view.tasks = (*(self.tasks[t] for t in single), *([OTHERS] if len(merged) else []))
        view._member = group_task_cells(rows, column, (len(self.tasks), len(columns)))
        return view

    def of_captions(self, corpus: Corpus) -> CorpusView:
        rewritten = copy(self)
        rewritten.corpus = corpus
        return rewritten

    def has(self, side: str) -> BoolArray:
        """(N,) flags: true for images that a side describes."""
        return has_captions(self.corpus, side)

    def n_captions(self, side: str) -> IntArray:
        """(N,): how many captions of each image a side has."""
        return np.bincount(self.images(side), minlength=len(self.corpus))

    def images(self, side: str) -> IntArray:
        """(C,): the image of each caption of a side."""
        return self.corpus.side(side).image_rows

    def named_group(self, side: str) -> IntArray:
        """(C,): the only group that each caption names; below 0 if it names none or several.

        Groups that are left out because they have few images still count here. So a caption that
        names a left-out group and another group names several groups.
        """
        captions = self.corpus.side(side)
        return self._group_places(
            named_group(captions, self.attribute, self._every_group, self.words)
        )

    def every_group_named(self, captions: Captions) -> sparse.csr_array:
        """(C, E): the groups that captions name, including groups left out for few images."""
        return attribute_mentions(captions, self.attribute, self._every_group, self.words)

    def named_alone(self, mentions: sparse.csr_array) -> IntArray:
        """(C,): the only group in (C, E) mentions; below 0 for no group or several groups."""
        return self._group_places(one_of(mentions))

    def _group_places(self, named: IntArray | Int16Array) -> IntArray:
        places = {name: number for number, name in enumerate(self.groups)}
        place = np.array([places.get(name, NO_GROUP) for name in self._every_group])
        return np.where(named < 0, named, place[named])

    @property
    def _every_group(self) -> tuple[str, ...]:
        """The attribute's groups that have images, including groups left out for few images."""
        known = {*self.groups, *self.corpus.groupings[self.attribute.name].strata}
        return tuple(name for name in self.attribute.groups if name in known)

    def named_together(self, side: str) -> IntArray:
        """(N,): the only group that an image's captions name; below 0 for none or several."""
        return one_of(self.by_image(side, self.groups_named(side)))

    def groups_named(self, side: str) -> sparse.csr_array:
        """(C, K): the groups that each caption names."""
        return attribute_mentions(self.corpus.side(side), self.attribute, self.groups, self.words)

    def too_few_named(self, side: str) -> str:
        """A message if too few captions of a side name a group to measure anything; else empty.

        At least 1 % of the captions of labelled images must name one group, and at least ten
        captions (a tenth of the captions if there are fewer than a hundred).
        """
        named = self.named_group(side)[self.labelled[self.images(side)]]
        n_named = int((named >= 0).sum())
        few = min(SMALLEST_GROUP, len(named) // 10)
        needed = max(1, few, math.ceil(LEAST_NAMED * len(named)))
        if n_named >= needed:
            return ""
        who = "the captioner" if side == "model" else "the human side"
        return (
            f"{who} names one group of {self.attribute.name!r} in {n_named} of {len(named)} "
            f"captions of labelled images, fewer than {needed}: too few to measure which groups "
            "it names"
        )

    def mentions(self, side: str) -> sparse.csr_array:
        """(C, T): the tasks that each caption names."""
        assert self.vocabulary is not None
        mentions = task_mentions(self.corpus.side(side), self.vocabulary, self._read_tasks)
        return mentions if self._member is None else _indicators(mentions @ self._member)

    def by_image(self, side: str, captions: sparse.csr_array) -> sparse.csr_array:
        """(N, ...): sums over each image's captions."""
        return sum_by_image(captions, self.images(side), len(self.corpus))

    def count_captions(self, side: str, happened: BoolArray) -> sparse.csr_array:
        """(N, 2): for each labelled image, the number of flagged captions and of all captions."""
        columns = np.stack([happened, np.ones(len(happened))], axis=1)
        labelled = self.labelled[self.images(side)]
        return self.by_image(side, sparse.csr_array(columns * labelled[:, None]))

    @cached_property
    def object_fault(self) -> str:
        """The reason why the user's own file of objects is refused, or an empty text."""
        assert self.vocabulary is not None
        every = tuple(self.vocabulary.tasks)
        read = self.corpus.read(objects_read, every, self._excluded)
        if not self.corpus.objects_file or read.unknown_share <= MOST_UNKNOWN:
            return ""
        return (
            f"{self.corpus.objects_file}: {read.fault(self.vocabulary.name)}; name objects as "
            f"tasks are named, such as {first_ids(every)}, or count the others alone with "
            "dataset.strict=false"
        )

    @cached_property
    def objects(self) -> sparse.csr_array:
        """(N, T): the tasks in each image."""
        if not self.has_objects:
            raise NotApplicableError(
                f"dataset {self.corpus.dataset!r} has no objects for these images; give them with "
                "dataset.instances=FILE (audit --objects FILE)"
            )
        assert self.vocabulary is not None
        if self.object_fault:
            raise DataError(self.object_fault)
        every = tuple(self.vocabulary.tasks)
        objects = self.corpus.read(_tasks_in_images, every, self._excluded)
        return objects if self._member is None else _indicators(objects @ self._member)

    @property
    def task_labels(self) -> sparse.csr_array:
        """The :attr:`objects`; raises an error if no image has a counted task."""
        if not self.objects.nnz:
            named = self.corpus.images_by_object
            objects = f"objects such as {first_ids(named)}" if named else "no object"
            raise NotApplicableError(
                f"dataset {self.corpus.dataset!r}: its images have {objects}, and none of the "
                f"{inflect(len(self.tasks), 'counted tasks')}, such as {first_ids(self.tasks)}; "
                "name objects as the tasks are named"
            )
        return self.objects

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.corpus), len(self.tasks)

    @cached_property
    def objects_known(self) -> BoolArray:
        """(N,) flags: true for images whose objects are known, even if there are none."""
        return self.corpus.read(_images_with_known_objects)

    @property
    def has_objects(self) -> bool:
        return bool(self.objects_known.any())

    def neutral_rate(self, side: str, images: BoolArray) -> float:
        return neutral_rate(self.corpus.side(side), self.attribute, images)


def has_captions(corpus: Corpus, side: str) -> BoolArray:
    """(N,) flags: true for images that a side describes."""
    described = np.zeros(len(corpus), bool)
    described[corpus.side(side).image_rows] = True
    return described


def sum_by_image(captions: sparse.csr_array, images: IntArray, n_images: int) -> sparse.csr_array:
    """(N, ...): sums over the captions of each image, from a table with a row per caption."""
    if np.array_equal(images, np.arange(n_images)):  # one caption an image
        return captions.astype(np.float64)
    gather = group_task_cells(images, np.arange(len(images)), (n_images, len(images)))
    return sparse.csr_array(gather @ captions)


def word_indicators(captions: Captions) -> sparse.csr_array:
    """(C, V): 1 where a caption has a word."""
    shape = (len(captions), len(captions.types))
    ones, words = np.ones(len(captions.tokens)), captions.tokens.astype(np.int64)
    table = sparse.csr_array((ones, words, captions.starts), shape=shape, copy=True)
    table.sum_duplicates()
    return _indicators(table)


def group_task_cells(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    """The table of counts of (row, column) pairs.

    Example:
        >>> group_task_cells(np.array([0, 0]), np.array([1, 1]), (1, 2)).toarray().tolist()
        [[0.0, 2.0]]
    """
    if (rows[1:] < rows[:-1]).any():
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    ends = offsets(np.bincount(rows, minlength=shape[0]))
    table = sparse.csr_array((np.ones(len(rows)), columns, ends), shape=shape)
    table.sum_duplicates()
    return table


def _indicators(counts: sparse.csr_array) -> sparse.csr_array:
    indicators = sparse.csr_array(counts)
    indicators.data = np.ones_like(indicators.data)
    return indicators


def _images_with_known_objects(corpus: Corpus) -> BoolArray:
    objects = corpus.objects or [None] * len(corpus)
    known = np.fromiter(map(is_not, objects, repeat(None)), bool, len(corpus))
    known.setflags(write=False)
    return known


def objects_read(corpus: Corpus, tasks: tuple[str, ...], excluded: tuple[str, ...]) -> ObjectsRead:
    """The tasks that match the names of objects, without excluded tasks."""
    return ObjectsRead.match(tasks, corpus.images_by_object, excluded)


def _tasks_in_images(
    corpus: Corpus, every: tuple[str, ...], excluded: tuple[str, ...]
) -> sparse.csr_array:
    """(N, T): the tasks in each image, without excluded tasks."""
    tasks = [task for task in every if task not in excluded]
    number = {task: place for place, task in enumerate(tasks)}
    column = dict.fromkeys(corpus.images_by_object, -1)
    meanings = corpus.read(objects_read, every, excluded).meanings
    column |= {name: number[task] for name, task in meanings.items()}
    objects = [names or () for names in corpus.objects or ()]
    lengths = np.fromiter(map(len, objects), np.int64, len(corpus))
    names = map(column.__getitem__, chain.from_iterable(objects))
    columns = np.fromiter(names, np.int64, lengths.sum())
    rows = np.repeat(np.arange(len(corpus)), lengths)
    shape = (len(corpus), len(tasks))
    # two names in an image may mean one task
    return _indicators(group_task_cells(rows[columns >= 0], columns[columns >= 0], shape))
