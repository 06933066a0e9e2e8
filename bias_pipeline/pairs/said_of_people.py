"""Finds what the captions of each picture say: content words, and classes about the person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute, Words
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.corpus_view import word_indicators
from bias_pipeline.text.descriptions import ConceptTable, describe_captions
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.mentions import NO_GROUP, lowered_words, named_group, word_set
from bias_pipeline.text.scored_text import declined_images

NAMED, WRONG, DECLINES, LENGTH = "named", "wrong", "declines", "words"
MASK = "<mask>"  # no word of a caption: signs are no words


@dataclass(frozen=True, eq=False)
class Wordings:
    """Rules for reading words: masked words, words without content, and visible marks.

    A word for persons that names no group is masked like the words of a group. Otherwise a
    captioner that names men's gender less often, and so writes "person" more often, would differ
    twice.
    """

    attributes: Sequence[Attribute]  # may differ between pictures of a set; the first is tested
    neutral: Words  # nouns and pronouns for persons that name no group
    function_words: Words
    concepts: ConceptTable
    marks: Mapping[str, Words]  # words of visible marks, by name of their class
    mark_classes: Sequence[str]  # classes of `concepts` that are visible marks

    @cached_property
    def mask(self) -> MaskWords:
        """The masking that hides words for persons."""
        words = [list(attribute.all_words) for attribute in self.attributes]
        return MaskWords([*words, self.neutral], MASK)

    @property
    def classes(self) -> list[str]:
        """The classes of descriptions that count as statements about the person."""
        about = self.concepts.about(self.attributes[0])
        concepts = [c for c in self.concepts.concepts if c not in about]
        kinds = dict.fromkeys(self.concepts.class_of[concept] for concept in concepts)
        return [kind for kind in kinds if kind not in self.mark_classes]


@dataclass(frozen=True, eq=False)
class SaidOfPeople:
    """The content of C captions; a picture may have several captions."""

    captions: Captions  # in the order of their pictures
    wordings: Wordings

    @classmethod
    def of_model(cls, corpora: Iterable[Corpus], wordings: Wordings) -> SaidOfPeople:
        """The content of a captioner's captions, in several corpora of the same pictures."""
        samples = [corpus.model for corpus in corpora]
        texts = [sample.text(row) for sample in samples for row in range(len(sample))]
        rows = np.concatenate([sample.image_rows for sample in samples])
        order = np.argsort(rows, kind="stable")
        ordered = [texts[place] for place in order.tolist()]
        return cls(Captions.from_texts(ordered, rows[order].tolist()), wordings)

    @property
    def pictures(self) -> IntArray:
        return self.captions.image_rows

    @cached_property
    def masked_captions(self) -> Captions:
        """The words of captions in lower case, where words that name a person are masked."""
        return self.wordings.mask.mask(lowered_words(self.captions))

    @cached_property
    def _content(self) -> Captions:
        dropped = word_set(self.wordings.function_words) | {MASK}

        def content(word: str) -> tuple[str, ...]:
            shown = len(word) > 1 and any(map(str.isalpha, word)) and word not in dropped
            return (word,) if shown else ()

        return self.masked_captions.rewrite(content)

    @property
    def vocabulary(self) -> Sequence[str]:
        return self._content.types

    @cached_property
    def words(self) -> sparse.csr_array:
        """(C, V) 1 where a caption contains a content word."""
        return word_indicators(self._content)

    def without_marks(self) -> sparse.csr_array:
        """(C, V) the :attr:`words` without words of visible marks."""
        table, marks = self.wordings.concepts, word_set(list(self.wordings.marks.values()))
        kinds = [self.wordings.concepts.class_of[name] for name in table.concepts]
        listed = {**table.adjective_concepts, **table.noun_concepts, **table.carried_concepts}
        marks |= {word for word, k in listed.items() if kinds[k] in self.wordings.mark_classes}
        shown = np.array([word not in marks for word in self.vocabulary], np.float64)
        table_shown = sparse.csr_array(self.words @ sparse.diags_array(shown))
        table_shown.eliminate_zeros()
        return table_shown

    def about_person(self, codes: IntArray, groups: Sequence[str]) -> dict[str, BoolArray]:
        """For each class, (C,) whether captions say it of the person; ``codes`` (N,) are groups."""
        named = named_group(self.captions, self.wordings.attributes[0], groups)
        labelled = codes[self.pictures]
        says = {
            NAMED: named != NO_GROUP,
            WRONG: (named >= 0) & (labelled >= 0) & (named != labelled),
        }
        return says | {kind: self._description_flags[kind] for kind in self.wordings.classes}

    def marks(self) -> dict[str, BoolArray]:
        """For each class of visible marks, (C,) whether captions have such a mark."""
        words = lowered_words(self.captions)
        listed = {name: words.mentions(word_set(of)) for name, of in self.wordings.marks.items()}
        return {kind: self._description_flags[kind] for kind in self.wordings.mark_classes} | listed

    @cached_property
    def _description_flags(self) -> dict[str, BoolArray]:
        table = self.wordings.concepts
        says = describe_captions(self.captions, table).concepts
        class_of = np.array([table.class_of[name] for name in table.concepts])
        return {
            kind: np.asarray(says[:, np.flatnonzero(class_of == kind)].sum(axis=1)).ravel() > 0
            for kind in table.classes
        }

    def by_picture(self, values: BoolArray | IntArray, n_pictures: int) -> Float64Array:
        """(N,) the mean over the captions of each picture, or NaN if it has none."""
        counts = np.bincount(self.pictures, minlength=n_pictures)
        sums = np.bincount(self.pictures, values.astype(np.float64), n_pictures)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def declined_shares(corpus: Corpus) -> tuple[Float64Array, IntArray]:
    """(N,) the share of each picture's captions that decline, and their number."""
    declined = np.sum([declined_images(sample) for sample in corpus.each_sample], axis=0)
    written = np.sum(
        [np.bincount(s.model.image_rows, minlength=len(corpus)) for s in corpus.each_sample],
        axis=0,
    )
    answers = declined + written
    shares = np.where(answers > 0, declined / np.maximum(answers, 1), np.nan)
    return shares, answers.astype(np.int64)
