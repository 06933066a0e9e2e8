"""How often objects are in scenes and in captions, by enumeration of what the tables allow."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.scenes.activities import ACTIVITIES, Activity
from bias_pipeline.scenes.grammar import MENTION
from bias_pipeline.scenes.scene import MAX_OTHERS
from bias_pipeline.scenes.slots import (
    SLOTS,
    BiasSettings,
    shares,
    slot_name,
    table_by_group,
    world_tables,
)
from bias_pipeline.scenes.truth import perceived_tables

OBJECTS = tuple(name for name in CATEGORIES if name != "person")


def amplification(dials: BiasSettings, slot: str) -> float:
    """How much more often options typical of a group are perceived with it: 0 where faithful."""
    human, perceived = (
        table_by_group(dials.attribute, tables[slot])
        for tables in (world_tables(), perceived_tables(dials))
    )
    leaning = np.sign(np.round(human - shares(dials.attribute) @ human, 12))
    return float(np.mean(leaning * (perceived - human)))


def named_shares(dials: BiasSettings) -> Float64Array:
    """(K, 79) P(object named in the caption | group)."""
    named = min(1.0, MENTION * dials.mention_rate)
    return named * object_share(dials.attribute, perceived_tables(dials))


def object_share(attribute: str, tables: Mapping[str, Float64Array]) -> Float64Array:
    """(K, 79) P(object in the scene | group)."""
    present = np.stack([1 - _absent(activity, tables) for activity in ACTIVITIES], axis=-2)
    average = np.einsum("...a,...am->...m", tables["activity"], present)
    return table_by_group(attribute, average)


def _absent(activity: Activity, tables: Mapping[str, Float64Array]) -> Float64Array:
    """(2, 2, 2, 5, 79) P(object not in the scene | groups, activity)."""
    absent = np.array([1 - _accompanies(activity, name) for name in OBJECTS])
    for kind in ("carried", "nearby"):
        slot = slot_name(kind, activity.setting)
        options = np.array([[o == name for name in OBJECTS] for o in SLOTS[slot].options])
        absent = absent * (1 - tables[slot] @ options)
    return absent


def _accompanies(activity: Activity, name: str) -> float:
    """P(object belongs to the activity itself)."""
    if name == activity.main:
        return 1.0
    total = 0.0
    for coins in product((False, True), repeat=len(activity.others)):
        present = [other for other, coin in zip(activity.others, coins, strict=True) if coin]
        if name in present[:MAX_OTHERS]:
            pairs = zip(activity.others.values(), coins, strict=True)
            total += float(np.prod([p if coin else 1 - p for p, coin in pairs]))
    return total
