"""A world of pictures without pixels, with people, contents and human captions.

Every random number has a name (seed, image, stream, purpose). A number depends only on its name,
not on how many numbers were drawn before. So a changed dial, further images or another order leave
all other numbers unchanged.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.errors import UsageError
from bias_pipeline.io.hashing import mix
from bias_pipeline.scenes import grammar, scene
from bias_pipeline.scenes.grammar import Description, caption
from bias_pipeline.scenes.scene import Box, Scene, lay_out, stage
from bias_pipeline.scenes.slots import (
    ATTRIBUTES,
    GROUPS,
    SLOTS,
    BiasSettings,
    draw,
    kind_of,
    shares,
    world_tables,
)


def uniforms(seed: int, keys: Sequence[int], stream: int, purposes: Iterable[str]) -> Float64Array:
    """(N, P) uniform numbers in [0, 1), which are equal on every platform.

    Example:
        >>> both = uniforms(0, [7, 8], 1, ["place", "verb"])
        >>> both.shape
        (2, 2)
        >>> bool(uniforms(0, [8], 1, ["verb"])[0, 0] == both[1, 1])
        True
    """
    codes = np.array([zlib.crc32(purpose.encode()) for purpose in purposes], np.uint64)
    start = mix(np.array([seed], np.uint64))
    rows = mix(mix(start ^ np.array(keys, np.uint64)) ^ np.uint64(stream))
    mixed = mix(mix(rows[:, None] ^ codes))  # (N, P)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Stream(NamedTuple):
    """Random numbers with names, for images with given keys in the world of a seed."""

    seed: int
    keys: Sequence[int]  # (N,)
    number: int = 0  # 0 for what is decided once per image; annotator k draws from stream k

    def uniforms(self, purposes: Iterable[str]) -> Float64Array:
        return uniforms(*self, purposes)

    def by_image(self, purposes: Sequence[str], prefix: str = "") -> list[dict[str, float]]:
        """The numbers of each image by purpose, where names have no prefix."""
        rows = self.uniforms([prefix + purpose for purpose in purposes]).tolist()
        return [dict(zip(purposes, row, strict=True)) for row in rows]


Columns = Mapping[str, IntArray]

HUMANS = 5
UNSURE = "Unsure"
UNSURE_SHARES = {"gender": 0.03, "skin": 0.03}

_AGAIN = 1000  # repeated attempts use streams far above every annotator's stream
_NEUTRAL = BiasSettings()
_FIRST_ID, _ID_STEP = 1000, 290  # the distance of two ids, so that ids have gaps as in COCO
IMAGE_PURPOSES = (
    *("id", "size", *(f"sure {attribute}" for attribute in UNSURE_SHARES)),
    *(*scene.PURPOSES, *scene.LAYOUT_PURPOSES),
)


@dataclass(frozen=True, slots=True)
class Image:
    key: int  # the image's number in its world; seed and key decide everything about the image
    id: int  # its public number, not consecutive
    width: int  # in pixels
    height: int  # in pixels
    groups: Mapping[str, str]  # the person's group by attribute, even if annotators are unsure
    labels: Mapping[str, str]  # for each attribute the raw label: the group, or "Unsure"
    scene: Scene  # its contents
    objects: frozenset[str]  # COCO category names, "person" among them
    layout: tuple[Box, ...]  # the boxes of its objects


@dataclass(frozen=True)
class World:
    seed: int  # from which the images follow
    images: tuple[Image, ...]  # in the order of their ids

    def stream(self, number: int = 0) -> Stream:
        return Stream(self.seed, [image.key for image in self.images], number)

    @cached_property
    def human(self) -> dict[int, tuple[str, ...]]:
        """Five different human captions of each image, by the image's id."""
        streams = [self.stream(annotator) for annotator in range(1, HUMANS + 1)]
        draws = [stream.by_image(grammar.PURPOSES) for stream in streams]
        return {
            image.id: _human_captions(self.seed, image, of_image)
            for image, *of_image in zip(self.images, *draws, strict=True)
        }


def generate(n_images: int = 2000, seed: int = 0) -> World:
    """Make a world.

    Image k is the same in every world of the same seed, however many images the world has.

    Example:
        >>> world = generate(n_images=3, seed=1)
        >>> [len(captions) for captions in world.human.values()]
        [5, 5, 5]
        >>> world.images[2] == generate(n_images=9, seed=1).images[2]
        True
    """
    if n_images < 1:
        raise UsageError(f"scenes: n_images is {n_images}; at least 1 image is needed")
    if not 0 <= seed < 2**64:
        raise UsageError(f"scenes: seed is {seed}; it must be from 0 to 2**64 - 1")
    stream, keys = Stream(seed, range(n_images)), range(n_images)
    codes = group_codes(stream)
    chosen = rows_of(choices(stream, codes, world_tables()))
    draws = stream.by_image(IMAGE_PURPOSES)
    names = {attribute: tuple(groups) for attribute, groups in GROUPS.items()}
    groups_of = (
        {attribute: names[attribute][code] for attribute, code in row.items()}
        for row in rows_of(codes)
    )
    return World(
        seed,
        tuple(
            _image(key, groups, stage(options, columns), columns)
            for key, groups, options, columns in zip(keys, groups_of, chosen, draws, strict=True)
        ),
    )


def group_codes(images: Stream) -> Columns:
    """The (N,) group numbers of each attribute.

    Example:
        >>> sorted(group_codes(Stream(0, [4, 5])))
        ['age', 'emotion', 'gender', 'skin']
    """
    u = images.uniforms([f"group {attribute}" for attribute in ATTRIBUTES])
    return {
        attribute: np.searchsorted(np.cumsum(shares(attribute))[:-1], u[:, i], side="right")
        for i, attribute in enumerate(ATTRIBUTES)
    }


def choices(
    stream: Stream, codes: Columns, tables: Mapping[str, Float64Array]
) -> dict[str, IntArray]:
    """(N,) option numbers for each slot, one number for every image.

    Slots of the same kind use the same random numbers, so a person carries similar things in all
    settings.
    """
    u = stream.uniforms([f"choice {kind_of(slot)}" for slot in SLOTS])
    columns = [codes[attribute] for attribute in ATTRIBUTES]
    return {slot: draw(tables[slot], columns, u[:, i]) for i, slot in enumerate(SLOTS)}


def rows_of(columns: Columns) -> Iterator[dict[str, int]]:
    """Turn columns with names into one dictionary per image.

    Example:
        >>> list(rows_of({"activity": np.array([4, 7])}))
        [{'activity': 4}, {'activity': 7}]
    """
    values = (column.tolist() for column in columns.values())
    return (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def _image(key: int, groups: Mapping[str, str], shown: Scene, draws: Mapping[str, float]) -> Image:
    unsure = [a for a, share in UNSURE_SHARES.items() if draws[f"sure {a}"] < share]
    labels = {**groups, **dict.fromkeys(unsure, UNSURE)}
    width, height = scene.SIZES[int(draws["size"] * len(scene.SIZES))]
    return Image(
        key=key,
        id=_FIRST_ID + _ID_STEP * key + int(draws["id"] * _ID_STEP),
        width=width,
        height=height,
        groups=groups,
        labels=labels,
        scene=shown,
        objects=shown.objects | {"person"},
        layout=lay_out(shown.people, shown.objects, draws),
    )


def recognised_groups(labels: Mapping[str, str]) -> dict[str, str]:
    """The groups that people recognise in the picture.

    Example:
        >>> recognised_groups({"gender": "Unsure", "age": "old"})
        {'gender': '', 'age': 'old'}
    """
    return {name: "" if label == UNSURE else label for name, label in labels.items()}


def _human_captions(
    seed: int, image: Image, all_draws: Sequence[Mapping[str, float]]
) -> tuple[str, ...]:
    """One caption by each annotator; repeated captions are drawn again."""
    captions: dict[str, str] = {}
    shown, groups = image.scene, recognised_groups(image.labels)
    for annotator, draws in enumerate(all_draws, start=1):
        text = caption(Description(shown, groups, draws, _NEUTRAL))
        for again in count(1):
            if _plain_text(text) not in captions:
                break
            (fresh,) = Stream(seed, [image.key], annotator + _AGAIN * again).by_image(
                grammar.PURPOSES
            )
            text = caption(Description(shown, groups, fresh, _NEUTRAL))
        captions[_plain_text(text)] = text
    return tuple(captions.values())


def _plain_text(text: str) -> str:
    return text.lower().rstrip(".")
