"""What captions and labels say of the images that DBAC scores, as tables for weighted sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.seen import Seen

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """What captions and labels say of M images.

    Attributes:
        group: (M, K) 1 in the column of each image's group.
        objects: (M, T) objects in the image; empty where none are known.
        tasks: side to (M, T) number of captions that name a task.
        named: side to (M, K) number of captions that name a group.
        captions: side to (M,) number of captions.
    """

    group: FloatArray
    objects: FloatArray
    tasks: Mapping[str, FloatArray]
    named: Mapping[str, FloatArray]
    captions: Mapping[str, FloatArray]

    @classmethod
    def of(cls, seen: Seen, images: IntArray) -> Counts:
        """Sums over the captions of each image.

        Args:
            seen: what images and captions say.
            images: (M,) rows of the corpus, all of a group.
        """

        def summed(side: str, captions: sparse.csr_array) -> FloatArray:
            return np.asarray(seen.by_image(side, captions)[images].toarray(), np.float64)

        objects = seen.objects[images].toarray() if seen.has_objects else np.empty((0, 0))
        return cls(
            group=np.eye(len(seen.groups))[seen.codes[images]],
            objects=np.asarray(objects, np.float64),
            tasks={side: summed(side, seen.mentions(side)) for side in SIDES},
            named={side: summed(side, seen.groups_named(side)) for side in SIDES},
            captions={side: seen.n_captions(side)[images].astype(np.float64) for side in SIDES},
        )
