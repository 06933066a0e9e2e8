"""Which revealing words survive a word list.

A masked word is one a list names. Captions also hold words that name the group and that a
published list forgot ("mom", "bride"). They are counted here; ``experiment=survivors`` scores
an attacker that sees nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus, Grouping
from bias_pipeline.io.grid import print_table
from bias_pipeline.io.terminal import say
from bias_pipeline.text.tokenize import Tokenize


@dataclass(frozen=True)
class Survivor:
    """A revealing word that is left after masking.

    Attributes:
        side: whose captions hold it.
        word: the word.
        names: the group it names, empty if it names none.
        captions: how many captions hold it.
        shares: group name to the share of those captions whose image is of that group.
    """

    side: str
    word: str
    names: str
    captions: int
    shares: dict[str, float]


def survivors(
    corpus: Corpus, attribute: Attribute, masking: Callable[[Corpus], Corpus]
) -> list[Survivor]:
    """Words of our own list of the attribute that ``masking`` leaves, most frequent first.

    Args:
        corpus: raw captions.
        attribute: whose words are looked for.
        masking: the transform in question.
    """
    masked = masking(Tokenize()(corpus))
    grouping = corpus.groupings[attribute.name]
    found = [
        _survivor(side, word, masked.side(side), grouping, attribute)
        for side in SIDES
        for word in attribute.all_words
        if word in masked.side(side).types
    ]
    return sorted((s for s in found if s.captions), key=lambda s: (-s.captions, s.word))


def _survivor(
    side: str, word: str, captions: Captions, grouping: Grouping, attribute: Attribute
) -> Survivor:
    holds = captions.mentions([word])
    groups = grouping.codes[captions.image_rows[holds]]
    groups = groups[groups >= 0]
    counts = np.bincount(groups, minlength=len(grouping.names)) / max(len(groups), 1)
    named = [group for group, words in attribute.words.items() if word in words]
    return Survivor(
        side=side,
        word=word,
        names=named[0] if named else "",
        captions=len(groups),
        shares=dict(zip(grouping.names, counts.tolist(), strict=True)),
    )


def print_survivors(
    corpus: Corpus,
    attribute: Attribute,
    masking: Callable[[Corpus], Corpus],
    *,
    most: int = 40,
) -> None:
    """Print the table of :func:`survivors`."""
    names = corpus.groupings[attribute.name].names
    found: Sequence[Survivor] = survivors(corpus, attribute, masking)
    lines = [
        [s.side, s.word, s.names, str(s.captions), *(f"{100 * s.shares[g]:.0f} %" for g in names)]
        for s in found[:most]
    ]
    say(f"Words of {attribute.name} that the masking leaves")
    print_table(["side", "word", "names", "captions", *names], lines, keys=3)
    say(f"{len(found)} words survive; {max(len(found) - most, 0)} are not shown")
