"""The affective world: pictures that make people feel something, and what they say about it.

Pictures have an emotion; annotators mostly feel it too, say so, and name motifs as the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.datasets.scenes.affect_motifs import (
    EMOTIONS,
    MOTIFS,
    SLOTS,
    THOUGHT,
    imagined,
    shares,
    tables,
)
from bias_pipeline.datasets.scenes.lexicon import enumeration, options, pick
from bias_pipeline.datasets.scenes.slots import draw
from bias_pipeline.datasets.scenes.world import HUMANS, named_draws, rows_of, uniforms
from bias_pipeline.errors import UsageError

# Probabilities of a person's utterance; the comment names the dial that multiplies one.
AGREES = 0.7  # an annotator feels the picture's emotion; the others feel any, by its share
FELT = 0.8  # feeling_rate: the utterance says what is felt
NAMED = 0.4  # length: each motif
THOUGHT_SAID = 0.4  # length

_IMAGE, _CAPTIONER = 0, HUMANS + 1  # streams of draws; those between are the annotators'
_FIRST_ID = 1000

# What is felt, the most frequent word first: an adjective after "feel", and a noun.
FEELINGS: Mapping[str, tuple[str, str]] = {
    "amusement": ("amused|entertained", "amusement|fun"),
    "awe": ("amazed|awed", "awe|wonder"),
    "contentment": ("calm|happy|peaceful", "peace|joy|contentment"),
    "excitement": ("excited|thrilled", "excitement|passion"),
    "anger": ("angry|furious", "anger|rage"),
    "disgust": ("disgusted|repulsed", "disgust|revulsion"),
    "fear": ("scared|afraid|uneasy", "fear|dread"),
    "sadness": ("sad|lonely|gloomy", "sadness|sorrow|grief"),
    "something else": ("confused|curious|bored", "curiosity|confusion"),
}
_FELT_FRAMES = options(
    "I feel {adjective} because of {reason}|{reason} gave me a sense of {noun}"
    "|it made me {adjective} to see {reason}|I feel {noun} when I look at {reason}"
    "|so much {noun} in {reason}|{reason} left me {adjective}"
)
_PLAIN_FRAMES = options(
    "I look at {reason} first|what I see is {reason}|my eyes went to {reason}"
    "|the painter shows {reason}"
)
_PURPOSES = (
    *("agrees", "feels", "felt", "felt frame", "plain frame", "adjective", "noun"),
    *("thought said", *(f"{kind} {slot}" for kind in ("named", "word") for slot in SLOTS)),
)


@dataclass(frozen=True)
class AffectSettings:
    """How a captioner of the affective world differs from a person."""

    # From -1 to 1, neutral 0: with this probability each motif, and the thought, is imagined
    # instead of perceived: as typical of the picture's emotion, or, if negative, as without its
    # influence
    affect: float = 0.0
    # From 0 to 1, neutral 1: the share of each list of synonyms and frames in use
    vocabulary: float = 1.0
    # 0 or more, neutral 1: multiplies the probability of every motif and of the thought
    length: float = 1.0
    # 0 or more, neutral 1: multiplies the probability that the feeling is said
    feeling_rate: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            UsageError: if a dial is out of its range.
        """
        for field in fields(self):
            low = -1.0 if field.name == "affect" else 0.0
            high = 1.0 if field.name in ("affect", "vocabulary") else math.inf
            value = getattr(self, field.name)
            if not (math.isfinite(value) and low <= value <= high):
                raise UsageError(
                    f"scenes: dial {field.name} is {value}; it must be in [{low}, {high}]"
                )


AFFECT_CAPTIONERS: Mapping[str, AffectSettings] = {
    "amplifier": AffectSettings(affect=0.5),
    "faithful": AffectSettings(),
    "dampener": AffectSettings(affect=-0.6),
    "terse": AffectSettings(vocabulary=0.6, length=0.5),
    "talkative": AffectSettings(length=1.7),
    "neutral_speaker": AffectSettings(feeling_rate=0.4),
}
"""Named captioners; the first is the default."""


class Utterance(NamedTuple):
    """What an annotator felt, and said."""

    emotion: str
    text: str


@dataclass(frozen=True, slots=True)
class AffectImage:
    """One picture."""

    key: int  # its number in the world; everything about it follows from seed and key
    seed: int  # of the world
    emotion: str  # which it evokes, one of ArtEmis' nine
    motifs: Mapping[str, int]  # slot to the number of its option
    utterances: tuple[Utterance, ...]  # of five annotators

    @property
    def id(self) -> int:
        """Its public number."""
        return _FIRST_ID + self.key


@lru_cache(maxsize=4)
def affect_world(n_images: int, seed: int) -> tuple[AffectImage, ...]:
    """Pictures with what people say about them; image k is the same however many there are.

    Example:
        >>> image = affect_world(3, 1)[2]
        >>> image == affect_world(9, 1)[2], len(image.utterances)
        (True, 5)
    """
    keys = range(n_images)
    emotions = _emotions(seed, keys)
    motifs = _motifs(seed, keys, emotions)
    columns = [
        _utterances(seed, keys, emotions, motifs, annotator, AffectSettings())
        for annotator in range(1, HUMANS + 1)
    ]
    shown = rows_of({name: motifs[name] for name in MOTIFS})
    return tuple(
        AffectImage(key, seed, EMOTIONS[emotion], numbers, tuple(utterances))
        for key, emotion, numbers, *utterances in zip(keys, emotions, shown, *columns, strict=True)
    )


@lru_cache(maxsize=16)
def affect_captions(n_images: int, seed: int, dials: AffectSettings) -> Mapping[int, str]:
    """Image id to a captioner's caption; all captioners draw the same numbers."""
    keys = range(n_images)
    emotions = _emotions(seed, keys)
    motifs = _motifs(seed, keys, emotions)
    captions = _utterances(seed, keys, emotions, motifs, _CAPTIONER, dials)
    return {_FIRST_ID + key: utterance.text for key, utterance in zip(keys, captions, strict=True)}


def _emotions(seed: int, keys: Sequence[int]) -> IntArray:
    u = uniforms(seed, keys, _IMAGE, ["affect emotion"])[:, 0]
    return np.searchsorted(np.cumsum(shares())[:-1], u, side="right")


def _motifs(seed: int, keys: Sequence[int], emotions: IntArray) -> dict[str, IntArray]:
    u = uniforms(seed, keys, _IMAGE, [f"affect {name}" for name in MOTIFS])
    return {name: draw(tables()[name], [emotions], u[:, i]) for i, name in enumerate(MOTIFS)}


def _utterances(
    seed: int,
    keys: Sequence[int],
    emotions: IntArray,
    motifs: Mapping[str, IntArray],
    stream: int,
    dials: AffectSettings,
) -> list[Utterance]:
    """What one annotator, or captioner, says of each picture."""
    draws = named_draws(uniforms(seed, keys, stream, [f"affect {p}" for p in _PURPOSES]), _PURPOSES)
    agrees = np.array([d["agrees"] for d in draws]) < AGREES
    any_emotion = np.searchsorted(
        np.cumsum(shares())[:-1], [d["feels"] for d in draws], side="right"
    )
    felt = np.where(agrees, emotions, any_emotion)
    thoughts = uniforms(seed, keys, stream, ["affect own thought"])[:, 0]
    actual = {**motifs, THOUGHT: draw(tables()[THOUGHT], [felt], thoughts)}
    perceived = _perceived(seed, keys, emotions, actual, stream, dials.affect)
    return [
        Utterance(EMOTIONS[code], _said(row, EMOTIONS[code], d, dials))
        for code, row, d in zip(felt.tolist(), rows_of(perceived), draws, strict=True)
    ]


def _perceived(
    seed: int,
    keys: Sequence[int],
    emotions: IntArray,
    actual: Mapping[str, IntArray],
    stream: int,
    affect: float,
) -> dict[str, IntArray]:
    """The options that are seen or thought, some of them imagined."""
    q = imagined(affect)
    u = uniforms(seed, keys, stream, [f"affect imagines {name}" for name in SLOTS])
    coins = uniforms(seed, keys, stream, [f"affect coin {name}" for name in SLOTS])
    return {
        name: np.where(coins[:, i] < abs(affect), draw(q[name], [emotions], u[:, i]), actual[name])
        for i, name in enumerate(SLOTS)
    }


def _said(
    perceived: Mapping[str, int], emotion: str, draws: Mapping[str, float], dials: AffectSettings
) -> str:
    """One utterance."""

    def word(purpose: str, synonyms: Sequence[str]) -> str:
        return pick(synonyms, draws[purpose] * dials.vocabulary)

    def option(slot: str) -> str:
        return word(f"word {slot}", options(SLOTS[slot].options[perceived[slot]]))

    named = [name for name in MOTIFS if draws[f"named {name}"] < NAMED * dials.length]
    reasons = [
        f"the {option(name)}{' colors' if name == 'colour' else ''}"
        for name in named or ["subject"]
    ]
    felt = draws["felt"] < FELT * dials.feeling_rate
    frame = word("felt frame", _FELT_FRAMES) if felt else word("plain frame", _PLAIN_FRAMES)
    adjective, noun = FEELINGS[emotion]
    text = frame.format(
        reason=enumeration(reasons),
        adjective=word("adjective", options(adjective)),
        noun=word("noun", options(noun)),
    )
    thought = draws["thought said"] < THOUGHT_SAID * dials.length
    return f"{text} {option(THOUGHT)}" if thought else text
