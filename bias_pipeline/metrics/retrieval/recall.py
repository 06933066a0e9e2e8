"""The cost of a debiasing: does a caption still retrieve its picture, and a picture its caption?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.inference.embedders import DualEncoder
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.retrieval import ranks_of_own
from bias_pipeline.metrics.retrieval.ranked import Reranker
from bias_pipeline.metrics.value_names import PartName


@dataclass(frozen=True, eq=False)
class Recall:
    """Ranks at which captions retrieve their pictures, and pictures their captions."""

    rows: IntArray  # (N,) rows of a corpus, one caption and one picture each
    # `image`: (N,) rank of each caption's picture; `text`: of each picture's caption
    places: dict[str, IntArray]
    depths: Sequence[int]  # the k of recall at k

    @classmethod
    def of(
        cls,
        dual: DualEncoder,
        captions: Sequence[str],
        pictures: Float32Array,
        rows: IntArray,
        depths: Sequence[int],
        again: Reranker | None = None,
    ) -> Recall:
        """Rank pictures for captions and captions for pictures.

        Args:
            dual: has the vectors of texts.
            captions: N.
            pictures: (N, D) vectors of their pictures.
            rows: (N,) of the corpus.
            depths: see the class.
            again: orders the first of each ranking again; None: rankings by vectors.
        """
        texts = dual.texts.embed(captions)
        places = {"image": ranks_of_own(texts, pictures), "text": ranks_of_own(pictures, texts)}
        if again is not None:
            captions_and_rows = (captions, rows)
            image = again.places(
                texts, pictures, places["image"], *captions_and_rows, of_texts=True
            )
            text = again.places(pictures, texts, places["text"], *captions_and_rows, of_texts=False)
            places = {"image": image, "text": text}
        return cls(rows, places, depths)

    @property
    def names(self) -> list[PartName]:
        """``recall:image@k`` and ``recall:text@k``."""
        return [
            PartName("recall", detail=f"{what}@{k}") for what in self.places for k in self.depths
        ]

    def shares(self, weights: Float64Array, rows: IntArray) -> Float64Array:
        """(B, R) the recalls in the order of the names, images weighted.

        Args:
            weights: (B, I) how often each image counts.
            rows: (I,) rows of the corpus, ascending, with all that are ranked.
        """
        row_weights = weights[:, np.searchsorted(rows, self.rows)]
        hits = np.stack(
            [places < k for places in self.places.values() for k in self.depths], axis=1
        )
        return share(row_weights @ hits, row_weights.sum(axis=1, keepdims=True))


def first_captions(captions: Captions, rows: IntArray) -> tuple[IntArray, list[str]]:
    """The images of some rows that have a caption, and the first caption of each.

    Example:
        >>> captions = Captions.from_texts(["a dog", "one dog", "a cat"], [0, 0, 2])
        >>> first_captions(captions, np.array([2, 1, 0]))
        (array([2, 0]), ['a cat', 'a dog'])
    """
    places = np.searchsorted(captions.image_rows, rows)
    described = places < len(captions.image_rows)
    described[described] = captions.image_rows[places[described]] == rows[described]
    return rows[described], [captions.text(place) for place in places[described].tolist()]
