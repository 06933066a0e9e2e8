"""Finds words that describe persons, and words without a concept in the same positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.text.descriptions import (
    RULES,
    AdjectiveSlots,
    ConceptTable,
    sentences_of,
    tokens_of,
)
from bias_pipeline.text.mentions import word_set

_ROOM = 12  # words of a long caption that stay on either side of a marked word
_LONGEST = 160  # characters on either side

Marked = tuple[tuple[str, bool], ...]  # a caption's words, and whether each describes a person


@dataclass(frozen=True, eq=False)
class DescribingWords:
    """The P words in captions that describe a person."""

    captions: Captions
    places: IntArray  # (P,) the place of each among the captions' words, ascending
    concepts: IntArray  # (P,) the number of its concept

    def of_concept(self, row: int, concept: int) -> Marked:
        """The words around the first mention of a concept in a caption. All mentions are marked."""
        first = int(self.captions.starts[row])
        words = self.captions.words(row)
        here = (self.places >= first) & (self.places < first + len(words))
        marked = set((self.places[here & (self.concepts == concept)] - first).tolist())
        return _words_around(words, marked)

    def in_caption(self, row: int) -> list[int]:
        """For each word of a caption, the index of its concept, or -1 without a concept."""
        first, last = self.captions.starts[row : row + 2].tolist()
        concepts = np.full(last - first, -1, np.int64)
        here = slice(*np.searchsorted(self.places, (first, last)))
        concepts[self.places[here] - first] = self.concepts[here]
        return concepts.tolist()


def describing_words(captions: Captions, table: ConceptTable) -> DescribingWords:
    """The words of captions that describe a person, with their concepts."""
    sentences = sentences_of(captions)
    mentions = [rule(sentences, table) for rule in RULES]
    tokens = np.concatenate([places for places, _ in mentions])
    concepts = np.concatenate([numbers for _, numbers in mentions])
    places, first = np.unique(_words_at(captions, sentences)[tokens], return_index=True)
    return DescribingWords(captions, places, concepts[first])


def _words_at(captions: Captions, sentences: Captions) -> IntArray:
    """(T,): the word at each token of the sentences, for a joined phrase the last word."""
    numbers = np.array([len(tokens_of(word)) for word in captions.types], np.int64)
    widths = np.array([len(token.split(" ")) for token in sentences.types], np.int64)
    if not len(sentences.tokens):
        return np.empty(0, np.int64)
    of_token = np.repeat(np.arange(len(captions.tokens)), numbers[captions.tokens])
    return of_token[np.cumsum(widths[sentences.tokens]) - 1]


def _words_around(words: Sequence[str], marked: set[int]) -> Marked:
    """The words around the first marked word, with "…" for words that are left out."""
    place = min(marked, default=0)
    first, last = max(0, place - _ROOM), min(len(words), place + _ROOM + 1)
    shown = [(words[k][:_LONGEST], k in marked) for k in range(first, last)]
    before, behind = [("…", False)] * (first > 0), [("…", False)] * (last < len(words))
    return (*before, *shown, *behind)


@dataclass(frozen=True)
class OpenSlot:
    """A word without a concept, in a position for descriptions. No score depends on these words."""

    word: str
    rows: IntArray  # the captions with it, ascending

    def mark_words(self, words: Sequence[str]) -> Marked:
        """The words around the first occurrence of this word in a caption, with the word marked."""
        places = [k for k, word in enumerate(words) if self.word in tokens_of(word)]
        return _words_around(words, set(places[:1]))


# Words that may stand beside a person or behind "is" and describe nobody.
_UNLIKE = word_set(
    "a, an, the, this, that, these, those, some, any, each, every, no, not, all, both, several, "
    "many, few, more, most, other, another, same, such, own, only, just, also, very, quite, so, "
    "too, as, than, then, there, here, i, you, he, she, it, we, they, him, her, his, hers, its, "
    "their, our, my, who, whose, whom, which, what, one, ones, someone, somebody, everyone, "
    "anyone, nobody, in, on, at, by, with, without, from, to, into, onto, of, off, over, under, "
    "above, below, behind, beside, between, among, through, across, along, around, near, next, "
    "up, down, out, inside, outside, about, after, before, during, for, against, toward, "
    "towards, while, when, where, if, because, like, and, or, but, is, are, was, were, be, "
    "been, being, am, has, have, had, having, do, does, did, can, could, will, would, may, "
    "might, must, should, seems, seem, appears, appear, looks, look, possibly, likely, "
    "probably, perhaps, clearly, left, right, front, back, top, bottom, middle, center, side, "
    "first, second, third, last, two, three, four, five, six, seven, eight, nine, ten, seated, "
    "standing, sitting, lying, visible, present, shown, seen, dressed, captured, pictured, "
    "depicted, positioned, located, placed, situated, posed, held, surrounded, accompanied, "
    "engaged, poised, covered, close-up, foreground, background, distance, image, picture, "
    "photo, scene, multiple, overall, main, least, large, small, clock, airport, kitchen, "
    "bathroom, room, baseball, tennis, black, white, green, red, blue, brown, yellow, orange, "
    "gray, grey, pink, purple, dark, light, vintage, closed, equipped, crouched, airborne, "
    "numerous, various, different, entire, single, group, pair"
)


def open_slots(
    captions: Captions, table: ConceptTable, group_words: frozenset[str], fewest: int = 1
) -> list[OpenSlot]:
    """Words without a concept directly before a person, or after a verb about a person."""
    sentences = sentences_of(captions)
    known = table.concept_words | table.frame | table.persons | group_words | _UNLIKE
    candidate = np.array([_may_describe(word, known) for word in sentences.types], bool)
    places = np.flatnonzero(candidate[sentences.tokens]) if len(candidate) else np.empty(0, int)
    places = places[_in_slot(sentences, places, table)]
    rows = sentences.image_rows[np.searchsorted(sentences.starts, places, side="right") - 1]
    slots = list(_slots(sentences.types, sentences.tokens[places], rows, fewest))
    return sorted(slots, key=lambda slot: (-len(slot.rows), slot.word))


def _may_describe(word: str, known: frozenset[str]) -> bool:
    """Whether a word can be an adjective without a concept, judged by its ending."""
    plain = word.isalpha() and len(word) > 2 and word not in known
    return plain and not word.endswith(("ing", "ly", "s"))


def _in_slot(sentences: Captions, places: IntArray, table: ConceptTable) -> BoolArray:
    """Whether each word is in a position for adjectives that describe persons."""
    slots = AdjectiveSlots(sentences, places, table)
    heads = slots.nouns | word_set(table.carriers)
    before = slots.is_among(heads, places + 1) & slots.is_before_person() & slots.with_person
    return before | (slots.behind_verb() & slots.closes())


def _slots(
    types: Sequence[str], words: IntArray, rows: IntArray, fewest: int
) -> Iterator[OpenSlot]:
    order = np.lexsort((rows, words))
    words, rows = words[order], rows[order]
    firsts = np.flatnonzero(np.diff(words, prepend=-1))
    parts = np.split(rows, firsts[1:]) if len(rows) else []
    for first, of_word in zip(firsts, parts, strict=True):
        captions = np.unique(of_word)
        if len(captions) >= fewest:
            yield OpenSlot(types[words[first]], captions)
