"""The affective world: pictures that make people feel something, with utterances about them.

Pictures have an emotion. Annotators mostly feel this emotion. Annotators say so and give motifs as
the reason. The bias of the pictures is that motifs depend on the emotion. We invented this
dependence, so that the bias is known. A thought is not in the picture; it depends on what the
annotator feels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.corpus.pictures import Drawn, Pixels
from bias_pipeline.errors import join_words
from bias_pipeline.scenes.lexicon import options, pick
from bias_pipeline.scenes.pixels import Colour, Icon, Kind, Shape, icon, role_map
from bias_pipeline.scenes.slots import Slot, check_dials, draw, normalise, read_slots
from bias_pipeline.scenes.world import HUMANS, Stream, rows_of

# ArtEmis' nine emotions in its spelling. The shares are ours: as in ArtEmis, contentment is the
# most frequent emotion and anger the least frequent.
SHARES: Mapping[str, float] = {
    "amusement": 0.11,
    "awe": 0.15,
    "contentment": 0.23,
    "excitement": 0.1,
    "anger": 0.05,
    "disgust": 0.07,
    "fear": 0.11,
    "sadness": 0.11,
    "something else": 0.07,
}
EMOTIONS = tuple(SHARES)
THOUGHT = "thought"

_TABLE = """
colour
  3 blue @ contentment 1.8 sadness 1.6
  3 brown @ disgust 2.2 sadness 1.4
  2.5 red @ anger 4.5 excitement 2
  2.5 yellow @ amusement 2.5 excitement 2
  2.5 black @ fear 4 sadness 2.2 anger 1.5
  2.5 green @ contentment 2.2 disgust 1.6
  2.5 gray @ sadness 3.2 something_else 2
  2 white @ awe 2 something_else 1.8
  2 golden @ awe 3.2
  2 pink @ amusement 2.4 excitement 1.6
  2 purple @ awe 1.6 something_else 1.6

light
  3 sunlight|warm light @ contentment 3 excitement 1.4
  2.5 mist|fog @ sadness 2 fear 1.8 awe 1.4
  2.5 shadows|deep shadows @ fear 3.2
  2.5 storm|dark clouds @ fear 2.5 anger 2.5 awe 1.5
  2 moonlight|full moon @ awe 2.2 sadness 1.6
  2 rain|drizzle @ sadness 3
  2 dust|dirt @ disgust 3.5
  2 lamps|bright lamps @ excitement 3 amusement 2
  2 sunset|evening sky @ awe 3 contentment 1.6
  2 empty space|blank wall @ something_else 4

subject
  3 tree|old tree @ contentment 1.6 awe 1.5
  3 sea|waves @ awe 2.2 fear 1.8
  3 mountain|peaks @ awe 3.5
  3 garden|flowers @ contentment 3
  2.5 dog|puppy @ amusement 3 contentment 1.8
  2.5 dancer|dancers @ excitement 4 amusement 1.6
  2.5 horse|horses @ excitement 2.5 awe 1.4
  2 boat|sailing boat @ contentment 2
  2 clown|jester @ amusement 3 fear 2
  2 skull|bones @ disgust 3 fear 3.5
  2 soldier|soldiers @ anger 4 sadness 2
  2 fly|insects @ disgust 5
  2 grave|tomb @ sadness 5 fear 1.8
  2 ruin|broken house @ sadness 3
  2 fire|flames @ fear 3 anger 3 excitement 1.6
  2 fist|fists @ anger 6
  2 meat|carcass @ disgust 6
  2 cube|squares @ something_else 5
  2 grid|stripes @ something_else 4

gesture
  3 still pose|quiet pose
  2.5 raised arms|waving arms @ excitement 3 anger 2
  2.5 bowed head|bent back @ sadness 4
  2.5 closed eyes|folded hands @ contentment 3
  2 open mouth|wide eyes @ fear 3 amusement 1.8
  2 hard stare|clenched teeth @ anger 4.5
  2 turned head|pale skin @ disgust 3.5
  2 crooked hat|big belly @ amusement 4
  2 upward look|lifted chin @ awe 3
  2 hidden face|blank look @ something_else 3

stroke
  3 thick strokes|rough strokes @ anger 2.5 disgust 1.8
  3 soft strokes|fine strokes @ contentment 2.6 awe 1.4
  2.5 swirling lines|curves @ excitement 2.6 fear 1.5
  2.5 sharp edges|sharp lines @ anger 2 fear 2
  2 thin paint|smooth paint @ sadness 1.8
  2 dots|spots @ amusement 2.4
  2 tiny details|many details @ awe 2.6
  2 straight lines|plain shapes @ something_else 3.5

thought
  3 as in an old story
  3 as on any other day
  2 like a long holiday @ contentment 5
  2 like a great church @ awe 6
  2 as in a film for kids @ amusement 6
  2 as if the music began @ excitement 6
  2 as if a fight began @ anger 8
  2 like food gone bad @ disgust 8
  2 as if something came nearer @ fear 6
  2 as if somebody had died @ sadness 6
  2 without any reason @ something_else 6
"""
SLOTS: Mapping[str, Slot] = {slot.name: slot for slot in read_slots(_TABLE)}
MOTIFS = tuple(name for name in SLOTS if name != THOUGHT)


@lru_cache(maxsize=1)
def shares() -> Float64Array:
    return np.array(list(SHARES.values()))


@lru_cache(maxsize=1)
def tables() -> Mapping[str, Float64Array]:
    """(9, n) P(option | emotion) for each slot.

    Example:
        >>> {name: table.shape for name, table in tables().items()}["subject"]
        (9, 19)
    """
    return {name: _table(slot) for name, slot in SLOTS.items()}


def _table(slot: Slot) -> Float64Array:
    factors = [
        [lean.get(emotion.replace(" ", "_"), 1.0) for lean in slot.leans] for emotion in EMOTIONS
    ]
    return normalise(np.array(slot.weights) * np.array(factors))


def imagined_tables(affect: float) -> dict[str, Float64Array]:
    """(9, n) P(option | emotion) of the things that a captioner imagines, for each slot."""
    averages = {name: shares() @ table for name, table in tables().items()}
    if affect > 0:
        return {name: normalise(t * (t > averages[name])) for name, t in tables().items()}
    return {name: np.broadcast_to(averages[name], t.shape) for name, t in tables().items()}


# Probabilities for what a person says; a comment names the dial that multiplies the probability.
AGREES = 0.7  # an annotator feels the picture's emotion; others feel any emotion by its share
FELT = 0.8  # feeling_rate: the utterance names the feeling
NAMED = 0.4  # length: each motif
THOUGHT_SAID = 0.4  # length

_CAPTIONER = HUMANS + 1  # its stream of draws; lower streams belong to pictures and annotators
_FIRST_ID = 1000

# Words for what is felt, the most frequent first: adjectives after "feel", and nouns.
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

    # From -1 to 1, neutral 0: the probability with which each motif, and the thought, is imagined
    # instead of perceived. Imagined options are typical of the picture's emotion or, if the dial is
    # negative, drawn without its influence
    affect: float = 0.0
    # From 0 to 1, neutral 1: the share of each list of synonyms and frames that is used
    vocabulary: float = 1.0
    # 0 or more, neutral 1: multiplies the probability of every motif and of the thought
    length: float = 1.0
    # 0 or more, neutral 1: multiplies the probability that the feeling is said
    feeling_rate: float = 1.0

    def __post_init__(self) -> None:
        check_dials(self, {"affect": (-1.0, 1.0), "vocabulary": (0.0, 1.0)})


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
    emotion: str
    text: str


@dataclass(frozen=True, slots=True)
class AffectImage:
    key: int  # the picture's number in its world; seed and key decide everything about the picture
    seed: int  # of the world
    emotion: str  # the emotion that the picture evokes, one of ArtEmis' nine
    motifs: Mapping[str, int]  # the number of the option of each slot
    utterances: tuple[Utterance, ...]  # utterances of five annotators

    @property
    def id(self) -> int:
        return _FIRST_ID + self.key


@lru_cache(maxsize=4)
def affect_world(n_images: int, seed: int) -> tuple[AffectImage, ...]:
    """Pictures, and the utterances of annotators about them.

    Image k is the same for any number of images.

    Example:
        >>> image = affect_world(3, 1)[2]
        >>> image == affect_world(9, 1)[2], len(image.utterances)
        (True, 5)
    """
    keys = range(n_images)
    emotions, motifs = _emotions_and_motifs(Stream(seed, keys))
    columns = [
        _utterances(Stream(seed, keys, annotator), emotions, motifs, AffectSettings())
        for annotator in range(1, HUMANS + 1)
    ]
    shown = rows_of({name: motifs[name] for name in MOTIFS})
    return tuple(
        AffectImage(key, seed, EMOTIONS[emotion], numbers, tuple(utterances))
        for key, emotion, numbers, *utterances in zip(keys, emotions, shown, *columns, strict=True)
    )


@lru_cache(maxsize=16)
def affect_captions(n_images: int, seed: int, dials: AffectSettings) -> Mapping[int, str]:
    """The captioner's caption of each image id; all captioners draw the same random numbers."""
    keys = range(n_images)
    emotions, motifs = _emotions_and_motifs(Stream(seed, keys))
    captions = _utterances(Stream(seed, keys, _CAPTIONER), emotions, motifs, dials)
    return {_FIRST_ID + key: utterance.text for key, utterance in zip(keys, captions, strict=True)}


def _emotions_and_motifs(images: Stream) -> tuple[IntArray, dict[str, IntArray]]:
    """(N,) emotions, and for each slot the (N,) options of its motifs."""
    u = images.uniforms(["affect emotion"])[:, 0]
    emotions = np.searchsorted(np.cumsum(shares())[:-1], u, side="right")
    u = images.uniforms([f"affect {name}" for name in MOTIFS])
    motifs = {name: draw(tables()[name], [emotions], u[:, i]) for i, name in enumerate(MOTIFS)}
    return emotions, motifs


def _utterances(
    stream: Stream, emotions: IntArray, motifs: Mapping[str, IntArray], dials: AffectSettings
) -> list[Utterance]:
    """The utterance of an annotator or a captioner about each picture."""
    draws = stream.by_image(_PURPOSES, "affect ")
    agrees = np.array([d["agrees"] for d in draws]) < AGREES
    any_emotion = np.searchsorted(
        np.cumsum(shares())[:-1], [d["feels"] for d in draws], side="right"
    )
    felt = np.where(agrees, emotions, any_emotion)
    thoughts = stream.uniforms(["affect own thought"])[:, 0]
    actual = {**motifs, THOUGHT: draw(tables()[THOUGHT], [felt], thoughts)}
    q = imagined_tables(dials.affect)
    u = stream.uniforms([f"affect imagines {name}" for name in SLOTS])
    coins = stream.uniforms([f"affect coin {name}" for name in SLOTS])
    perceived = {
        name: np.where(
            coins[:, i] < abs(dials.affect), draw(q[name], [emotions], u[:, i]), actual[name]
        )
        for i, name in enumerate(SLOTS)
    }
    return [
        Utterance(EMOTIONS[code], _text(row, EMOTIONS[code], d, dials))
        for code, row, d in zip(felt.tolist(), rows_of(perceived), draws, strict=True)
    ]


def _text(
    perceived: Mapping[str, int], emotion: str, draws: Mapping[str, float], dials: AffectSettings
) -> str:
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
        reason=join_words(reasons),
        adjective=word("adjective", options(adjective)),
        noun=word("noun", options(noun)),
    )
    thought = draws["thought said"] < THOUGHT_SAID * dials.length
    return f"{text} {option(THOUGHT)}" if thought else text


_VERSION = 1  # raise it whenever a picture changes

_PALETTE: dict[str, Colour] = {
    "blue": (70, 110, 200),
    "brown": (120, 85, 50),
    "red": (200, 50, 45),
    "yellow": (235, 215, 80),
    "black": (35, 35, 40),
    "green": (80, 150, 80),
    "gray": (130, 130, 135),
    "white": (235, 235, 230),
    "golden": (205, 160, 50),
    "pink": (240, 160, 185),
    "purple": (130, 70, 160),
}
_PATTERNS: tuple[Kind, ...] = ("box", "stripes", "dots", "ellipse", "triangle")
# Left, top, width and height of each motif; the colour is the ground and has none.
_PLACES = {
    "light": (0.0, 0.0, 1.0, 0.25),
    "stroke": (0.0, 0.8, 1.0, 0.2),
    "gesture": (0.04, 0.32, 0.3, 0.42),
    "subject": (0.44, 0.3, 0.46, 0.46),
}
_JITTER = 0.08  # of the subject and the gesture
_ICONS = [name for name, category in CATEGORIES.items() if category.supercategory != "person"]


@dataclass(frozen=True)
class AffectDrawing:
    """A picture of the affective world.

    Example:
        >>> from bias_pipeline.scenes.affect_world import affect_world
        >>> drawn = AffectDrawing(affect_world(1, 0)[0]).draw(64)
        >>> drawn.pixels.shape, drawn.regions
        ((64, 64, 3), ())
    """

    image: AffectImage  # what is drawn

    @property
    def digest(self) -> str:
        shown = sorted(self.image.motifs.items())
        text = f"affect {_VERSION} {self.image.seed} {self.image.key} {shown}"
        return hashlib.sha256(text.encode()).hexdigest()

    def draw(self, side: int) -> Drawn:
        """A square of ``side`` x ``side`` pixels without regions, since it shows nobody."""
        motifs = self.image.motifs
        pixels = np.empty((side, side, 3), np.uint8)
        pixels[:] = _PALETTE[SLOTS["colour"].options[motifs["colour"]]]
        place = Stream(self.image.seed, [self.image.key])
        move = place.uniforms(["affect x", "affect y"])[0]
        for name in MOTIFS[1:]:
            left, top, width, height = _PLACES[name]
            if name in ("subject", "gesture"):
                left, top = left + _JITTER * (move[0] - 0.5), top + _JITTER * (move[1] - 0.5)
            start = round(max(left, 0) * side), round(max(top, 0) * side)
            _put(pixels, _pictogram(name, motifs[name]), start, (width, height))
        return Drawn(pixels, ())


def _put(pixels: Pixels, shown: Icon, start: tuple[int, int], size: tuple[float, float]) -> None:
    """Draw a pictogram; its left upper corner is in pixels, and its size in shares."""
    side = len(pixels)
    width, height = (max(round(length * side), 1) for length in size)
    view = pixels[start[1] : start[1] + height, start[0] : start[0] + width]
    roles = role_map(shown.shapes, *view.shape[:2])
    ink = roles >= 0
    view[ink] = np.array(shown.colours, np.uint8)[roles[ink]]


def _pictogram(slot: str, number: int) -> Icon:
    offset = list(_PLACES).index(slot)
    whole = icon(_ICONS[(offset + 4 * number) % len(_ICONS)])
    if slot in ("subject", "gesture"):
        return whole
    pattern = Shape(_PATTERNS[number % len(_PATTERNS)], 0.5, 0.5, 1.0, 1.0, 1)
    return Icon((Shape("box", 0.5, 0.5, 1.0, 1.0), pattern), whole.colours)
