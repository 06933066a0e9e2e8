"""Computes the bias that dials plant: exact probabilities, without sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.data.generator import Planted
from bias_pipeline.scenes.activities import ACTIVITIES
from bias_pipeline.scenes.captioners import (
    EVIDENCE,
    group_evidence,
    imagined_tables,
    strongest,
)
from bias_pipeline.scenes.grammar import GENDERED
from bias_pipeline.scenes.slots import (
    ATTRIBUTES,
    GROUPS,
    BiasSettings,
    shares,
    slot_name,
    table_by_group,
    world_tables,
)


@dataclass(frozen=True)
class Truth:
    """Probabilities of a captioner's captions over all worlds, given the person's group."""

    # (K,) P(the captioner assumes another group than the person's | group). The caption's words for
    # the attribute are wrong this often.
    contradicted: Float64Array
    gendered: float  # P(a gendered word for the person), for images whose gender is not unsure


def truth(dials: BiasSettings) -> Truth:
    """The truth that a set of dials plants.

    With ``t_to_a`` = t, the captioner assumes the group that the scene suggests with probability t.
    So ``contradicted`` is t times the probability that the scene suggests another group.

    Example:
        >>> truth(BiasSettings(t_to_a=0.5)).contradicted.round(2).tolist()
        [0.09, 0.11]
    """
    tables = perceived_tables(dials)
    each = [_speaks_for(dials.attribute, tables, number) for number in range(len(ACTIVITIES))]
    # (2, 2, 2, 5, A, K) averaged over the A activities: (2, 2, 2, 5, K)
    speaks = np.einsum("...a,...am->...m", tables["activity"], np.stack(each, axis=-2))
    axis = ATTRIBUTES.index(dials.attribute)
    correct = np.diagonal(speaks, axis1=axis, axis2=-1)  # the attribute's axis has become the last
    misleading = np.moveaxis(1 - correct, -1, axis)
    return Truth(
        contradicted=dials.t_to_a * table_by_group(dials.attribute, misleading),
        gendered=min(1.0, GENDERED * dials.gender_word_rate),
    )


def perceived_tables(dials: BiasSettings) -> dict[str, Float64Array]:
    """P(option | groups) of each slot, for the things that the captioner perceives.

    ``a_to_t`` mixes tables: P_seen = (1 - a) P + a Q, where ``a`` is the absolute value of the
    dial. If a_to_t > 0, Q is P confined to the options that are over-represented in the group. If
    a_to_t < 0, Q is P without the attribute's influence.
    """
    share = abs(dials.a_to_t)
    imagined = imagined_tables(dials)
    return {
        name: (1 - share) * table + share * imagined[name] for name, table in world_tables().items()
    }


def _speaks_for(attribute: str, tables: Mapping[str, Float64Array], number: int) -> Float64Array:
    """(2, 2, 2, 5, K) P(the scene suggests each group | groups, activity)."""
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


_MOVED = "share of activities replaced by activities typical of the person's {attribute}"
_WORDING = "share of captions that choose their words by the person's {attribute}"
_NAMED = "(r - 1) / (r + 1), where {attribute} is named r times as often as by annotators"
_WRONG = "share of captions that name a {attribute} that the scene suggests and nobody has"


def planted_for(dials: BiasSettings, attribute: str, metric: str) -> dict[str, Planted]:
    """The bias that dials plant for each headline of a metric, if the truth is known.

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
    """The share of activities that become typical of the person's group; negative if atypical."""
    if attribute != dials.attribute:
        return 0.0
    world, perceived = (
        table_by_group(attribute, tables["activity"])
        for tables in (world_tables(), perceived_tables(dials))
    )
    leaning = np.sign(np.round(world - shares(attribute) @ world, 12))
    return float((leaning * (perceived - world)).sum(axis=1).mean() / 2)


def _wrong_share(dials: BiasSettings, attribute: str) -> float:
    """The share of captions that name another group than the person's group."""
    if attribute != dials.attribute or not dials.t_to_a:
        return 0.0
    known = truth(dials)
    return float(shares(attribute) @ known.contradicted * known.gendered)
