"""Makes sets of twins: one scene with a man and a woman of light and of dark skin.

Nothing else differs, unless ``noise`` draws some details of each picture anew, for all persons
alike. What a captioner imagines, assumes and writes depends on the person. Each caption has its own
random draws.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.data.columns import DECODING, SAMPLE
from bias_pipeline.scenes.captioners import APART, STREAM, captions_of, imagine_over
from bias_pipeline.scenes.scene import lay_out, stage
from bias_pipeline.scenes.slots import GROUPS, SLOTS, BiasSettings, kind_of, world_tables
from bias_pipeline.scenes.world import (
    IMAGE_PURPOSES,
    Image,
    Stream,
    World,
    choices,
    generate,
    group_codes,
    rows_of,
)

PERSONS = tuple(product(GROUPS["skin"], GROUPS["gender"]))  # of each set, in the order of pictures
_NOISE = 90_000  # the first stream of details drawn anew; each person has its own stream
_IDS = 10  # the ids of a set's pictures are the id of its scene plus one more digit


@dataclass(frozen=True, eq=False)
class Twins:
    """J sets of four pictures."""

    n_sets: int
    seed: int
    noise: float = 0.0  # the chance with which each detail is drawn anew in each picture

    def pictures(self) -> Iterator[Image]:
        for images in zip(*(world.images for world in self._worlds), strict=True):
            yield from images

    def captions(self, dials: BiasSettings, sample: int) -> dict[int, str]:
        """One of a captioner's captions for each picture id."""
        captions: dict[int, str] = {}
        for person, world in enumerate(self._worlds):
            skin, gender = divmod(person, len(GROUPS["gender"]))
            group = {"gender": np.full(self.n_sets, gender), "skin": np.full(self.n_sets, skin)}
            codes = {**group_codes(world.stream()), **group}
            stream = world.stream(STREAM + APART * (sample * len(PERSONS) + person))
            columns = imagine_over(self._actual(person), codes, dials, stream)
            captions |= captions_of(world, columns, dials, stream)
        return captions

    def _actual(self, person: int) -> dict[str, IntArray]:
        """The (J,) options of a person's pictures for each slot; activities stay the same."""
        images = Stream(self.seed, range(self.n_sets))
        noise = images._replace(number=_NOISE + person)
        codes, tables = group_codes(images), world_tables()
        actual, anew = choices(images, codes, tables), choices(noise, codes, tables)
        coins = noise.uniforms([f"noise {kind_of(slot)}" for slot in SLOTS])
        return {
            slot: actual[slot]
            if slot == "activity"
            else np.where(coins[:, k] < self.noise, anew[slot], actual[slot])
            for k, slot in enumerate(SLOTS)
        }

    @cached_property
    def _worlds(self) -> list[World]:
        images = generate(self.n_sets, self.seed).images
        return [self._world(person, images) for person in range(len(PERSONS))]

    def _world(self, person: int, images: Sequence[Image]) -> World:
        draws_of = Stream(self.seed, [image.key for image in images]).by_image(IMAGE_PURPOSES)
        scenes = zip(rows_of(self._actual(person)), draws_of, strict=True)
        staged = [(stage(options, draws), draws) for options, draws in scenes]
        skin, gender = PERSONS[person]
        return World(
            self.seed,
            tuple(
                replace(
                    image,
                    id=_IDS * image.id + person,
                    groups={**image.groups, "gender": gender, "skin": skin},
                    labels={**image.groups, "gender": gender, "skin": skin},
                    scene=shown,
                    objects=shown.objects | {"person"},
                    layout=lay_out(shown.people, shown.objects, draws),
                )
                for image, (shown, draws) in zip(images, staged, strict=True)
            ),
        )


def set_of(image: Image) -> int:
    return image.id // _IDS


def label_rows(twins: Twins, columns: Mapping[str, str]) -> Iterator[Sequence[object]]:
    """The lines of a label file; the first line has the names of columns.

    ``columns`` has the attribute of each column.
    """
    yield ["id", "set", *columns]
    for image in twins.pictures():
        yield [image.id, set_of(image), *(image.labels[name] for name in columns.values())]


def caption_entries(twins: Twins, dials: BiasSettings, n_samples: int) -> bytes:
    """A captioner's file with several numbered captions of each picture."""
    entries = [
        {"image_id": image, "caption": text, SAMPLE: sample, DECODING: "drawn"}
        for sample in range(n_samples)
        for image, text in twins.captions(dials, sample).items()
    ]
    return (json.dumps(entries, separators=(",", ":")) + "\n").encode()
