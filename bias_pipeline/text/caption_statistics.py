"""How captions are written: language, length, vocabulary, neutral rate.

They move scores even without bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import Attribute, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.text.mentions import attribute_mentions, lowered_words, neutral_rate


@dataclass(frozen=True)
class CaptionStatistics:
    """Length, vocabulary and neutral rate of one side; NaN without captions."""

    words: float  # mean number of words a caption
    # Perplexity of single words: as many equally frequent words would be as hard to predict; far
    # more stable than a count of distinct words
    vocabulary: float
    neutral: float  # share of its captions that name no group of the attribute


def speeches(corpus: Corpus, attribute: Attribute) -> dict[str, CaptionStatistics]:
    """The three numbers of both sides, by side.

    People's words are those of the first caption of each image, so that both sides have as many
    captions; a vocabulary grows with their number.
    """
    by_side = {}
    for side, (words, vocabulary) in corpus.read(_measured).items():
        by_side[side] = CaptionStatistics(
            words, vocabulary, neutral_rate(corpus.side(side), attribute)
        )
    return by_side


def captioned(corpus: Corpus, images: BoolArray) -> float:
    """Share of the given images that have a model caption, in [0, 1]; NaN without images.

    Args:
        corpus: with the captions.
        images: (N,) flags.
    """
    described = np.zeros(len(corpus), bool)
    described[corpus.model.image_rows] = True
    return float(described[images].mean()) if images.any() else float("nan")


def _measured(corpus: Corpus) -> dict[str, tuple[float, float]]:
    """Mean words and vocabulary by side, computed once per corpus."""
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


FOREIGN = 0.2  # warn from this share of captions without an English word on
FOREIGN_WORDS = "hold no English word"  # in every such note
_SHORT, _LONG = 3, 5  # words from which a caption is short instead of too short, and long
_LISTED = 0.05  # share of listed words in short English captions, at least
_NAMED = 0.1  # at least this share of a group's captions name it if the list is in their language

# Words of English captions that are not words of other languages in Latin letters.
_ENGLISH = frozenset(
    words_of(
        "the, and, with, are, his, her, their, its, this, that, there, two, three, some, several, "
        "many, other, they, people, person, someone, woman, women, boy, girl, child, children, "
        "young, old, front, next, near, back, while, from, out, up, down, through, behind, "
        "around, between, inside, outside, across, against, along, holding, sitting, standing, "
        "riding, walking, playing, wearing, looking, eating, talking, using, smiling, laying, "
        "lying, driving, flying, posing, watching, parked, filled, covered, sits, stands, rides, "
        "holds, plays, wears, walks, looks, street, grass, snow, beach, horse, cat, dog, bird, "
        "truck, car, kitchen, bathroom, bedroom, building, field, road, small, big, white, black, "
        "blue, green, brown, yellow, picture"
    )
)
# Words of English captions that other languages have too, but not so many in a caption.
_SHARED = frozenset(words_of("a, an, at, by, in, is, man, men, of, on, photo, to"))


def foreign_share(captions: Captions) -> float:
    """Share of captions that are in another language than English, in [0, 1]; NaN without captions.

    A long one is, if it contains none of the usual English words, and words that several languages
    share are not most of it. Few words often contain none: short captions count only if hardly any
    word of all of them is English, one or two words never.

    Example:
        >>> foreign_share(Captions.from_texts(["a man with a dog", "ein Mann mit Hund"]))
        0.5
        >>> foreign_share(Captions.from_texts(["a man on a bench", "een man op een bank"]))
        0.5
        >>> foreign_share(Captions.from_texts(["cat", "bowl of soup", "two old dogs"]))
        0.0
    """
    if not len(captions):
        return float("nan")
    words = lowered_words(captions)
    listed, shared = (_occurrences(words, usual) for usual in (_ENGLISH, _SHARED))
    lengths = words.lengths
    counts = lengths >= _LONG
    short = (lengths >= _SHORT) & ~counts
    if listed[short].sum() < _LISTED * lengths[short].sum():
        counts |= short
    return float((counts & (listed == 0) & (2 * shared <= lengths)).mean())


def _occurrences(captions: Captions, usual: frozenset[str]) -> IntArray:
    """(C,) how many words of each caption are among some words."""
    known = np.array([word in usual for word in captions.types], bool)
    return np.diff(np.concatenate([[0], np.cumsum(known[captions.tokens])])[captions.starts])


def language_notes(corpus: Corpus, attribute: Attribute) -> list[str]:
    """A warning for each side whose captions are in another language than the attribute's words.

    Given if many captions contain no English word and few name a group.
    """
    notes = []
    for side in SIDES:
        captions = corpus.side(side)
        foreign = foreign_share(captions)
        if foreign > FOREIGN and not _names_groups(captions, corpus, attribute):
            who = "the captioner's" if side == "model" else "people's"
            notes.append(
                f"warning: {foreign:.0%} of {who} captions {FOREIGN_WORDS}: the words of "
                f"{attribute.name} do not fit their language, and such captions seem to name "
                "nobody; translate them, or write an attribute with words of their language "
                "(CONTRIBUTING.md)"
            )
    return notes


def _names_groups(captions: Captions, corpus: Corpus, attribute: Attribute) -> bool:
    """Whether some captions of each group's images name that group."""
    grouping = corpus.groupings[attribute.name]
    names = attribute_mentions(captions, attribute, grouping.names).toarray() > 0
    codes = grouping.codes[captions.image_rows]
    shares = [names[codes == k, k].mean() for k in range(len(grouping.names)) if (codes == k).any()]
    return bool(shares) and min(shares) >= _NAMED
