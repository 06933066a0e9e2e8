"""How captions speak: what moves scores although no group is treated unlike another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.text.mentions import lowered_words, neutral_rate


@dataclass(frozen=True)
class Speech:
    """How one side speaks; NaN without captions.

    Attributes:
        words: mean number of words a caption.
        vocabulary: number of equally frequent words that would be as hard to foresee as its own
            are (perplexity of single words); far steadier than a count of distinct words.
        neutral: share of its captions that name no group of the attribute.
    """

    words: float
    vocabulary: float
    neutral: float


def speeches(corpus: Corpus, attribute: Attribute) -> dict[str, Speech]:
    """How both sides speak, by side.

    People's words are those of the first caption of each image, so that both sides have as many
    captions; a vocabulary grows with their number.
    """
    found = {}
    for side, (words, vocabulary) in corpus.read(_measured).items():
        found[side] = Speech(words, vocabulary, neutral_rate(corpus.side(side), attribute))
    return found


def captioned(corpus: Corpus, attribute: Attribute) -> float:
    """Share of the images of a group that have a caption of the model, in [0, 1]."""
    described = np.zeros(len(corpus), bool)
    described[corpus.model.image_rows] = True
    labelled = corpus.groupings[attribute.name].codes >= 0
    return float(described[labelled].mean()) if labelled.any() else float("nan")


def _measured(corpus: Corpus) -> dict[str, tuple[float, float]]:
    """Words and vocabulary by side, once for all metrics of a corpus."""
    first = corpus.human.position(0)
    described = np.isin(first.image_rows, corpus.model.image_rows)
    people = first.take(described) if described.any() and not described.all() else first
    return {"model": _words_of(corpus.model), "human": _words_of(people)}


def _words_of(captions: Captions) -> tuple[float, float]:
    """Words a caption and effective vocabulary.

    Example:
        >>> _words_of(Captions.from_texts(["a dog", "two cats"]))
        (2.0, 4.0)
    """
    words = lowered_words(captions)
    counts = words.counts[words.counts > 0]
    if not counts.sum():
        return float("nan"), float("nan")
    shares = counts / counts.sum()
    entropy = -float((shares * np.log(shares)).sum())
    return float(words.lengths.mean()), round(float(np.exp(entropy)), 6)
