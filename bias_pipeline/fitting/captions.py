"""Captions as numbers of words, with the pictures that they describe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import IntArray
from bias_pipeline.captioners.backbones import BackboneInputs
from bias_pipeline.captioners.decoding import END
from bias_pipeline.captioners.prompt import PAD, START, UNKNOWN

FEWEST = 2  # a word in the vocabulary is in at least so many captions


def vocabulary_of(captions: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The words of two captions or more, the frequent ones first, ties in alphabetical order.

    Example:
        >>> vocabulary_of([["a", "red", "dog"], ["a", "dog"], ["a", "cat", "cat"]])
        ('a', 'dog')
    """
    counts = Counter(word for words in captions for word in set(words))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(word for word, count in ranked if count >= FEWEST)


@dataclass(frozen=True, eq=False)
class CaptionInputs:
    """N captions to learn from.

    Attributes:
        numbers: N captions as numbers of words, neither start nor end among them.
        images: (N,) the picture that each describes.
        visual: the visual inputs.
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
        """(W,) how often each of W words occurs, with an end token after each caption.

        Example:
            >>> CaptionInputs([[5, 4, 5]], np.array([0]), None).counts(6)
            array([0, 0, 0, 1, 1, 2])
        """
        written = [END] * len(self.numbers) + [n for caption in self.numbers for n in caption]
        return np.bincount(written, minlength=n_words)

    @cached_property
    def lengths(self) -> IntArray:
        """(N,) words of each caption."""
        return np.array([len(caption) for caption in self.numbers], np.int64)

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``tokens`` (B, L), with start and end tokens, padded, and the visual inputs."""
        lines = [[START, *self.numbers[row], END] for row in np.asarray(rows).tolist()]
        tokens = np.full((len(lines), max(map(len, lines))), PAD, np.int64)
        for line, caption in zip(tokens, lines, strict=True):
            line[: len(caption)] = caption
        return {"tokens": tokens, **self.visual.batch(self.images[rows])}
