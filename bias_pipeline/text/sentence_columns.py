"""Splits captions into sentences and stores the sentences as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.text.scored_text import preamble_of
from bias_pipeline.text.sentences import ends_sentence, sentences_of


@dataclass(frozen=True, eq=False)
class Sentences:
    """The S sentences of N captions, in the order of the captions.

    Attributes:
        words: one row for each sentence, where the caption's index is stored as image.
        about_person: (S,) flags: true for sentences that mention a person.
    """

    words: Captions
    about_person: BoolArray

    @property
    def person_number(self) -> IntArray:
        """(S,): how many sentences about a person the caption has, up to and including this one.

        Example:
            >>> words = Captions.from_texts(["A hall.", "A man sits.", "He reads."], [0, 0, 0])
            >>> Sentences(words, np.array([False, True, True])).person_number.tolist()
            [0, 1, 2]
        """
        caption = self.words.image_rows
        before = np.concatenate([[0], np.cumsum(self.about_person)])
        first = np.searchsorted(caption, caption, side="left")
        return np.asarray(before[1:] - before[first], np.int64)


def split_sentences(captions: Captions) -> Captions:
    """The S sentences of captions. The index of the caption is stored as the image of a sentence.

    A preamble ("Here it is:") is a sentence of its own.

    Example:
        >>> sentences = split_sentences(Captions.from_texts(["A hall. A man sits.", "a dog"]))
        >>> [sentences.text(row) for row in range(3)], sentences.image_rows.tolist()
        (['A hall.', 'A man sits.', 'a dog'], [0, 0, 1])
    """
    return captions.read(_split)


def _split(captions: Captions) -> Captions:
    further = [
        (number, int(captions.starts[number]) + place)
        for number in np.flatnonzero(_may_have_several(captions)).tolist()
        for place in _further_begins(captions.words(number))
    ]
    added = np.array(further, np.int64).reshape(-1, 2)
    rows = np.concatenate([np.arange(len(captions)), added[:, 0]])
    starts = np.concatenate([captions.starts[:-1], added[:, 1]])
    order = np.lexsort((starts, rows))
    bounds = np.append(starts[order], len(captions.tokens))
    return Captions(captions.types, captions.tokens, bounds, rows[order])


def _may_have_several(captions: Captions) -> BoolArray:
    """(N,) flags: true for captions in which a word before the last may end a sentence."""
    ends = np.array([ends_sentence(word) for word in captions.types], bool)
    flags = ends[captions.tokens] if len(ends) else np.zeros(0, bool)
    flags[captions.starts[1:][captions.lengths > 0] - 1] = False
    return np.diff(np.concatenate([[0], np.cumsum(flags)])[captions.starts]) > 0


def _further_begins(words: list[str]) -> Iterator[int]:
    """The positions of the first words of a caption's content and of its further sentences."""
    text = " ".join(words)
    preamble = preamble_of(text)
    place = len(preamble.split())
    if place and text[len(preamble)] != " ":  # "Caption:A man": the content is in its last word
        place -= 1
    if place:
        yield place
    for sentence in sentences_of(" ".join(words[place:]))[:-1]:
        place += len(sentence.split())
        yield place
