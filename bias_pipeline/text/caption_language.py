"""Finds out whether captions are in the language of an attribute's word lists.

Captions fit English lists if they are in English. Captions fit lists in another language unless
they are in English, are in another script, or have more common words of a third language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import ENGLISH, Attribute, words_of
from bias_pipeline.corpus.captions import Captions, each_caption
from bias_pipeline.corpus.corpus import SIDES, Corpus, Side
from bias_pipeline.corpus.list_check import NEGLIGIBLE, ListCheck
from bias_pipeline.text.language_words import (
    has_usual_word,
    known_languages,
    script,
    scripts_of,
    usual_words,
)
from bias_pipeline.text.mentions import attribute_mentions, lowered_words

LANGUAGE_WORDS = "the word lists are"  # in every note on captions that do not fit the lists
_WHOSE: Mapping[Side, str] = {"model": "the captioner's", "human": "human"}
MOSTLY = 0.5  # share of a side's captions in the lists' language; with less, nothing is tested
_DOUBTED = 0.8  # with a smaller share there is a warning
_RATE = 0.1  # least share of English words in an English caption
_LONG = 5  # a caption of so many words or more is judged by itself
_RATE_OF_SHORT = 0.05  # least share of English words in all short captions together
_NAMED = 0.1  # at least this share of a group's captions name it if the list is in their language

# Usual words of English captions that are not words of other languages in Latin letters.
_ENGLISH = frozenset(
    words_of(
        "the, and, with, are, his, their, its, this, that, these, there, which, who, while, "
        "from, through, into, onto, out, up, down, off, near, next, front, back, behind, "
        "beside, between, around, across, against, along, above, below, inside, outside, "
        "towards, away, together, other, others, another, each, both, some, several, many, few, "
        "two, three, four, five, they, them, he, she, him, himself, herself, something, "
        "someone, has, been, being, appears, seems, looks, shows, features, captures, depicts, "
        "people, woman, women, boy, boys, girl, girls, lady, guy, child, children, kid, kids, "
        "group, couple, crowd, family, friends, male, female, bride, groom, young, old, little, "
        "small, large, big, tall, long, white, black, blue, green, brown, yellow, red, pink, "
        "purple, dark, bright, wooden, grassy, snowy, sandy, empty, busy, open, covered, "
        "filled, dressed, parked, seated, surrounded, placed, positioned, stuffed, striped, "
        "painted, standing, sitting, holding, riding, walking, wearing, playing, looking, "
        "eating, flying, laying, lying, talking, taking, doing, jumping, running, swinging, "
        "smiling, watching, posing, carrying, cutting, throwing, driving, using, getting, "
        "preparing, working, making, waiting, skiing, surfing, skateboarding, brushing, "
        "hitting, hanging, reading, drinking, sleeping, enjoying, facing, leaning, pulling, "
        "jumps, stands, sits, rides, holds, plays, wears, walks, takes, runs, eats, street, "
        "road, sidewalk, field, grass, snow, beach, ocean, water, sky, tree, trees, ground, "
        "floor, wall, window, door, room, kitchen, bathroom, bedroom, building, buildings, "
        "house, city, bridge, background, fence, hill, bench, chair, chairs, desk, couch, "
        "plate, bowl, bottle, knife, spoon, food, cake, cheese, broccoli, fruit, vegetables, "
        "meal, horse, horses, cat, cats, dog, dogs, bird, birds, cow, cows, sheep, bear, "
        "elephant, truck, car, cars, bicycle, motorcycle, boat, boats, airplane, phone, book, "
        "books, umbrella, backpack, suitcase, luggage, toothbrush, refrigerator, toilet, "
        "mirror, clock, kite, skis, racket, racquet, soccer, game, player, players, shirt, "
        "jacket, helmet, glasses, hair, head, hands, picture, photograph, image, side, top, "
        "middle, view"
    )
)
# Words of English captions that other languages have too, but less often in one caption.
_SHARED = frozenset(
    words_of(
        "a, an, as, at, by, for, her, in, is, it, man, men, of, on, one, or, person, photo, "
        "table, to"
    )
)


def english(captions: Captions) -> BoolArray:
    """(C,) flags: true for captions in English.

    A caption is in English if a tenth of its words are common English words, or if most of its
    words are short words that several languages share. Short captions often have no common word. So
    all captions of fewer than five words are also judged together.

    Example:
        >>> texts = ["a man on a bench", "een man op een bank", "tennis, bowl, umbrella"]
        >>> english(Captions.from_texts(texts)).tolist()
        [True, False, True]
    """
    flags, short, words = captions.read(_find_english)
    return flags | short if words["usual"] >= _RATE_OF_SHORT * words["all"] else flags


@each_caption
def _find_english(captions: Captions) -> tuple[BoolArray, BoolArray, Counter[str]]:
    """Flags (C,) of captions that are English on their own, and of short captions; also words."""
    words = lowered_words(captions)
    usual, shared = (_having(words, listed.__contains__) for listed in (_ENGLISH, _SHARED))
    lengths = words.lengths
    short = lengths < _LONG
    flags = (usual >= _RATE * lengths) & (usual > 0) | (2 * shared > lengths)
    return flags, short, Counter(usual=int(usual[short].sum()), all=int(lengths[short].sum()))


def in_language(captions: Captions, language: str) -> BoolArray:
    """(C,) flags: true for captions that may be in a language. English captions must be English.

    Example:
        >>> texts = ["un homme sur un banc", "ein Mann auf einer Bank", "Mann, Hund, Gras"]
        >>> in_language(Captions.from_texts(texts), "de").tolist()
        [False, True, True]
    """
    flags = english(captions)
    if language == ENGLISH:
        return flags
    return ~(flags | captions.read(_of_others, language)) | (captions.lengths == 0)


@each_caption
def _of_others(captions: Captions, language: str) -> BoolArray:
    """(C,) flags: true for captions in another language than ``language``, which is not English."""
    of_lists = _having(captions, partial(has_usual_word, language=language))
    others = [
        _having(captions, partial(has_usual_word, language=code))
        for code in known_languages(besides=language)
        if usual_words(language)
    ]
    foreign = np.zeros(len(captions), bool)
    for counts in others:
        foreign |= (counts > of_lists) & (counts >= _RATE * captions.lengths)
    if scripts := scripts_of(language):
        unlike = _having(captions, lambda word: script(word) not in {"", *scripts})
        foreign |= 2 * unlike > captions.lengths
    return foreign


def _having(captions: Captions, rule: Callable[[str], bool]) -> IntArray:
    """(C,): the number of words in each caption that satisfy a rule."""
    return captions.totals(np.fromiter(map(rule, captions.types), bool, len(captions.types)))


def language_shares(corpus: Corpus, attribute: Attribute) -> dict[Side, float]:
    """For each side, the share of captions in the language of the attribute's lists.

    The share is NaN without captions. Captions that seem to be in another language still count if
    they name the groups of their images.
    """
    return {side: _share(corpus.side(side), corpus, attribute) for side in SIDES}


def _share(captions: Captions, corpus: Corpus, attribute: Attribute) -> float:
    if not len(captions):
        return float("nan")
    unfit = ~in_language(captions, attribute.language)
    if not unfit.any() or _names_groups(captions, unfit, corpus, attribute):
        return 1.0
    return 1 - float(unfit.mean())


def _names_groups(
    captions: Captions, chosen: BoolArray, corpus: Corpus, attribute: Attribute
) -> bool:
    grouping = corpus.groupings[attribute.name]
    names = attribute_mentions(captions, attribute, grouping.names)[chosen].toarray() > 0
    codes = grouping.codes[captions.image_rows[chosen]]
    shares = [names[codes == k, k].mean() for k in range(len(grouping.names)) if (codes == k).any()]
    return bool(shares) and min(shares) >= _NAMED


def untestable(shares: Mapping[Side, float], language: str) -> str:
    """The reason why numbers that need word lists are not tested; empty if they can be tested.

    Example:
        >>> untestable({"model": 0.02, "human": 1.0}, "en")
        "the word lists are English, and 2% of the captioner's captions are"
    """
    few = _shares_below(MOSTLY, shares)
    return f"{LANGUAGE_WORDS} {list_name(language)}, and {few} are" if few else ""


_CHECK = "data check_lists"
UNCHECKED = f"are unchecked against English; {_CHECK} compares them"
# Question to what is English in its metrics, so that captions in no other language are tested.
ENGLISH_PARTS: Mapping[str, str] = {
    "declining": "phrases that decline",
    "assuming": "words for persons",
    "describing": "concepts of descriptions",
    "tasks": "words for objects and activities",
    "inventing": "words for objects and activities",
    "changing": "concepts of descriptions",
}
_LEFT_OUT = (
    "the attribute's lists are in another language, so English parts are left out: "
    f"{', '.join(dict.fromkeys(ENGLISH_PARTS.values()))}, synonyms, stock sentences and "
    "preambles"
)


def unchecked_reason(attribute: Attribute) -> str:
    """The reason why lists that are not English give no answer.

    The reason is empty if lists may give an answer.

    Masked captions may leak a group through words that nobody listed.

    Example:
        >>> lists = Attribute("x", ("a", "b"), {"a": ["mann"], "b": ["frau"]}, language="de")
        >>> unchecked_reason(lists)
        'are unchecked against English; data check_lists compares them'
    """
    if attribute.language == ENGLISH:
        return ""
    check = attribute.english_check
    if check is None:
        return UNCHECKED
    if check.words != attribute.words_digest:
        return f"changed since their check; run {_CHECK} again"
    if check.outcome == "undecided":
        return f"need more checked images; {_CHECK} had {check.images:,}"
    for verb, one in (("leak", check.leak), ("misname", check.wrong)):
        if one["high"] > NEGLIGIBLE and one["low"] > 0:
            shares = f"{one['lists']:.1%} against {one['english']:.1%}"
            return f"{verb} {shares} with English lists on the same images ({_CHECK})"
    return ""


def notes_on_lists(attribute: Attribute) -> list[str]:
    """Notes on what lists in other languages than English leave out, and why no answer is given."""
    if attribute.language == ENGLISH:
        return []
    reason = unchecked_reason(attribute)
    which = f"{attribute.name} gets no answer: lists {list_name(attribute.language)} {reason}"
    return [_LEFT_OUT, *([which] if reason else [])]


def check_sentence(check: ListCheck) -> str:
    """A sentence on the result of a list check, in per cent."""
    leak, wrong = (
        f"{one['lists']:.1%} (English {one['english']:.1%}, difference "
        f"[{100 * one['low']:.1f}, {100 * one['high']:.1f}])"
        for one in (check.leak, check.wrong)
    )
    return (
        f"an attacker guesses the group from masked captions in {leak}, and of captions that name "
        f"one group {wrong} name a wrong one"
    )


def language_notes(shares: Mapping[Side, float], attribute: Attribute) -> list[str]:
    """A warning if captions seem to be in another language than the lists."""
    remedy = (
        "translate the captions, or write an attribute with words of their language (its YAML with "
        f"language: CODE, such as {'de' if attribute.language == ENGLISH else ENGLISH}; "
        "CONTRIBUTING.md, Words of another language)"
    )
    reason = untestable(shares, attribute.language)
    if reason:
        return [f"warning: {attribute.name} cannot be tested: {reason}; {remedy}"]
    few = _shares_below(_DOUBTED, shares)
    if not few:
        return []
    lists = f"{LANGUAGE_WORDS} {list_name(attribute.language)}"
    return [
        f"warning: {lists}, and only {few} seem to be in it: the other captions seem to name "
        f"no group of {attribute.name}; {remedy}"
    ]


def _shares_below(limit: float, shares: Mapping[Side, float]) -> str:
    """A phrase on the sides whose share is below the limit. No share is rounded up to the limit."""
    return " and ".join(
        f"{min(round(100 * share), round(100 * limit) - 1)}% of {_WHOSE[side]} captions"
        for side, share in shares.items()
        if share < limit
    )


def list_name(language: str) -> str:
    return "English" if language == ENGLISH else f"of language {language!r}"
