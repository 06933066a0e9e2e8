"""A corpus with an encoder, and what one seed's queries retrieve from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus, Grouping
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.split import Split
from bias_pipeline.debias.base import Examples
from bias_pipeline.inference.embedders import DualEncoder
from bias_pipeline.metrics.retrieval.linear_probes import Attacked
from bias_pipeline.metrics.retrieval.ranked import Ranked, Reranker
from bias_pipeline.metrics.retrieval.recall import Recall


@dataclass(frozen=True, eq=False)
class RetrievalView:
    """A corpus with an encoder."""

    corpus: Corpus  # with pictures
    attribute: str  # whose groups are scored
    dual: DualEncoder  # embeds pictures and texts
    others: Mapping[str, Grouping]  # groups of other attributes
    sentences: Sequence[tuple[str, ...]]  # held-out sets of sentences, one sentence of every group
    again: Reranker | None  # orders the first of each ranking again; None: rankings by vectors

    @property
    def codes(self) -> IntArray:
        """(N,) the group of each image, below 0 where there is none."""
        return self.corpus.groupings[self.attribute].codes

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the K groups."""
        return self.corpus.groupings[self.attribute].names

    def pictures(self, rows: IntArray) -> Pictures:
        """Pictures of some images."""
        assert self.corpus.pictures is not None
        return self.corpus.pictures.take(rows)

    def examples(self, side: str, attribute: Attribute, split: Split) -> Examples:
        """What a debiasing of ``image`` or ``text`` is fitted to: a split's images, or sentences.

        Raises:
            NotApplicableError: if no words name the groups.
        """
        if side == "text":
            return Examples.of_texts(self.dual.texts.embed, attribute, self.names, split.seed)
        rows = np.sort(split.train)
        vectors = self.dual.images.embed(self.pictures(rows)).astype(np.float64)
        nobody = np.full(len(rows), -1)
        return Examples(vectors, self.codes[rows], nobody, self.names, split.seed)


@dataclass(frozen=True, eq=False)
class Retrieved:
    """What one seed's queries retrieve."""

    ranked: Ranked  # for the attribute that is scored
    others: Mapping[str, Ranked]  # for other attributes
    attacked: Attacked  # attackers' guesses on pictures
    texts: Attacked | None  # their guesses on sentences, None if there are none
    recall: Recall | None  # None if it is not measured
