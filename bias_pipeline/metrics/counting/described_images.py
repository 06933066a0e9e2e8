"""Finds what captions and annotators say about the persons in images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.metrics.corpus_view import sum_by_image
from bias_pipeline.metrics.counting.comparable_images import ComparableImages
from bias_pipeline.text.descriptions import Descriptions, describe_captions
from bias_pipeline.text.matched import MatchedAlignment


@dataclass(frozen=True, eq=False)
class DescribedImages(ComparableImages):
    """M images of a corpus, with a caption of each image and the descriptions of persons.

    Words that name a group of the attribute do not count as descriptions.
    """

    @cached_property
    def model(self) -> Descriptions:
        return describe_captions(self.corpus.model, self.table)

    @cached_property
    def human(self) -> Descriptions:
        return describe_captions(self.corpus.human, self.table)

    @cached_property
    def concepts(self) -> IntArray:
        """(Q,): the concepts in some but not all captions, without concepts of the attribute."""
        counts = self._says.sum(axis=0)
        about = self.table.about(self.attribute)
        named = np.array([concept not in about for concept in self.table.concepts], bool)
        return np.flatnonzero((counts > 0) & (counts < len(self.corpus)) & named)

    @property
    def names(self) -> list[str]:
        return [self.table.concepts[k] for k in self.concepts]

    @property
    def says(self) -> Float64Array:
        """(M, Q): 1 where the image's caption mentions the concept."""
        return self._says[:, self.concepts]

    @cached_property
    def _says(self) -> Float64Array:
        captions = self.corpus.model
        sums = sum_by_image(self.model.concepts, captions.image_rows, len(self.corpus))
        return sums.toarray()

    @cached_property
    def counts(self) -> Float64Array:
        """(M, Q): how many of an image's annotators mention each concept."""
        columns = sparse.csr_array(self.human.concepts[:, self.concepts])
        sums = sum_by_image(columns, self.corpus.human.image_rows, len(self.corpus))
        return sums.toarray()

    @cached_property
    def counted_share(self) -> float:
        """Among surplus words, the share that count as descriptions; NaN without annotators.

        Surplus words are words that the captioner uses more often than annotators.
        ``alignment=matched_both`` removes surplus words, so other metrics ignore these words.
        """
        usage = MatchedAlignment(self.attribute.all_words).usage(self.corpus)
        total = usage.wanted.sum()
        if not total:
            return math.nan
        place = {word: k for k, word in enumerate(usage.names)}
        counted = np.zeros(len(place))
        says = np.asarray(self.model.spellings.sum(axis=0)).ravel()
        for word, captions in zip(self.model.words, says.tolist(), strict=True):
            if word in place:
                counted[place[word]] += captions
        removed = np.maximum(usage.wanted - usage.used, 0)
        share = np.minimum(counted / np.maximum(usage.wanted, 1), 1)
        return float(removed @ share / total)

    @property
    def likeness(self) -> str:
        """A phrase on what the compared pictures have in common."""
        if self.corpus.objects is not None:
            return "with the same objects"
        return "that annotators describe alike" if len(self.corpus.human) else "it describes alike"
