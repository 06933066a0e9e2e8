"""Names of pictures' files, which some files give beside their own image numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.image_ids import ENDINGS, canonical_id, short_id, short_ids
from bias_pipeline.data.blocks import blocks_of
from bias_pipeline.data.columns import IMAGE, plain_name
from bias_pipeline.data.json_columns import ObjectColumns
from bias_pipeline.errors import DataError

Names = Mapping[str, str]  # names of pictures' files, by a file's numbers of images

_KEYS = ("cocoid", "id")
_FILES = ("file_name", "filename")


def listed_names(path: Path, images: object) -> dict[str, str]:
    """The file name of each numbered image in a file's list; empty if names and numbers agree.

    Example:
        >>> listed_names(Path("a.json"), [{"id": 95, "file_name": "000001.jpg"}])
        {'95': '000001.jpg'}
    """
    names: dict[str, str] = {}
    if isinstance(images, ObjectColumns):
        blocks = [*images.blocks(0)]
    else:
        listed = images if isinstance(images, list) else []
        blocks = [*blocks_of(enumerate(entry for entry in listed if isinstance(entry, dict)))]
    if all(
        short_ids([*map(str, block.cells("file_name"))]) == [*map(str, block.cells("id"))]
        for block in blocks
    ):
        return names  # as in COCO itself
    for block in blocks:
        key = next((key for key in _KEYS if key in block.columns), "")
        column = next((name for name in _FILES if name in block.columns), "")
        for number, name in zip(block.cells(key), block.cells(column), strict=True):
            note_name(names, path, number, name)
    return own_numbers(names)


def name_column(row: Mapping[str, Any], key: str) -> str | None:
    """The column, beside the column of ids, with the name of a picture's file.

    Example:
        >>> name_column({"image_id": 95, "image": "000001.jpg", "text": "a dog"}, "image_id")
        'image'
    """
    known = [name for name in row if name != key and plain_name(str(name)) in IMAGE.names]
    return next((name for name in known if str(row[name]).lower().endswith(ENDINGS)), None)


def note_name(names: dict[str, str], path: Path, number: object, name: object) -> None:
    """Note the file name of an image by its number; a value that is neither is ignored."""
    if isinstance(number, float) and number.is_integer():  # tables with gaps have such ids
        number = int(number)
    if type(number) not in (int, str) or not isinstance(name, str):
        return
    if not str(number).strip() or not name.strip():
        return
    image, written = canonical_id(number), canonical_id(name)
    if names.setdefault(image, written) != written:
        raise DataError(
            f"{path}: image id {image} is {names[image]!r} and {written!r}; give each picture an "
            "id of its own"
        )


def own_numbers(names: dict[str, str]) -> dict[str, str]:
    """The names; empty if every number also stands in the name, as in COCO's own files."""
    return names if any(short_id(name) != number for number, name in names.items()) else {}
