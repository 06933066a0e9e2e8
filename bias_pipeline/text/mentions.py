"""Finds the group of an attribute and the tasks that a caption names, for every metric.

Our tokenizer splits a caption into lower-case words. A group is named where one of its listed words
or phrases occurs as a whole. So "man's hat" and "the man." name a man, but "mandate" does not.
Plurals count only if they are listed. For a caption that names two groups, :func:`named_group`
returns no group. A caption names a group of an intersection if it names a group of each attribute.

An attribute may need a context (:class:`~bias_pipeline.corpus.attribute.Context`): "a black man"
names a group of race, but "a black dog" does not. Whether a word describes a person is found from
lists and English word order, without a parser. A word that is in no list ends the search. So
matches are reliable, but some are missed ("a black bearded man").

A task (an object or an activity) is named where one of its listed words or phrases occurs. The
longest phrase wins, so "hot dog" is not a dog. A task that is named twice counts once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, product
from typing import TYPE_CHECKING

import numpy as np

from bias_pipeline.array_types import BoolArray, Int16Array, IntArray
from bias_pipeline.corpus.attribute import (
    Attribute,
    Context,
    Naming,
    TaskVocabulary,
    Words,
    words_of,
)
from bias_pipeline.corpus.captions import Captions, each_caption
from bias_pipeline.text.phrases import phrase_pattern
from bias_pipeline.text.tokenize import as_tokens, tokenize_word

if TYPE_CHECKING:
    from scipy import sparse


def describing_a_person(captions: Captions, places: IntArray, context: Context) -> BoolArray:
    """(P,) flags: true for those of P words that describe a person.

    A word describes a person in three cases. The word itself may be a noun for a person
    ("africans"). A noun for a person may follow, with only listed words between, if this noun does
    not describe a thing ("a black young man", but not "a white chef hat"). A noun for a person may
    also stand before the word and be linked to it ("a man who is black").

    Args:
        captions: lower-case words without punctuation.
        places: positions in ``captions.tokens``.
        context: the lists.

    Example:
        >>> person = Context("man, chef", between="young", other_heads="hat")
        >>> text = "a black young man with a black dog and a white chef hat"
        >>> captions = Captions.from_texts([text])
        >>> describing_a_person(captions, np.array([1, 6, 10]), context=person).tolist()
        [True, False, False]
    """
    beside = _Beside(captions, places, context)
    return beside.itself() | beside.is_before_person() | beside.is_linked_to_person()


class Neighbours:
    """The neighbours of the words at P positions, within the same caption."""

    def __init__(self, captions: Captions, places: IntArray) -> None:
        self.captions, self.places = captions, places
        row = np.searchsorted(captions.starts, places, side="right") - 1
        self.first, self.end = captions.starts[row], captions.starts[row + 1]

    def is_among(self, words: frozenset[str], places: IntArray) -> BoolArray:
        """(P,) flags: true where the word at a position is among ``words``."""
        known = np.array([word in words for word in self.captions.types], bool)
        inside = (self.first <= places) & (places < self.end)
        matches: BoolArray = inside.copy()
        matches[inside] = known[self.captions.tokens[places[inside]]]
        return matches

    def past(self, words: frozenset[str], places: IntArray, step: int) -> IntArray:
        """(P,): the first position, in steps from each place, with a word not among ``words``."""
        while (on := self.is_among(words, places)).any():
            places = places + step * on
        return places

    def is_within(self, words: frozenset[str], steps: Iterable[int]) -> BoolArray:
        """(P,) flags: true where one of ``words`` is at a step; negative steps go back."""
        matches = [self.is_among(words, self.places + step) for step in steps]
        return np.any(matches, axis=0)


class _Beside(Neighbours):
    """The rules of a context, applied at P positions."""

    def __init__(self, captions: Captions, places: IntArray, context: Context) -> None:
        super().__init__(captions, places)
        lists = (context.words, context.between, context.other_heads)
        self.words, self.between, self.other_heads = map(word_set, lists)
        self.linking, self.closing = word_set(context.linking), word_set(context.closing)

    def itself(self) -> BoolArray:
        """Whether the word itself is a noun for a person."""
        return self.is_among(self.words, self.places)

    def is_before_person(self) -> BoolArray:
        """Whether the word stands before a noun for a person, such as "police officer"."""
        noun = self.past(self.between - self.words, self.places + 1, 1)
        behind = self.past(self.words, noun, 1)
        return (behind > noun) & ~self.is_among(self.other_heads, behind)

    def is_linked_to_person(self) -> BoolArray:
        """Whether a verb links the word to a noun for a person, and no noun follows the word."""
        noun = self.past(self.linking, self.places - 1, -1)
        following = self.places + 1
        last = (following == self.end) | self.is_among(self.closing, following)
        return (noun < self.places - 1) & self.is_among(self.words, noun) & last


def word_set(words: Words) -> frozenset[str]:
    """The set of words and phrases in a list."""
    return frozenset(words_of(words))


NO_GROUP = -1
SEVERAL_GROUPS = -2


def attribute_mentions(
    captions: Captions, attribute: Attribute, groups: Sequence[str], preset: str | None = None
) -> sparse.csr_array:
    """Which of the given groups each caption names.

    A caption names a group of an intersection if it names a group of each attribute.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        attribute: the attribute whose words are counted.
        groups: names of groups of the attribute, one per column.
        preset: a published list to use instead of the attribute's own words, see
            :meth:`~bias_pipeline.corpus.attribute.Attribute.namings`.

    Returns:
        (N, K) of 0 and 1. A caption that names two groups counts for both.
    """
    return captions.read(_mentions, attribute.namings(preset), tuple(groups))


def named_group(
    captions: Captions, attribute: Attribute, groups: Sequence[str], preset: str | None = None
) -> Int16Array:
    """The single group that each caption names.

    Args:
        captions: as in :func:`attribute_mentions`.
        attribute: as in :func:`attribute_mentions`.
        groups: as in :func:`attribute_mentions`.
        preset: as in :func:`attribute_mentions`.

    Returns:
        (N,) the index of the group, ``NO_GROUP`` or ``SEVERAL_GROUPS``; read-only.

    Example:
        >>> words = {"male": ["man"], "female": ["woman"]}
        >>> gender = Attribute("gender", ("male", "female"), words, {})
        >>> texts = ["a man", "a Woman's hat", "a person", "a man and a woman"]
        >>> named_group(Captions.from_texts(texts), gender, gender.groups).tolist()
        [0, 1, -1, -2]
    """
    return captions.read(_named_groups, attribute.namings(preset), tuple(groups))


def one_of(mentions: sparse.csr_array) -> IntArray:
    """(N,): the only group in each row of (N, K) mentions; see :func:`named_group`."""
    groups = np.arange(mentions.shape[1])
    counts = np.asarray((mentions > 0).sum(axis=1)).astype(np.int64)
    first = np.asarray((mentions > 0).astype(np.float64) @ groups).astype(np.int64)
    return np.where(counts == 1, first, np.where(counts == 0, NO_GROUP, SEVERAL_GROUPS))


def silent(captions: Captions, attribute: Attribute) -> BoolArray:
    """(N,) flags: true for captions that name no group.

    A caption names a group of an intersection if it names a group of each attribute.

    The flags use the attribute's own words, so they do not depend on a metric's word list.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        attribute: whose groups' words count.
    """
    return captions.read(_silent, attribute.namings())


def neutral_rate(
    captions: Captions, attribute: Attribute, images: BoolArray | None = None
) -> float:
    """The share of captions that name no group of the attribute, in [0, 1].

    The rate is NaN without captions, and 1 if the captioner always writes "person". So the rate
    shows whether the captioner avoids naming groups. The rate always uses the attribute's own
    words, even if a metric has another word list, so that rates can be compared.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        attribute: whose groups' words count.
        images: flags of the images whose captions count; all if left out.
    """
    quiet = silent(captions, attribute)
    if images is not None:
        quiet = quiet[images[captions.image_rows]]
    return float(quiet.mean()) if len(quiet) else float("nan")


@dataclass(frozen=True, eq=False)
class Listed:
    """The P positions at which captions have a word that is listed for a group.

    Attributes:
        captions: N captions as lower-case words without punctuation, listed phrases as one word.
        places: (P,) positions in ``captions.tokens``.
        groups: (P,) number of the group the word is listed for.
        names: (P,) whether the word names the group there, by its context.
    """

    captions: Captions
    places: IntArray
    groups: IntArray
    names: BoolArray

    def holding(self, places: BoolArray) -> BoolArray:
        """(N,) flags: true for captions with at least one of the flagged positions."""
        flags = np.zeros(len(self.captions), bool)
        flags[np.searchsorted(self.captions.starts, self.places[places], side="right") - 1] = True
        return flags


def listed_words(captions: Captions, naming: Naming) -> Listed:
    """Find the listed words in captions.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        naming: the words and the context they need.
    """
    return captions.read(_list_words, naming)


def _list_words(captions: Captions, naming: Naming) -> Listed:
    context = naming.applies_to
    plain = partial(as_tokens, keep_punctuation=False)
    group = {plain(w): k for k, (_, group_words) in enumerate(naming.words) for w in group_words}
    words = lowered_words(captions)
    if context is not None:  # "a chef's hat" is a chef hat
        words = words.rewrite(lambda word: () if word == "'s" else (word,))
    words = words.join(sorted({*group, *map(plain, naming.other_senses)}))
    of_types = np.array([group.get(word, NO_GROUP) for word in words.types], np.int64)
    places = np.flatnonzero((of_types >= 0)[words.tokens])
    names = np.ones(len(places), bool)
    if context is not None:
        names = describing_a_person(words, places, context)
    return Listed(words, places, of_types[words.tokens[places]], names)


@each_caption
def _named_groups(
    captions: Captions, namings: tuple[Naming, ...], groups: tuple[str, ...]
) -> Int16Array:
    named = one_of(captions.read(_mentions, namings, groups)).astype(np.int16)
    named.setflags(write=False)  # all callers get the same array
    return named


@each_caption
def _silent(captions: Captions, namings: tuple[Naming, ...]) -> BoolArray:
    matches = [listed_words(captions, naming) for naming in namings]
    quiet: BoolArray = ~np.all([match.holding(match.names) for match in matches], axis=0)
    quiet.setflags(write=False)
    return quiet


@each_caption
def _mentions(
    captions: Captions, namings: tuple[Naming, ...], groups: tuple[str, ...]
) -> sparse.csr_array:
    from scipy import sparse

    each = [_flags(captions, naming) for naming in namings]
    parts = {"-".join(names): names for names in product(*each)}
    columns = [
        np.all([flags[name] for flags, name in zip(each, parts[group], strict=True)], axis=0)
        for group in groups
    ]
    return sparse.csr_array(np.stack(columns, axis=1).astype(np.float64))


def _flags(captions: Captions, naming: Naming) -> dict[str, BoolArray]:
    """A map from groups to (N,) flags of the captions that name the group."""
    matches = listed_words(captions, naming)
    return {
        name: matches.holding(matches.names & (matches.groups == k))
        for k, (name, _) in enumerate(naming.words)
    }


def lowered_words(captions: Captions) -> Captions:
    """Turn raw captions into lower-case words without punctuation."""
    return captions.read(_lower)


def _lower(captions: Captions) -> Captions:
    return captions.rewrite(
        lambda word: tokenize_word(word.lower(), keep_punctuation=False, keep_unknown=True)
    )


def task_mentions(
    captions: Captions, vocabulary: TaskVocabulary, tasks: tuple[str, ...]
) -> sparse.csr_array:
    """Find the tasks that each caption names.

    Any word of a task names the task. The longest phrase wins, so "hot dog" does not name a dog.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        vocabulary: words of all tasks.
        tasks: the T tasks of the columns; longer phrases of other tasks still win.

    Returns:
        (N, T) indicators.
    """
    column = {as_tokens(w): i for i, task in enumerate(tasks) for w in vocabulary.tasks[task]}
    words = tuple(map(as_tokens, vocabulary.all_words))
    return captions.read(_task_mentions, words, tuple(column.items()), len(tasks))


@each_caption
def _task_mentions(
    captions: Captions,
    all_words: tuple[str, ...],
    columns: tuple[tuple[str, int], ...],
    n_tasks: int,
) -> sparse.csr_array:
    from scipy import sparse

    tokens = captions.rewrite(
        lambda word: tokenize_word(word.lower(), keep_punctuation=True, keep_unknown=True)
    ).join(all_words)
    column = dict(columns)
    named = np.array([column.get(word, -1) for word in tokens.types], np.int64)[tokens.tokens]
    ends = np.concatenate([[0], np.cumsum(named >= 0)])[tokens.starts]
    columns_named = named[named >= 0]
    shape = (len(captions), n_tasks)
    incidence = sparse.csr_array((np.ones(len(columns_named)), columns_named, ends), shape=shape)
    incidence.sum_duplicates()
    incidence.data = np.ones_like(incidence.data)
    return incidence


_REACH = 4  # words from a hedge to the group's word: "appears to be a young black man"


def find_hedged(captions: Captions, attribute: Attribute) -> BoolArray:
    """(N,) flags: true for captions that name a group after a hedge ("appears to be a young man").

    At most three words stand between the hedge and the group's word.

    Args:
        captions: raw captions.
        attribute: whose groups' words count.

    Example:
        >>> words = {"male": ["man"], "female": ["woman"]}
        >>> gender = Attribute("gender", ("male", "female"), words, {})
        >>> texts = ["what appears to be a tall man", "a man with what looks like a hat"]
        >>> find_hedged(Captions.from_texts(texts), gender).tolist()
        [True, False]
    """
    return captions.read(_find_hedged, attribute.namings())


@each_caption
def _find_hedged(captions: Captions, namings: tuple[Naming, ...]) -> BoolArray:
    flags = np.zeros(len(captions), bool)
    for naming in namings:
        listed = listed_words(captions, naming)
        words = listed.captions
        names = dict(zip(listed.places.tolist(), listed.names.tolist(), strict=True))
        for row in np.flatnonzero(_hedging(words)).tolist():
            start, end = int(words.starts[row]), int(words.starts[row + 1])
            near = _near_hedges([words.types[t] for t in words.tokens[start:end]])
            flags[row] |= any(names.get(start + place, False) for place in near)
    return flags


def _hedging(words: Captions) -> BoolArray:
    """(N,) flags: true for captions with a word of a hedge. Only these are then read as text."""
    pattern = phrase_pattern("hedge")
    single = re.compile(r"appear\w*|seem\w*|look\w*|might|may|could")
    return words.mentions(w for w in words.types if single.fullmatch(w) or pattern.fullmatch(w))


def _near_hedges(words: Sequence[str]) -> set[int]:
    """The positions of the words that closely follow a hedge."""
    text = " ".join(words)
    begins = list(accumulate((len(word) + 1 for word in words), initial=0))
    ends = [match.end() for match in re.finditer(rf"\b(?:{phrase_pattern('hedge').pattern})", text)]
    after = [bisect_right(begins, end) for end in ends]
    return {place for first in after for place in range(first, first + _REACH)}
