"""One attacker taken apart; of a linear one, what every n-gram weighs, also on resampled images.

Networks are taken apart in ``gradients.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.attackers.convex import ConvexProbe, outputs_of
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.corpus.split import Split
from bias_pipeline.encoders.ngram import Ngram
from bias_pipeline.errors import UsageError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Gram = tuple[str, ...]  # its words; empty: the intercept


@dataclass(frozen=True)
class Example:
    """A test caption with what each word adds.

    Attributes:
        side: ``model`` or ``human``.
        image: its id.
        group: the true one.
        log_odds: of the true group under the attacker; for more than two groups above the mean.
        words: each with its part of the log-odds, the intercept left out; for two groups towards
            the second, for more towards the true one.
    """

    side: str
    image: str
    group: str
    log_odds: float
    words: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class WordFit(ABC):
    """One attacker, its F n-grams with what stands without any word as the last.

    Attributes:
        table: name of the captions it was trained on.
        grams: the n-grams that are told of.
        captions: (F,) in how many captions each stands, all parts of the split together.
        numbers: (F, 1 + K) gain, then coefficients: one for two groups, else K.
        resampled: (B, F, 1 + K) the same under resampled images.
        data: the captions.
        test: positions of those that it was not trained on.
    """

    table: str
    grams: list[Gram]
    captions: IntArray
    numbers: FloatArray
    resampled: FloatArray
    data: Labelled
    test: IntArray

    @abstractmethod
    def parts(self, row: int) -> tuple[FloatArray, FloatArray]:
        """What the log-odds of each group for a test caption are made of.

        Args:
            row: one of ``test``.

        Returns:
            (words, n_classes) what each word adds, and (n_classes,) what stands without any.
        """

    def examples(self, side: str, ids: Sequence[str], most: int) -> list[Example]:
        """For each group the test captions that speak for it most, none twice.

        Args:
            side: whose captions they are.
            ids: of all images, by row.
            most: captions a group.
        """
        scored = [self._example(int(row), side, ids) for row in self.test]
        found = []
        for group in self.data.classes:
            own = sorted((e for e in scored if e.group == group), key=lambda e: -e.log_odds)
            distinct = {tuple(word for word, _ in e.words): e for e in reversed(own)}
            best = sorted(distinct.values(), key=lambda e: (-e.log_odds, e.image))
            found += best[:most]
        return found

    def _example(self, row: int, side: str, ids: Sequence[str]) -> Example:
        words, truth = self.data.captions.words(row), int(self.data.labels[row])
        parts, rest = self.parts(row)
        towards = truth if len(self.data.classes) > 2 else 1
        image = ids[int(self.data.captions.image_rows[row])]
        log_odds = float(parts[:, truth].sum() + rest[truth])
        told = tuple(zip(words, parts[:, towards].tolist(), strict=True))
        return Example(side, image, self.data.classes[truth], log_odds, told)


@dataclass(frozen=True, eq=False)
class LinearFit(WordFit):
    """An ``ngram`` attacker; its intercept is what stands without any word.

    Attributes:
        order: of the longest n-gram.
        votes: (F, n_classes) what each n-gram adds to the log-odds of each group.
    """

    order: int
    votes: FloatArray

    def parts(self, row: int) -> tuple[FloatArray, FloatArray]:
        """See :meth:`WordFit.parts`; an n-gram's vote is shared by its words."""
        words = self.data.captions.words(row)
        return word_parts(words, self._vote_of, self.order), self._vote_of[()]

    @cached_property
    def _vote_of(self) -> dict[Gram, FloatArray]:
        return dict(zip(self.grams, self.votes, strict=True))


def word_parts(words: Sequence[str], votes: Mapping[Gram, FloatArray], order: int) -> FloatArray:
    """(words, n_classes) what each word of a caption adds; the parts add up to the whole.

    An n-gram counts once a caption, wherever it stands; its vote is shared by its places and, at
    each, by its words.

    Args:
        words: of a caption.
        votes: n-gram to (n_classes,).
        order: of the longest n-gram.

    Example:
        >>> votes = {("a",): np.array([1.0]), ("a", "b"): np.array([3.0])}
        >>> word_parts(["a", "b", "a"], votes, 2).ravel().tolist()
        [2.0, 1.5, 0.5]
    """
    n_classes = len(next(iter(votes.values())))
    parts = np.zeros((len(words), n_classes))
    for width in range(1, order + 1):
        grams = [tuple(words[i : i + width]) for i in range(len(words) - width + 1)]
        places = Counter(grams)
        for i, gram in enumerate(grams):
            if gram in votes:
                parts[i : i + width] += votes[gram] / places[gram] / width
    return parts


def fits(probe: ConvexProbe, data: Labelled, split: Split, drawn: FloatArray) -> LinearFit:
    """Train an attacker, then again on every resampling of the images.

    Which n-grams it sees and how groups are balanced stay those of the split. A resampling in which
    no test caption is left says nothing of gains; the attacker's own stand in.

    Args:
        probe: how attackers are trained.
        data: captions and labels.
        split: what is trained on and what is tested.
        drawn: (B, images) how often each image counts.
    """
    train, test = split.select(data.captions.image_rows, data.labels)
    encoder = _ngrams(probe)
    items = encoder.read(data)
    shared = items.shared([train])
    told = _Told(shared.matrix[shared.rows[test]], data, test)
    of_captions = drawn[:, data.captions.image_rows]
    counts = np.vstack([np.ones(len(train)), of_captions[:, train]]).T  # (N, 1 + B)
    truths = counts[:, :, None, None] * outputs_of(data)[train][:, None]
    weights = probe.fit(shared.matrix, shared.tally(counts, train), shared.tally(truths, train))
    weights = weights[:, :, 0]  # (F + 1, 1 + B, K)
    numbers = told.numbers(weights[:, 0], np.ones(len(test)))
    resampled = np.stack(
        [
            told.numbers(weights[:, 1 + b], own if own.any() else np.ones(len(test)))
            for b, own in enumerate(of_captions[:, test])
        ]
    )
    kept = items.fit(train).kept
    captions = np.bincount(items.grams, minlength=items.n_grams)[kept]
    return LinearFit(
        table=data.name,
        grams=[*encoder.names(data.captions, kept), ()],
        captions=np.append(captions, 0),
        numbers=numbers,
        resampled=resampled,
        data=data,
        test=test,
        order=encoder.order,
        votes=votes_of(weights[:, 0]),
    )


def _ngrams(probe: ConvexProbe) -> Ngram:
    """What the attackers see, which must be n-grams.

    Raises:
        UsageError: if it is anything else.
    """
    if not isinstance(probe.encoder, Ngram):
        raise UsageError(
            f"analysis words: {type(probe.encoder).__name__} does not see words one by one; set "
            "encoder=ngram or a network such as encoder=lstm"
        )
    return probe.encoder


def votes_of(weights: FloatArray) -> FloatArray:
    """(F, n_classes) what each n-gram adds to the log-odds of each group.

    For two groups these are log-odds against the other, for more against the geometric mean of all.

    Args:
        weights: (F, 1) or (F, K).

    Example:
        >>> votes_of(np.array([[2.0]])).tolist()
        [[-2.0, 2.0]]
    """
    if weights.shape[1] == 1:
        return np.hstack([-weights, weights])
    return weights - weights.mean(axis=1, keepdims=True)


class _Told:
    """The test captions of a split, ready to be summed over."""

    def __init__(self, x: sparse.csr_array, data: Labelled, rows: IntArray) -> None:
        self.rows = rows
        ones = sparse.csr_array(np.ones((len(rows), 1)))
        self._transposed = sparse.hstack([x, ones]).T.tocsr()  # (F + 1, N)
        self._truth = np.eye(data.n_classes)[data.labels[rows]]  # (N, n_classes)

    def numbers(self, weights: FloatArray, counts: FloatArray) -> FloatArray:
        """(F + 1, 1 + K) gains and coefficients under weights (F + 1, K)."""
        held = self._transposed @ (self._truth * counts[:, None])  # (F + 1, n_classes)
        votes = votes_of(weights)
        gains = (held * votes).sum(axis=1, keepdims=True) / counts.sum()
        return np.hstack([gains, weights if weights.shape[1] == 1 else votes])
