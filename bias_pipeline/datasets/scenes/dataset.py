"""``dataset=scenes``: the embedded data set, made on the spot."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.datasets.base import Dataset
from bias_pipeline.datasets.scenes.bias_settings import BiasSettings
from bias_pipeline.datasets.scenes.captioners import CAPTIONERS, world_captions
from bias_pipeline.datasets.scenes.files import COLUMNS, write_scenes, write_scenes_captions
from bias_pipeline.datasets.scenes.pixels.drawing import SceneDrawing
from bias_pipeline.datasets.scenes.world import World, generate
from bias_pipeline.declared import Range, Seed, Share
from bias_pipeline.errors import UsageError, did_you_mean


class ScenesDataset(Dataset):
    """People doing things, five human captions each, and captioners whose bias is known.

    The same settings make the same captions on every machine. They are also written to disk in
    COCO's format, each captioner's when first used, for inspection and other tools; they are never
    read back.

    Args:
        root: where the files are written.
        n_images: how many images are made, at least 1.
        seed: of the world.
        captioners: more captioners, name to dials, in addition to the built-in ones.
        leak: how far the mark of the group extends beyond a person's edge in the pictures, as a
            share of the person's width, so that masking people does not hide it; for tests.

    Raises:
        UsageError: if a dial is out of range or a name is not a word.

    Example:
        >>> ScenesDataset("unused").captioners()[:2]
        ('amplifier', 'faithful')
    """

    name = "scenes"
    shown_under = "drawn by bias_pipeline's own generator; they show no real people"

    def __init__(
        self,
        root: str,
        n_images: Annotated[int, Range(high=10_000_000)] = 2000,
        seed: Seed = 0,
        captioners: Mapping[str, Mapping[str, float | str]] | None = None,
        leak: Share = 0.0,
    ) -> None:
        self.root = Path(root)
        self.n_images = n_images
        self.seed = seed
        self.leak = leak
        for captioner in captioners or {}:
            if not re.fullmatch(r"\w+", captioner):
                raise UsageError(
                    f"dataset.captioners: {captioner!r} names a file; use letters, digits and _"
                )
        further = {name: BiasSettings(**dials) for name, dials in (captioners or {}).items()}  # type: ignore[arg-type]
        self.dials = {**CAPTIONERS, **further}

    def captioners(self) -> Sequence[str]:
        """The built-in captioners, then the further ones."""
        return tuple(self.dials)

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        """See :meth:`Dataset.load`."""
        self.check_captioner(captioner)
        names, labels = attribute.groups_of(self.name)
        if labels.field not in COLUMNS:
            raise UsageError(
                f"attribute {attribute.name!r}, labels.scenes.field: there is no column "
                f"{labels.field!r} in dataset 'scenes'; {did_you_mean(labels.field, COLUMNS)}"
            )
        world = _world(self.n_images, self.seed)
        # Files of other dials stay theirs.
        dials = hashlib.sha256(repr(self.dials).encode()).hexdigest()[:8]
        folder = self.root / f"{self.n_images}-{self.seed}-{dials}"
        captions = _captions(self.n_images, self.seed, self.dials[captioner])
        if not (folder / "attributes.csv").is_file():
            write_scenes(world, folder, {})
        if not (folder / "captioners" / f"{captioner}.json").is_file():
            write_scenes_captions(folder, captioner, captions)
        return Corpus.build(
            _records(world, captions, attribute.name, COLUMNS[labels.field], self.leak),
            dataset=self.name,
            captioner=captioner,
            groups={attribute.name: (names, labels)},
            trained_on_reference=True,
        )


@lru_cache(maxsize=4)
def _world(n_images: int, seed: int) -> World:
    return generate(n_images, seed)


@lru_cache(maxsize=16)
def _captions(n_images: int, seed: int, dials: BiasSettings) -> Mapping[int, str]:
    return world_captions(_world(n_images, seed), dials)


def _records(
    world: World, captions: Mapping[int, str], attribute: str, label: str, leak: float
) -> Iterator[Record]:
    for image in world.images:
        yield Record(
            id=str(image.id),
            model=captions[image.id],
            human=image.human,
            labels={attribute: image.labels[label]},
            objects=image.objects,
            image=SceneDrawing(image, label, leak),
        )
