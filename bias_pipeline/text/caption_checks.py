"""Captions in another language than the word lists."""

from __future__ import annotations

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.text.mentions import attribute_mentions, lowered_words

FOREIGN = 0.2  # warn from this share of captions without an English word on
FOREIGN_WORDS = "hold no English word"  # in every such note
_NAMED = 0.1  # at least this share of a group's captions name it if the list is in their language

# Words of English captions that are not words of other languages in Latin letters, as "a", "in",
# "man", "on", "is" and "of" are.
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


def english(captions: Captions) -> float:
    """Share of captions that contain an English word, in [0, 1]; NaN without captions.

    Example:
        >>> english(Captions.from_texts(["a man with a dog", "ein Mann mit Hund"]))
        0.5
    """
    if not len(captions):
        return float("nan")
    words = lowered_words(captions)
    known = np.array([word in _ENGLISH for word in words.types], bool)
    totals = np.concatenate([[0], np.cumsum(known[words.tokens])])[words.starts]
    return float((np.diff(totals) > 0).mean())


def language_notes(corpus: Corpus, attribute: Attribute) -> list[str]:
    """A warning for each side whose captions are in another language than the attribute's words.

    Given where few captions contain English words and few name a group.
    """
    notes = []
    for side in SIDES:
        captions = corpus.side(side)
        foreign = 1 - english(captions)
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
