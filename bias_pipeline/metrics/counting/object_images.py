"""Finds the objects that are in images, and the objects that captions and annotators name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.streamed_captions import NOT_STREAMED
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.comparable_images import ComparableImages
from bias_pipeline.metrics.functional.invention import NamedObjects

# What pictures are made alike in; each level includes the level before
NUMBER, OBJECTS, WORDS = "number", "objects", "words"
_MOST_OBJECTS = 7  # images with more objects count as images with seven
_SAME = 0.95  # if an annotator wrote this share of captions, the captioner is a person
_TRIED = 500  # how many captions are checked first
# An object counts if five captions, and one of 500, invent it
_LEAST_IMAGES, _LEAST_SHARE = 5, 500


@dataclass(frozen=True, eq=False)
class ObjectImages(ComparableImages):
    """M images of a corpus with their captions, their objects, and the objects that captions name.

    The objects of an image are its annotated objects and the objects that annotators' captions
    name.

    Attributes:
        view: the images, with the objects to look for.
        annotated: (M, T): 1 where the object is annotated in the image.
    """

    view: CorpusView
    annotated: sparse.csr_array

    @cached_property
    def present(self) -> Float64Array:
        """(M, T): 1 where the image has the object."""
        table = self.annotated
        if len(self.corpus.human):
            table = sparse.csr_array(table + self.view.by_image("human", self._human_mentions))
        return (table.toarray() > 0).astype(np.float64)

    @cached_property
    def _human_mentions(self) -> sparse.csr_array:
        return self.view.mentions("human")

    @cached_property
    def model(self) -> NamedObjects:
        """What the images' captions name."""
        named = self.view.by_image("model", self.view.mentions("model"))
        return NamedObjects(named.toarray(), self.present)

    @cached_property
    def human(self) -> NamedObjects:
        """The objects that annotators' captions name. All annotators of an image weigh the same."""
        named = self.view.by_image("human", self._human_mentions).toarray()
        return NamedObjects(named / np.maximum(self.numbers, 1)[:, None], self.present)

    @cached_property
    def sometimes_invented(self) -> list[int]:
        """The objects that some captions invent, but not all captions."""
        counts = self.model.absent.sum(axis=0)
        return np.flatnonzero((counts > 0) & (counts < len(self.corpus))).tolist()

    @cached_property
    def invented_objects(self) -> list[int]:
        """The objects that enough captions invent for the score."""
        least = max(_LEAST_IMAGES, len(self.corpus) // _LEAST_SHARE)
        counts = self.model.absent.sum(axis=0)
        return [t for t in self.sometimes_invented if counts[t] >= least]

    @cached_property
    def features_by_level(self) -> Mapping[str, sparse.csr_array]:
        """The images' features at three levels: number of objects, objects, annotators' words."""
        count = np.minimum(self.present.sum(axis=1), _MOST_OBJECTS)
        number = sparse.csr_array((count[:, None] == np.arange(_MOST_OBJECTS + 1)).astype(float))
        blocks = {NUMBER: number, OBJECTS: sparse.csr_array(self.present)}
        if len(self.corpus.human):
            blocks[WORDS] = self.words(self.corpus.human, framed=True)
        names = list(blocks)
        return {
            name: self.frequent([blocks[one] for one in names[: place + 1]])
            for place, name in enumerate(names)
        }

    @property
    def features(self) -> sparse.csr_array:
        """(M, P): all features of the images."""
        return list(self.features_by_level.values())[-1]


def without_captioner(corpus: Corpus) -> tuple[Corpus, str]:
    """The corpus without the annotator who is the captioner, and a note about this annotator.

    If the annotator stayed, each object in the annotator's captions would count as present. A
    captioner counts as an annotator if nearly all its captions are human captions of the same
    images.
    """
    known = corpus.model.image_rows[:_TRIED]
    if not len(corpus.human) or not _captions_of_others(corpus, known)[1]:
        return corpus, ""
    if not corpus.in_memory:
        raise NotApplicableError(NOT_STREAMED)
    retained, person = _captions_of_others(corpus, corpus.model.image_rows)
    if not person:
        return corpus, ""
    note = (
        f"{int((~retained).sum())} of {len(corpus.model)} captions are an annotator's own: what "
        "that annotator names is not taken to be in the picture"
    )
    return corpus.rewrite({"human": corpus.human.take(retained)}), note


def _captions_of_others(corpus: Corpus, images: IntArray) -> tuple[BoolArray, bool]:
    """(C,) flags: true for human captions not by the captioner.

    Also whether the captioner is a person.
    """
    model, human = corpus.model, corpus.human
    rows = np.flatnonzero(np.isin(model.image_rows, images)).tolist()
    left = {(int(model.image_rows[row]), model.text(row)) for row in rows}
    n_captions = len(left)
    retained = np.ones(len(human), bool)
    for row in np.flatnonzero(np.isin(human.image_rows, images)).tolist():
        caption = (int(human.image_rows[row]), human.text(row))
        if caption in left:  # if two annotators write the same caption, only one copy is left out
            left.remove(caption)
            retained[row] = False
    return retained, n_captions - len(left) >= max(1, _SAME * n_captions)
