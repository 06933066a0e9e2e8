"""Finds words that a captioner uses for persons more often than annotators do, by group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.stats.bootstrap import quantile
from bias_pipeline.text.descriptions import ConceptTable, Descriptions, describe_captions

FEWEST = 10  # the least images of a group whose captions have the word
_LEVEL = 0.95


@dataclass(frozen=True)
class AddedWord:
    group: str
    word: str
    concept: str
    model: float  # the share of the group's captions with the word said of a person
    human: float  # the same share of annotators' captions
    half: float  # half of the 95 % interval of their difference, over images

    @property
    def excess(self) -> float:
        """How much more often the captioner uses the word than annotators do."""
        return self.model - self.human


def added_words(corpus: Corpus, attribute: Attribute, table: ConceptTable) -> list[AddedWord]:
    """Words that the captioner uses beyond chance more often than annotators; most added first."""
    grouping = corpus.groupings[attribute.name]
    sides = [corpus.side(side) for side in SIDES]
    numbers = [np.bincount(captions.image_rows, minlength=len(corpus)) for captions in sides]
    codes = np.where(np.all(numbers, axis=0), grouping.codes, -1)
    descriptions = [describe_captions(captions, table) for captions in sides]
    columns = _columns(descriptions, table.about(attribute), table.concepts)
    model, human = (
        _shares(captions, descriptions_of_side, columns, n)
        for captions, descriptions_of_side, n in zip(sides, descriptions, numbers, strict=True)
    )
    words = [
        word
        for group, name in enumerate(grouping.names)
        for word in _words_of_group(
            model[codes == group], human[codes == group], name, columns, table
        )
    ]
    return sorted(words, key=lambda word: -word.excess)


_Column = tuple[str, int]  # a spelling and the number of its concept


def _columns(
    descriptions: Sequence[Descriptions], left_out: frozenset[str], concepts: Sequence[str]
) -> list[_Column]:
    """The spellings in the captioner's captions that may be listed as added words."""
    model = descriptions[0]
    pairs = zip(model.words, model.concept_of.tolist(), strict=True)
    return [(word, concept) for word, concept in pairs if concepts[concept] not in left_out]


def _shares(
    captions: Captions,
    descriptions: Descriptions,
    columns: Sequence[_Column],
    numbers: IntArray,
) -> sparse.csr_array:
    """(N, S) the share of each image's captions with a spelling."""
    place = {
        pair: k
        for k, pair in enumerate(
            zip(descriptions.words, descriptions.concept_of.tolist(), strict=True)
        )
    }
    known = [k for k, column in enumerate(columns) if column in place]
    spellings = descriptions.spellings.tocoo()
    to = np.full(len(place), -1)
    to[[place[columns[k]] for k in known]] = known
    listed = to[spellings.col] >= 0
    images = captions.image_rows[spellings.row[listed]]
    shape = (len(numbers), len(columns))
    places = images, to[spellings.col[listed]]
    return sparse.coo_array((1 / numbers[images], places), shape).tocsr()


def _words_of_group(
    model: sparse.csr_array,
    human: sparse.csr_array,
    group: str,
    columns: Sequence[_Column],
    table: ConceptTable,
) -> Iterator[AddedWord]:
    """The added words of one group, computed from the spellings' shares in its images."""
    n_images = model.shape[0]
    mentions = np.bincount(model.indices, minlength=len(columns))
    difference = (model - human).tocsc()
    for k in np.flatnonzero(mentions >= FEWEST).tolist():
        amounts = difference.data[difference.indptr[k] : difference.indptr[k + 1]]
        mean = float(amounts.sum() / n_images)
        variance = float((amounts**2).sum() / n_images - mean**2)
        half = quantile(_LEVEL) * math.sqrt(variance / n_images)
        if mean > half:
            word, concept = columns[k]
            of_model = float(model[:, [k]].sum() / n_images)
            yield AddedWord(group, word, table.concepts[concept], of_model, of_model - mean, half)
