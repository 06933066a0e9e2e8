"""The bias planted by the dials: exact probabilities, by enumeration instead of sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.data.generator import Planted
from bias_pipeline.scenes.activities import ACTIVITIES, Activity
from bias_pipeline.scenes.captioners import (
    EVIDENCE,
    group_evidence,
    imagined_tables,
    strongest,
)
from bias_pipeline.scenes.grammar import GENDERED, MENTION
from bias_pipeline.scenes.scene import MAX_OTHERS
from bias_pipeline.scenes.slots import (
    ATTRIBUTES,
    GROUPS,
    SLOTS,
    BiasSettings,
    shares,
    slot_name,
    table_by_group,
    world_tables,
)

_OBJECTS = tuple(name for name in CATEGORIES if name != "person")


@dataclass(frozen=True)
class Truth:
    """The probabilities of a captioner's captions, given the person's group.

    All probabilities are of the generator, over all worlds; a world of n images differs from
    them by chance. Images whose label is "Unsure" follow the same probabilities, except that
    nobody uses words of the attribute for them.
    """

    attribute: str  # that the dials amplify
    world: Mapping[str, Float64Array]  # slot name to (K, n) P(option | group) in the pictures
    # Slot name to (K, n) P(option | group) as the captioner perceives it
    perceived: Mapping[str, Float64Array]
    # (K, 79) P(object in the picture | group), objects in the order of `names`
    objects: Float64Array
    named: Float64Array  # (K, 79) P(object named in the caption | group)
    # (K,) P(the group the captioner assumes is not the person's | group). Its words of the
    # attribute are wrong this often.
    contradicted: Float64Array
    gendered: float  # P(gendered word for the person), for images whose gender is not unsure
    names: tuple[str, ...] = _OBJECTS  # the 79 COCO objects other than "person"

    def amplification(self, slot: str) -> float:
        """How much more often captions contain options typical of the person's group.

        The directional amplification attribute -> task over a slot's options: the mean over
        groups and options of ``sign(P(o | g) - P(o)) (P_seen(o | g) - P(o | g))``, in [-1, 1];
        0 for a faithful captioner.
        """
        human, perceived = self.world[slot], self.perceived[slot]
        leaning = np.sign(np.round(human - shares(self.attribute) @ human, 12))
        return float(np.mean(leaning * (perceived - human)))


def truth(dials: BiasSettings) -> Truth:
    """The truth that a set of dials plants.

    ``a_to_t`` mixes tables: P_seen = (1 - a) P + a Q with ``a`` its absolute value, where Q is P
    confined to the options over-represented in the group (a_to_t > 0) or P without the
    attribute's influence (a_to_t < 0). ``t_to_a`` = t makes the assumed group the one that the
    scene suggests with probability t, so ``contradicted`` is t times the probability that this is
    another group.

    Example:
        >>> faithful, amplifier = truth(BiasSettings()), truth(BiasSettings(a_to_t=0.5))
        >>> faithful.amplification("activity"), amplifier.amplification("activity") > 0
        (0.0, True)
        >>> truth(BiasSettings(t_to_a=0.5)).contradicted.round(2).tolist()
        [0.09, 0.11]
    """
    attribute, tables = dials.attribute, _mix_tables(dials)
    named = min(1.0, MENTION * dials.mention_rate)
    return Truth(
        attribute=attribute,
        world={name: table_by_group(attribute, table) for name, table in world_tables().items()},
        perceived={name: table_by_group(attribute, table) for name, table in tables.items()},
        objects=table_by_group(attribute, _object_table(world_tables())),
        named=named * table_by_group(attribute, _object_table(tables)),
        contradicted=dials.t_to_a * table_by_group(attribute, _misleading_table(attribute, tables)),
        gendered=min(1.0, GENDERED * dials.gender_word_rate),
    )


def _mix_tables(dials: BiasSettings) -> dict[str, Float64Array]:
    share = abs(dials.a_to_t)
    imagined = imagined_tables(dials)
    return {
        name: (1 - share) * table + share * imagined[name] for name, table in world_tables().items()
    }


def _object_table(tables: Mapping[str, Float64Array]) -> Float64Array:
    """(2, 2, 2, 5, 79) P(object in the scene | groups)."""
    present = np.stack([1 - _absent(activity, tables) for activity in ACTIVITIES], axis=-2)
    return _over_activities(present, tables)


def _over_activities(
    given_activity: Float64Array, tables: Mapping[str, Float64Array]
) -> Float64Array:
    """(2, 2, 2, 5, A, M) averaged over the A activities: (2, 2, 2, 5, M)."""
    average: Float64Array = np.einsum("...a,...am->...m", tables["activity"], given_activity)
    return average


def _absent(activity: Activity, tables: Mapping[str, Float64Array]) -> Float64Array:
    """(2, 2, 2, 5, 79) P(object not in the scene | groups, activity)."""
    absent = np.array([1 - _accompanies(activity, name) for name in _OBJECTS])
    for kind in ("carried", "nearby"):
        slot = slot_name(kind, activity.setting)
        options = np.array([[o == name for name in _OBJECTS] for o in SLOTS[slot].options])
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


def _misleading_table(attribute: str, tables: Mapping[str, Float64Array]) -> Float64Array:
    """(2, 2, 2, 5) P(the scene speaks for another group than the person's | groups)."""
    each = [_speaks_for(attribute, tables, number) for number in range(len(ACTIVITIES))]
    speaks = _over_activities(np.stack(each, axis=-2), tables)  # (2, 2, 2, 5, K)
    axis = ATTRIBUTES.index(attribute)
    correct = np.diagonal(speaks, axis1=axis, axis2=-1)  # the attribute's axis is now the last
    return np.moveaxis(1 - correct, -1, axis)


def _speaks_for(attribute: str, tables: Mapping[str, Float64Array], number: int) -> Float64Array:
    """(2, 2, 2, 5, K) P(the scene speaks for each group | groups, activity)."""
    setting = ACTIVITIES[number].setting
    slots = [slot_name(kind, setting) for kind in EVIDENCE if kind != "activity"]
    a, b, c = (group_evidence(attribute)[slot] for slot in slots)  # (K, n) each
    base = group_evidence(attribute)["activity"][:, number, None, None, None]
    total = base + a[:, :, None, None] + b[:, None, :, None] + c[:, None, None, :]
    winner = strongest(total)  # (n, n, n)
    wins = np.stack([winner == group for group in range(len(a))], axis=-1).astype(np.float64)
    a, b, c = (tables[slot] for slot in slots)
    probability: Float64Array = np.einsum("...i,...j,...k,ijkg->...g", a, b, c, wins, optimize=True)
    return probability


_MOVED = "of the activities, so many are moved to ones typical of the person's {attribute}"
_WORDING = "of the captions, so many choose their words by the person's {attribute}"
_NAMED = "(r - 1) / (r + 1), where {attribute} is named r times as often as by annotators"
_WRONG = "of the captions, so many name a {attribute} that the scene suggests and nobody has"


def planted_for(dials: BiasSettings, attribute: str, metric: str) -> dict[str, Planted]:
    """Headline of a metric to what some dials plant for it; none where that is unknown.

    Example:
        >>> planted_for(BiasSettings(skin_wording=0.5), "race", "lic")["score"].value
        0.5
        >>> planted_for(BiasSettings(a_to_t=0.5), "gender", "lic")["score"].value.__round__(3)
        0.173
    """
    slot = {"race": "skin"}.get(attribute, attribute)
    if slot not in GROUPS:
        return {}
    if metric == "gender_error":
        return {"score": Planted(_wrong_share(dials, slot), _WRONG.format(attribute=attribute))}
    follows_skin = slot == "skin" != dials.attribute
    share, about = (
        (dials.skin_wording, _WORDING) if follows_skin else (_moved_share(dials, slot), _MOVED)
    )
    part = {"lic": "score", "leakage": "score", "dbac": "a_to_t"}.get(metric)
    planted = {part: Planted(share, about.format(attribute=attribute))} if part else {}
    if metric == "dbac" and slot == "skin":
        ratio = (dials.skin_word_rate - 1) / (dials.skin_word_rate + 1)
        planted["t_to_a"] = Planted(ratio, _NAMED.format(attribute=attribute))
    return planted


def _moved_share(dials: BiasSettings, attribute: str) -> float:
    """The share of activities that become typical of the person's group; below 0, atypical."""
    if attribute != dials.attribute:
        return 0.0
    world, perceived = (
        table_by_group(attribute, tables["activity"])
        for tables in (world_tables(), _mix_tables(dials))
    )
    leaning = np.sign(np.round(world - shares(attribute) @ world, 12))
    return float((leaning * (perceived - world)).sum(axis=1).mean() / 2)


def _wrong_share(dials: BiasSettings, attribute: str) -> float:
    """The share of captions that name another group than the person's."""
    if attribute != dials.attribute or not dials.t_to_a:
        return 0.0
    known = truth(dials)
    return float(shares(attribute) @ known.contradicted * known.gendered)
