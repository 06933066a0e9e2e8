"""People and things in pictures: their labels, masks of their regions, and crops to a person."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.pictures import PERSON, Pictures, Region
from bias_pipeline.data.photos import MAX_PIXELS, draw_picture

if TYPE_CHECKING:
    from PIL.Image import Image

Crop = Literal["person", "none"]

VERSION = 1  # raise it whenever any pixel changes
_DRAWN = 128  # pixels a side of drawings
_GREY = (127, 127, 127)


def crop_person(pictures: Pictures, row: int, crop: Crop) -> Image:
    """One picture, or the box of its largest person, padded with grey to a square.

    A picture without annotated people is not cropped: data sets of faces have only faces.
    """
    from PIL import Image

    picture = draw_picture(pictures, row, _DRAWN)
    whole = Image.fromarray(picture.pixels)
    person = largest_person(picture.regions) if crop == "person" else None
    return whole if person is None else crop_to_square(whole, person)


def largest_person(regions: Sequence[Region]) -> Region | None:
    """The person with the largest box within the picture, or None without people.

    Example:
        >>> small, large = (Region("person", (0, 0, side, side), (9, 9)) for side in (2, 5))
        >>> largest_person((small, large)).box
        (0, 0, 5, 5)
    """
    people = [one for one in regions if one.category == PERSON and not one.is_outside]
    return max(people, key=lambda region: region.box[2] * region.box[3], default=None)


def crop_to_square(whole: Image, person: Region) -> Image:
    """A person's box, scaled from the annotated size, in the middle of a square."""
    from PIL import Image

    rows, columns = person.size
    left, top, wide, high = person.box
    across, down = whole.width / columns, whole.height / rows
    first = (max(int(left * across), 0), max(int(top * down), 0))
    last = (
        min(max(round((left + wide) * across), first[0] + 1), whole.width),
        min(max(round((top + high) * down), first[1] + 1), whole.height),
    )
    cut = whole.crop((*first, *last))
    side = max(cut.size)
    square = Image.new("RGB", (side, side), _GREY)
    square.paste(cut, ((side - cut.width) // 2, (side - cut.height) // 2))
    return square


def crop_cache_key(pictures: Pictures, row: int, crop: Crop) -> str:
    """A digest of all that decides a crop: content, edits and the person's box."""
    # All regions decide what an edit paints over
    content = pictures.digest_of_row(row) if pictures.edits else pictures.contents[row]
    place = pictures.regions_of(row) if crop == "person" else None
    place = place and tuple(region for region in place if not region.is_outside)
    parts: tuple[object, ...] = (VERSION, crop, content, [], place)  # existing keys have []
    return hashlib.sha256(repr(parts).encode()).hexdigest()


Labels = tuple[tuple[str, float], ...]  # labels and confidences in [0, 1], the most confident first


def by_confidence(confidences: Mapping[str, float]) -> Labels:
    """Labels by descending confidence; equally confident labels are in alphabetical order.

    Example:
        >>> by_confidence({"dog": 0.5, "cat": 0.5, "horse": 0.75})
        (('horse', 0.75), ('cat', 0.5), ('dog', 0.5))
    """
    return tuple(sorted(confidences.items(), key=lambda pair: (-pair[1], pair[0])))


_FAR = 10  # how far an outline may reach, in sides of the picture
_LONGEST = 1_000_000  # pixels of an outline; its reader needs about 100 bytes for each pixel


def outline_mask(region: Region, height: int, width: int) -> BoolArray:
    """(height, width) the pixels that a region's outline covers, scaled to the picture.

    If the picture is scaled down, pixels that the outline covers only in part count too.
    """
    rows, columns = region.size
    if rows * columns > MAX_PIXELS:
        raise ValueError(f"it is of more than {MAX_PIXELS:,} pixels")
    if region.counts:
        return _scale(_decode(region.counts, rows, columns), height, width)
    within = _fill(region, max(rows, height), max(columns, width))
    return _scale(within, height, width)


def _fill(region: Region, height: int, width: int) -> BoolArray:
    """(height, width) the pixels whose centres lie within a region's polygons."""
    from pycocotools import mask as coco

    rows, columns = region.size
    scale = width / columns, height / rows
    scaled = [[x * scale[k % 2] for k, x in enumerate(points)] for points in region.polygons]
    furthest = max(abs(value) for points in scaled for value in points)
    if furthest > _FAR * max(height, width):  # the reader below would follow it step by step
        raise ValueError("its outline reaches far beyond the picture")
    if sum(map(_length, scaled)) > _LONGEST:
        raise ValueError(f"its outline is longer than {_LONGEST:,} pixels")
    coded = coco.merge(coco.frPyObjects(scaled, height, width))
    return _decode(coded["counts"], height, width)


def box_mask(region: Region, height: int, width: int) -> BoolArray:
    """(height, width) the pixels that a region's box touches, within the picture.

    Example:
        >>> region = Region("person", (1, 0, 1, 2), (2, 4))
        >>> box_mask(region, 2, 4).astype(int).tolist()
        [[0, 1, 0, 0], [0, 1, 0, 0]]
    """
    rows, columns = region.size
    left, top, wide, high = region.box
    mask = np.zeros((height, width), bool, order="F")
    first_row, last_row = _pixel_range(top, high, height / rows)
    first_column, last_column = _pixel_range(left, wide, width / columns)
    mask[first_row:last_row, first_column:last_column] = True
    return mask


def region_mask(region: Region, height: int, width: int) -> BoolArray:
    """(height, width) the pixels of a region's outline, or of its box if it has no outline."""
    if region.has_outline:
        mask = outline_mask(region, height, width)
        if mask.any():
            return mask
    return box_mask(region, height, width)


def union(masks: Iterable[BoolArray], height: int, width: int) -> BoolArray:
    """The union of the masks, stored column by column like run lengths."""
    combined = np.zeros((height, width), bool, order="F")
    for mask in masks:
        combined |= mask
    return combined


def grow_mask(mask: BoolArray, pixels: int) -> BoolArray:
    """A mask that is wider by this number of pixels in all directions, also diagonally.

    Example:
        >>> grow_mask(np.array([[False, False, True]]), 1).astype(int).tolist()
        [[0, 1, 1]]
    """
    if not pixels:
        return mask
    from scipy import ndimage

    width = 2 * pixels + 1
    wider: BoolArray = ndimage.maximum_filter(mask, size=width, mode="constant", cval=0)
    return wider


def _pixel_range(start: float, length: float, scale: float) -> tuple[int, int]:
    """The first pixel and the pixel after the last; slices drop pixels outside the picture."""
    first = int(np.floor(start * scale))
    return max(first, 0), max(int(np.ceil((start + length) * scale)), 0)


def _length(points: Sequence[float]) -> float:
    """The length of an outline in pixels, along its steeper axis."""
    ends = np.array(points, float).reshape(-1, 2)
    return float(np.abs(ends - np.roll(ends, 1, axis=0)).max(axis=1).sum())


def _scale(mask: BoolArray, height: int, width: int) -> BoolArray:
    """The scaled mask, which has every pixel that contains any part of the mask."""
    if mask.shape == (height, width):
        return mask
    scaled: BoolArray = mask
    for axis, length in enumerate((height, width)):
        edges = np.arange(length + 1) * mask.shape[axis]
        first, last = edges[:-1] // length, -(-edges[1:] // length)
        before = np.cumsum(np.insert(scaled, 0, False, axis), axis, dtype=np.int32)
        scaled = before.take(last, axis) > before.take(first, axis)
    return scaled


def _decode(counts: bytes, height: int, width: int) -> BoolArray:
    """(height, width) the mask of run lengths, which follow the columns and begin with zeros."""
    runs = _runs(counts)
    if sum(runs) != height * width:
        raise ValueError(f"its run lengths do not fill {width} x {height} pixels")
    inside = np.arange(len(runs)) % 2 == 1
    return np.repeat(inside, runs).reshape(width, height).T


def box_of_runs(counts: bytes, height: int, width: int) -> tuple[float, float, float, float] | None:
    """Left, top, width and height of a run-length mask, or None if the mask is empty.

    Example:
        >>> box_of_runs(b"131", 1, 5)  # one pixel without, three within, one without
        (1.0, 0.0, 3.0, 1.0)
    """
    runs = _runs(counts)
    if sum(runs) != height * width:
        raise ValueError(f"its run lengths do not fill {width} x {height} pixels")
    ends = np.cumsum(runs)
    within = [(int(end) - run, int(end) - 1) for end, run in zip(ends, runs, strict=True)][1::2]
    within = [(first, last) for first, last in within if last >= first]
    if not within:
        return None
    left, right = within[0][0] // height, within[-1][1] // height
    spans = [
        (0, height - 1) if first // height < last // height else (first % height, last % height)
        for first, last in within
    ]
    top, bottom = min(span[0] for span in spans), max(span[1] for span in spans)
    return float(left), float(top), float(right - left + 1), float(bottom - top + 1)


def _runs(counts: bytes) -> list[int]:
    """The numbers in COCO's compressed run lengths.

    Each byte has six bits, of which five belong to the number, the lowest first. From the third
    number on, the file stores the difference from the number two places earlier. COCO's own reader
    goes beyond the mask if the numbers are wrong.
    """
    runs: list[int] = []
    number = shift = 0
    for byte in counts:
        bits = byte - 48
        if not 0 <= bits < 64:
            raise ValueError("its run lengths contain an invalid character")
        number |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            if bits & 16:
                number -= 1 << shift
            runs.append(number + (runs[-2] if len(runs) > 2 else 0))
            number = shift = 0
    if shift or any(run < 0 for run in runs):
        raise ValueError("its run lengths are cut short")
    return runs
