"""Whether captions are in the language of the word lists."""

from __future__ import annotations

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.text.mentions import attribute_mentions, lowered_words

FOREIGN = 0.2  # the share of captions without English word from which it is told
_NAMED = 0.1  # the share of a group's captions that name it where the list is in their language

# Words of English captions that are none in the languages that share its letters; "a", "in", "man",
# "on", "is" and "of" are words in others too.
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
    """Share of captions that hold an English word, in [0, 1]; NaN without captions.

    Example:
        >>> english(Captions.from_texts(["a man with a dog", "ein Mann mit Hund"]))
        0.5
    """
    if not len(captions):
        return float("nan")
    words = lowered_words(captions)
    known = np.array([word in _ENGLISH for word in words.types], bool)
    seen = np.concatenate([[0], np.cumsum(known[words.tokens])])[words.starts]
    return float((np.diff(seen) > 0).mean())


def language_notes(corpus: Corpus, attribute: Attribute) -> list[str]:
    """A warning for each side whose captions the attribute's words do not seem to fit.

    That is so where captions hold no English and the groups are hardly named either: a list in
    another language may fit them.
    """
    found = []
    for side in SIDES:
        captions = corpus.side(side)
        foreign = 1 - english(captions)
        if foreign > FOREIGN and not _names_groups(captions, corpus, attribute):
            who = "the captioner's" if side == "model" else "people's"
            found.append(
                f"warning: {foreign:.0%} of {who} captions hold no English word: the words of "
                f"{attribute.name} do not fit their language, and such captions seem to name nobody"
            )
    return found


def _names_groups(captions: Captions, corpus: Corpus, attribute: Attribute) -> bool:
    """Whether captions of each group's images name that group now and then."""
    grouping = corpus.groupings[attribute.name]
    names = attribute_mentions(captions, attribute, grouping.names).toarray() > 0
    own = grouping.codes[captions.image_rows]
    shares = [names[own == k, k].mean() for k in range(len(grouping.names)) if (own == k).any()]
    return bool(shares) and min(shares) >= _NAMED
