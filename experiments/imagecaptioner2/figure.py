"""The figure of docs/pictures.md: scenes as they are drawn, and under each masking.

Usage: python -m experiments.imagecaptioner2.figure [PHOTOS REGIONS OUT]

With PHOTOS, a folder, and REGIONS, COCO instances of them, the same of twelve photos in which
people are outlined, into the file OUT. Photos belong to somebody, so the docs show none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from bias_pipeline.corpus.pictures import PERSON, Drawn, Pictures
from bias_pipeline.data.image_masking import ImageMasking, Silhouette
from bias_pipeline.data.photos import read_pixels
from bias_pipeline.data.picture_files import PictureFiles
from bias_pipeline.scenes.pixels import SceneDrawing
from bias_pipeline.scenes.world import generate

SIDE, GAP, N_SCENES, N_PHOTOS = 128, 6, 6, 12
OUT = Path(__file__).resolve().parents[2] / "docs" / "images" / "scenes.png"

ROWS = (
    None,
    ImageMasking(),
    ImageMasking("box"),
    ImageMasking("part"),
    ImageMasking(objects=True),
    ImageMasking(fill="blur"),
    Silhouette(ImageMasking()),
)


def main(arguments: list[str]) -> None:
    """One column a picture, one row a masking."""
    if arguments:
        photos, regions, out = map(Path, arguments)
        _save([_edited_pictures(photo) for photo in _photos(photos, regions)], out)
    else:
        scenes = generate(N_SCENES, 3).images
        _save([_scene(SceneDrawing(image, "gender").draw(SIDE)) for image in scenes], OUT)


def _photos(folder: Path, instances: Path) -> Iterator[Pictures]:
    """The first photos that have the outline of a person."""
    files = PictureFiles.read(folder, instances, None)
    known = {item: files.regions_of(item) or () for item in sorted(files.photos, key=int)}
    outlined = (
        image
        for image, regions in known.items()
        if any(item.category == PERSON and item.has_outline for item in regions)
    )
    for image in islice(outlined, N_PHOTOS):
        yield Pictures((files.photo(image),), (known[image],))


def _edited_pictures(photo: Pictures) -> list[np.ndarray]:
    """The picture as attackers see it, after each edit."""
    edited = [photo if edit is None else photo.with_edit(edit) for edit in ROWS]
    return [read_pixels(picture, 0, SIDE) for picture in edited]


def _scene(drawn: Drawn) -> list[np.ndarray]:
    return [drawn.pixels if edit is None else edit.apply(drawn) for edit in ROWS]


def _save(columns: Sequence[Sequence[np.ndarray]], out: Path) -> None:
    sheet = np.hstack([np.vstack([_frame(picture) for picture in column]) for column in columns])
    Image.fromarray(sheet).save(out, optimize=True)


def _frame(pixels: np.ndarray) -> np.ndarray:
    return np.pad(pixels, ((0, GAP), (0, GAP), (0, 0)), constant_values=255)


if __name__ == "__main__":
    main(sys.argv[1:])
