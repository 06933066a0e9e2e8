"""What captions and annotators say of the persons in a corpus's images, and what images show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import random_words
from bias_pipeline.metrics.functional.comparable import FOLDS
from bias_pipeline.text.descriptions import ConceptTable, Descriptions, content_words, described

_LEAST_IMAGES, _LEAST_SHARE = 5, 400  # a feature is in so many images, or one of so many


@dataclass(frozen=True, eq=False)
class DescribedImages:
    """M images of a corpus with a caption each, and what is said of their persons.

    Attributes:
        corpus: the captions.
        attribute: whose groups are compared; what it is itself is no description.
        table: the concepts.
        rows: (M,) the images' rows.
    """

    corpus: Corpus
    attribute: Attribute
    table: ConceptTable
    rows: IntArray

    @cached_property
    def model(self) -> Descriptions:
        """What all captions of the model say."""
        return described(self.corpus.model, self.table)

    @cached_property
    def human(self) -> Descriptions:
        """What all captions of annotators say."""
        return described(self.corpus.human, self.table)

    @cached_property
    def concepts(self) -> IntArray:
        """(Q,) the concepts that some of the captions say, and not all; without the attribute's."""
        counts = self._says.sum(axis=0)
        about = self.table.about(self.attribute)
        named = np.array([concept not in about for concept in self.table.concepts], bool)
        return np.flatnonzero((counts > 0) & (counts < len(self.rows)) & named)

    @property
    def names(self) -> list[str]:
        """The Q concepts' names."""
        return [self.table.concepts[k] for k in self.concepts]

    @property
    def says(self) -> Float64Array:
        """(M, Q) 1 where the image's caption says a concept."""
        return self._says[:, self.concepts]

    @cached_property
    def _says(self) -> Float64Array:
        captions = self.corpus.model
        return self._by_image(captions, self.model.concepts).toarray()[self.rows]

    @cached_property
    def numbers(self) -> IntArray:
        """(M,) how many annotators each image has."""
        rows = self.corpus.human.image_rows
        return np.bincount(rows, minlength=len(self.corpus))[self.rows]

    @cached_property
    def counts(self) -> Float64Array:
        """(M, Q) how many of an image's annotators say each concept."""
        columns = sparse.csr_array(self.human.concepts[:, self.concepts])
        return self._by_image(self.corpus.human, columns).toarray()[self.rows]

    @cached_property
    def features(self) -> sparse.csr_array:
        """(M, P) what the images show: objects, and the share of annotators who write a word.

        With neither, the model's own words, without those that descriptions stand in.
        """
        blocks = []
        if len(self.corpus.human):
            blocks.append(self._words(self.corpus.human, framed=True))
        if self.corpus.objects is not None:
            blocks.append(self._objects())
        blocks = blocks or [self._words(self.corpus.model, framed=False)]
        least = max(_LEAST_IMAGES, len(self.rows) // _LEAST_SHARE)
        return sparse.csr_array(sparse.hstack([_frequent(block, least) for block in blocks]))

    @property
    def alike(self) -> str:
        """What pictures that are compared have in common, in words."""
        if self.corpus.objects is not None:
            return "with the same objects"
        return "that annotators describe alike" if len(self.corpus.human) else "it describes alike"

    def _words(self, captions: Captions, *, framed: bool) -> sparse.csr_array:
        """(M, V) share of each image's captions that have a word."""
        words = content_words(
            captions, self.table, frozenset(self.attribute.all_words), framed=framed
        )
        shape = (len(words), len(words.types))
        ones = np.ones(len(words.tokens))
        table = sparse.csr_array((ones, words.tokens, words.starts), shape=shape)
        table.sum_duplicates()
        table.data = np.ones_like(table.data)
        n_captions = np.bincount(captions.image_rows, minlength=len(self.corpus))
        weights = sparse.diags_array(1 / np.maximum(n_captions, 1))
        return sparse.csr_array((weights @ self._by_image(captions, table))[self.rows])

    def _objects(self) -> sparse.csr_array:
        """(M, O) 1 where an object is in the image; persons are in all."""
        objects = self.corpus.objects or ()
        pairs = [
            (row, name)
            for row, image in enumerate(self.rows.tolist())
            for name in objects[image] or ()
            if name.lower() not in self.table.persons
        ]
        return _one_hot(pairs, len(self.rows))

    def _by_image(self, captions: Captions, table: sparse.csr_array) -> sparse.csr_array:
        """(N, ...) sums over each image's captions."""
        rows = captions.image_rows
        shape = (len(self.corpus), len(rows))
        gather = sparse.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=shape)
        return sparse.csr_array(gather @ table)

    @cached_property
    def folds(self) -> IntArray:
        """(M,) the fold of each image, by a hash of its id."""
        drawn = random_words("description folds", 0, self.corpus.keys[self.rows])
        return (drawn % np.uint64(FOLDS)).astype(np.int64)


def _frequent(table: sparse.csr_array, least: int) -> sparse.csr_array:
    """The columns of a table that so many rows have."""
    images = np.bincount(table.indices, minlength=table.shape[1])
    return sparse.csr_array(table[:, np.flatnonzero(images >= least)])


def _one_hot(pairs: Iterable[tuple[int, str]], n_rows: int) -> sparse.csr_array:
    """(n_rows, O) 1 for each pair of a row and a name; columns in the order of names."""
    listed = list(pairs)
    column = {name: k for k, name in enumerate(sorted({name for _, name in listed}))}
    rows = np.array([row for row, _ in listed], np.int64)
    columns = np.array([column[name] for _, name in listed], np.int64)
    shape = (n_rows, len(column))
    return sparse.csr_array((np.ones(len(listed)), (rows, columns)), shape=shape)
