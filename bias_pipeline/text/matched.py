"""Makes styles equal: edits human captions until they use words as often as model captions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, Int32Array, IntArray
from bias_pipeline.corpus.attribute import Words, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Side
from bias_pipeline.declared import Seed
from bias_pipeline.errors import NotApplicableError, inflect
from bias_pipeline.io.hashing import UIntArray, hash_ids, mix, random_words
from bias_pipeline.text.transform import (
    CHANGES,
    EXAMPLES,
    Entries,
    TextTransform,
    edit_words,
    is_special,
)

N_EXAMPLES = 10


@dataclass(frozen=True)
class Change:
    """How the human captions of one position were changed.

    Attributes:
        position: from 0.
        images: images with a human caption at this position and a caption by the captioner.
        removed: number of removed words; a word counts once per caption.
        added: number of added words.
        reach: coverage of the captioner's vocabulary, in [0, 1]: the share of the captioner's words
            that human captions use as often. NaN without words.
        retained: share of the captioner's words that remain in the captioner's captions, in [0, 1].
    """

    position: int
    images: int
    removed: int
    added: int
    reach: float
    retained: float = 1.0


class MatchedAlignment(TextTransform):
    """``alignment=matched`` puts each word in as many human captions as model captions (ours).

    Attackers learn more from richer captions, whatever the bias. Here the captioner is compared
    with equally rich human captions. At each caption position, a word that annotators use more
    often is removed from captions drawn at random. A word that annotators use less often is added
    to captions of images for which *another* annotator used it. The more other annotators used the
    word, the likelier it is added. So human sentences and associations remain, and nothing changes
    if the captioner uses words as often as annotators do. The method does not use labels. Random
    draws depend on word, position and image id, so the order of files does not matter. Shares are
    taken over images that have a group, a model caption and at least two human captions. Images
    with one human caption are left out if other images have several. A word that no second
    annotator used cannot be added to a caption. So ``reach`` says how much of the captioner's
    vocabulary is covered. This coverage is the sum of ``min(p, reached)`` divided by the sum of
    ``p``, where p is a word's share. Below 0.95 no conclusion should be drawn.

    ``alignment=matched_both`` also changes the captioner's captions (``sides``). If the captioner
    uses a word more often than matched human captions can, the word is removed from randomly drawn
    captions of the captioner. So both sides use each word equally often. The score is then about
    the *retained* words. This score can show bias, but it says nothing about removed words.

    Raises:
        NotApplicableError: when called, if annotators use none of the captioner's words.

    Args:
        excluded: words that are never changed, such as those that name groups.
        seed: of the draws.
        sides: the sides whose captions are changed: ``human``, or ``human`` and ``model``.

    Example:
        >>> MatchedAlignment({"male": ["man"], "female": ["woman"]}).excluded == {"man", "woman"}
        True
    """

    def __init__(
        self, excluded: Words = (), seed: Seed = 0, sides: Sequence[Side] = ("human",)
    ) -> None:
        super().__init__(sides)
        if "human" not in self.sides:
            raise ValueError("alignment.sides: human captions are always changed; add human")
        self.excluded = frozenset(words_of(excluded))
        self.seed = seed
        self._positions = math.inf

    def of_first_captions(self) -> MatchedAlignment:
        """A copy that changes only the first human caption of each image."""
        first = copy(self)
        first._positions = 1
        return first

    def with_all_words(self) -> MatchedAlignment:
        """A copy that matches even excluded words, for attackers that do not guess groups."""
        everything = copy(self)
        everything.excluded = frozenset()
        return everything

    def __call__(self, corpus: Corpus) -> Corpus:
        """The corpus with changed human captions, and tables of the changes."""
        corpus = _described_by_several(corpus)
        retained = 1.0
        if "model" in self.sides:
            usage = self._usage(corpus)
            retained = usage.reach
            corpus = corpus.rewrite({"model": self._reachable(corpus, usage)})
        human, changes = self._match(corpus)
        if changes and not (retained and any(change.reach for change in changes)):  # NaN is not 0
            raise NotApplicableError(
                "annotators use none of the captioner's words, in captions of the same images, so "
                "their captions cannot be matched to it; is it another language?"
            )
        tables = {
            CHANGES: [asdict(replace(change, retained=retained)) for change in changes],
            EXAMPLES: _examples(corpus, human, self.seed),
        }
        return replace(corpus.rewrite({"human": human}), tables={**corpus.tables, **tables})

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The captions of one side after matching."""
        return self(corpus).side(side)

    def reach(self, corpus: Corpus) -> float:
        """How much of the captioner's vocabulary human captions cover, without any changes.

        A word counts as possible for an image if one of its annotators uses the word.

        Returns:
            In [0, 1], or NaN without words or without human captions.
        """
        return self.usage(corpus).reach

    def usage(self, corpus: Corpus) -> WordUsage:
        """How often each side uses each word, on the images that matching keeps."""
        return self._usage(_described_by_several(corpus))

    def _usage(self, corpus: Corpus) -> WordUsage:
        images = np.flatnonzero(comparable(corpus))
        words = _Words.find(corpus.model, corpus.human, self.excluded)
        wanted, used = (
            _totals(_sum(words.indicators(side), side.image_rows, len(corpus))[images] > 0)
            for side in (corpus.model, corpus.human)
        )
        return WordUsage(words, wanted, used)

    def _reachable(self, corpus: Corpus, usage: WordUsage) -> Captions:
        """The captioner's captions, without the surplus of words that annotators use less often."""
        model, words = corpus.model, usage.words
        rows = np.flatnonzero(comparable(corpus)[model.image_rows])
        here, images = words.indicators(model)[rows], corpus.keys[model.image_rows[rows]]
        most = usage.wanted - usage.used
        out = self._draw("captioner's words out", here, most, words.keys, images, 0)
        removed = [Entries(rows[out.captions], out.types)]
        types = words.types_of(model)
        return edit_words(model, _join(removed, types), _join([], types))

    def _match(self, corpus: Corpus) -> tuple[Captions, list[Change]]:
        """The human captions after the changes, and the changes for each position."""
        removed, added, changes = self._changes(corpus)
        return edit_words(corpus.human, removed, added), changes

    def _changes(self, corpus: Corpus) -> tuple[Entries, Entries, list[Change]]:
        """For each position, the words to remove from and to add to human captions, with counts."""
        images = comparable(corpus)
        human, model = corpus.human, corpus.model
        words = _Words.find(model, human, self.excluded)
        incidence = words.indicators(human)  # (captions, V)
        by_image = _sum(incidence, human.image_rows, len(corpus))
        wanted = _sum(words.indicators(model), model.image_rows, len(corpus))
        removed, added, changes = [], [], []
        for position in range(int(min(self._positions, human.positions.max(initial=-1) + 1))):
            captions = np.flatnonzero((human.positions == position) & images[human.image_rows])
            if not len(captions):
                continue
            rows = human.image_rows[captions]
            here = incidence[captions]
            target, count = _totals(wanted[rows]), _totals(here)
            out, put = self._edits(
                here, by_image[rows] - here, target, words.keys, corpus.keys[rows], position
            )
            reached = count + np.bincount(put.types, minlength=len(count))
            total = target.sum()
            reach = float(np.minimum(target, reached).sum() / total) if total else float("nan")
            changes.append(Change(position, len(rows), len(out), len(put), reach))
            removed.append(Entries(captions[out.captions], out.types))
            added.append(Entries(captions[put.captions], put.types))
        out, put = (_join(parts, words.types_of(human)) for parts in (removed, added))
        return out, put, changes

    def _edits(
        self,
        here: sparse.csr_array,
        others: sparse.csr_array,
        target: IntArray,
        words: UIntArray,
        images: UIntArray,
        position: int,
    ) -> tuple[Entries, Entries]:
        """The words to remove from and to add to the captions of one position.

        ``here`` (N, V) is 1 where a caption has a word. ``others`` (N, V) is the number of other
        captions of the same image with the word. ``target`` (V,) is how many captions should have
        each word. ``words`` (V,) and ``images`` (N,) are hashes.
        """
        count = _totals(here)
        out = self._draw("words out", here, count - target, words, images, position)
        # By word at once: with a million captions, 50 MB a copy
        absent = sparse.csc_array(others - others.multiply(here))
        del others
        put = self._draw("words in", absent, target - count, words, images, position)
        return out, put

    def _draw(
        self,
        purpose: str,
        weights: sparse.csr_array | sparse.csc_array,
        most: IntArray,
        words: UIntArray,
        images: UIntArray,
        position: int,
    ) -> Entries:
        """Captions drawn for each word, without replacement.

        ``weights`` (N, V) says how likely each caption is drawn for each word; 0 means never.
        ``most`` (V,) is the number of captions to draw; a negative number counts as 0. ``words``
        (V,) and ``images`` (N,) are hashes.
        """
        by_word = sparse.csc_array(weights)
        word = np.repeat(np.arange(len(most), dtype=np.int32), np.diff(by_word.indptr))
        open_to = (most > 0)[word] & (by_word.data > 0)
        row, word, weight = by_word.indices[open_to], word[open_to], by_word.data[open_to]
        del by_word, open_to
        part = np.array([position], np.uint64)
        drawn = random_words(purpose, self.seed, mix(words)[word] ^ images[row], part)
        # The smallest exponential times with these rates are a weighted draw (Efraimidis and
        # Spirakis 2006, "Weighted random sampling with a reservoir").
        times = drawn.astype(np.float64)  # in place: with a million captions, 60 MB a copy
        times += 0.5
        times /= 2.0**64
        np.log(times, out=times)
        np.negative(times, out=times)
        times /= weight
        del weight
        early = _early_words(times, word, most)
        row, word, times, drawn = row[early], word[early], times[early], drawn[early]
        order = np.lexsort((drawn, times, word))
        sizes = np.bincount(word, minlength=len(most))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        chosen = order[rank < most[word[order]]]
        return Entries(row[chosen].astype(np.int64), word[chosen].astype(np.int64))


def _early_words(times: Float64Array, word: Int32Array, most: IntArray) -> BoolArray:
    """(E,) flags: true for entries among the ``most`` smallest of their word, including ties."""
    sizes = np.bincount(word, minlength=len(most))
    starts, latest = np.cumsum(sizes) - sizes, np.full(len(most), np.inf)
    for number in np.flatnonzero((most > 0) & (most < sizes)).tolist():
        start, n = starts[number], most[number]
        latest[number] = np.partition(times[start : start + sizes[number]], n - 1)[n - 1]
    return times <= latest[word]


def _described_by_several(corpus: Corpus) -> Corpus:
    """The corpus, without images that have one human caption if other images have several."""
    human = corpus.human
    captions = np.bincount(human.image_rows, minlength=len(corpus))
    single = int((captions == 1).sum())
    if not single or not (captions > 1).any():
        return corpus
    several = human.take(captions[human.image_rows] > 1)
    note = f"alignment=matched: {inflect(single, 'images with one human caption are')} left out"
    return replace(corpus.rewrite({"human": several}), notes=(*corpus.notes, note))


def comparable(corpus: Corpus) -> BoolArray:
    """(N,) flags: true for images with a group of every attribute and captions of both sides."""
    described = [
        np.bincount(captions.image_rows, minlength=len(corpus)) > 0
        for captions in (corpus.model, corpus.human)
    ]
    labelled = [grouping.codes >= 0 for grouping in corpus.groupings.values()]
    return np.logical_and.reduce([*described, *labelled])


@dataclass(frozen=True, eq=False)
class _Words:
    """The V words of both sides that may be changed, in alphabetical order.

    Attributes:
        names: (V,) the words.
        keys: (V,) their hashes.
        columns: the column of each of a side's distinct words; -1 for words that are not changed.
    """

    names: Sequence[str]
    keys: UIntArray
    columns: dict[tuple[str, ...], IntArray]

    @classmethod
    def find(cls, model: Captions, human: Captions, excluded: frozenset[str]) -> _Words:
        """The words that either side uses."""
        both = {*model.compact().types, *human.compact().types}
        names = sorted(word for word in both - excluded if not is_special(word))
        column = {word: i for i, word in enumerate(names)}
        columns = {
            types: np.array([column.get(word, -1) for word in types], np.int64)
            for types in (model.types, human.types)
        }
        return cls(names, hash_ids(names), columns)

    def types_of(self, captions: Captions) -> IntArray:
        """(V,): the index of each word among the distinct words of captions; -1 if absent."""
        columns, types = self.columns[captions.types], np.full(len(self.keys), -1)
        taking_part = columns >= 0
        types[columns[taking_part]] = np.flatnonzero(taking_part)
        return types

    def indicators(self, captions: Captions) -> sparse.csr_array:
        """(captions, V): 1 where a caption contains a word at least once."""
        column = self.columns[captions.types].astype(np.int32)[captions.tokens]
        changed = column >= 0
        row = np.repeat(np.arange(len(captions), dtype=np.int32), captions.lengths)[changed]
        shape = (len(captions), len(self.keys))
        cells = np.ones(len(row), np.int8), (row, column[changed])
        counts = sparse.csr_array(cells, shape=shape)
        counts.data[:] = 1
        return counts


@dataclass(frozen=True, eq=False)
class WordUsage:
    """The number of images in which each of V words is used."""

    words: _Words
    wanted: IntArray  # (V,) by the captioner
    used: IntArray  # (V,) by any annotator

    @property
    def names(self) -> Sequence[str]:
        """(V,): the words."""
        return self.words.names

    @property
    def reach(self) -> float:
        """The share of the captioner's word uses that annotators match; NaN without words."""
        total = self.wanted.sum()
        return float(np.minimum(self.wanted, self.used).sum() / total) if total else math.nan


def _sum(incidence: sparse.csr_array, rows: IntArray, n_images: int) -> sparse.csr_array:
    """(N, V): how many captions of each image contain each word."""
    shape = (n_images, len(rows))
    ones = np.ones(len(rows), np.int32)
    belongs = sparse.csr_array((ones, (rows, np.arange(len(rows)))), shape=shape)
    return sparse.csr_array(belongs @ incidence)


def _totals(incidence: sparse.csr_array) -> IntArray:
    return np.asarray(incidence.sum(axis=0)).ravel().astype(np.int64)


def _join(parts: list[Entries], types: IntArray) -> Entries:
    """Join the entries of all tables, with words numbered as in the captions."""
    nothing = [np.empty(0, np.int64)]
    captions = np.concatenate(nothing + [part.captions for part in parts])
    columns = np.concatenate(nothing + [part.types for part in parts])
    return Entries(captions, types[columns])


def _examples(corpus: Corpus, matched: Captions, seed: int) -> list[dict[str, object]]:
    """Captions before and after the changes, for images that are drawn by their ids."""
    human = corpus.human
    chosen = np.flatnonzero(comparable(corpus)[human.image_rows] & (human.positions == 0))
    drawn = random_words("examples", seed, corpus.keys[human.image_rows[chosen]])
    some = chosen[np.argsort(drawn, kind="stable")[:N_EXAMPLES]]
    return [
        {
            "image_id": corpus.ids[human.image_rows[row]],
            "before": human.text(row),
            "after": matched.text(row),
        }
        for row in some.tolist()
    ]
