"""What captions and labels say, as DBAC counts it, before any attacker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.text.mentions import attribute_mentions
from bias_pipeline.text.tasks import task_mentions

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

OTHERS = "other tasks"


@dataclass(frozen=True, eq=False)
class Counts:
    """What captions and labels say of N images, before any attacker.

    Attributes:
        group: (N,) class of each image, -1 for none.
        groups: the K group names.
        names: the T tasks.
        objects: (N, T) objects in the image.
        has_objects: (N,) whether they are known.
        tasks: side to (N, T) number of captions that name a task.
        named: side to (N, K) number of captions that name a group.
        captions: side to (N,) number of captions.
        images: side to (captions,) image of each caption.
        by_caption: side to (captions, T) which tasks each caption names.
    """

    group: IntArray
    groups: tuple[str, ...]
    names: tuple[str, ...]
    objects: FloatArray
    has_objects: npt.NDArray[np.bool_]
    tasks: Mapping[str, FloatArray]
    named: Mapping[str, FloatArray]
    captions: Mapping[str, FloatArray]
    images: Mapping[str, IntArray]
    by_caption: Mapping[str, sparse.csr_array]

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        attribute: Attribute,
        vocabulary: TaskVocabulary,
        tasks: tuple[str, ...],
    ) -> Counts:
        """Count mentions and objects."""
        grouping = corpus.groupings[attribute.name]
        objects = np.zeros((len(corpus), len(tasks)))
        known = np.zeros(len(corpus), bool)
        for row, names in enumerate(corpus.objects or ()):
            known[row] = bool(names)
            objects[row] = [task in names for task in tasks]
        by_caption = {s: task_mentions(corpus.side(s), vocabulary, tasks) for s in SIDES}
        named = {s: attribute_mentions(corpus.side(s), attribute, grouping.names) for s in SIDES}
        return cls(
            group=grouping.codes,
            groups=grouping.names,
            names=tasks,
            objects=objects,
            has_objects=known,
            tasks={s: _per_image(corpus.side(s).images, by_caption[s], len(corpus)) for s in SIDES},
            named={s: _per_image(corpus.side(s).images, named[s], len(corpus)) for s in SIDES},
            captions={
                s: np.bincount(corpus.side(s).images, minlength=len(corpus)).astype(np.float64)
                for s in SIDES
            },
            images={s: corpus.side(s).images for s in SIDES},
            by_caption=by_caption,
        )

    def share(self, images: IntArray) -> FloatArray:
        """(T,) share of people's captions of some images that name each task."""
        named = self.tasks["human"][images].sum(axis=0)
        return named / self.captions["human"][images].sum()

    def of_tasks(self, kept: IntArray, merged: IntArray) -> Counts:
        """The same with some tasks left out and others, together, as one more task.

        Args:
            kept: numbers of the tasks that stay as they are.
            merged: numbers of those that become :data:`OTHERS`, which is named where any of them
                is; none for no such task.
        """
        columns = [[task] for task in kept.tolist()] + ([merged.tolist()] if len(merged) else [])
        rows = np.concatenate([*map(np.array, columns), []]).astype(np.int64)
        column = np.repeat(np.arange(len(columns)), [len(own) for own in columns])
        shape = (len(self.names), len(columns))
        member = sparse.csr_array((np.ones(len(rows)), (rows, column)), shape=shape)
        by_caption = {side: _any(own @ member) for side, own in self.by_caption.items()}
        n = len(self.group)
        return replace(
            self,
            names=(*(self.names[task] for task in kept), *([OTHERS] if len(merged) else [])),
            objects=_any(sparse.csr_array(self.objects) @ member).toarray(),
            tasks={s: _per_image(self.images[s], own, n) for s, own in by_caption.items()},
            by_caption=by_caption,
        )


def _any(counts: sparse.csr_array) -> sparse.csr_array:
    """1 where something was counted."""
    found = sparse.csr_array(counts)
    found.data = np.ones_like(found.data)
    return found


def _per_image(images: IntArray, by_caption: sparse.csr_array, n_images: int) -> FloatArray:
    """(N, C) sums over each image's captions."""
    n = len(images)
    gather = sparse.csr_array((np.ones(n), (images, np.arange(n))), shape=(n_images, n))
    return np.asarray((gather @ by_caption).toarray(), np.float64)
