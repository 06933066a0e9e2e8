"""The words of our captions, our own throughout, the most frequent synonym first.

Synonyms are written in one string with "|" between them and drawn by rank, see :func:`pick`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeVar

_Option = TypeVar("_Option")


def options(line: str) -> tuple[str, ...]:
    """Split a line of synonyms.

    Example:
        >>> options("hat|sun hat")
        ('hat', 'sun hat')
    """
    return tuple(line.split("|"))


class Pair(NamedTuple):
    """Two words that differ only in gender, in singular and plural."""

    male: tuple[str, str]
    female: tuple[str, str]


# One token each, all beginning with a consonant: once masked, neither the number of words nor "a"
# or "an" reveals the group. The same is true of POSSESSIVES and GENDER_ADJECTIVES.
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

# Every word that reveals a group, as an attribute's word list must contain it.
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
WORN = frozenset({"tie", "backpack"})  # carried things that one wears

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
    """The choice for a number; the r-th choice has a frequency proportional to 1 / r.

    A smaller ``u`` gives a more frequent choice, and scaling ``u`` down leaves the rarer ones
    unused.

    Args:
        choices: at least one.
        u: in [0, 1).

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
