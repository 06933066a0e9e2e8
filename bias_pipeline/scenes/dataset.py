"""``dataset=scenes``: the embedded data set, made on the spot, or written in COCO's format.

The files of a world are the same for the same world, byte for byte.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.corpus.pictures import Pictures, Pixels, Region
from bias_pipeline.data.base import Dataset
from bias_pipeline.data.generator import Generator, Planted, UnmarkedPicture
from bias_pipeline.declared import Range, Seed, Share
from bias_pipeline.errors import ResourceError, UsageError, did_you_mean
from bias_pipeline.scenes.activities import ACTIVITIES
from bias_pipeline.scenes.captioners import (
    CAPTIONERS,
    captions_without_marks,
    world_captions,
)
from bias_pipeline.scenes.lexicon import Verb, noun_phrase
from bias_pipeline.scenes.pixels import SceneDrawing
from bias_pipeline.scenes.slots import GROUPS, BiasSettings
from bias_pipeline.scenes.twins import Twins, caption_entries, label_rows
from bias_pipeline.scenes.world import UNSURE, Image, World, generate

if TYPE_CHECKING:  # what belongs to the affective world is imported when that is made
    from bias_pipeline.scenes.affect_world import AffectImage, AffectSettings

LABELS, CAPTIONS = "attributes.csv", "annotations/captions.json"
INSTANCES = "annotations/instances.json"
COLUMNS = {"bb_gender": "gender", "bb_skin": "skin", "age": "age", "emotion": "emotion"}
RELEASE = "artemis_dataset_release_v0.csv"  # as ArtEmis names it
DRAWN = "Drawn"  # the style of the affective world's pictures, where it is written as ArtEmis is


def write_scenes(world: World, root: Path, captioners: Mapping[str, BiasSettings]) -> None:
    """Write a world as a data set folder.

    The files are ``annotations/captions.json``, ``annotations/instances.json``,
    ``attributes.csv`` and one ``captioners/<name>.json`` each. They appear complete or not at all;
    a second writer at the same time does no harm, and files of an earlier world are replaced.

    Example:
        >>> import tempfile
        >>> from bias_pipeline.scenes.world import generate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     captioners = {"faithful": BiasSettings()}
        ...     write_scenes(generate(n_images=2), Path(folder, "scenes"), captioners)
        ...     sorted(path.name for path in Path(folder, "scenes").iterdir())
        ['annotations', 'attributes.csv', 'captioners']
    """
    _place(root, [*_texts(world, captioners, COLUMNS), (INSTANCES, _json(_instances(world)))])


def write_drawn(
    world: World, root: Path, captioners: Mapping[str, BiasSettings], side: int, leak: float = 0.0
) -> None:
    """Write a world with its pictures, as :func:`write_scenes` does.

    ``images/`` has one PNG file per image, ``side`` pixels wide and high, and the instances are the
    visible objects, their masks as run lengths. Labels have no emotion: the faces' is not what
    ``attribute=emotion`` is about.
    """
    columns = [column for column in COLUMNS if column != "emotion"]  # not what a picture evokes
    _place(root, chain(_texts(world, captioners, columns), _picture_files(world, side, leak)))


def write_affect(
    n_images: int, seed: int, root: Path, captioners: Mapping[str, AffectSettings], side: int
) -> None:
    """Write the affective world with its pictures in ArtEmis' shape.

    The files are ``artemis_dataset_release_v0.csv``, one ``captioners/<name>.json`` each, and
    ``wikiart/Drawn/<id>.png``, ``side`` pixels wide and high.
    """
    from bias_pipeline.scenes.affect_world import AffectDrawing, affect_captions, affect_world

    world = affect_world(n_images, seed)
    written = {name: affect_captions(n_images, seed, dials) for name, dials in captioners.items()}
    results = (
        (
            _file_of(name),
            _json([{"image_id": f"{DRAWN}/{i}", "caption": text} for i, text in captions.items()]),
        )
        for name, captions in written.items()
    )
    pictures = (
        (f"wikiart/{DRAWN}/{image.id}.png", _png(AffectDrawing(image).draw(side).pixels))
        for image in world
    )
    _place(root, chain([(RELEASE, _release(world).encode())], results, pictures))


def _release(world: Sequence[AffectImage]) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["art_style", "painting", "emotion", "utterance", "repetition"])
    for image in world:
        for emotion, text in image.utterances:
            writer.writerow([DRAWN, image.id, emotion, text, len(image.utterances)])
    return table.getvalue()


def _png(pixels: Pixels) -> bytes:
    from PIL import Image as Picture

    file = io.BytesIO()
    Picture.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def _place(root: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write all files into a folder, or nothing."""
    draft = root.parent / f".{root.name}.{os.getpid()}.{secrets.token_hex(4)}"
    try:
        for name, content in files:
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _publish(draft, root)
    except OSError as error:
        raise ResourceError(
            f"{root}: the data set scenes cannot be written ({error.strerror}); "
            "choose another folder with dataset.root"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _publish(draft: Path, root: Path) -> None:
    """Move a complete draft to its place in one step, or file by file if the place is taken."""
    try:
        draft.rename(root)
    except OSError:
        if not root.is_dir():
            raise
        for path in sorted(path for path in draft.rglob("*") if path.is_file()):
            target = root / path.relative_to(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


def _texts(
    world: World, captioners: Mapping[str, BiasSettings], columns: Iterable[str]
) -> Iterator[tuple[str, bytes]]:
    yield CAPTIONS, _json(_caption_entries(world))
    yield LABELS, _attributes(world, [*columns]).encode()
    for name, dials in captioners.items():
        yield _captioner(name, world_captions(world, dials))


def _captioner(name: str, captions: Mapping[int, str]) -> tuple[str, bytes]:
    results = [{"image_id": image_id, "caption": text} for image_id, text in captions.items()]
    return _file_of(name), _json(results)


def _file_of(captioner: str) -> str:
    return f"captioners/{captioner}.json"


def _picture_files(world: World, side: int, leak: float) -> Iterator[tuple[str, bytes]]:
    """Pictures, and the instances visible in them."""
    header, annotations = _header(world), []
    for image, entry in zip(world.images, header["images"], strict=True):
        entry |= {"width": side, "height": side}
        drawn = SceneDrawing(image, "gender", leak).draw(side)
        yield f"images/{entry['file_name']}", _png(drawn.pixels)
        annotations += [_annotation(image.id, region) for region in drawn.regions]
    numbered = [
        {"id": number, **annotation} for number, annotation in enumerate(annotations, start=1)
    ]
    whole = {**header, "categories": _categories(), "annotations": numbered}
    yield INSTANCES, _json(whole)


def _annotation(image_id: int, region: Region) -> dict[str, Any]:
    from pycocotools import mask as coco

    coded: Any = {"size": list(region.size), "counts": region.counts}
    return {
        "image_id": image_id,
        "category_id": CATEGORIES[region.category].id,
        "bbox": list(region.box),
        "area": int(coco.area(coded)),
        "iscrowd": 0,
        "segmentation": {"size": list(region.size), "counts": region.counts.decode()},
    }


def _json(content: object) -> bytes:
    return (json.dumps(content, separators=(",", ":")) + "\n").encode()


def _header(world: World) -> dict[str, Any]:
    description = "scenes: generated captions with known bias, part of bias_pipeline"
    return {
        "info": {"description": description, "version": "1", "seed": world.seed},
        "licenses": [],
        "images": [
            {
                "id": image.id,
                "file_name": f"{image.id:012d}.png",
                "width": image.width,
                "height": image.height,
            }
            for image in world.images
        ],
    }


def _caption_entries(world: World) -> dict[str, Any]:
    pairs = [(image.id, text) for image in world.images for text in image.human]
    annotations = [
        {"id": number, "image_id": image_id, "caption": text}
        for number, (image_id, text) in enumerate(pairs, start=1)
    ]
    return {**_header(world), "annotations": annotations}


def _instances(world: World) -> dict[str, Any]:
    pairs = [(image, box) for image in world.images for box in image.layout]
    annotations = []
    for number, (image, box) in enumerate(pairs, start=1):
        width, height = round(box.width * image.width, 2), round(box.height * image.height, 2)
        corner = [round(box.x * image.width, 2), round(box.y * image.height, 2)]
        annotations.append(
            {
                "id": number,
                "image_id": image.id,
                "category_id": CATEGORIES[box.name].id,
                "bbox": [*corner, width, height],
                "area": round(width * height, 2),
                "iscrowd": 0,
                "segmentation": [],
            }
        )
    return {**_header(world), "categories": _categories(), "annotations": annotations}


def _categories() -> list[dict[str, Any]]:
    return [
        {"id": category.id, "name": name, "supercategory": category.supercategory}
        for name, category in CATEGORIES.items()
    ]


def _attributes(world: World, columns: Sequence[str]) -> str:
    lines = [
        [image.id, *(image.labels[COLUMNS[column]] for column in columns)] for image in world.images
    ]
    return _table([["id", *columns], *lines])


def _table(rows: Iterable[Sequence[object]]) -> str:
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(rows)
    return table.getvalue()


class ScenesDataset(Generator):
    """Pictures with five human captions each, and captioners whose bias is known.

    The world of ``people`` shows people doing things; ``affect`` has pictures that make people feel
    one of ArtEmis' nine emotions, and captions that say what they feel and why.

    The same settings make the same captions on every machine. The world of people is written to
    disk in COCO's format, each captioner's captions when first used, and read from there; its
    pictures are drawn when they are looked at. ``data draw`` writes both worlds.

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
        world: Literal["people", "affect"] = "people",
        twins: Annotated[int, Range(low=0, high=1_000_000)] = 0,
        twin_captions: Annotated[int, Range(low=1, high=100)] = 2,
        twin_noise: Share = 0.0,
    ) -> None:
        self.root = Path(root)
        self.world = world
        if twins and world != "people":
            raise UsageError("dataset.twins is for dataset.world=people only; leave it out")
        self.twins = Twins(twins, seed, twin_noise) if twins else None
        self.twin_captions = twin_captions
        self.sample = 0  # which caption of twins is read
        if world == "affect":
            self.name, self.shown_under = "scenes_affect", "drawn by bias_pipeline's own generator"
            if leak:
                raise UsageError("dataset.leak is for dataset.world=people only; leave it out")
        self.n_images = n_images
        self.seed = seed
        self.leak = leak
        for captioner in captioners or {}:
            if not re.fullmatch(r"\w+", captioner):
                raise UsageError(
                    f"dataset.captioners: {captioner!r} names a file; use letters, digits and _"
                )
        settings, usual = _settings_and_captioners(world)
        further = {name: settings(**dials) for name, dials in (captioners or {}).items()}
        self.dials: dict[str, Any] = {**usual, **further}

    def captioners(self) -> Sequence[str]:
        """The built-in captioners, then the further ones."""
        return tuple(self.dials)

    def all_captioners(self, attribute: Attribute) -> Sequence[str]:
        """All but ``verbose``, whose captions take attackers ten times as long."""
        del attribute
        return tuple(name for name in self.dials if name != "verbose")

    def samples(self, captioner: str) -> Sequence[Dataset]:
        """See :meth:`Dataset.samples`; twins have several captions."""
        each: list[Dataset] = []
        for sample in range(self.twin_captions if self.twins else 1):
            reader = copy(self)
            reader.sample = sample
            each.append(reader)
        return each

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        self.check_captioner(captioner)
        names, labels = attribute.groups_of(self.name)
        columns = COLUMNS if self.world == "people" else ("emotion",)
        if labels.field not in columns:
            raise UsageError(
                f"attribute {attribute.name!r}, labels.{self.name}.field: there is no column "
                f"{labels.field!r} in dataset {self.name!r}; {did_you_mean(labels.field, columns)}"
            )
        if self.twins:
            return self._sets(self.twins, captioner, attribute, COLUMNS[labels.field])
        if self.world == "people":
            return self._people(captioner, attribute, COLUMNS[labels.field])
        return Corpus.build(
            self._affect(captioner, attribute.name),
            dataset=self.name,
            captioner=captioner,
            groups={attribute.name: (names, labels)},
            trained_on_reference=True,
        )

    @classmethod
    def activities(cls) -> Mapping[str, str]:
        return {activity.name: _doing(activity.naming[0], activity.main) for activity in ACTIVITIES}

    @classmethod
    def captioned(cls, n_images: int, seed: int, association: float) -> tuple[Pictures, list[str]]:
        world = generate(n_images, seed)
        captions = world_captions(world, BiasSettings(a_to_t=association))
        pictures = Pictures(tuple(SceneDrawing(image, "gender") for image in world.images))
        return pictures, [captions[image.id] for image in world.images]

    @classmethod
    def numbers(cls, pictures: Pictures, seed: int) -> Sequence[int]:
        """See :class:`Generator`; one image identifies the world, from whose seed it follows."""
        images = [drawing.image for drawing in pictures.files if isinstance(drawing, SceneDrawing)]
        first = min(images, key=lambda image: image.key, default=None)
        if first is None or generate(first.key + 1, seed).images[first.key] != first:
            return []
        return [image.key for image in images]

    @classmethod
    def planted(cls, captioner: str, attribute: str, metric: str) -> Mapping[str, Planted]:
        """See :class:`Generator`."""
        from bias_pipeline.scenes.truth import planted_for

        dials = CAPTIONERS.get(captioner)
        return planted_for(dials, attribute, metric) if dials else {}

    def unmarked_pictures(self, side: int) -> Iterator[UnmarkedPicture]:
        """See :class:`Generator`; people have the grey of an unsure group."""
        for image in _world(self.n_images, self.seed).images:
            pixels = SceneDrawing(without_marks(image), "gender").draw(side).pixels
            groups = {column: image.groups[name] for column, name in COLUMNS.items()}
            yield UnmarkedPicture(image.id, pixels, groups)

    def unmarked_captions(self, captioner: str) -> Mapping[int, str]:
        return captions_without_marks(_world(self.n_images, self.seed), self.dials[captioner])

    def _affect(self, captioner: str, attribute: str) -> Iterator[Record]:
        from bias_pipeline.scenes.affect_world import AffectDrawing, affect_captions, affect_world

        captions = affect_captions(self.n_images, self.seed, self.dials[captioner])
        for image in affect_world(self.n_images, self.seed):
            yield Record(
                id=str(image.id),
                model=captions[image.id],
                human=tuple(utterance.text for utterance in image.utterances),
                labels={attribute: image.emotion},
                image=AffectDrawing(image),
            )

    def _people(self, captioner: str, attribute: Attribute, label: str) -> Corpus:
        from bias_pipeline.data.coco import CocoDataset

        world = _world(self.n_images, self.seed)
        folder = self.root / f"{self.n_images}-{self.seed}-{self._made_by()}"
        labels, captions, instances = files = [
            folder / name for name in (LABELS, CAPTIONS, INSTANCES)
        ]
        if not all(file.is_file() for file in files):
            write_scenes(world, folder, {})
        path = folder / _file_of(captioner)
        if not path.is_file():
            _place(folder, [_captioner(captioner, world_captions(world, self.dials[captioner]))])
        reader = CocoDataset(
            str(folder), str(labels), str(captions), str(instances), trained_on_reference=True
        )
        reader.name = self.name
        return self._with_pictures(reader.load(str(path), attribute), world.images, label)

    def _sets(self, twins: Twins, captioner: str, attribute: Attribute, label: str) -> Corpus:
        """The corpus of twins, one caption of each picture."""
        from bias_pipeline.data.coco import CocoDataset

        made = (twins.n_sets, self.seed, twins.noise, self.twin_captions, self._made_by())
        folder = self.root / "-".join(["twins", *map(str, made)])
        labels, path = folder / LABELS, folder / _file_of(captioner)
        if not labels.is_file():
            _place(folder, [(LABELS, _table(label_rows(twins, COLUMNS)).encode())])
        if not path.is_file():
            entries = caption_entries(twins, self.dials[captioner], self.twin_captions)
            _place(folder, [(_file_of(captioner), entries)])
        reader = CocoDataset(str(folder), str(labels), trained_on_reference=True)
        reader.name, reader.sample = self.name, self.sample
        return self._with_pictures(reader.load(str(path), attribute), twins.pictures(), label)

    def _made_by(self) -> str:
        """Files of other dials, and of another version of the generator, stay theirs."""
        return hashlib.sha256(f"{_code()} {self.dials!r}".encode()).hexdigest()[:8]

    def _with_pictures(self, corpus: Corpus, made: Iterable[Image], label: str) -> Corpus:
        """The corpus with its drawings; its files are nothing that a reader knows or could mend."""
        images = {str(image.id): image for image in made}
        drawings = (SceneDrawing(images[image], label, self.leak) for image in corpus.ids)
        return replace(
            corpus, pictures=Pictures(tuple(drawings)), notes=(), file="", objects_file=""
        )


def without_marks(image: Image) -> Image:
    """The same image with nothing on its people that shows a group.

    Example:
        >>> sorted(set(without_marks(generate(1).images[0]).labels.values()))
        ['Unsure']
    """
    return replace(image, labels=dict.fromkeys(GROUPS, UNSURE))


def _doing(verb: Verb, thing: str) -> str:
    return f"a person {verb.gerund}{verb.rest}".replace("{it}", noun_phrase(thing))


def _settings_and_captioners(world: str) -> tuple[Any, Mapping[str, Any]]:
    """The class of a world's dials, and its built-in captioners."""
    if world == "people":
        return BiasSettings, CAPTIONERS
    from bias_pipeline.scenes.affect_world import AFFECT_CAPTIONERS, AffectSettings

    return AffectSettings, AFFECT_CAPTIONERS


@lru_cache(maxsize=4)
def _world(n_images: int, seed: int) -> World:
    return generate(n_images, seed)


@cache
def _code() -> str:
    """SHA-256 (hex) of the generator's own code."""
    paths = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
