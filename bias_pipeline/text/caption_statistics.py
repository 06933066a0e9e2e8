"""Measures the length of captions, their vocabulary, and the share that names no group.

All three numbers change scores, even without bias.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.text.mentions import lowered_words, neutral_rate


@dataclass(frozen=True)
class CaptionStatistics:
    """For one side: caption length, vocabulary, and share without a group. NaN without captions."""

    words: float  # mean number of words a caption
    # Perplexity of single words: how many equally frequent words would be as hard to predict. It is
    # far more stable than a count of distinct words
    vocabulary: float
    neutral: float  # share of its captions that name no group of the attribute


def speeches(corpus: Corpus, attribute: Attribute) -> dict[str, CaptionStatistics]:
    """The statistics of each side's captions.

    The annotators' words come from the first caption of each image. So both sides have the same
    number of captions, which matters because a vocabulary grows with it.
    """
    by_side = {}
    for side, (words, vocabulary) in corpus.read(_measure).items():
        by_side[side] = CaptionStatistics(
            words, vocabulary, neutral_rate(corpus.side(side), attribute)
        )
    return by_side


def captioned_share(corpus: Corpus, images: BoolArray) -> float:
    """Among flagged ``images`` (N,), the share with a model caption; NaN without images."""
    described = np.zeros(len(corpus), bool)
    described[corpus.model.image_rows] = True
    return float(described[images].mean()) if images.any() else float("nan")


def _measure(corpus: Corpus) -> dict[str, tuple[float, float]]:
    """For each side, the mean number of words and the vocabulary; computed once per corpus."""
    first = corpus.human.position(0)
    described = np.isin(first.image_rows, corpus.model.image_rows)
    people = first.take(described) if described.any() and not described.all() else first
    return {"model": _words_of(corpus.model), "human": _words_of(people)}


def _words_of(captions: Captions) -> tuple[float, float]:
    """The number of words per caption, and the effective vocabulary.

    Example:
        >>> _words_of(Captions.from_texts(["a dog", "two cats"]))
        (2.0, 4.0)
    """
    uses: Counter[str] = Counter()
    for block in captions.blocks():
        words = lowered_words(block)
        uses.update(dict(zip(words.types, words.counts.tolist(), strict=True)))
    counts = np.array([n for n in uses.values() if n], np.int64)
    if not counts.sum():
        return float("nan"), float("nan")
    shares = counts / counts.sum()
    entropy = -float((shares * np.log(shares)).sum())
    return float(counts.sum() / len(captions)), round(float(np.exp(entropy)), 6)
