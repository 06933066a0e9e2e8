"""Captions as numbers of their words: what the networks trained from scratch take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.encoders.base import IntArray, Items, NetEncoder

UNKNOWN, PAD = 0, 1
N_SPECIAL = 2


class WordEncoder(NetEncoder):
    """A network over whole words: ``forward(tokens, lengths)``."""

    def read(self, data: Labelled) -> Words:
        """The captions; their words are known already."""
        return Words(data.captions)


@dataclass(frozen=True, eq=False)
class Words(Items):
    """Captions whose words have no numbers yet."""

    captions: Captions

    def fit(self, train: IntArray) -> WordInputs:
        """Numbers for the words of the captions that are learnt from."""
        return WordInputs(self.captions, train)


class WordInputs:
    """Word numbers of N captions, padded batch by batch.

    Words of training captions are numbered by falling frequency, ties by the alphabet, after the
    specials. Words that stand only in other captions are unknown. An empty caption holds one pad:
    padding is the zero vector that training never moves, so it does not touch <unk>.

    Args:
        captions: all captions.
        train: which of them are learnt from.

    Attributes:
        size: how many numbers there are, the specials included.
        lengths: (N,) words of each caption, at least 1.

    Example:
        >>> inputs = WordInputs(Captions.from_texts(["a dog", "a cat sat"]), np.array([0]))
        >>> inputs.batch(np.array([0, 1]))["tokens"].tolist()
        [[2, 3, 1], [2, 0, 0]]
    """

    def __init__(self, captions: Captions, train: IntArray) -> None:
        own = captions.take(train)
        ranked = sorted(zip((-own.counts).tolist(), own.types, strict=True))
        number = {word: i + N_SPECIAL for i, (_, word) in enumerate(ranked)}
        table = np.array([number.get(word, UNKNOWN) for word in captions.types], np.int64)
        self.size = len(number) + N_SPECIAL
        self.lengths = np.maximum(captions.lengths, 1)
        self._captions = captions
        self._numbers = table[captions.tokens]

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[np.int64]]:
        """``tokens`` (B, L) padded to the longest, and ``lengths`` (B,)."""
        held = self._captions.lengths[rows]
        tokens = np.full((len(rows), max(int(held.max(initial=0)), 1)), PAD, np.int64)
        inside = np.arange(tokens.shape[1]) < held[:, None]
        place = np.nonzero(inside)[1]
        tokens[inside] = self._numbers[np.repeat(self._captions.starts[rows], held) + place]
        return {"tokens": tokens, "lengths": self.lengths[rows]}
