"""Groups and tasks of the images that DBAC scores, as tables for weighted sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.corpus_view import CorpusView


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Groups and tasks of M images, by label and by caption.

    Attributes:
        group: (M, K) 1 in the column of each image's group.
        objects: (M, T) objects in the image; empty where none are known.
        tasks: side to (M, T) number of captions that name a task.
        named: side to (M, K) number of captions that name a group.
        captions: side to (M,) number of captions.
    """

    group: Float64Array
    objects: Float64Array
    tasks: Mapping[str, Float64Array]
    named: Mapping[str, Float64Array]
    captions: Mapping[str, Float64Array]

    @classmethod
    def of(cls, view: CorpusView, images: IntArray) -> PairCounts:
        """Sums over the captions of each image.

        Args:
            view: of the corpus.
            images: (M,) rows of the corpus, all of a group.
        """

        def summed(side: str, captions: sparse.csr_array) -> Float64Array:
            return np.asarray(view.by_image(side, captions)[images].toarray(), np.float64)

        objects = view.objects[images].toarray() if view.has_objects else np.empty((0, 0))
        return cls(
            group=np.eye(len(view.groups))[view.codes[images]],
            objects=np.asarray(objects, np.float64),
            tasks={side: summed(side, view.mentions(side)) for side in SIDES},
            named={side: summed(side, view.groups_named(side)) for side in SIDES},
            captions={side: view.n_captions(side)[images].astype(np.float64) for side in SIDES},
        )
