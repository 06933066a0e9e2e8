"""Reads a folder of anonymous pictures, a table of the pictures, and captioners' captions.

Scenes can be written as such a folder, with people who show no sign of any group.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image as Picture

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.generator import Generator
from bias_pipeline.data.image_numbers import of_photos
from bias_pipeline.data.tables import open_rows
from bias_pipeline.errors import DataError, ResourceError, cannot_write
from bias_pipeline.io.files import replace_file, table_csv

SCENES = "scenes"
PICTURES, TABLE = "images", "pictures.csv"
ACCEPTED, ACCEPTED_TABLE = "kept", "kept.csv"  # pictures in which raters could tell no group
CAPTIONERS = "captioners"
_WHAT = "the pictures of anonymous build: a table of image_id and file"


@dataclass(frozen=True)
class AnonymousPictures:
    folder: Path  # the folder that `anonymous build` wrote
    photos: Mapping[str, Path]  # files by image id
    # The table's line for each image id: prompt and seed, or groups
    lines: Mapping[str, Mapping[str, Any]]

    def keep(self, images: Sequence[str]) -> None:
        """Write the table of these pictures, and a folder with their files."""
        place = self.folder / ACCEPTED
        try:
            place.mkdir(exist_ok=True)
            for image in self.photos.keys() - set(images):
                (place / self.photos[image].name).unlink(missing_ok=True)
            for image in images:
                replace_file(
                    place / self.photos[image].name, self.photos[image].read_bytes(), sync=False
                )
            text = table_csv([self.lines[image] for image in images])
            replace_file(self.folder / ACCEPTED_TABLE, text.encode())
        except OSError as error:
            raise cannot_write(place, error) from error

    def captions(self, captioner: str) -> dict[str, str]:
        """The captioner's captions by image id, which must cover every picture."""
        path = self.folder / CAPTIONERS / f"{captioner}.json"
        layout = Layout()
        texts = of_photos(path, model_captions(path, None, layout).captions, self.photos, layout)
        absent = [image for image in self.photos if image not in texts]
        if absent:
            raise DataError(
                f"{path}: no caption of {len(absent)} of {len(self.photos)} pictures, such as "
                f"{absent[0]}; caption all of {self.picture_folder}"
            )
        return {image: texts[image] for image in self.photos}

    def groups(self, attribute: Attribute) -> dict[str, str] | None:
        """The true groups by image id, although pictures do not show them, or None if unknown."""
        labels = attribute.labels.get(SCENES)
        if labels is None or not all(labels.field in line for line in self.lines.values()):
            return None
        groups = {i: labels.group_of(str(line[labels.field])) for i, line in self.lines.items()}
        return {image: group for image, group in groups.items() if group is not None}

    @property
    def captioners(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / CAPTIONERS).glob("*.json"))

    @property
    def picture_folder(self) -> Path:
        return next(iter(self.photos.values())).parent


def built_pictures(folder: Path) -> AnonymousPictures:
    return _pictures(folder, TABLE, PICTURES, "go on with anonymous build")


def scored_pictures(folder: Path) -> AnonymousPictures:
    """The pictures that remain after raters' answers; all pictures if nobody was asked."""
    if (folder / ACCEPTED_TABLE).is_file():
        return _pictures(folder, ACCEPTED_TABLE, ACCEPTED, "run anonymous filter again")
    return built_pictures(folder)


def _pictures(folder: Path, table: str, within: str, remedy: str) -> AnonymousPictures:
    path = folder / table
    if not path.is_file():
        raise ResourceError(
            f"{folder}: holds no anonymous pictures ({table}); make them with anonymous build "
            f"--out {folder}"
        )
    rows = open_rows(path, what=_WHAT)
    rows.require("image_id", "file")
    lines, photos = {}, {}
    for number, row in rows.items:
        image = short_id(rows.id(number, row, "image_id"))
        file = folder / within / Path(rows.text(number, row, "file")).name
        if not file.is_file():
            rows.refuse(number, f"{file} is absent; {remedy}, or remove the line")
        lines[image], photos[image] = row, file
    if not photos:
        raise ResourceError(f"{path}: lists no pictures; make them with anonymous build")
    return AnonymousPictures(folder, photos, lines)


def write_unmarked(scenes: Generator, root: Path, captioners: Sequence[str], side: int) -> int:
    """Write scenes as anonymous pictures with captions; returns how many pictures there are.

    The files are ``images/<id>.png``, ``side`` pixels wide and high, ``pictures.csv`` with the
    groups, and ``captioners/<name>.json``.

    Example:
        >>> import tempfile
        >>> from bias_pipeline.data.generator import generator
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scenes = generator()(folder, n_images=2)
        ...     n_pictures = write_unmarked(scenes, Path(folder), ["faithful"], 32)
        ...     n_pictures, sorted(path.name for path in Path(folder).iterdir())
        (2, ['captioners', 'images', 'pictures.csv'])
    """
    (root / PICTURES).mkdir()
    (root / CAPTIONERS).mkdir()
    lines = []
    for picture in scenes.unmarked_pictures(side):
        file = f"{picture.id:012d}.png"
        Picture.fromarray(picture.pixels).save(root / PICTURES / file)
        lines.append({"image_id": picture.id, "file": file, **picture.groups})
    (root / TABLE).write_text(table_csv(lines), encoding="utf-8")
    for name in captioners:
        captions = scenes.unmarked_captions(name)
        results = [{"image_id": image_id, "caption": text} for image_id, text in captions.items()]
        (root / CAPTIONERS / f"{name}.json").write_text(json.dumps(results) + "\n", "utf-8")
    return len(lines)
