"""Which words follow those of an attribute: does "black" describe a man, or a dog?

A listed word names a group only in the attribute's context (``applies_to``). This shows how often
that is, and what a plain count of the words would have counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, Naming
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.text.mentions import Listed, listed_words

END = "(end)"


@dataclass(frozen=True)
class Collocations:
    """The words that follow the listed words of one attribute, on one side.

    Attributes:
        side: whose captions; only images that belong to a group.
        attribute: whose words.
        captions: how many captions there are.
        holding: how many contain a listed word, in any context.
        naming: how many name a group.
        following: the words right after a listed one and their counts, most frequent first;
            ``(end)`` is the end of a caption.
    """

    side: str
    attribute: str
    captions: int
    holding: int
    naming: int
    following: tuple[tuple[str, int], ...]


def collocations(corpus: Corpus, attribute: Attribute) -> list[Collocations]:
    """The words that follow listed words, for each side that has captions.

    Args:
        corpus: raw captions.
        attribute: its words are used; for an intersection those of each attribute.
    """
    labelled = corpus.groupings[attribute.name].codes >= 0
    sides = {side: corpus.side(side) for side in SIDES}
    chosen = {
        side: captions.take(labelled[captions.image_rows]) for side, captions in sides.items()
    }
    return [
        _collocations_of(captions, side, naming)
        for naming in attribute.namings()
        for side, captions in chosen.items()
        if len(captions)
    ]


def _collocations_of(captions: Captions, side: str, naming: Naming) -> Collocations:
    listed = listed_words(captions, replace(naming, other_senses=frozenset(), applies_to=None))
    naming_words = listed_words(captions, naming)
    return Collocations(
        side=side,
        attribute=naming.attribute,
        captions=len(captions),
        holding=int(listed.holding(listed.names).sum()),
        naming=int(naming_words.holding(naming_words.names).sum()),
        following=tuple(sorted(_following(listed).items(), key=lambda item: (-item[1], item[0]))),
    )


def _following(listed: Listed) -> Counter[str]:
    """Words right after the listed ones, within the same caption."""
    captions, after = listed.captions, listed.places + 1
    ends = np.isin(after, captions.starts)
    words = [captions.types[token] for token in captions.tokens[after[~ends]]]
    return Counter({END: int(ends.sum())} if ends.any() else {}) + Counter(words)


def print_collocations(corpus: Corpus, attribute: Attribute, *, most: int = 10) -> None:
    """Print :func:`collocations`, with at most ``most`` following words."""
    lines = []
    for result in collocations(corpus, attribute):
        counts = map(str, (result.captions, result.holding, result.naming))
        follow = ", ".join(f"{word} {count}" for word, count in result.following[:most])
        lines.append([result.side, result.attribute, *counts, follow])
    print_out("Words that follow listed words")
    header = ["side", "words of", "captions", "hold a word", "name a group", "what follows most"]
    print_table(header, lines, keys=2, left=len(header))
