"""Simulates captioners, which look at a world's pictures and write a caption for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.scenes.activities import SETTINGS
from bias_pipeline.scenes.grammar import PURPOSES, Description, caption
from bias_pipeline.scenes.scene import stage
from bias_pipeline.scenes.slots import (
    GROUPS,
    SETTING_OF,
    SLOTS,
    BiasSettings,
    kind_of,
    table_by_group,
    typical,
    without_attribute,
    world_tables,
)
from bias_pipeline.scenes.world import (
    HUMANS,
    IMAGE_PURPOSES,
    Columns,
    Stream,
    World,
    choices,
    group_codes,
    recognised_groups,
    rows_of,
)

CAPTIONERS: Mapping[str, BiasSettings] = {
    # This captioner describes light and dark people in different words, and names race six times as
    # often.
    "amplifier": BiasSettings(a_to_t=0.5, skin_wording=0.5, skin_word_rate=6),
    "faithful": BiasSettings(),
    "stereotyper": BiasSettings(t_to_a=0.4),
    "dampener": BiasSettings(a_to_t=-0.6),
    "terse": BiasSettings(vocabulary=0.6, length=0.4),
    "talkative": BiasSettings(mention_rate=1.7),
    "neutral_speaker": BiasSettings(gender_word_rate=0.4),
    "verbose": BiasSettings(sentences=10),
}
"""Named captioners; the first is the data set's default."""

# Adjectives for the looks of persons of the first group, and of the second group.
ADJECTIVES = (
    (
        *("confident", "focused", "strong", "determined", "skilled"),
        *("rugged", "serious", "athletic", "professional", "energetic"),
    ),
    (
        *("graceful", "elegant", "gentle", "cheerful", "charming"),
        *("delicate", "lovely", "sweet", "stylish", "radiant"),
    ),
)
EVIDENCE = ("activity", "clothing", "carried", "nearby")  # kinds of slots that suggest a group
STREAM = HUMANS + 1  # the stream of all captioners: they differ by their dials, not by chance
APART = 1_000  # distance between the streams of two samples


def world_captions(world: World, dials: BiasSettings, sample: int = 0) -> dict[int, str]:
    """A captioner's captions of all pictures of a world, by image id.

    All captioners draw the same random numbers, so two captioners differ only where their dials
    differ.

    Example:
        >>> from bias_pipeline.scenes.world import generate
        >>> world = generate(n_images=2)
        >>> captions = world_captions(world, BiasSettings(a_to_t=0.5))
        >>> sorted(captions) == [image.id for image in world.images]
        True
    """
    stream = world.stream(STREAM + APART * sample)
    codes = group_codes(world.stream())
    actual = choices(world.stream(), codes, world_tables())
    return captions_of(world, imagine_over(actual, codes, dials, stream), dials, stream)


def captions_of(
    world: World, columns: Columns, dials: BiasSettings, stream: Stream
) -> dict[int, str]:
    """For each image id, a caption of the things that the captioner perceives."""
    beliefs = _believed_groups(columns, dials, stream)
    assumed_groups = [  # the groups that the captioner assumes; unsure groups stay unsure
        {
            name: belief.get(name, group) if group else ""
            for name, group in recognised_groups(labels).items()
        }
        for labels, belief in zip((image.labels for image in world.images), beliefs, strict=True)
    ]
    return _write_captions(world, columns, assumed_groups, dials, stream)


def captions_without_marks(world: World, dials: BiasSettings) -> dict[int, str]:
    """Captions of pictures in which nothing about a person shows a group, by image id.

    A share ``t_to_a`` of the captions assume the group that the scene suggests. The other captions
    assume no group. What the captioner imagines (``a_to_t``) also follows the suggested group, even
    if the caption does not name it. Everything else is as in :func:`world_captions`.

    Example:
        >>> from bias_pipeline.scenes.world import generate
        >>> captions = captions_without_marks(generate(n_images=40), BiasSettings())
        >>> any({"man", "woman"} & set(text.lower().split()) for text in captions.values())
        False
    """
    stream = world.stream(STREAM)
    actual = choices(world.stream(), group_codes(world.stream()), world_tables())
    assumed = {attribute: suggested_groups(attribute, actual) for attribute in GROUPS}
    columns = imagine_over(actual, assumed, dials, stream)
    assumed_groups = [
        {**dict.fromkeys(GROUPS, ""), **belief}
        for belief in _believed_groups(columns, dials, stream)
    ]
    return _write_captions(world, columns, assumed_groups, dials, stream)


def _write_captions(
    world: World,
    columns: Columns,
    assumed_groups: Sequence[Mapping[str, str]],
    dials: BiasSettings,
    stream: Stream,
) -> dict[int, str]:
    """For each image id, a caption of the perceived things, given the assumed groups."""
    sentences = (
        stream._replace(number=stream.number + k).by_image(PURPOSES)
        for k in range(int(dials.sentences))
    )
    rows = zip(
        world.images,
        rows_of(columns),
        world.stream().by_image(IMAGE_PURPOSES),
        zip(*sentences, strict=True),
        assumed_groups,
        _looks(assumed_groups, dials, stream),
        strict=True,
    )
    captions = {}
    for image, options, chosen, draws, assumed_group, look in rows:
        scene = stage(options, chosen)
        texts = [caption(Description(scene, assumed_group, draw, dials)) for draw in draws]
        if len(texts) > 1 or look:
            texts = [*(f"{text.rstrip(' .')}." for text in texts), look]
        captions[image.id] = " ".join(texts).rstrip()
    return captions


def _looks(
    groups: Sequence[Mapping[str, str]], dials: BiasSettings, stream: Stream
) -> Iterator[str]:
    """A sentence on the person's looks for each caption, which is mostly empty."""
    names = tuple(GROUPS[dials.attribute])
    coins = stream.uniforms(["says looks", "own list", "adjective"])
    for (says, leans, which), group in zip(coins.tolist(), groups, strict=True):
        if says >= dials.adjectives:
            yield ""
            continue
        name = group[dials.attribute]
        place = names.index(name) if name else int(2 * leans)
        other = leans >= 0.5 + dials.adjective_lean / 2 if name else False
        words = ADJECTIVES[(place + other) % 2]
        yield f"The person looks {words[int(which * len(words))]}."


def imagine_over(
    actual: Columns, codes: Columns, dials: BiasSettings, stream: Stream
) -> dict[str, IntArray]:
    """(N,) the options of the pictures for each slot; a captioner imagines some of them."""
    imagined = choices(stream, codes, imagined_tables(dials))
    coins = stream.uniforms([f"imagines {kind_of(slot)}" for slot in SLOTS])
    return {
        slot: np.where(coins[:, i] < abs(dials.a_to_t), imagined[slot], actual[slot])
        for i, slot in enumerate(SLOTS)
    }


def imagined_tables(dials: BiasSettings) -> dict[str, Float64Array]:
    """P(option | groups) of the things that a captioner imagines.

    Slots that do not depend on the amplified attribute keep their table.
    """
    change = typical if dials.a_to_t > 0 else without_attribute
    return {
        name: change(dials.attribute, table) if SLOTS[name].leans_on(dials.attribute) else table
        for name, table in world_tables().items()
    }


@lru_cache(maxsize=8)
def group_evidence(attribute: str) -> Mapping[str, Float64Array]:
    """The (K, n) natural logarithms of P(option | group) in the world, for each slot.

    Example:
        >>> group_evidence("gender")["activity"].shape
        (2, 40)
    """
    return {
        name: np.log(table_by_group(attribute, table))
        for name, table in world_tables().items()
        if kind_of(name) in EVIDENCE
    }


def suggested_groups(attribute: str, columns: Columns) -> IntArray:
    """(N,) the group that activity, clothing and objects suggest most, whatever its base rate."""
    weights = group_evidence(attribute)
    setting = np.array(SETTING_OF)[columns["activity"]]
    total = weights["activity"][:, columns["activity"]]  # (K, N)
    for slot in weights:
        if slot != "activity":
            applies = setting == SETTINGS.index(slot.partition(" ")[2])
            total = total + np.where(applies, weights[slot][:, columns[slot]], 0.0)
    return strongest(total)


def strongest(total: Float64Array) -> IntArray:
    """(...) the group with the most evidence, from (K, ...) sums; ties go to the first group.

    Sums are rounded, since the order of addition changes their last bit.

    Example:
        >>> strongest(np.array([[0.1, 2.0], [0.3, 1.0]])).tolist()
        [1, 0]
    """
    winner: IntArray = np.argmax(np.round(total, 6), axis=0)
    return winner


def _believed_groups(
    columns: Columns, dials: BiasSettings, stream: Stream
) -> Iterator[dict[str, str]]:
    """The group that a captioner takes from the scene instead of the person; mostly empty."""
    names = tuple(GROUPS[dials.attribute])
    coins = stream.uniforms(["follows the scene"])[:, 0]
    for coin, group in zip(
        coins.tolist(), suggested_groups(dials.attribute, columns).tolist(), strict=True
    ):
        yield {dials.attribute: names[group]} if coin < dials.t_to_a else {}
