"""Scenes whose people bear no mark of any group, with the groups that they have all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from PIL import Image as Picture

from bias_pipeline.datasets.anonymous_pictures import CAPTIONERS, PICTURES, TABLE
from bias_pipeline.datasets.scenes.bias_settings import BiasSettings
from bias_pipeline.datasets.scenes.captioners import captions_without_marks
from bias_pipeline.datasets.scenes.dataset import COLUMNS
from bias_pipeline.datasets.scenes.pixels import SceneDrawing
from bias_pipeline.datasets.scenes.slots import GROUPS
from bias_pipeline.datasets.scenes.world import UNSURE, Image, World
from bias_pipeline.io.files import table_csv


def write_unmarked(
    world: World, root: Path, captioners: Mapping[str, BiasSettings], side: int
) -> None:
    """Write a world as anonymous pictures with captions.

    People are drawn with the grey of an unsure group wherever a group has a colour. Activities,
    objects and places stay, and lean towards groups as in the world. The files are
    ``images/<id>.png``, ``pictures.csv`` with the groups, and ``captioners/<name>.json``, see
    :func:`~bias_pipeline.datasets.scenes.captioners.captions_without_marks`.

    Args:
        world: what is written.
        root: an empty folder.
        captioners: name to dials of the captioners that describe the pictures.
        side: of the square pictures, 32 to 256 pixels.

    Raises:
        UsageError: if the side is out of its range.
        OSError: if the folder cannot be written.

    Example:
        >>> import tempfile
        >>> from bias_pipeline.datasets.scenes.world import generate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_unmarked(generate(2), Path(folder), {"faithful": BiasSettings()}, 32)
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['captioners', 'images', 'pictures.csv']
    """
    (root / PICTURES).mkdir()
    (root / CAPTIONERS).mkdir()
    lines = []
    for image in world.images:
        file = f"{image.id:012d}.png"
        drawn = SceneDrawing(unmarked(image), "gender").draw(side)
        Picture.fromarray(drawn.pixels).save(root / PICTURES / file)
        groups = {column: image.groups[name] for column, name in COLUMNS.items()}
        lines.append({"image_id": image.id, "file": file, **groups})
    (root / TABLE).write_text(table_csv(lines), encoding="utf-8")
    for name, dials in captioners.items():
        captions = captions_without_marks(world, dials)
        results = [{"image_id": image_id, "caption": text} for image_id, text in captions.items()]
        (root / CAPTIONERS / f"{name}.json").write_text(json.dumps(results) + "\n", "utf-8")


def unmarked(image: Image) -> Image:
    """The same image with nothing on its people that shows a group.

    Example:
        >>> from bias_pipeline.datasets.scenes.world import generate
        >>> sorted(set(unmarked(generate(1).images[0]).labels.values()))
        ['Unsure']
    """
    return replace(image, labels=dict.fromkeys(GROUPS, UNSURE))
