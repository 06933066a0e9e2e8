"""Words of captions that name a group: those that masking leaves in, and those around them.

Masking removes only the words of a list. Captions also contain words that name the group and that a
published list misses ("mom", "bride"). They are counted here; ``experiment=survivors`` scores an
attacker that sees nothing else.

A listed word names a group only in the attribute's context (``applies_to``): does "black" describe
a man, or a dog? The words that follow show how often that is, and what a plain count of the words
would have counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, Naming
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus, Grouping
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.text.mentions import Listed, listed_words
from bias_pipeline.text.tokenize import Tokenize


@dataclass(frozen=True)
class UnmaskedWord:
    """A revealing word that is left after masking."""

    side: str  # whose captions contain it
    word: str  # the word
    names: str  # the group it names, empty if it names none
    captions: int  # how many captions contain it
    # Group name to the share of those captions whose image is of that group
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


END = "(end)"


@dataclass(frozen=True)
class Collocations:
    """The words that follow the listed words of one attribute, on one side."""

    side: str  # whose captions; only images that belong to a group
    attribute: str  # whose words
    captions: int  # how many captions there are
    holding: int  # how many contain a listed word, in any context
    naming: int  # how many name a group
    # The words right after a listed one and their counts, most frequent first; `(end)` is the end
    # of a caption
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
