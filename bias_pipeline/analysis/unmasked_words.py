"""Which revealing words masking leaves in.

Masking removes only the words of a list. Captions also contain words that name the group and that
a published list misses ("mom", "bride"). This counts them; ``experiment=survivors`` scores an
attacker that sees nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus, Grouping
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.text.tokenize import Tokenize


@dataclass(frozen=True)
class UnmaskedWord:
    """A revealing word that is left after masking.

    Attributes:
        side: whose captions contain it.
        word: the word.
        names: the group it names, empty if it names none.
        captions: how many captions contain it.
        shares: group name to the share of those captions whose image is of that group.
    """

    side: str
    word: str
    names: str
    captions: int
    shares: dict[str, float]


def unmasked_words(
    corpus: Corpus, attribute: Attribute, masking: Callable[[Corpus], Corpus]
) -> list[UnmaskedWord]:
    """Words of our own list of the attribute that ``masking`` leaves, most frequent first.

    Args:
        corpus: raw captions.
        attribute: its words are counted.
        masking: the transform to check.
    """
    masked = masking(Tokenize()(corpus))
    grouping = corpus.groupings[attribute.name]
    remaining = [
        _survivor(side, word, masked.side(side), grouping, attribute)
        for side in SIDES
        for word in attribute.all_words
        if word in masked.side(side).types
    ]
    return sorted((s for s in remaining if s.captions), key=lambda s: (-s.captions, s.word))


def _survivor(
    side: str, word: str, captions: Captions, grouping: Grouping, attribute: Attribute
) -> UnmaskedWord:
    holds = captions.mentions([word])
    groups = grouping.codes[captions.image_rows[holds]]
    groups = groups[groups >= 0]
    counts = np.bincount(groups, minlength=len(grouping.names)) / max(len(groups), 1)
    named = [group for group, words in attribute.words.items() if word in words]
    return UnmaskedWord(
        side=side,
        word=word,
        names=named[0] if named else "",
        captions=len(groups),
        shares=dict(zip(grouping.names, counts.tolist(), strict=True)),
    )


def print_unmasked_words(
    corpus: Corpus,
    attribute: Attribute,
    masking: Callable[[Corpus], Corpus],
    *,
    most: int = 40,
) -> None:
    """Print the table of :func:`unmasked_words`."""
    names = corpus.groupings[attribute.name].names
    remaining: Sequence[UnmaskedWord] = unmasked_words(corpus, attribute, masking)
    lines = [
        [s.side, s.word, s.names, str(s.captions), *(f"{100 * s.shares[g]:.0f} %" for g in names)]
        for s in remaining[:most]
    ]
    print_out(f"Words of {attribute.name} that masking leaves in")
    print_table(["side", "word", "names", "captions", *names], lines, keys=3)
    print_out(f"{len(remaining)} words survive; {max(len(remaining) - most, 0)} are not shown")
