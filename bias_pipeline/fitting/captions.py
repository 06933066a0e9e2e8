"""Captions as numbers of words, beside the pictures that they describe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.captioners.backbones import BackboneInputs
from bias_pipeline.captioners.prompt import PAD, START, UNKNOWN
from bias_pipeline.captioners.writing import END
from bias_pipeline.encoders.base import IntArray

FEWEST = 2  # captions in which a word stands that can be written


def vocabulary_of(captions: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The words that stand in two captions or more, the frequent ones first, ties by the alphabet.

    Example:
        >>> vocabulary_of([["a", "red", "dog"], ["a", "dog"], ["a", "cat", "cat"]])
        ('a', 'dog')
    """
    counts = Counter(word for words in captions for word in set(words))
    ranked = sorted(counts.items(), key=lambda own: (-own[1], own[0]))
    return tuple(word for word, count in ranked if count >= FEWEST)


@dataclass(frozen=True, eq=False)
class CaptionInputs:
    """N captions to learn from.

    Attributes:
        numbers: N captions as numbers of words, neither start nor end among them.
        images: (N,) the picture that each describes.
        visual: what is seen in the pictures.
    """

    numbers: Sequence[Sequence[int]]
    images: IntArray
    visual: BackboneInputs

    @classmethod
    def of(
        cls,
        captions: Sequence[Sequence[str]],
        images: IntArray,
        vocabulary: Mapping[str, int],
        visual: BackboneInputs,
    ) -> CaptionInputs:
        """Captions by their words; those that are in no vocabulary are unknown."""
        numbers = [[vocabulary.get(word, UNKNOWN) for word in words] for words in captions]
        return cls(numbers, images, visual)

    def counts(self, n_words: int) -> IntArray:
        """(W,) how often each of W words is to be written, the sign for the end after each caption.

        Example:
            >>> CaptionInputs([[5, 4, 5]], np.array([0]), None).counts(6)
            array([0, 0, 0, 1, 1, 2])
        """
        written = [END] * len(self.numbers) + [n for own in self.numbers for n in own]
        return np.bincount(written, minlength=n_words)

    @cached_property
    def lengths(self) -> IntArray:
        """(N,) words of each caption."""
        return np.array([len(own) for own in self.numbers], np.int64)

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``tokens`` (B, L), from the start to the end, padded, and what is seen beside them."""
        lines = [[START, *self.numbers[row], END] for row in np.asarray(rows).tolist()]
        tokens = np.full((len(lines), max(map(len, lines))), PAD, np.int64)
        for line, own in zip(tokens, lines, strict=True):
            line[: len(own)] = own
        return {"tokens": tokens, **self.visual.batch(self.images[rows])}
