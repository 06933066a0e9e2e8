"""The words and the small English grammar of our captions; frequent synonyms come first.

Synonyms are written in one string with "|" between them. Synonyms are drawn by rank (:func:`pick`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeVar

from bias_pipeline.text.articles import with_article

_DOUBLED = frozenset(
    (
        *("sit", "run", "hit", "jog", "chat", "stir", "grab", "pet", "shop", "get", "put", "cut"),
        *("flip", "grip", "sip", "step", "strap", "trim", "chop", "unwrap", "hug", "drop", "rev"),
    )
)
_GERUNDS = {"lie": "lying"}
_PLURALS = {"person": "people", "sheep": "sheep", "calf": "calves", "knife": "knives"}
_PLURALS |= {"mouse": "mice", "scarf": "scarves"}
_ALWAYS_PLURAL = (
    *("skis", "scissors", "shears", "glasses", "spectacles", "shades", "jeans", "shorts"),
    *("boots", "heels", "overalls", "suspenders", "gloves", "mittens", "pajamas", "slippers"),
    *("leggings", "tights", "pearls", "earrings", "headphones", "goggles"),
)
_MASS = frozenset({"broccoli"})


class Verb(NamedTuple):
    """A verb phrase in the three forms that a caption uses."""

    base: str  # "ride", with a plural subject
    third: str  # "rides", with a singular subject
    gerund: str  # "riding"
    rest: str  # what follows the verb, "" or with a leading blank; `{it}` stands for an object

    @classmethod
    def parse(cls, phrase: str) -> Verb:
        """Read a phrase whose first word is a verb in its base form.

        Example:
            >>> Verb.parse("carry {it}")
            Verb(base='carry', third='carries', gerund='carrying', rest=' {it}')
        """
        verb, blank, rest = phrase.partition(" ")
        return cls(verb, third_person(verb), gerund(verb), blank + rest)


def third_person(verb: str) -> str:
    """The form after a singular subject.

    Example:
        >>> third_person("catch"), third_person("carry"), third_person("play")
        ('catches', 'carries', 'plays')
    """
    return {"have": "has"}.get(verb) or _with_s(verb)


def gerund(verb: str) -> str:
    """The form that ends in "ing".

    Example:
        >>> gerund("ride"), gerund("sit"), gerund("lie"), gerund("look")
        ('riding', 'sitting', 'lying', 'looking')
    """
    if verb in _GERUNDS:
        return _GERUNDS[verb]
    if verb.endswith("e"):
        return verb[:-1] + "ing"
    return verb + (verb[-1] if verb in _DOUBLED else "") + "ing"


def plural(noun: str) -> str:
    """The plural of a noun; if it has several words, the last word changes.

    Example:
        >>> plural("knife"), plural("bus"), plural("wine glass"), plural("tennis player")
        ('knives', 'buses', 'wine glasses', 'tennis players')
    """
    *before, last = noun.split(" ")
    if last not in _ALWAYS_PLURAL and last not in _MASS:
        last = _PLURALS.get(last) or _with_s(last)
    return " ".join([*before, last])


def is_plural(noun: str) -> bool:
    """Whether a noun has no singular ("skis") or no article ("broccoli").

    Example:
        >>> is_plural("denim jeans"), is_plural("shirt")
        (True, False)
    """
    return noun.endswith(_ALWAYS_PLURAL) or noun in _MASS


def noun_phrase(noun: str, adjective: str = "") -> str:
    """One thing, or one pair of things, named for the first time.

    Example:
        >>> noun_phrase("umbrella", "red"), noun_phrase("skis", "long"), noun_phrase("apple")
        ('a red umbrella', 'long skis', 'an apple')
    """
    words = f"{adjective} {noun}" if adjective else noun
    return words if is_plural(noun) else with_article(words)


def _with_s(word: str) -> str:
    if word.endswith(("s", "sh", "ch", "x", "z")) or word in {"do", "go"}:
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


_Option = TypeVar("_Option")


def options(line: str) -> tuple[str, ...]:
    """Split a line of synonyms.

    Example:
        >>> options("hat|sun hat")
        ('hat', 'sun hat')
    """
    return tuple(line.split("|"))


class Pair(NamedTuple):
    """Two words that differ only in gender, each in singular and plural."""

    male: tuple[str, str]
    female: tuple[str, str]


# Each word is one token and begins with a consonant, so that neither the number of words nor "a" or
# "an" reveals the group after masking. The same is true of POSSESSIVES and GENDER_ADJECTIVES.
ADULTS = (
    *[Pair(("man", "men"), ("woman", "women"))] * 3,  # by far the most frequent
    Pair(("guy", "guys"), ("lady", "ladies")),
    Pair(("gentleman", "gentlemen"), ("lady", "ladies")),
    Pair(("male", "males"), ("female", "females")),
)
CHILDREN = (Pair(("boy", "boys"), ("girl", "girls")),)
POSSESSIVES = {"Male": "his", "Female": "her"}
GENDER_ADJECTIVES = {"Male": "male", "Female": "female"}

NEUTRAL_ADULTS = (("person", "people"), ("individual", "individuals"), ("figure", "figures"))
NEUTRAL_CHILDREN = (("child", "children"), ("kid", "kids"), ("teenager", "teenagers"))
SOMEONE = "someone"

# Adjectives that name a group, used about equally often for every group of an attribute.
GROUP_ADJECTIVES: Mapping[str, tuple[str, ...]] = {
    "young": ("young", "teenage", "younger"),
    "old": ("old", "elderly", "older", "senior"),
    "Light": ("white", "caucasian"),
    "Dark": ("black", "african"),
    "happiness": ("smiling", "happy", "cheerful", "laughing"),
    "sadness": ("sad", "crying", "gloomy", "unhappy"),
    "anger": ("angry", "mad", "furious", "annoyed"),
    "fear": ("scared", "frightened", "fearful", "terrified"),
    "surprise": ("surprised", "shocked", "amazed", "astonished"),
}

# All words that reveal a group; the attribute's word list must contain them.
REVEALING: Mapping[str, frozenset[str]] = {
    "Male": frozenset(options("man|men|guy|guys|gentleman|gentlemen|male|males|boy|boys|his")),
    "Female": frozenset(options("woman|women|lady|ladies|female|females|girl|girls|her")),
    "young": frozenset(
        options(
            "young|younger|teenage|boy|boys|girl|girls|child|children|kid|kids|teenager|teenagers"
        )
    ),
    **{group: frozenset(GROUP_ADJECTIVES[group]) for group in GROUP_ADJECTIVES if group != "young"},
}

TWO = ("two", "a couple of", "a pair of")
MANY = ("three", "several", "a group of", "some", "a bunch of", "a crowd of")

COLOURS = options("red|blue|black|white|green|yellow|brown|pink|purple|dark|bright")
LOOKS: Mapping[str, tuple[str, ...]] = {  # by supercategory, where colours would be odd
    "animal": options("brown|black|white|gray|spotted|fluffy|gentle"),
    "food": options("fresh|tasty|homemade|delicious|ripe|sweet"),
}
SIZES = options("large|big|small|long|new|shiny|tiny")

NEAR = ("near", "by", "beside", "next to", "behind", "close to", "in front of", "not far from")
AROUND = ("", "", "nearby", "around", "in view", "close by")
CARRYING = ("with", "carrying", "holding")
WEARING = ("in", "wearing", "dressed in")
ADORNED = ("wearing", "with")
ADORNMENTS = (
    *("glasses", "spectacles", "shades", "goggles", "necklace", "pearls", "earrings"),
    *("headphones", "headset", "gloves", "mittens", "headband", "helmet"),
)
WORN = frozenset({"tie", "backpack"})  # carried things that people wear

# Frames hold a subject {s}, a form of "be" {be} and a verb phrase; {ving} "riding", {v} "rides".
SHORT_FRAMES = ("{s} {ving}", "{s} {be} {ving}", "{s} {v}")
LONG_FRAMES = (
    "there {exist} {s} {ving}",
    "a photo of {s} {ving}",
    "a picture of {s} {ving}",
    "a view of {s} {ving}",
    "the image shows {s} {ving}",
    "a close up of {s} {ving}",
    "here we see {s} {ving}",
    "this is a shot of {s} {ving}",
)

COMPANIONS = (
    "while others watch",
    "with some friends",
    "as a crowd looks on",
    "with a companion",
    "in front of an audience",
    "surrounded by onlookers",
    "together with relatives",
    "without anyone around",
)


def pick(choices: Sequence[_Option], u: float) -> _Option:
    """The choice for a number in [0, 1).

    The r-th choice has a frequency proportional to 1 / r. A smaller ``u`` gives a more frequent
    choice. So a scaled ``u`` leaves rare choices unused.

    Example:
        >>> pick(["man", "guy"], 0.6), pick(["man", "guy"], 0.7)
        ('man', 'guy')
    """
    return choices[bisect_right(_shares(len(choices)), u)]


@lru_cache(maxsize=64)
def _shares(n: int) -> tuple[float, ...]:
    """Upper bounds of the first n - 1 of n shares of [0, 1)."""
    weights = [1 / rank for rank in range(1, n + 1)]
    total = sum(weights)
    return tuple(bound / total for bound in accumulate(weights))[:-1]
