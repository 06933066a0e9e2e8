"""Simulated captioners: they look at the world's pictures and write one caption for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from bias_pipeline.datasets.scenes.activities import SETTINGS
from bias_pipeline.datasets.scenes.dials import Dials
from bias_pipeline.datasets.scenes.grammar import Telling, caption
from bias_pipeline.datasets.scenes.scene import stage
from bias_pipeline.datasets.scenes.slots import (
    GROUPS,
    SETTING_OF,
    SLOTS,
    given,
    kind_of,
    typical,
    without,
    world_tables,
)
from bias_pipeline.datasets.scenes.streams import FloatArray, uniforms
from bias_pipeline.datasets.scenes.world import (
    HUMANS,
    Columns,
    IntArray,
    World,
    annotator_draws,
    choices,
    group_codes,
    image_draws,
    rows_of,
    spoken,
)

CAPTIONERS: Mapping[str, Dials] = {
    "amplifier": Dials(a_to_t=0.5),
    "faithful": Dials(),
    "stereotyper": Dials(t_to_a=0.4),
    "dampener": Dials(a_to_t=-0.6),
    "terse": Dials(vocabulary=0.6, length=0.4),
    "talkative": Dials(mention_rate=1.7),
    "neutral_speaker": Dials(gender_word_rate=0.4),
}
"""Named captioners; the first is the data set's default."""

EVIDENCE = ("activity", "clothing", "carried", "nearby")  # kinds that suggest a group
_STREAM = HUMANS + 1  # all captioners share it: they differ by their dials, not by chance


def describe(world: World, dials: Dials) -> dict[int, str]:
    """Let a captioner describe every picture of a world.

    All captioners draw the same numbers: two of them differ only where their dials differ.

    Args:
        world: as from :func:`generate`; any subset or order of its images will do.
        dials: of the captioner.

    Returns:
        Image id to caption.

    Example:
        >>> from bias_pipeline.datasets.scenes.world import generate
        >>> world = generate(n_images=2)
        >>> sorted(describe(world, Dials(a_to_t=0.5))) == [image.id for image in world.images]
        True
    """
    keys = [image.key for image in world.images]
    codes = group_codes(world.seed, keys)
    seen = perceived(world.seed, keys, codes, dials)
    rows = zip(
        world.images,
        rows_of(seen),
        image_draws(world.seed, keys),
        annotator_draws(world.seed, keys, _STREAM),
        _believed(world.seed, keys, seen, dials),
        strict=True,
    )
    return {
        image.id: caption(
            Telling(stage(options, own), _in_mind(image.labels, belief), draws, dials)
        )
        for image, options, own, draws, belief in rows
    }


def perceived(seed: int, keys: Sequence[int], codes: Columns, dials: Dials) -> dict[str, IntArray]:
    """What a captioner sees: the picture's own options, some of them imagined.

    Returns:
        Slot name to (N,) option numbers.
    """
    seen = choices(seed, keys, codes, world_tables(), 0)
    imagined = choices(seed, keys, codes, imagined_tables(dials), _STREAM)
    coins = uniforms(seed, keys, _STREAM, [f"imagines {kind_of(slot)}" for slot in SLOTS])
    return {
        slot: np.where(coins[:, i] < abs(dials.a_to_t), imagined[slot], seen[slot])
        for i, slot in enumerate(SLOTS)
    }


def imagined_tables(dials: Dials) -> dict[str, FloatArray]:
    """P(option | groups) of what a captioner imagines.

    Slots that do not lean on the amplified attribute keep their table.

    Returns:
        Slot name to (2, 2, 2, 5, n).
    """
    change = typical if dials.a_to_t > 0 else without
    return {
        name: change(dials.attribute, table) if SLOTS[name].leans_on(dials.attribute) else table
        for name, table in world_tables().items()
    }


@lru_cache(maxsize=8)
def evidence(attribute: str) -> Mapping[str, FloatArray]:
    """How much each option speaks for each group.

    Args:
        attribute: the one in question.

    Returns:
        Slot name to (K, n) natural logarithms of P(option | group) in the world.

    Example:
        >>> evidence("gender")["activity"].shape
        (2, 40)
    """
    return {
        name: np.log(given(attribute, table))
        for name, table in world_tables().items()
        if kind_of(name) in EVIDENCE
    }


def suggested(attribute: str, seen: Columns) -> IntArray:
    """The group that activity, clothing and objects speak for most; base rates do not count.

    Args:
        attribute: the one in question.
        seen: slot name to (N,) option numbers.

    Returns:
        (N,) group numbers.
    """
    weights = evidence(attribute)
    setting = np.array(SETTING_OF)[seen["activity"]]
    total = weights["activity"][:, seen["activity"]]  # (K, N)
    for slot in weights:
        if slot != "activity":
            applies = setting == SETTINGS.index(slot.partition(" ")[2])
            total = total + np.where(applies, weights[slot][:, seen[slot]], 0.0)
    return strongest(total)


def strongest(total: FloatArray) -> IntArray:
    """The group of most evidence; a tie goes to the first.

    Rounded, so that the last bit of a sum, which depends on the order of adding, decides nothing.

    Args:
        total: (K, ...) evidence for each group.

    Returns:
        (...) group numbers.

    Example:
        >>> strongest(np.array([[0.1, 2.0], [0.3, 1.0]])).tolist()
        [1, 0]
    """
    winner: IntArray = np.argmax(np.round(total, 6), axis=0)
    return winner


def _believed(
    seed: int, keys: Sequence[int], seen: Columns, dials: Dials
) -> Iterator[dict[str, str]]:
    """What the captioner takes from the scene instead of from the person; mostly nothing."""
    names = tuple(GROUPS[dials.attribute])
    coins = uniforms(seed, keys, _STREAM, ["follows the scene"])[:, 0]
    for coin, group in zip(coins.tolist(), suggested(dials.attribute, seen).tolist(), strict=True):
        yield {dials.attribute: names[group]} if coin < dials.t_to_a else {}


def _in_mind(labels: Mapping[str, str], belief: Mapping[str, str]) -> dict[str, str]:
    """The groups a captioner speaks of; what nobody can tell stays untold."""
    known = spoken(labels)
    return {name: belief.get(name, group) if group else "" for name, group in known.items()}
