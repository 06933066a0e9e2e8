"""Files in COCO's formats and their plain tables: captions, objects, splits.

Formats: Lin et al., Microsoft COCO (ECCV 2014), and Chen et al., Microsoft COCO Captions (2015);
splits: Karpathy and Fei-Fei, Deep Visual-Semantic Alignments (CVPR 2015).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bias_pipeline.datasets.columns import HUMAN, IMAGE, MODEL, Kind, Layout
from bias_pipeline.datasets.tables import Rows, open_rows
from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json

RESULTS = "captions: [{image_id, caption}, ...], {id: caption}, or a table with these columns"
CAPTIONS = "COCO captions: {annotations: [{image_id, caption}, ...]}, or a table with these columns"
INSTANCES = (
    "COCO instances: {images, categories, annotations: [{image_id, category_id}, ...]}, "
    "or a table with the columns image_id, category"
)
SPLITS = "Karpathy's {images: [{cocoid, split}, ...]}, or a table with the columns image_id, split"

_MOST_DIGITS = 1000  # of an annotation id


def model_captions(
    path: Path, index: int | None = None, layout: Layout | None = None
) -> tuple[dict[str, str], int, int]:
    """What one captioner wrote.

    Args:
        path: the file.
        index: which of several different captions of an image is taken, in the file's order from
            0; None if there must be one.
        layout: what the user says of the file, and where it is told what was recognised in it.

    Returns:
        Canonical id to caption, in the file's order; how many equal repetitions were collapsed;
        and how many captions were not taken.

    Raises:
        DataError: if the file is broken, or has two different captions of an image and ``index``
            is None.
    """
    rows, image, text = _captions(path, RESULTS, MODEL, layout or Layout())
    found: dict[str, str] = {}
    more: dict[str, list[str]] = {}  # second and later captions, which most files do not have
    repeated = 0
    for number, row in rows.items:
        identifier = rows.id(number, row, image)
        for caption in rows.texts(number, row, text):
            if identifier not in found:
                found[identifier] = caption
            elif caption == found[identifier] or caption in more.get(identifier, ()):
                repeated += 1
            elif index is None:
                rows.refuse(
                    number,
                    f"image id {identifier} stands twice with different captions "
                    f"({found[identifier][:80]!r} and {caption[:80]!r}); keep one of the two, or "
                    "choose one with dataset.multi_caption=true",
                )
            else:
                more.setdefault(identifier, []).append(caption)
    if not found:
        raise DataError(f"{path}: holds no captions; expected {RESULTS}")
    chosen = _numbered(found, more, index or 0)
    return chosen, repeated, len(found) + sum(map(len, more.values())) - len(chosen)


def _captions(path: Path, what: str, kind: Kind, layout: Layout) -> tuple[Rows, str, str]:
    """The rows of a file of captions, its column of ids and that of captions."""
    wanted = ["id", *layout.wanted(IMAGE, kind)]
    rows = open_rows(path, what=what, wanted=wanted, key="annotations", held=kind.name)
    if rows.shape:
        layout.tell(path, rows.shape)
    first, rows = rows.begun()
    if not first:
        return rows, IMAGE.name, kind.name
    return rows, layout.column(path, first, IMAGE), layout.column(path, first, kind)


def _numbered(first: dict[str, str], more: Mapping[str, list[str]], index: int) -> dict[str, str]:
    """The caption of that number of every image that has so many."""
    if index == 0:
        return first
    return {image: more[image][index - 1] for image in first if len(more.get(image, ())) >= index}


def human_captions(
    path: Path, layout: Layout | None = None
) -> tuple[dict[str, tuple[str, ...]], int]:
    """What people wrote.

    Captions of an image stand in the order of their ids, so the order of the file does not matter;
    without ids, in that of the file. (A caption's position decides which attacker reads it.)

    Args:
        path: the file.
        layout: see :func:`model_captions`.

    Returns:
        Canonical id to captions, and how many equal repetitions of an id were collapsed.

    Raises:
        DataError: if the file is broken or an annotation id stands for two captions.
    """
    layout = layout or Layout()
    if layout.id_column == "id":  # in people's files that numbers captions
        layout = replace(layout, id_column=None)
    rows, image, text = _captions(path, CAPTIONS, HUMAN, layout)
    written: dict[str, list[tuple[int, str]]] = {}
    seen: dict[int, tuple[str, Sequence[str]]] = {}
    repeated = 0
    for number, row in rows.items:
        identifier = rows.id(number, row, image)
        captions = rows.texts(number, row, text)
        own = None if image == "id" else _annotation_id(rows, number, row)
        if own is not None and own in seen:
            if seen[own] != (identifier, captions):
                rows.refuse(number, f"annotation id {own} stands twice with different contents")
            repeated += 1
            continue
        if own is not None:
            seen[own] = (identifier, captions)
        place = number if own is None else own
        written.setdefault(identifier, []).extend((place, caption) for caption in captions)
    return {image: _in_order(own) for image, own in written.items()}, repeated


def _annotation_id(rows: Rows, number: int, row: Mapping[str, Any]) -> int | None:
    own = row.get("id")
    if isinstance(own, str) and own.isascii() and own.isdigit():
        if len(own) > _MOST_DIGITS:
            rows.refuse(number, f"annotation id {own[:20]}... has {len(own):,} digits")
        return int(own)
    return own if type(own) is int else None


def _in_order(captions: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(caption for _, caption in sorted(captions, key=lambda pair: pair[0]))


def objects_by_id(path: Path) -> dict[str, frozenset[str]]:
    """The objects in each image by category name; boxes, if there are any, are not needed.

    Raises:
        DataError: if the file is broken or an annotation refers to an unknown category.
    """
    found: dict[str, set[str]] = {}
    for image, category in _json_objects(path) if path.suffix == ".json" else _table_objects(path):
        own = found.setdefault(image, set())
        if category is not None:
            own.add(category)
    return {image: frozenset(names) for image, names in found.items()}


def _json_objects(path: Path) -> Iterator[tuple[str, str | None]]:
    data = expect(load_json(path, what=INSTANCES), dict, path, "")
    images, categories, annotations = (
        Rows(path, f"{key} entry", None, _listed(data, key, path))
        for key in ("images", "categories", "annotations")
    )
    for number, row in images.items:
        yield images.id(number, row, "id"), None
    names = {
        categories.id(number, row, "id"): categories.text(number, row, "name")
        for number, row in categories.items
    }
    for number, row in annotations.items:
        category = annotations.id(number, row, "category_id")
        if category not in names:
            annotations.refuse(number, f"category_id {category} is none of the categories")
        yield annotations.id(number, row, "image_id"), names[category]


def _listed(
    data: Mapping[str, Any], key: str, path: Path
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if key not in data:
        raise DataError(f"{path}: key {key!r} is absent; expected {INSTANCES}")
    for number, entry in enumerate(expect(data[key], list, path, key)):
        yield number, expect(entry, dict, path, f"{key}[{number}]")


def _table_objects(path: Path) -> Iterator[tuple[str, str | None]]:
    rows = open_rows(path, what=INSTANCES, wanted=("image_id", "category"))
    rows.require("image_id", "category")
    for number, row in rows.items:
        empty = rows.value(number, row, "category") in (None, "")  # an image without objects
        category = None if empty else rows.text(number, row, "category")
        yield rows.id(number, row, "image_id"), category


def splits_by_id(path: Path) -> dict[str, str]:
    """The part (train, val, test, ...) that each image belongs to.

    Raises:
        DataError: if the file is broken or an image is in two parts.
    """
    karpathy = path.suffix == ".json"
    rows = open_rows(
        path, what=SPLITS, wanted=("image_id", "split"), key="images" if karpathy else None
    )
    if not karpathy:
        rows.require("image_id", "split")
    found: dict[str, str] = {}
    for number, row in rows.items:
        name = "cocoid" if karpathy and "image_id" not in row else "image_id"
        identifier, part = rows.id(number, row, name), rows.text(number, row, "split")
        if found.setdefault(identifier, part) != part:
            rows.refuse(number, f"image id {identifier} is in {found[identifier]!r} and {part!r}")
    return found
