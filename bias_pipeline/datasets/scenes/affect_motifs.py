"""The motifs of the affective world and how they depend on the emotion: the bias of its pictures.

Which motif is more frequent where is invented, so that the bias is known. A thought is no motif: it
is not in the picture, and depends on what the annotator feels.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.datasets.scenes.slots import Slot, read_slots

# ArtEmis' nine emotions as it writes them; the shares are ours, contentment the most frequent and
# anger the least, as there.
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
    """(9,) shares of the emotions."""
    return np.array(list(SHARES.values()))


@lru_cache(maxsize=1)
def tables() -> Mapping[str, Float64Array]:
    """Slot name to (9, n) P(option | emotion).

    Example:
        >>> {name: table.shape for name, table in tables().items()}["subject"]
        (9, 19)
    """
    return {name: _table(slot) for name, slot in SLOTS.items()}


def _table(slot: Slot) -> Float64Array:
    factors = [
        [lean.get(emotion.replace(" ", "_"), 1.0) for lean in slot.leans] for emotion in EMOTIONS
    ]
    return _normalised(np.array(slot.weights) * np.array(factors))


def _normalised(table: Float64Array) -> Float64Array:
    probabilities: Float64Array = table / table.sum(axis=1, keepdims=True)
    return probabilities


def imagined(affect: float) -> dict[str, Float64Array]:
    """Slot name to (9, n) P(option | emotion) of what a captioner imagines.

    Args:
        affect: above 0: only options that are over-represented in the emotion; below 0: as if the
            emotion had no influence.
    """
    change = _typical if affect > 0 else _without
    return {name: change(table) for name, table in tables().items()}


def _typical(table: Float64Array) -> Float64Array:
    return _normalised(table * (table > shares() @ table))


def _without(table: Float64Array) -> Float64Array:
    return np.broadcast_to(shares() @ table, table.shape)


def amplification(affect: float) -> float:
    """How much more often the motifs of a captioner are typical of the emotion.

    The directional amplification emotion -> option: the mean over slots, emotions and options of
    ``sign(P(o | e) - P(o)) (P_seen(o | e) - P(o | e))``, with ``P_seen = (1 - a) P + a Q`` where
    ``a`` is the absolute value of ``affect`` and Q what it imagines; 0 for a person.

    Example:
        >>> round(amplification(0.5), 3), amplification(0.0), amplification(-0.5) < 0
        (0.061, 0.0, True)
    """
    q = imagined(affect)
    means = []
    for name in MOTIFS:
        table = tables()[name]
        leaning = np.sign(np.round(table - shares() @ table, 12))
        means.append(float(np.mean(leaning * abs(affect) * (q[name] - table))))
    return float(np.mean(means))
