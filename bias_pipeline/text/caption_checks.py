"""Texts that are no captions (a model's refusal, a service's error), or in another language."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.attribute import Attribute, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.text.mentions import attribute_mentions, lowered_words

# Beginnings of such texts; people's captions do not begin like that. Ours.
_DECLINES = re.compile(
    r"""^\W*(
    (i['’]?\ ?a?m\ (very\ |so\ )?sorry|sorry|my\ apologies|i\ apologi[sz]e)\b
    | (unfortunately,?\ )?i\ (can['’]?t|cannot|can\ not|am\ unable|am\ not\ able|won['’]?t)\b
    | i['’]m\ (unable|not\ able)\b
    | as\ an?\ (ai|language\ model|artificial)\b
    | (no\ caption|content\ (policy|filter)|request\ (timed\ out|failed)|rate\ limit)\b
    | (http\ )?error\b(?=\W*(\d{3}|:|$))
    | (traceback\b|exception:|internal\ server\ error|too\ many\ requests)
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def declines(texts: Iterable[str]) -> BoolArray:
    """Which texts are refusals or errors instead of captions.

    Args:
        texts: N captions.

    Returns:
        (N,) flags.

    Example:
        >>> declines(["I'm sorry, but I can't say.", "ERROR: 429", "a sorry dog"]).tolist()
        [True, True, False]
    """
    return np.fromiter((_DECLINES.match(text) is not None for text in texts), bool)


def declines_note(corpus: Corpus, attribute: str) -> str:
    """A note on how many of the captioner's texts are no captions, by group; empty if all are.

    Args:
        corpus: raw captions.
        attribute: whose groups.
    """
    flags = corpus.read(_model_declines)
    if not flags.any():
        return ""
    grouping = corpus.groupings[attribute]
    codes = grouping.codes[corpus.model.image_rows]
    shares = ", ".join(
        f"{int(flags[codes == k].sum())} of {int((codes == k).sum())} ({name})"
        for k, name in enumerate(grouping.names)
    )
    return (
        f"{int(flags.sum())} of {len(flags)} captions decline to describe or are errors of a "
        f"service: {shares}; they are scored as captions, so replace them by empty ones or "
        "caption these images again"
    )


def _model_declines(corpus: Corpus) -> BoolArray:
    captions = corpus.model
    return declines(captions.text(row) for row in range(len(captions)))


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
