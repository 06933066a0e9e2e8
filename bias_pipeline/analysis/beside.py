"""What the words of an attribute stand beside: is "black" said of a man, or of a dog?

A listed word names a group only where the attribute's context is given (``applies_to``). How often
that is, and which words follow, says what a count of the words alone would have counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, Naming
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.io.grid import print_table
from bias_pipeline.io.terminal import say
from bias_pipeline.text.mentions import Listed, listed_words

END = "(end)"


@dataclass(frozen=True)
class Beside:
    """What the listed words of one attribute stand beside, on one side.

    Attributes:
        side: whose captions, of images that belong to a group.
        attribute: whose words.
        captions: how many captions there are.
        holding: how many hold a listed word, whatever stands by it.
        naming: how many name a group.
        following: the words right after a listed one and how often they stand there, the most
            frequent first; ``(end)`` is the end of a caption.
    """

    side: str
    attribute: str
    captions: int
    holding: int
    naming: int
    following: tuple[tuple[str, int], ...]


def beside(corpus: Corpus, attribute: Attribute) -> list[Beside]:
    """What listed words stand beside, for each side that has captions.

    Args:
        corpus: raw captions.
        attribute: whose words; of an intersection those of each attribute.
    """
    labelled = corpus.groupings[attribute.name].codes >= 0
    sides = {side: corpus.side(side) for side in SIDES}
    chosen = {side: own.take(labelled[own.image_rows]) for side, own in sides.items()}
    return [
        _beside(own, side, naming)
        for naming in attribute.namings()
        for side, own in chosen.items()
        if len(own)
    ]


def _beside(captions: Captions, side: str, naming: Naming) -> Beside:
    found = listed_words(captions, replace(naming, other_senses=frozenset(), applies_to=None))
    told = listed_words(captions, naming)
    return Beside(
        side=side,
        attribute=naming.attribute,
        captions=len(captions),
        holding=int(found.holding(found.names).sum()),
        naming=int(told.holding(told.names).sum()),
        following=tuple(sorted(_following(found).items(), key=lambda own: (-own[1], own[0]))),
    )


def _following(found: Listed) -> Counter[str]:
    """Words right after the listed ones; never the first of the next caption."""
    captions, after = found.captions, found.places + 1
    ends = np.isin(after, captions.starts)
    words = [captions.types[token] for token in captions.tokens[after[~ends]]]
    return Counter({END: int(ends.sum())} if ends.any() else {}) + Counter(words)


def print_beside(corpus: Corpus, attribute: Attribute, *, most: int = 10) -> None:
    """Print :func:`beside`, with that many following words."""
    lines = []
    for own in beside(corpus, attribute):
        counts = map(str, (own.captions, own.holding, own.naming))
        follow = ", ".join(f"{word} {count}" for word, count in own.following[:most])
        lines.append([own.side, own.attribute, *counts, follow])
    say("What listed words stand beside")
    header = ["side", "words of", "captions", "hold a word", "name a group", "what follows most"]
    print_table(header, lines, keys=2, left=len(header))
