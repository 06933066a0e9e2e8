"""Captions that name a group behind a hedge: "appears to be a man", "likely a woman"."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.text.mentions import listed_words
from bias_pipeline.text.phrases import phrase_pattern

_REACH = 4  # words from a hedge to the group's word: "appears to be a young black man"


def hedged(captions: Captions, attribute: Attribute) -> BoolArray:
    """(N,) captions that name a group behind a hedge: "appears to be a young man".

    At most three words stand between the hedge and the group's word.

    Args:
        captions: raw captions.
        attribute: whose groups' words count.

    Example:
        >>> words = {"male": ["man"], "female": ["woman"]}
        >>> gender = Attribute("gender", ("male", "female"), words, {})
        >>> texts = ["what appears to be a tall man", "a man with what looks like a hat"]
        >>> hedged(Captions.from_texts(texts), gender).tolist()
        [True, False]
    """
    flags = np.zeros(len(captions), bool)
    for naming in attribute.namings():
        listed = listed_words(captions, naming)
        words = listed.captions
        names = dict(zip(listed.places.tolist(), listed.names.tolist(), strict=True))
        for row in np.flatnonzero(_hedging(words)).tolist():
            start, end = int(words.starts[row]), int(words.starts[row + 1])
            near = _near_hedges([words.types[t] for t in words.tokens[start:end]])
            flags[row] |= any(names.get(start + place, False) for place in near)
    return flags


def _hedging(words: Captions) -> BoolArray:
    """(N,) captions with a word of a hedge, so that few have to be read as text."""
    pattern = phrase_pattern("hedge")
    single = re.compile(r"appear\w*|seem\w*|look\w*|might|may|could")
    return words.mentions(w for w in words.types if single.fullmatch(w) or pattern.fullmatch(w))


def _near_hedges(words: Sequence[str]) -> set[int]:
    """The places of the words that closely follow a hedge."""
    text = " ".join(words)
    ends = [match.end() for match in re.finditer(rf"\b(?:{phrase_pattern('hedge').pattern})", text)]
    after = [text.count(" ", 0, end) + 1 for end in ends]
    return {place for first in after for place in range(first, first + _REACH)}
