"""Finds the pictures of a data set and reads their regions, also from results of detectors.

Formats: COCO's instances, and COCO's results, which detectors write (Lin et al., ECCV 2014).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.image_ids import first_ids, id_key, short_id
from bias_pipeline.corpus.object_names import NAMES_BY_NUMBER, coco_name, plain_label
from bias_pipeline.corpus.pictures import MissingPicture, Region, extent
from bias_pipeline.data.blocks import blocks_of
from bias_pipeline.data.columns import IMAGE, Layout
from bias_pipeline.data.file_names import listed_names
from bias_pipeline.data.image_numbers import LabelledImages, noting_names
from bias_pipeline.data.photos import MAX_PIXELS, fault_of, find_photos
from bias_pipeline.data.regions import Labels, box_of_runs, by_confidence
from bias_pipeline.data.tables import Rows, check_file, is_json, open_rows
from bias_pipeline.declared import is_number
from bias_pipeline.errors import DataError, inflect
from bias_pipeline.io.json_files import expect, load_json

WHAT = (
    "COCO instances {images, categories, annotations: [{image_id, category_id, bbox, "
    "segmentation}, ...]}, or results [{image_id, category_id, bbox, segmentation, score}, ...]"
)
_FEWEST = 6  # a polygon has at least so many numbers
_UNKNOWN = (0, 0)  # as a size, it stands for the size of the picture's file

Regions = Mapping[str, tuple[Region, ...]]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class PictureFiles:
    """Pictures and their annotated regions, by image id."""

    # The file of each image id; without a folder, a placeholder
    photos: Mapping[str, Path | MissingPicture] = field(default_factory=dict)
    # The regions of each image id; images without annotation are absent
    regions: Regions = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        images: Path | None,
        regions: Path | None,
        instances: Path | None,
        layout: Layout | None = None,
    ) -> PictureFiles:
        """Find pictures and read annotations if a folder or a file is named."""
        if images is None:
            if regions is None:
                return cls()
            annotations = regions_by_id(check_file(regions, "dataset.regions"), layout)
            _check_sizes(regions, annotations)
            return cls(dict.fromkeys(annotations, MissingPicture()), annotations)
        source = check_file(regions, "dataset.regions") if regions else instances
        if source is None or (not regions and not is_json(source)):
            return cls(find_photos(images))
        return cls(find_photos(images), regions_by_id(source, layout))

    def photo(self, image: str) -> Path | MissingPicture | None:
        """The picture of an image; picture files have short ids."""
        return self.photos.get(short_id(image))

    def regions_of(self, image: str) -> tuple[Region, ...] | None:
        """The annotated regions of an image, or None if it was not annotated."""
        return self.regions.get(short_id(image))

    def with_ids_of_labels(self, images: LabelledImages, source: Path | None) -> PictureFiles:
        """A copy in which pictures and regions have the ids of the label file."""
        photos = images.photos(self.photos)
        regions = images.rename(source, self.regions)
        if photos is self.photos and regions is self.regions:
            return self
        short = {short_id(image): each for image, each in regions.items()}
        if len(short) < len(regions):
            raise DataError(
                f"{source}: two images have the same file_name without folders; give each "
                "picture a name of its own"
            )
        return PictureFiles(photos, short)


def _check_sizes(path: Path, annotations: Regions) -> None:
    unsized = [
        image
        for image, image_regions in annotations.items()
        if not all(all(one.size) for one in image_regions)
    ]
    if unsized:
        raise DataError(
            f"{path}: has no size of the picture of image {min(unsized, key=id_key)}; name the "
            "folder of the pictures (dataset.images=DIR), or a file whose images have "
            "width and height"
        )


def regions_by_id(path: Path, layout: Layout | None = None) -> dict[str, tuple[Region, ...]]:
    """The regions of each image of the file.

    Annotations with neither an outline nor a box of positive size are ignored.
    """
    data = load_json(path, what=WHAT)
    if isinstance(data, list):
        rows = Rows(path, "entry", None, blocks_of(_entries(data, path, "")))
        return _collect_regions(rows, NAMES_BY_NUMBER, {})  # results have only COCO's numbers
    whole = expect(data, dict, path, "")
    if layout is not None:
        layout.names[path] = listed_names(path, whole.get("images"))
    images, categories, annotations = (
        Rows(path, f"{key} entry", None, blocks_of(_entries(whole.get(key), path, key)))
        for key in ("images", "categories", "annotations")
    )
    sizes = {short_id(images.id(n, row, "id")): _size(row) for n, row in images.items}
    names = {
        categories.id(n, row, "id"): coco_name(categories.text(n, row, "name"))
        for n, row in categories.items
    }
    return _collect_regions(annotations, names, sizes)


def _entries(entries: object, path: Path, place: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, entry in enumerate(expect(entries, list, path, place)):
        yield number, expect(entry, dict, path, f"{place}[{number}]")


def _size(row: Mapping[str, Any]) -> tuple[int, int]:
    height, width = row.get("height"), row.get("width")
    if type(height) is int and type(width) is int and height > 0 and width > 0:
        return height, width
    return _UNKNOWN


def _collect_regions(
    rows: Rows, names: Mapping[str, str], sizes: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[Region, ...]]:
    """Regions by image; an image is left out if no annotation has an outline or a box."""
    collected: dict[str, list[Region]] = {image: [] for image in sizes}
    placeless = set()
    for number, row in rows.items:
        image = short_id(rows.id(number, row, "image_id"))
        category = rows.id(number, row, "category_id")
        if category not in names:
            rows.refuse(number, f"category_id {category} is not among the categories")
        region = _region(rows, number, row, names[category], sizes.get(image, _UNKNOWN))
        if region is None:
            placeless.add(image)
        else:
            collected.setdefault(image, []).append(region)
    return {
        image: tuple(regions)
        for image, regions in collected.items()
        if regions or image not in placeless
    }


def _region(
    rows: Rows, number: int, row: Mapping[str, Any], category: str, size: tuple[int, int]
) -> Region | None:
    outline = row.get("segmentation") or None
    polygons: tuple[tuple[float, ...], ...] = ()
    counts = b""
    if isinstance(outline, list):
        polygons = tuple(_polygon(rows, number, points) for points in outline)
    elif outline is not None:
        counts, mask_size = _run_lengths(rows, number, outline)
        if size not in (_UNKNOWN, mask_size):
            rows.refuse(
                number,
                f"its mask is of {mask_size[1]} x {mask_size[0]} pixels, its image of "
                f"{size[1]} x {size[0]}",
            )
        size = mask_size
    box = None if row.get("bbox") is None else _box(rows, number, row["bbox"])
    if box is None or not (box[2] and box[3]):  # detectors write boxes of no area
        try:
            box = box_of_runs(counts, *size) if counts else extent(polygons) if polygons else None
        except ValueError as error:
            rows.refuse(number, f"a mask of segmentation cannot be used: {error}")
    if box is None:
        return None
    score = row.get("score", 1.0)
    if not isinstance(score, int | float) or not 0 <= score <= 1:
        rows.refuse(number, f"score {score!r} is not from 0 to 1")
    return Region(category, box, size, polygons, counts, float(score))


def _box(rows: Rows, number: int, values: object) -> Box:
    box = _numbers(rows, number, values, "bbox")
    if len(box) != 4 or box[2] < 0 or box[3] < 0:
        rows.refuse(number, "bbox must be four numbers: left, top, width, height")
    return box[0], box[1], box[2], box[3]


def _polygon(rows: Rows, number: int, points: object) -> tuple[float, ...]:
    outline = _numbers(rows, number, points, "segmentation")
    if len(outline) < _FEWEST or len(outline) % 2:
        rows.refuse(number, "a polygon of segmentation needs three points or more, x and y each")
    return outline


def _numbers(rows: Rows, number: int, values: object, key: str) -> tuple[float, ...]:
    listed: list[Any] = values if isinstance(values, list) else [None]
    if not all(map(is_number, listed)):
        rows.refuse(number, f"{key} must be a list of numbers")
    return tuple(float(value) for value in listed)


def _run_lengths(rows: Rows, number: int, outline: object) -> tuple[bytes, tuple[int, int]]:
    """Decode run lengths of COCO's tools, and the height and width of their mask."""
    mask = outline if isinstance(outline, Mapping) else {}
    size, counts = mask.get("size"), mask.get("counts")
    if not (
        isinstance(size, list) and len(size) == 2 and all(type(s) is int and s > 0 for s in size)
    ):
        rows.refuse(number, "segmentation is neither polygons nor {size: [height, width], counts}")
    shape = (size[0], size[1])
    if isinstance(counts, str):
        return counts.encode(), shape
    if not isinstance(counts, list) or not all(type(c) is int and c >= 0 for c in counts):
        rows.refuse(number, "counts of segmentation are neither text nor whole numbers")
    if shape[0] * shape[1] > MAX_PIXELS:
        rows.refuse(number, f"its mask is of more than {MAX_PIXELS:,} pixels")
    if sum(counts) != shape[0] * shape[1]:
        rows.refuse(number, f"its run lengths do not fill {shape[1]} x {shape[0]} pixels")
    from pycocotools import mask as coco

    coded: Any = {"size": list(shape), "counts": list(counts)}
    return coco.frPyObjects(coded, *shape)["counts"], shape


def readable_pictures(
    pictures: PictureFiles, images: Sequence[str], folder: Path | None, *, strict: bool
) -> tuple[PictureFiles, list[str]]:
    """The readable pictures of a data set's images, and notes on unreadable pictures."""
    if not pictures.photos:
        return pictures, []
    place = "dataset.regions" if folder is None else f"{folder} (dataset.images)"
    _check_distinct(pictures, images, place)
    absent = [image for image in images if pictures.photo(image) is None]
    if strict:
        if absent:
            raise DataError(
                f"{_count_of(absent, images)} no picture in {place}, such as {first_ids(absent)}; "
                "add them, or score the others with dataset.strict=false"
            )
        return pictures, []
    notes = []
    if absent:
        notes.append(f"{_count_of(absent, images)} no picture in {place}")
    photos = {image: pictures.photo(image) for image in images}
    faults = {i: fault_of(p) if isinstance(p, Path) else None for i, p in photos.items()}
    broken = [image for image, fault in faults.items() if fault]
    if broken:
        first = min(broken, key=id_key)
        notes.append(
            f"{_count_of(broken, images)} a broken picture, such as {first} ({faults[first]}): "
            "it counts as absent"
        )
        names = {str(pictures.photo(image)) for image in broken}
        sound = {image: path for image, path in pictures.photos.items() if str(path) not in names}
        pictures = replace(pictures, photos=sound)
    return pictures, [f"{note}; the others are scored" for note in notes]


def _check_distinct(pictures: PictureFiles, images: Sequence[str], place: str) -> None:
    """Refuse two images that would have the same picture, such as a/1.jpg and b/1.jpg."""
    first: dict[str, str] = {}
    for image in images:
        other = first.setdefault(short_id(image), image)
        if other != image and pictures.photo(image) is not None:
            raise DataError(
                f"images {other} and {image} would both have picture {short_id(image)} in "
                f"{place}; write ids without folders, each once, and name each picture by its "
                "id"
            )


def _count_of(some: Sequence[str], images: Sequence[str]) -> str:
    return inflect(len(some), f"of {len(images)} labelled images have")


DETECTIONS = "detections: rows with image_id, label (or category_id) and score (or confidence)"
_LABELS = ("label", "category_id")
_CONFIDENCES = ("score", "confidence")


def detections_by_id(path: Path, layout: Layout | None = None) -> dict[str, Labels]:
    """The labels that a file of detections has for each image.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "seen.csv")
        ...     _ = path.write_text(chr(10).join(["image_id,label,score", "7,Dog,0.9", "7,dog,.5"]))
        ...     detections_by_id(path)
        {'7': (('dog', 0.9),)}
    """
    layout = layout or Layout()
    wanted = ("image_id", *_LABELS, *_CONFIDENCES, *layout.columns_wanted(IMAGE))
    rows = open_rows(path, what=DETECTIONS, wanted=wanted)
    rows.require("image_id")
    if not any(rows.has(name) for name in _LABELS):
        rows.require(_LABELS[0])
    if not any(rows.has(name) for name in _CONFIDENCES):
        rows.require(_CONFIDENCES[0])
    first, rows = rows.peek()
    rows = noting_names(rows, first, "image_id", layout)
    detections: dict[str, dict[str, float]] = {}
    for number, row in rows.items:
        label = _label(rows, number, row)
        confidences = detections.setdefault(rows.id(number, row, "image_id"), {})
        confidences[label] = max(confidences.get(label, 0.0), _confidence(rows, number, row))
    if not detections:
        raise DataError(f"{path}: holds no row; expected {DETECTIONS}")
    return {image: by_confidence(confidences) for image, confidences in detections.items()}


def _label(rows: Rows, number: int, row: Mapping[str, Any]) -> str:
    name, category = _LABELS
    if category in row and name not in row:
        identifier = rows.id(number, row, category)
        if identifier not in NAMES_BY_NUMBER:
            rows.refuse(
                number, f"category_id {identifier} is not one of COCO's; give 'label', its name"
            )
        return NAMES_BY_NUMBER[identifier]
    label = plain_label(rows.text(number, row, name))
    if not label:
        rows.refuse(number, "the label is blank; name what was seen, or leave the row out")
    return coco_name(label)


def _confidence(rows: Rows, number: int, row: Mapping[str, Any]) -> float:
    name = next((column for column in _CONFIDENCES if column in row), _CONFIDENCES[0])
    raw = rows.value(number, row, name)
    try:
        value = float("nan" if isinstance(raw, bool) else raw)
    except (TypeError, ValueError, OverflowError):
        value = float("nan")
    if not 0 <= value <= 1:
        rows.refuse(number, f"{name!r} is {str(raw)[:40]!r}; a confidence is a number from 0 to 1")
    return value
