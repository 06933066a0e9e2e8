"""The little English grammar that the captions need: verb forms, plurals, articles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
_CONSONANT_SOUND = ("uni", "use", "euro", "one")  # "a uniform", though it is written with a vowel


class Verb(NamedTuple):
    """A verb phrase in the three forms a caption uses.

    Attributes:
        base: "ride", with a plural subject.
        third: "rides", with a singular subject.
        gerund: "riding".
        rest: what follows the verb, "" or with a leading blank; ``{it}`` stands for an object.
    """

    base: str
    third: str
    gerund: str
    rest: str

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
    """The plural of a noun; of several words the last one changes.

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


def with_article(words: str) -> str:
    """Put "a" or "an" before words.

    Example:
        >>> with_article("old man"), with_article("uniform"), with_article("red umbrella")
        ('an old man', 'a uniform', 'a red umbrella')
    """
    vowel = words[0] in "aeiou" and not words.startswith(_CONSONANT_SOUND)
    return f"an {words}" if vowel else f"a {words}"


def noun_phrase(noun: str, adjective: str = "") -> str:
    """One thing, or one pair of things, named for the first time.

    Example:
        >>> noun_phrase("umbrella", "red"), noun_phrase("skis", "long"), noun_phrase("apple")
        ('a red umbrella', 'long skis', 'an apple')
    """
    words = f"{adjective} {noun}" if adjective else noun
    return words if is_plural(noun) else with_article(words)


def enumeration(items: Sequence[str]) -> str:
    """A list in words.

    Example:
        >>> enumeration(["a cup"]), enumeration(["a cup", "a fork", "a knife"])
        ('a cup', 'a cup, a fork and a knife')
    """
    *before, last = items
    return f"{', '.join(before)} and {last}" if before else last


def _with_s(word: str) -> str:
    if word.endswith(("s", "sh", "ch", "x", "z")) or word in {"do", "go"}:
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"
