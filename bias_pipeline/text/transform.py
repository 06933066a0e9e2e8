"""Defines the base class of text transforms, and edits words in all captions at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from bias_pipeline.array_types import BoolArray, Int32Array, IntArray
from bias_pipeline.corpus.captions import Captions, offsets
from bias_pipeline.corpus.corpus import SIDES, Corpus, Side
from bias_pipeline.declared import Configurable

Transform = Callable[[Corpus], Corpus]

CHANGES, EXAMPLES = "equal_speech", "equal_speech_examples"  # tables of the matched alignment

_BLOCK = 50_000  # captions edited at once, plus the remaining captions of the last image


class TextTransform(Configurable, ABC):
    """A pure function that rewrites the captions of some sides of a corpus."""

    def __init__(self, sides: Sequence[Side] = SIDES) -> None:
        self.sides = tuple(sides)

    def __call__(self, corpus: Corpus) -> Corpus:
        """A corpus with rewritten captions; the input does not change."""
        return corpus.rewrite({side: self.rewrite(corpus, side) for side in self.sides})

    @property
    def alternatives(self) -> Mapping[str, TextTransform]:
        """By name, the variants over which scores are averaged; else only this transform."""
        return {"": self}

    @abstractmethod
    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The rewritten captions of one side."""


def apply_transforms(transforms: Iterable[Transform], corpus: Corpus) -> Corpus:
    """Apply all transforms in order, which matters for masking and alignment."""
    for transform in transforms:
        corpus = transform(corpus)
    return corpus


def alternatives(transforms: Sequence[Transform]) -> Mapping[str, tuple[Transform, ...]]:
    """Every combination of variants of the transforms, by name.

    Example:
        >>> list(alternatives([Identity()]))
        ['']
    """
    each: list[Iterable[tuple[str, Transform]]] = [
        transform.alternatives.items()
        if isinstance(transform, TextTransform)
        else [("", transform)]
        for transform in transforms
    ]
    return {
        " ".join(name for name, _ in chosen if name): tuple(transform for _, transform in chosen)
        for chosen in product(*each)
    }


class Identity(TextTransform):
    """Leaves captions unchanged (``masking=none``, ``alignment=none``)."""

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        return corpus.side(side)


def is_special(word: str) -> bool:
    """Whether a transform inserted the token.

    Example:
        >>> is_special("<unk>"), is_special("unk"), is_special("<")
        (True, False, False)
    """
    return len(word) > 2 and word[0] == "<" and word[-1] == ">"


@dataclass(frozen=True, eq=False)
class Entries:
    """E pairs of a caption and a word."""

    captions: IntArray  # (E,) rows of the captions
    types: IntArray  # (E,) the words, as indices into `Captions.types`

    def __len__(self) -> int:
        return len(self.captions)

    def of_rows(self, first: int, last: int) -> Entries:
        """The pairs of some rows of captions. Rows are counted from ``first``."""
        inside = (first <= self.captions) & (self.captions < last)
        return Entries(self.captions[inside] - first, self.types[inside])

    def keys(self, n_types: int) -> IntArray:
        """(E,): a number for each pair."""
        return self.captions * n_types + self.types


def edit_words(captions: Captions, removed: Entries, added: Entries) -> Captions:
    """Remove some words from captions and add other words.

    All occurrences of a removed word are removed. The position of an added word is copied from
    another caption of the same image: before the word that follows it there, else after the word
    that precedes it there, else at the end.

    Example:
        >>> both = Captions.from_texts(["a dog runs", "a big dog"], [0, 0])
        >>> out = Entries(np.array([0]), np.array([2]))
        >>> put = Entries(np.array([0]), np.array([3]))
        >>> edit_words(both, out, put).text(0)
        'a big dog'
    """
    if not len(captions):
        return captions
    rows = captions.image_rows
    edges = np.unique(np.append(np.searchsorted(rows, rows[::_BLOCK]), len(captions)))
    edited = [
        _edit(_block(captions, a, b), removed.of_rows(a, b), added.of_rows(a, b))
        for a, b in pairwise(edges.tolist())
    ]
    tokens, lengths = (np.concatenate(parts) for parts in zip(*edited, strict=True))
    return Captions(captions.types, tokens, offsets(lengths), rows).compact()


def _block(captions: Captions, first: int, last: int) -> Captions:
    """The captions from row ``first`` up to row ``last``, with all words."""
    starts = captions.starts[first : last + 1]
    tokens = captions.tokens[starts[0] : starts[-1]]
    return Captions(captions.types, tokens, starts - starts[0], captions.image_rows[first:last])


def _edit(captions: Captions, removed: Entries, added: Entries) -> tuple[Int32Array, IntArray]:
    caption_of = np.repeat(np.arange(len(captions)), captions.lengths)
    keys = caption_of * len(captions.types) + captions.tokens
    remaining = ~_numbers_in(np.sort(removed.keys(len(captions.types))), keys)[1]
    places = _places(captions, caption_of, keys, added)
    tokens = np.concatenate([captions.tokens[remaining], added.types.astype(np.int32)])
    owner = np.concatenate([caption_of[remaining], added.captions])
    place = np.concatenate([2 * np.flatnonzero(remaining), places])
    order = np.lexsort((place, owner))  # stable: words of one place stay in the order given
    return tokens[order], np.bincount(owner, minlength=len(captions))


def _places(captions: Captions, caption_of: IntArray, keys: IntArray, added: Entries) -> IntArray:
    """(E,): the positions of added words as odd numbers; a token has twice its index."""
    n_types = len(captions.types)
    of_image = captions.image_rows[caption_of] * n_types + captions.tokens
    donor = _first_of(of_image, captions.image_rows[added.captions] * n_types + added.types)
    ends = captions.starts[caption_of[donor] + 1]
    after, before = np.minimum(donor + 1, len(keys) - 1), np.maximum(donor - 1, 0)
    follows = _first_of(keys, added.captions * n_types + captions.tokens[after])
    precedes = _first_of(keys, added.captions * n_types + captions.tokens[before])
    follows[donor + 1 >= ends] = -1
    precedes[donor <= captions.starts[caption_of[donor]]] = -1
    last = 2 * captions.starts[added.captions + 1] - 1
    return np.where(follows >= 0, 2 * follows - 1, np.where(precedes >= 0, 2 * precedes + 1, last))


def _first_of(keys: IntArray, sought: IntArray) -> IntArray:
    """(E,): the first position of each sought key, or -1 if there is none.

    Example:
        >>> _first_of(np.array([5, 3, 5]), np.array([5, 4])).tolist()
        [0, -1]
    """
    distinct, which = np.unique(sought, return_inverse=True)  # fewer than the keys
    number, known = _numbers_in(distinct, keys)
    first = np.full(len(distinct), -1)
    places = np.flatnonzero(known)[::-1]
    first[number[places]] = places  # the value written last remains
    return first[which]


def _numbers_in(ascending: IntArray, keys: IntArray) -> tuple[IntArray, BoolArray]:
    """For each key, (N,) its position among ascending keys, and (N,) whether it is there."""
    if not len(ascending):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    number = np.searchsorted(ascending, keys)
    number[number == len(ascending)] = 0
    return number, ascending[number] == keys
