"""What captions and labels say, as DBAC counts it, before any attacker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus import SIDES, Corpus
from bias_pipeline.text.mentions import attribute_mentions
from bias_pipeline.text.tasks import task_mentions

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """What captions and labels say of N images, before any attacker.

    Attributes:
        group: (N,) class of each image, -1 for none.
        groups: the K group names.
        objects: (N, T) objects in the image.
        has_objects: (N,) whether they are known.
        tasks: side to (N, T) number of captions that name a task.
        named: side to (N, K) number of captions that name a group.
        captions: side to (N,) number of captions.
        by_caption: side to (captions, T) which tasks each caption names.
    """

    group: IntArray
    groups: tuple[str, ...]
    objects: FloatArray
    has_objects: npt.NDArray[np.bool_]
    tasks: Mapping[str, FloatArray]
    named: Mapping[str, FloatArray]
    captions: Mapping[str, FloatArray]
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
            objects=objects,
            has_objects=known,
            tasks={s: _per_image(corpus, s, by_caption[s]) for s in SIDES},
            named={s: _per_image(corpus, s, named[s]) for s in SIDES},
            captions={
                s: np.bincount(corpus.side(s).images, minlength=len(corpus)).astype(np.float64)
                for s in SIDES
            },
            by_caption=by_caption,
        )


def _per_image(corpus: Corpus, side: str, by_caption: sparse.csr_array) -> FloatArray:
    """(N, C) sums over each image's captions."""
    captions = corpus.side(side)
    n = len(captions)
    gather = sparse.csr_array((np.ones(n), (captions.images, np.arange(n))), shape=(len(corpus), n))
    return np.asarray((gather @ by_caption).toarray(), np.float64)
