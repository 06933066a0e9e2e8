"""Stores captions as integer columns, so that rewriting takes one look-up per distinct word.

Transforms of text (tokenising, masking, alignment) treat words one by one. So a transform is
applied only to the few thousand distinct words of a corpus, not to millions of words of text.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import numpy as np

from bias_pipeline.array_types import BoolArray, Int32Array, IntArray

if TYPE_CHECKING:
    from hashlib import _Hash

T = TypeVar("T")
P = ParamSpec("P")


class ReadCache:
    """Caches results, so that several metrics do not compute the same result again."""

    @cached_property
    def _read(self) -> dict[Hashable, Any]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """The state for another process, without cached results."""
        state = self.__dict__.copy()
        state.pop("_read", None)
        return state

    def read(self, how: Callable[..., T], *words: Hashable) -> T:
        """The cached result of a function of this object. Callers must not change the result.

        Example:
            >>> data = ReadCache()
            >>> data.read(lambda self, more: [more], 3)
            [3]
        """
        key = (how, words)
        if key not in self._read:
            self._read[key] = how(self, *words)
        result: T = self._read[key]
        return result


EACH_CAPTION: set[Callable[..., Any]] = set()


def each_caption(how: Callable[P, T]) -> Callable[P, T]:
    """Mark a function that may be called for parts of the captions.

    The joined results for the parts must equal the result for all captions.

    A marked function can also read captions that do not fit into memory.
    """
    EACH_CAPTION.add(how)
    return how


_SEPARATOR = "\0"  # a control character at which str.split does not split
_BATCH = 50_000  # captions split at once: bounds the memory of the temporary list of words
_BLOCK = 1 << 20  # running words rewritten at once: bounds the memory of their places
_SUMMED = 1 << 13  # captions summed at once, so that their numbers stay in a core's cache
_MARKUP = re.compile(rf"<[^<>\s{_SEPARATOR}]*>")
# What files contain where a caption is missing, without punctuation ("N/A", "#n/a", "None.").
_MISSING = frozenset({"nan", "none", "null", "nil", "na", "undefined"})
_LONGEST = max(map(len, _MISSING))
_TOO_LONG = re.compile(rf"(?:[\W_]*[^\W_]){{{_LONGEST + 1}}}")


@dataclass(frozen=True, eq=False)
class Captions(ReadCache):
    """N captions of T running words over V distinct words.

    Example:
        >>> captions = Captions.from_texts(["a dog", "the dog runs"])
        >>> captions.types
        ('a', 'dog', 'the', 'runs')
        >>> captions.text(1)
        'the dog runs'
    """

    # The V distinct words, each used at least once in a new column
    types: tuple[str, ...]
    in_memory: ClassVar[bool] = True
    tokens: Int32Array  # (T,) int32, index into `types` of each running word
    starts: IntArray  # (N + 1,) int64, caption `i` is `tokens[starts[i]:starts[i + 1]]`
    image_rows: IntArray  # (N,) int64, the row of the image that each caption describes, ascending

    @classmethod
    def from_texts(
        cls, texts: Sequence[str], images: Sequence[int] | IntArray | None = None
    ) -> Captions:
        """Split texts at white space.

        ``images`` (N,) has the image row of each caption, in ascending order. By default each
        caption has its own image.
        """
        numbers = itertools.count()
        index = defaultdict(numbers.__next__, {_SEPARATOR: next(numbers)})
        parts = [_split(texts[i : i + _BATCH], index) for i in range(0, len(texts), _BATCH)]
        flat = np.concatenate([part for part in parts if len(part)] or [np.empty(0, np.int32)])
        del parts
        ends = np.flatnonzero(flat == 0)
        lengths = np.diff(ends, prepend=-1) - 1
        rows = np.arange(len(texts)) if images is None else np.asarray(images, np.int64)
        return cls(tuple(index)[1:], flat[flat > 0] - 1, offsets(lengths), rows.astype(np.int64))

    @classmethod
    def of_images(cls, captions: Iterable[Sequence[str]]) -> Captions:
        """The captions of each image, in the order of the images."""
        texts: list[str] = []
        images: list[int] = []
        for row, image_captions in enumerate(captions):
            texts.extend(image_captions)
            images.extend([row] * len(image_captions))
        return cls.from_texts(texts, images)

    def __len__(self) -> int:
        return len(self.image_rows)

    def words(self, row: int) -> list[str]:
        return [self.types[t] for t in self.tokens[self.starts[row] : self.starts[row + 1]]]

    def of_image(self, row: int) -> tuple[str, ...]:
        first, last = np.searchsorted(self.image_rows, [row, row + 1])
        return tuple(self.text(i) for i in range(first, last))

    def text(self, row: int) -> str:
        """One caption as text, with single blanks between words."""
        return " ".join(self.words(row))

    @cached_property
    def lengths(self) -> IntArray:
        return np.diff(self.starts)

    @cached_property
    def counts(self) -> IntArray:
        """(V,): how often each distinct word occurs."""
        return np.bincount(self.tokens, minlength=len(self.types))

    @cached_property
    def positions(self) -> IntArray:
        """(N,): 0 for the first caption of an image, 1 for the second caption, and so on."""
        first = np.searchsorted(self.image_rows, self.image_rows, side="left")
        return np.arange(len(self)) - first

    @cached_property
    def identities(self) -> IntArray:
        """(N,): a number for each caption. Captions with the same words have the same number."""
        index: dict[bytes, int] = {}
        raw, width = self.tokens.tobytes(), self.tokens.itemsize
        bounds = (self.starts * width).tolist()
        return np.array(
            [index.setdefault(raw[a:b], len(index)) for a, b in itertools.pairwise(bounds)],
            np.int64,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of words, order and images. Equal columns have equal digests."""
        sha = hashlib.sha256("\n".join(self.types).encode("utf-8", "surrogatepass"))
        for column in (self.tokens, self.starts, self.image_rows):
            add_numbers(sha, column)
        return sha.hexdigest()

    def blocks(self) -> Iterator[Captions]:
        """The captions in blocks that fit into memory and never split an image."""
        yield self

    def by_block(self, change: Callable[[Captions], Captions]) -> Captions:
        """Change the captions block by block."""
        return change(self)

    @property
    def all_alike(self) -> bool:
        """Whether all captions have the same words."""
        lengths = self.lengths
        if (lengths != lengths[:1]).any():
            return False
        words = self.tokens.reshape(len(self), -1)
        return bool((words == words[:1]).all())

    def with_texts(self, texts: Mapping[int, str]) -> Captions:
        """The captions, in which some rows have other texts."""
        every = [texts.get(row) or self.text(row) for row in range(len(self))]
        return Captions.from_texts(every, self.image_rows)

    def mentions(self, words: Iterable[str]) -> BoolArray:
        """(N,) flags: true for captions that contain at least one of the words."""
        wanted = frozenset(words)
        hit = np.array([word in wanted for word in self.types], dtype=bool)
        return self._flag_captions(hit[self.tokens] if len(self.types) else np.empty(0, bool))

    def _flag_captions(self, flags: BoolArray) -> BoolArray:
        """(N,) flags: true for captions that contain a flagged word."""
        hits = np.zeros(len(self), bool)
        worded = self.lengths > 0  # reduceat knows no empty slices
        if worded.any():
            hits[worded] = np.logical_or.reduceat(flags, self.starts[:-1][worded])
        return hits

    def totals(self, values: IntArray | BoolArray) -> IntArray:
        """(N,) for each caption the sum of the values of its words, given each distinct word's.

        Example:
            >>> Captions.from_texts(["a dog", "a", ""]).totals(np.array([1, 10])).tolist()
            [11, 1, 0]
        """
        totals = np.empty(len(self), np.int64)
        for first in range(0, len(self), _SUMMED):
            starts = self.starts[first : first + _SUMMED + 1]
            sums = offsets(values[self.tokens[starts[0] : starts[-1]]])[starts - starts[0]]
            totals[first : first + _SUMMED] = np.diff(sums)
        return totals

    def take(self, rows: IntArray | BoolArray) -> Captions:
        """The captions at some rows (indices or a mask), without unused words."""
        lengths = self.lengths[rows]
        if rows.dtype == bool:
            tokens = self.tokens[np.repeat(rows, self.lengths)]
        else:
            tokens = self.tokens[ranges(self.starts[rows], lengths)]
        return Captions(self.types, tokens, offsets(lengths), self.image_rows[rows]).compact()

    def of_images_at(self, place: IntArray) -> Captions:
        """The captions of some images, in memory.

        ``place`` has the new row of each image, or a number below 0 if the image is left out.
        """
        retained, tokens, first = place[self.image_rows] >= 0, [np.empty(0, np.int32)], 0
        for block in self.blocks():
            here = retained[first : first + len(block)]
            tokens.append(block.tokens[np.repeat(here, block.lengths)])
            first += len(block)
        starts, rows = offsets(self.lengths[retained]), place[self.image_rows[retained]]
        return Captions(self.types, np.concatenate(tokens), starts, rows).compact()

    def position(self, k: int) -> Captions:
        """The k-th caption (from 0) of every image that has more than k captions."""
        return self.take(self.positions == k)

    def in_turn(self, k: int) -> IntArray:
        """(M,): the row of the k-th caption (from 0) of each of M images.

        If an image has fewer captions, counting begins again with its first caption. So every
        position has all images. This matters because attackers learn more from more images, and
        because a maximum or a skew is larger in fewer images.

        Example:
            >>> captions = Captions.from_texts(["a", "b", "c"], [0, 0, 1])
            >>> captions.in_turn(0).tolist(), captions.in_turn(1).tolist()
            ([0, 2], [1, 2])
        """
        first = np.flatnonzero(self.positions == 0)
        return first + k % np.diff(np.append(first, len(self)))

    @property
    def n_in_turn(self) -> int:
        """The total number of captions at all positions; see :meth:`in_turn`."""
        return (int(self.positions.max(initial=-1)) + 1) * int((self.positions == 0).sum())

    def by_position(self, most: int) -> Iterator[Captions]:
        """One caption of every image, then a second one of every image, up to ``most`` captions.

        Example:
            >>> captions = Captions.from_texts(["a", "b", "c"], [0, 0, 1])
            >>> [[column.text(0), column.text(1)] for column in captions.by_position(5)]
            [['a', 'c'], ['b', 'c']]
        """
        known = int(self.positions.max(initial=-1)) + 1
        return (self.take(self.in_turn(k)) for k in range(min(most, known)))

    def compact(self) -> Captions:
        """The same captions, without unused words and with words in the order of first use."""
        first = np.full(len(self.types), len(self.tokens))
        first[self.tokens[::-1]] = np.arange(len(self.tokens))[::-1]  # the last assignment stays
        used = np.flatnonzero(first < len(self.tokens))
        order = used[np.argsort(first[used])]
        if np.array_equal(order, np.arange(len(self.types))):
            return self
        renumber = np.zeros(len(self.types), np.int32)
        renumber[order] = np.arange(len(order))
        types = tuple(self.types[t] for t in order)
        return Captions(types, renumber[self.tokens], self.starts, self.image_rows)

    def rewrite(self, rule: Callable[[str], Sequence[str]]) -> Captions:
        """Replace every word by the words that ``rule`` returns, which may be none.

        The rule is called only once for each distinct word.

        Example:
            >>> shout = Captions.from_texts(["a dog"]).rewrite(lambda w: [w.upper(), "!"])
            >>> shout.text(0)
            'A ! DOG !'
        """
        pieces = [rule(word) for word in self.types]
        index: dict[str, int] = {}
        for word in itertools.chain.from_iterable(pieces):
            index.setdefault(word, len(index))
        flat = np.array([index[w] for w in itertools.chain.from_iterable(pieces)], np.int32)
        sizes = np.array([len(piece) for piece in pieces], np.int32)
        if (sizes == 1).all():
            return Captions(tuple(index), flat[self.tokens], self.starts, self.image_rows)
        if (sizes <= 1).all():  # signs are dropped, nothing is cut in two: no need to expand
            retained = sizes > 0
            renumber = np.full(len(retained), -1, np.int32)
            renumber[retained] = flat
            tokens = renumber[self.tokens]
            remaining = tokens >= 0
            starts = self.starts - np.searchsorted(np.flatnonzero(~remaining), self.starts)
            return Captions(tuple(index), tokens[remaining], starts, self.image_rows)
        first = offsets(sizes)[:-1]
        blocks = np.split(self.tokens, range(_BLOCK, len(self.tokens), _BLOCK))
        tokens = np.concatenate([flat[ranges(first[block], sizes[block])] for block in blocks])
        starts = offsets(sizes[self.tokens])[self.starts]
        return Captions(tuple(index), tokens, starts, self.image_rows)

    def join(self, phrases: Iterable[str]) -> Captions:
        """Join every occurrence of a phrase ("hot dog") to one word, longer phrases first.

        Example:
            >>> Captions.from_texts(["a hot dog stand"]).join(["hot dog"]).words(0)
            ['a', 'hot dog', 'stand']
        """
        occurrences = self._places(phrases)
        starts: list[IntArray] = []
        inside = np.zeros(len(self.tokens), bool)
        for phrase, begins in occurrences:
            free = ~np.any([inside[begins + k] for k in range(len(phrase))], axis=0)
            retained = _without_overlaps(begins[free], len(phrase))
            for k in range(len(phrase)):
                inside[retained + k] = True
            starts.append(retained)
        return self._join_places([phrase for phrase, _ in occurrences], starts)

    def _places(self, phrases: Iterable[str]) -> list[tuple[list[str], IntArray]]:
        """The positions of each phrase of two or more words, longest phrases first.

        Positions are looked up by the first word of the phrase, since most words begin no phrase.
        """
        index = {word: i for i, word in enumerate(self.types)}
        split = sorted((p.split(" ") for p in phrases if " " in p), key=len, reverse=True)
        known = [words for words in split if all(word in index for word in words)]
        begins = np.zeros(len(self.types), bool)
        begins[[index[words[0]] for words in known]] = True
        places = np.flatnonzero(begins[self.tokens]) if known else np.empty(0, np.int64)
        order = np.argsort(self.tokens[places], kind="stable")
        places, firsts = places[order], self.tokens[places][order]
        occurrences = []
        for words in known:
            a, b = np.searchsorted(firsts, [index[words[0]], index[words[0]] + 1])
            here = self._occurrences([index[word] for word in words], places[a:b])
            if len(here):
                occurrences.append((words, here))
        return occurrences

    def _occurrences(self, phrase: Sequence[int], begins: IntArray) -> IntArray:
        """The positions in ``begins`` where the whole phrase follows in the same caption."""
        begins = begins[begins + len(phrase) <= len(self.tokens)]
        for offset, token in enumerate(phrase):
            begins = begins[self.tokens[begins + offset] == token]
        caption = np.searchsorted(self.starts, begins, side="right")
        return begins[begins + len(phrase) <= self.starts[caption]]

    def _join_places(
        self, phrases: Sequence[Sequence[str]], places: Sequence[IntArray]
    ) -> Captions:
        """Replace each phrase at its positions by one new word."""
        if not phrases:
            return self
        tokens = self.tokens.copy()
        retained = np.ones(len(tokens), bool)
        for number, (words, begins) in enumerate(zip(phrases, places, strict=True)):
            tokens[begins] = len(self.types) + number
            for offset in range(1, len(words)):
                retained[begins + offset] = False
        starts = offsets(retained)[self.starts]
        types = (*self.types, *(" ".join(words) for words in phrases))
        return Captions(types, tokens[retained], starts, self.image_rows)


def add_numbers(sha: _Hash, column: IntArray | Int32Array) -> None:
    for start in range(0, len(column), _BLOCK):
        sha.update(column[start : start + _BLOCK].astype("<i8").tobytes())


def cut(text: str, longest: int) -> str:
    """The whole words within the first ``longest`` characters. A longer first word is cut.

    Example:
        >>> cut("a long caption", 9), cut("aaaa", 3)
        ('a long', 'aaa')
    """
    head = text[:longest]
    if text[longest].isspace():
        return head
    words = head.rsplit(None, 1)
    return words[0] if len(words) == 2 and not head[-1].isspace() else head


def is_blank(text: str) -> bool:
    """Whether a raw caption has no content, by the same rule for annotators and models.

    A caption is blank if it is empty or a missing value (NaN, None, null, N/A), or if it has only
    white space, signs without a letter or digit, or words in angle brackets (``<unk>``).

    Example:
        >>> [is_blank(text) for text in ("", " . ", "<unk> <unk>", "NaN", "None.", "n/a")]
        [True, True, True, True, True, True]
        >>> is_blank("a man"), is_blank("none of them sits")
        (False, False)
    """
    plain = _MARKUP.sub(" ", text) if "<" in text else text
    if _TOO_LONG.match(plain):
        return False
    if not any(map(str.isalnum, plain)):
        return True
    return len(text) < 80 and "".join(filter(str.isalnum, plain)).casefold() in _MISSING


def may_be_blank(captions: Captions) -> BoolArray:
    """(N,) False for captions with more letters and digits than :func:`is_blank` permits."""
    letters = ["<" not in word and sum(map(str.isalnum, word)) for word in captions.types]
    return captions.totals(np.array(letters, np.int64)) <= _LONGEST


def offsets(lengths: IntArray | Int32Array | BoolArray) -> IntArray:
    """(N + 1,): the positions where rows of given lengths start, and where the last row ends.

    Example:
        >>> offsets(np.array([2, 0, 3])).tolist()
        [0, 2, 2, 5]
    """
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def ranges(starts: IntArray, lengths: IntArray | Int32Array) -> IntArray:
    """Concatenated ``arange(start, start + length)`` of every pair.

    Example:
        >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    shift = np.repeat(starts - (ends - lengths), lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64) + shift


def dense_ranks(codes: IntArray | Int32Array) -> IntArray:
    """The rank of each code among the distinct codes.

    Only distinct codes are sorted, or a table is used if it is small enough. Sorting all codes
    takes ten times as long.

    Example:
        >>> dense_ranks(np.array([7, 2, 7])).tolist()
        [1, 0, 1]
    """
    highest = int(codes.max(initial=-1))
    if highest > 4 * len(codes):
        import pandas as pd

        numbers, distinct = pd.factorize(codes)
        ranks = np.empty(len(distinct), np.int64)
        ranks[np.argsort(distinct)] = np.arange(len(distinct))
        return ranks[numbers]
    used = np.zeros(highest + 1, bool)
    used[codes] = True
    return (np.cumsum(used) - 1)[codes]


def _split(texts: Sequence[str], index: Mapping[str, int]) -> Int32Array:
    """Word numbers of a batch of texts, a 0 after each; ``index`` numbers new words."""
    joined = f" {_SEPARATOR} ".join([*texts, ""])
    if joined.count(_SEPARATOR) > len(texts):
        joined = f" {_SEPARATOR} ".join([*(t.replace(_SEPARATOR, " ") for t in texts), ""])
    words = joined.split()
    return np.fromiter(map(index.__getitem__, words), np.int32, len(words))


def _without_overlaps(begins: IntArray, width: int) -> IntArray:
    """Drop occurrences that overlap the last kept occurrence ("a b a b a" has one "a b a")."""
    if len(begins) < 2 or (np.diff(begins) >= width).all():
        return begins
    retained = [int(begins[0])]
    for begin in begins[1:].tolist():
        if begin - retained[-1] >= width:
            retained.append(begin)
    return np.array(retained, np.int64)
