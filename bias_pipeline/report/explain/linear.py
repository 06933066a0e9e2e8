"""Word attributions of one attacker; a linear attacker is also trained on resampled images.

Networks are explained in ``gradients.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.attack.probe import outputs_of
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import UsageError

Gram = tuple[str, ...]  # an n-gram's words; empty for the intercept


@dataclass(frozen=True)
class Example:
    """A test caption with the value that each word adds."""

    side: str  # `model` or `human`
    image: str  # its id
    group: str  # the true group
    log_odds: float  # of the true group, by the attacker; minus the mean if there are more than two
    # Each word with its part of the log-odds, without the intercept: towards the second of two
    # groups, or towards the true group of more than two
    words: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class WordFit(ABC):
    """One attacker and its F n-grams; the intercept is last."""

    table: str  # name of the captions on which the attacker was trained
    grams: list[Gram]  # the n-grams
    captions: IntArray  # (F,) how many captions have each n-gram, in all parts of the split
    numbers: Float64Array  # (F, 1 + K) gain, then coefficients (one for two groups, else K)
    resampled: Float64Array  # (B, F, 1 + K) these numbers under resampled images
    data: LabelledCaptions  # the captions
    test: IntArray  # positions of the test captions

    @abstractmethod
    def parts(self, row: int) -> tuple[Float64Array, Float64Array]:
        """What each word of a test caption adds to each group's log-odds, and the remainder."""

    def examples(self, side: str, ids: Sequence[str], most: int) -> list[Example]:
        """The test captions with the highest log-odds of each group, without repeats."""
        scored = [self._example(int(row), side, ids) for row in self.test]
        examples = []
        for group in self.data.classes:
            of_group = sorted((e for e in scored if e.group == group), key=lambda e: -e.log_odds)
            distinct = {tuple(word for word, _ in e.words): e for e in reversed(of_group)}
            best = sorted(distinct.values(), key=lambda e: (-e.log_odds, e.image))
            examples += best[:most]
        return examples

    def _example(self, row: int, side: str, ids: Sequence[str]) -> Example:
        words, truth = self.data.captions.words(row), int(self.data.labels[row])
        parts, rest = self.parts(row)
        towards = truth if len(self.data.classes) > 2 else 1
        image = ids[int(self.data.captions.image_rows[row])]
        log_odds = float(parts[:, truth].sum() + rest[truth])
        contributions = tuple(zip(words, parts[:, towards].tolist(), strict=True))
        return Example(side, image, self.data.classes[truth], log_odds, contributions)


@dataclass(frozen=True, eq=False)
class LinearFit(WordFit):
    """An ``ngram`` attacker; its intercept is the log-odds without any word."""

    order: int  # words in the longest n-gram
    votes: Float64Array  # (F, n_classes) what each n-gram adds to the log-odds of each group

    def parts(self, row: int) -> tuple[Float64Array, Float64Array]:
        words = self.data.captions.words(row)
        return word_parts(words, self._vote_of, self.order), self._vote_of[()]

    @cached_property
    def _vote_of(self) -> dict[Gram, Float64Array]:
        return dict(zip(self.grams, self.votes, strict=True))


def word_parts(
    words: Sequence[str], votes: Mapping[Gram, Float64Array], order: int
) -> Float64Array:
    """(words, n_classes) the value that each word adds; their sum is the caption's log-odds.

    An n-gram counts once in a caption. The vote of an n-gram is divided equally among its places
    and, at each place, among its words.

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


def fits(
    probe: ConvexProbe, data: LabelledCaptions, split: Split, drawn: Float64Array
) -> LinearFit:
    """Train an attacker once, and then again on every resample of the images.

    The split still decides the n-grams and the balance of groups. ``drawn`` (B, images) says how
    often each image counts. If a resample contains no test caption, gains are computed from the
    unweighted test captions.
    """
    train, test = split.select(data.captions.image_rows, data.labels)
    if not isinstance(probe.encoder, Ngram):
        raise UsageError(
            f"analysis words: {type(probe.encoder).__name__} does not read single words; set "
            "encoder=ngram or a network such as encoder=lstm"
        )
    encoder = probe.encoder
    items = encoder.read(data)
    shared = items.share_features([train])
    features = shared.matrix[:, shared.known[:, 0]]
    sums = _Occurrences(features[shared.rows[test]], data, test)
    of_captions = drawn[:, data.captions.image_rows]

    def weights_of(counts: Float64Array, near: Float64Array | None = None) -> Float64Array:
        """(F + 1, S, 1, K) the attacker's weights if captions count ``counts`` (N, S) times."""
        truths = counts[:, :, None, None] * outputs_of(data)[train][:, None]
        counts, truths = (shared.tally(each, train) for each in (counts, truths))
        return probe.fit(features, counts, truths, near=near)

    whole = weights_of(np.ones((len(train), 1)))
    weights = weights_of(of_captions[:, train].T, whole)[:, :, 0]  # (F + 1, B, K)
    numbers = sums.numbers(whole[:, 0, 0], np.ones(len(test)))
    resampled = np.stack(
        [
            sums.numbers(weights[:, b], test_counts if test_counts.any() else np.ones(len(test)))
            for b, test_counts in enumerate(of_captions[:, test])
        ]
    )
    columns = items.fit(train).columns
    captions = np.bincount(items.grams, minlength=items.n_grams)[columns]
    return LinearFit(
        table=data.name,
        grams=[*encoder.names(data.captions, columns), ()],
        captions=np.append(captions, 0),
        numbers=numbers,
        resampled=resampled,
        data=data,
        test=test,
        order=encoder.order,
        votes=votes_of(whole[:, 0, 0]),
    )


def votes_of(weights: Float64Array) -> Float64Array:
    """(F, n_classes) what each n-gram adds to each group's log-odds, from weights (F, 1 or K).

    With two groups, log-odds are against the other group; with more, against their geometric mean.

    Example:
        >>> votes_of(np.array([[2.0]])).tolist()
        [[-2.0, 2.0]]
    """
    if weights.shape[1] == 1:
        return np.hstack([-weights, weights])
    return weights - weights.mean(axis=1, keepdims=True)


class _Occurrences:
    """A split's test captions, as tables for weighted sums."""

    def __init__(self, x: sparse.csr_array, data: LabelledCaptions, rows: IntArray) -> None:
        self.rows = rows
        ones = sparse.csr_array(np.ones((len(rows), 1)))
        self._transposed = sparse.hstack([x, ones]).T.tocsr()  # (F + 1, N)
        self._truth = np.eye(data.n_classes)[data.labels[rows]]  # (N, n_classes)

    def numbers(self, weights: Float64Array, counts: Float64Array) -> Float64Array:
        """(F + 1, 1 + K) gains and coefficients under weights (F + 1, K)."""
        truth_counts = self._transposed @ (self._truth * counts[:, None])  # (F + 1, n_classes)
        votes = votes_of(weights)
        gains = (truth_counts * votes).sum(axis=1, keepdims=True) / counts.sum()
        return np.hstack([gains, weights if weights.shape[1] == 1 else votes])
