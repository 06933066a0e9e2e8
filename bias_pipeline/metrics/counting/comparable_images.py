"""Computes the features (objects, annotators' words) by which groups' pictures are compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import random_words
from bias_pipeline.metrics.corpus_view import group_task_cells, sum_by_image, word_indicators
from bias_pipeline.metrics.functional.comparable import FOLDS
from bias_pipeline.text.descriptions import ConceptTable, content_words

_LEAST_IMAGES, _LEAST_SHARE = 5, 400  # a feature is in 5 images and in one of 400, at least


@dataclass(frozen=True, eq=False)
class ComparableImages:
    """M images of a corpus, with a caption of each image and the features of the picture.

    Attributes:
        corpus: the captions.
        attribute: the attribute whose groups are compared.
        table: concepts that describe persons. Words of these concepts are not used as features.
    """

    corpus: Corpus
    attribute: Attribute
    table: ConceptTable

    @cached_property
    def features(self) -> sparse.csr_array:
        """(M, P): the picture's features, which are objects and the share of annotators per word.

        Without objects and annotators, features are the words of the model's captions, except words
        that describe persons.
        """
        blocks = []
        if len(self.corpus.human):
            blocks.append(self.words(self.corpus.human, framed=True))
        if self.corpus.objects is not None:
            # Persons are in all
            pairs = [
                (row, name)
                for row, names in enumerate(self.corpus.objects)
                for name in names or ()
                if name.lower() not in self.table.persons
            ]
            column = {name: k for k, name in enumerate(sorted({name for _, name in pairs}))}
            rows = np.array([row for row, _ in pairs], np.int64)
            columns = np.array([column[name] for _, name in pairs], np.int64)
            blocks.append(group_task_cells(rows, columns, (len(self.corpus), len(column))))
        return self.frequent(blocks or [self.words(self.corpus.model, framed=False)])

    def frequent(self, blocks: Iterable[sparse.csr_array]) -> sparse.csr_array:
        """(M, P): the columns of the tables that are above 0 in enough images."""
        least = max(_LEAST_IMAGES, len(self.corpus) // _LEAST_SHARE)
        chosen = []
        for block in blocks:
            images = np.bincount(block.indices, minlength=block.shape[1])
            chosen.append(block[:, np.flatnonzero(images >= least)])
        return sparse.csr_array(sparse.hstack(chosen))

    def words(self, captions: Captions, *, framed: bool) -> sparse.csr_array:
        """(M, V): for each image and word, the share of the image's captions with the word."""
        words = content_words(
            captions, self.table, frozenset(self.attribute.all_words), framed=framed
        )
        n_captions = np.bincount(captions.image_rows, minlength=len(self.corpus))
        weights = sparse.diags_array(1 / np.maximum(n_captions, 1))
        sums = sum_by_image(word_indicators(words), captions.image_rows, len(self.corpus))
        return sparse.csr_array(weights @ sums)

    @cached_property
    def numbers(self) -> IntArray:
        """(M,): the number of annotators of each image."""
        rows = self.corpus.human.image_rows
        return np.bincount(rows, minlength=len(self.corpus))

    @cached_property
    def folds(self) -> IntArray:
        """(M,): the fold of each image, chosen by a hash of the image id."""
        drawn = random_words("description folds", 0, self.corpus.keys)
        return (drawn % np.uint64(FOLDS)).astype(np.int64)
