"""Checks that every scored image has a readable picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bias_pipeline.corpus.corpus import id_key
from bias_pipeline.corpus.image_ids import few
from bias_pipeline.corpus.pictures import Elsewhere
from bias_pipeline.datasets.picture_files import PictureFiles
from bias_pipeline.errors import DataError
from bias_pipeline.vision.photos import fault_of


def readable_pictures(
    pictures: PictureFiles, images: Sequence[str], folder: Path | None, *, strict: bool
) -> tuple[PictureFiles, list[str]]:
    """The readable pictures of a data set's images, and notes on the others.

    Args:
        pictures: the pictures of the folder.
        images: their ids.
        folder: of the pictures; None: there is none, so nothing is checked.
        strict: whether an image without a picture is refused. A broken picture is then refused when
            it is read; else it counts as absent.

    Raises:
        DataError: if ``strict`` and an image has none.
    """
    if not pictures.photos:
        return pictures, []
    place = "dataset.regions" if folder is None else f"{folder} (dataset.images)"
    absent = [image for image in images if pictures.photo(image) is None]
    if strict:
        if absent:
            raise DataError(
                f"{_counted(absent, images)} have no picture in {place}, such as {few(absent)}; "
                "add them, or score the others with dataset.strict=false"
            )
        return pictures, []
    notes = []
    if absent:
        notes.append(f"{_counted(absent, images)} have no picture in {place}")
    faults = {image: _fault(pictures.photo(image)) for image in images}
    broken = [image for image, fault in faults.items() if fault]
    if broken:
        first = min(broken, key=id_key)
        notes.append(
            f"{_counted(broken, images)} have a broken picture, such as {first} ({faults[first]}): "
            "it counts as absent"
        )
        names = {str(pictures.photo(image)) for image in broken}
        sound = {image: path for image, path in pictures.photos.items() if str(path) not in names}
        pictures = replace(pictures, photos=sound)
    return pictures, [f"{note}; the others are scored" for note in notes]


def _fault(photo: Path | Elsewhere | None) -> str | None:
    return fault_of(photo) if isinstance(photo, Path) else None


def _counted(some: Sequence[str], images: Sequence[str]) -> str:
    return f"{len(some)} of {len(images)} labelled images"
