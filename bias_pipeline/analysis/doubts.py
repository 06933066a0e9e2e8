"""Why a number permits no conclusion: which images it rests on, and how the captioner speaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bias_pipeline.corpus.corpus import BLANK_WARNING
from bias_pipeline.metrics.base import Reading
from bias_pipeline.results.store import Result, Row

COVERAGE = 0.5


@dataclass(frozen=True)
class Limits:
    """How much must be there, and how alike speakers must be; ours.

    Attributes:
        coverage: the share of the labelled images that a number must rest on.
        named: the share of captions that must name a group, where a number rests on those.
        captioned: how far the shares of images with a caption may lie apart between captioners.
        blanks: the largest share of blank captions of captioners who are compared.
        neutral: how much more often the fairer one may name no group.
        speech: by what fraction words a caption and vocabularies may differ. Planted captioners
            without bias that differ by more move attackers' scores out of their intervals.
    """

    coverage: float = COVERAGE
    named: float = 0.1
    captioned: float = 0.02
    blanks: float = BLANK_WARNING
    neutral: float = 0.1
    speech: float = 0.05


LIMITS = Limits()


def readings_of(result: Result) -> dict[str, Reading]:
    """Headline to what a conclusion on it may rest on; none in results of earlier versions."""
    found = _mapping(_mapping(result.manifest, "metric"), "readings")
    return {
        name: Reading(str(own["part"]), tuple(own["follows"]), bool(own["named"]))
        for name, own in found.items()
        if isinstance(own, Mapping)
    }


def speech_of(result: Result, side: str = "model") -> Mapping[str, float]:
    """Traits of a side's captions (:class:`~bias_pipeline.text.speech.Speech`); NaN if unknown."""
    stored = _mapping(_mapping(result.manifest, "speech"), side)
    traits = ("words", "vocabulary", "neutral")
    return {trait: _number(stored.get(trait)) for trait in traits}


def unsupported(row: Row, reading: Reading, limits: Limits = LIMITS) -> str:
    """Why a reading alone says nothing, empty if it may."""
    if math.isnan(row.value):
        return "it has no value"
    if row.coverage < limits.coverage:
        return (
            f"it rests on {row.coverage:.0%} of the labelled images, less than "
            f"{limits.coverage:.0%}"
        )
    if math.isnan(row.ci_low):
        return "it has no interval"
    if reading.named and 1 - row.neutral_rate < limits.named:
        return (
            f"{1 - row.neutral_rate:.0%} of the captions name a group, less than {limits.named:.0%}"
        )
    return ""


def unlike_people(result: Result, reading: Reading, limits: Limits = LIMITS) -> str:
    """In what captioner and people speak unlike each other that moves a reading."""
    model, human = (speech_of(result, side) for side in ("model", "human"))
    return _unlike(("it", model), ("people", human), reading.follows, limits)


def unlike(
    first: Result, other: Result, reading: Reading, limits: Limits = LIMITS
) -> Sequence[str]:
    """Why two captioners cannot be compared by a reading; empty if they can."""
    pair = [(result.rows[0].captioner, result) for result in (first, other)]
    one, two = ((name, speech_of(result)) for name, result in pair)
    found = [
        *(_blank(name, result, limits) for name, result in pair),
        _other_images(pair, limits),
        _unlike(one, two, reading.follows, limits),
    ]
    return [text for text in found if text]


def more_silent(fairer: Result, other: Result, limits: Limits = LIMITS) -> str:
    """Whether the fairer of two wins by naming no group, in words; empty if not."""
    silent, told = (speech_of(result)["neutral"] for result in (fairer, other))
    if not silent - told > limits.neutral:
        return ""
    names = [result.rows[0].captioner for result in (fairer, other)]
    return f"{names[0]} names no group in {silent:.0%} of its captions and {names[1]} in {told:.0%}"


def _blank(name: str, result: Result, limits: Limits) -> str:
    shares = _mapping(_mapping(result.manifest, "corpus"), "blank_share")
    share = _number(shares.get("model"))
    return f"{share:.0%} of the captions of {name} are blank" if share > limits.blanks else ""


def _other_images(pair: Sequence[tuple[str, Result]], limits: Limits) -> str:
    (one, first), (two, second) = (
        (name, _number(_mapping(result.manifest, "corpus").get("captioned")))
        for name, result in pair
    )
    if abs(first - second) <= limits.captioned:
        return ""
    return f"{one} has captions of {first:.1%} of the labelled images and {two} of {second:.1%}"


_TOLD = {
    "words": "writes {:.1f} words a caption",
    "vocabulary": "has a vocabulary of {:.0f} words (effective)",
    "neutral": "names no group in {:.0%} of the captions",
}


def _unlike(
    first: tuple[str, Mapping[str, float]],
    other: tuple[str, Mapping[str, float]],
    follows: Sequence[str],
    limits: Limits,
) -> str:
    """The first trait in which two are unlike; unknown ones are."""
    for trait in follows:
        (one, own), (two, others) = ((name, speech[trait]) for name, speech in (first, other))
        apart = abs(own - others) / (1.0 if trait == "neutral" else abs(others))
        if not apart <= (limits.neutral if trait == "neutral" else limits.speech):
            if math.isnan(apart):
                return "it is not known how much is said"
            told = _TOLD[trait]
            return f"{one} {told.format(own)} and {two} {told.format(others).partition(' ')[2]}"
    return ""


def _mapping(held: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = held.get(key, {})
    return found if isinstance(found, Mapping) else {}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
