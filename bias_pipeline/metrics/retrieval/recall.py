"""What a debiasing costs: does a caption still find its picture, and a picture its caption?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.inference.embedders import DualEncoder
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.retrieval import ranks_of_own
from bias_pipeline.metrics.parts import PartName
from bias_pipeline.metrics.retrieval.rerank import Reranker

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Recall:
    """Places at which captions and pictures find each other.

    Attributes:
        rows: (N,) rows of a corpus, one caption and one picture each.
        places: ``image``: (N,) where each caption finds its picture; ``text``: the other way round.
        depths: the k of recall at k.
    """

    rows: IntArray
    places: dict[str, IntArray]
    depths: Sequence[int]

    @classmethod
    def of(
        cls,
        dual: DualEncoder,
        captions: Sequence[str],
        pictures: npt.NDArray[np.float32],
        rows: IntArray,
        depths: Sequence[int],
        again: Reranker | None = None,
    ) -> Recall:
        """Rank pictures for captions and captions for pictures.

        Args:
            dual: has the vectors of texts.
            captions: N.
            pictures: (N, D) vectors of the pictures that they are of.
            rows: (N,) of the corpus.
            depths: see the class.
            again: orders what is found first again; None: nothing does.
        """
        texts = dual.texts.embed(captions)
        places = {"image": ranks_of_own(texts, pictures), "text": ranks_of_own(pictures, texts)}
        if again is not None:
            told = (captions, rows)
            image = again.places(texts, pictures, places["image"], *told, of_texts=True)
            text = again.places(pictures, texts, places["text"], *told, of_texts=False)
            places = {"image": image, "text": text}
        return cls(rows, places, depths)

    @property
    def names(self) -> list[PartName]:
        """``recall:image@k`` and ``recall:text@k``."""
        return [
            PartName("recall", detail=f"{what}@{k}") for what in self.places for k in self.depths
        ]

    def shares(self, weights: FloatArray, rows: IntArray) -> FloatArray:
        """(B, R) the recalls in the order of the names, images weighted.

        Args:
            weights: (B, I) how often each image counts.
            rows: (I,) rows of the corpus, ascending, all that are looked at among them.
        """
        own = weights[:, np.searchsorted(rows, self.rows)]
        hits = np.stack(
            [places < k for places in self.places.values() for k in self.depths], axis=1
        )
        return share(own @ hits, own.sum(axis=1, keepdims=True))


def first_captions(captions: Captions, rows: IntArray) -> tuple[IntArray, list[str]]:
    """Those of some images that have a caption, and the first caption of each.

    Example:
        >>> captions = Captions.from_texts(["a dog", "one dog", "a cat"], [0, 0, 2])
        >>> first_captions(captions, np.array([2, 1, 0]))
        (array([2, 0]), ['a cat', 'a dog'])
    """
    places = np.searchsorted(captions.image_rows, rows)
    there = places < len(captions.image_rows)
    there[there] = captions.image_rows[places[there]] == rows[there]
    return rows[there], [captions.text(place) for place in places[there].tolist()]
