"""Finds and reads the photos of a folder, applies edits to pictures, and makes thumbnails.

Photos are returned upright (EXIF), with three channels of eight bits; only the first frame of an
animation is read. Only decoders of picture formats are used, and a picture too large for memory is
not decoded. The pixels of a picture come from a file or a drawing.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

import numpy as np

from bias_pipeline.corpus.image_ids import ENDINGS, canonical_id, short_id
from bias_pipeline.corpus.pictures import Drawn, MissingPicture, Pictures, Pixels, Region
from bias_pipeline.errors import DataError, NotApplicableError, ResourceError
from bias_pipeline.io.arrays import Filling, mapped_table
from bias_pipeline.io.kept_files import note_opened

if TYPE_CHECKING:
    from PIL.Image import Image

# Formats are detected by content, not by ending; some other formats of Pillow start programs.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
MAX_PIXELS = 89_478_485  # Pillow's limit for a warning: a quarter of a gigabyte in three channels
MAX_STRETCH = 100
_JPEG_END, _TAIL = b"\xff\xd9", 1024  # cameras write a few bytes after the end
_STRIP = 256  # rows
_LYING = range(5, 9)  # EXIF orientations that swap rows and columns


class UnreadableError(Exception):
    """The error with the reason why a photo cannot be read."""

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


def image_id(name: str) -> str:
    """The id of the image in a file: the file's name without its ending, in its one form.

    COCO's long names become their numbers, as in COCO's own annotations.

    Example:
        >>> image_id("000000000139.jpg"), image_id("COCO_val2014_000000000042.jpg")
        ('139', '42')
    """
    return canonical_id(short_id(name))


def find_photos(folder: Path) -> dict[str, Path]:
    """The photos of a folder by image id; subfolders, hidden and other files are skipped.

    A link to an absent file is a photo that cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _is_photo(entry))
        note_opened(folder.absolute())
    except OSError as error:
        raise ResourceError(
            f"{folder}: cannot be read ({error.strerror}); name a folder of photos"
        ) from error
    if not names:
        raise ResourceError(f"{folder}: no photos in it; known endings: {', '.join(ENDINGS)}")
    paths: dict[str, Path] = {}
    for name in names:
        # Bytes that are not UTF-8 and line breaks are refused; all blanks are allowed, such as the
        # narrow blank of macOS
        if not all(sign.isprintable() or category(sign) == "Zs" for sign in name):
            raise DataError(f"{folder}: the file name {name!r} cannot be an image id; rename it")
        first = paths.setdefault(image_id(name), folder / name)
        if first.name != name:
            raise DataError(
                f"{folder}: {first.name} and {name} are both image {image_id(name)}; "
                "keep one of the two, or rename one"
            )
    return paths


def _is_photo(entry: os.DirEntry[str]) -> bool:
    if entry.name[0] == "." or not entry.name.lower().endswith(ENDINGS):
        return False
    try:
        return entry.is_file() or (entry.is_symlink() and not Path(entry.path).exists())
    except OSError as error:
        raise ResourceError(
            f"{entry.path}: cannot be read ({error.strerror}); repair or remove it"
        ) from error


def read_photo(path: Path) -> Image:
    """A photo as an upright RGB image.

    Transparency becomes white, sixteen bits become eight, an animation becomes its first frame. 32
    bits a channel are refused: the format does not define white.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        if path.stat().st_size == 0:
            raise UnreadableError("the file is empty")
        with _open_photo(path, _formats()) as opened:
            _check_size(opened)
            if opened.mode == "F" or (opened.mode == "I" and opened.format == "TIFF"):
                raise UnreadableError("of 32 bits a channel; save it with 8 or 16")
            opened.load()
            if _has_exif(opened):
                ImageOps.exif_transpose(opened, in_place=True)  # otherwise Pillow makes copies
            return _rgb(opened)
    except UnreadableError:
        raise
    except UnidentifiedImageError as error:
        raise UnreadableError(f"not a picture in a known format ({', '.join(FORMATS)})") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnreadableError(f"more than {MAX_PIXELS:,} pixels") from error
    except Exception as error:  # decoders raise any exception
        failed = isinstance(error, MemoryError) or getattr(error, "errno", None) is not None
        words = _reason(path, error) if isinstance(error, OSError) else str(error)
        raise UnreadableError(words or type(error).__name__, lasting=not failed) from error


def _reason(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"a link to {path.readlink()}, which is absent"
    return error.strerror or str(error)


def photo_size(path: Path) -> tuple[int, int]:
    """Height and width of an upright photo; (0, 0) if the file does not tell."""
    from PIL import ExifTags

    try:
        with _open_photo(path, _formats()) as opened:
            exif = opened.getexif() if _has_exif(opened) else {}
            lies = exif.get(ExifTags.Base.Orientation, 1) in _LYING
            width, height = opened.size
            tags: Any = getattr(opened, "tag_v2", None)
            if tags:  # newer versions of Pillow have already turned the size of a TIFF
                width, height = tags[ExifTags.Base.ImageWidth], tags[ExifTags.Base.ImageLength]
            return (width, height) if lies else (height, width)
    except Exception:  # decoders raise any exception; reading reports it
        return 0, 0


def _has_exif(image: Image) -> bool:
    """Whether a photo's EXIF can be read. Otherwise the photo is shown as it is stored."""
    try:
        image.getexif()
    except MemoryError:
        raise
    except Exception:  # readers of EXIF raise any exception
        return False
    return True


def fault_of(path: Path) -> str | None:
    """The reason why a photo cannot be read, or None if it seems readable.

    A JPEG with a valid beginning and end is not decoded, since decoders mostly ignore damage in
    between. All other photos are read, once per process unless their size or time changes.
    """
    try:
        status = path.stat()
    except OSError as error:
        return _reason(path, error)
    return _fault(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1_000_000)
def _fault(path: Path, size: int, changed: int) -> str | None:
    del size, changed  # the arguments identify a version of the file
    try:
        if not _is_whole_jpeg(path):
            read_photo(path)
    except UnreadableError as error:
        return str(error)
    return None


def _is_whole_jpeg(path: Path) -> bool:
    """Whether the photo's header can be read and the photo is not cut off."""
    try:
        with path.open("rb") as file:
            file.seek(-min(path.stat().st_size, _TAIL), os.SEEK_END)
            ends = _JPEG_END in file.read()
        with _open_photo(path, ["JPEG"]) as opened:
            _check_size(opened)
    except UnreadableError:
        raise
    except Exception:  # decoders raise any exception; reading reports it
        return False
    return ends


def _open_photo(path: Path, formats: Sequence[str]) -> Image:
    """Open a photo; our own check replaces Pillow's size warning."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return Image.open(path, formats=list(formats))


def _formats() -> list[str]:
    from PIL import Image

    Image.init()  # otherwise only a few are loaded
    return [name for name in FORMATS if name in Image.OPEN]


def _check_size(image: Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise UnreadableError(f"more than {MAX_PIXELS:,} pixels")
    short, long = sorted(image.size)
    if long > MAX_STRETCH * short:  # scaled to a model's height it would fill the memory
        raise UnreadableError(f"more than {MAX_STRETCH} times as long as wide")


def _rgb(image: Image) -> Image:
    if image.mode in ("I;16B", "I;16L", "I;16N"):  # in the byte order of other machines
        image = image.convert("I").convert("I;16")
    if image.mode == "I;16":
        image = image.point(lambda value: value / 257, "L")
    if "A" in image.getbands() or "transparency" in image.info:
        return _on_white(image)
    return image.convert("RGB")


def _on_white(image: Image) -> Image:
    """A transparent picture on white, in strips to save memory."""
    from PIL import Image

    whole = Image.new("RGB", image.size)
    for top in range(0, image.height, _STRIP):
        strip = image.crop((0, top, image.width, min(top + _STRIP, image.height))).convert("RGBA")
        ground = Image.new("RGBA", strip.size, "white")
        whole.paste(Image.alpha_composite(ground, strip).convert("RGB"), (0, top))
    return whole


_STRETCH = 1.1  # rounding tolerance for sides of small pictures


def draw_picture(pictures: Pictures, row: int, side: int) -> Drawn:
    """One picture with its edits applied, and its regions.

    A file is edited in its original size, since resizing first would mix masked pixels into their
    surroundings. A drawing has sides of ``side`` pixels.
    """
    file = pictures.files[row]
    if file is None:
        raise DataError(f"picture {row} of {len(pictures)} is absent")
    if isinstance(file, MissingPicture):
        raise NotApplicableError(
            "there are no pictures, only regions (dataset.regions); name their folder "
            "(dataset.images=DIR), or choose encoder.backbone=boxes, which needs only regions"
        )
    picture = _photo(file, pictures.regions_of(row)) if isinstance(file, Path) else file.draw(side)
    try:
        for edit in pictures.edits:
            picture = Drawn(edit.apply(picture), picture.regions)
    except ValueError as error:
        raise DataError(f"{file}: a mask in its annotations cannot be used: {error}") from error
    return picture


def _photo(file: Path, regions: Iterable[Region] | None) -> Drawn:
    try:
        photo = read_photo(file)
    except UnreadableError as error:
        raise DataError(
            f"{file}: {error}; repair or remove it (with dataset.strict=false an absent picture "
            "is not scored)"
        ) from error
    return with_regions(file, photo, regions or ())


def with_regions(file: Path, photo: Image, regions: Iterable[Region]) -> Drawn:
    size = (photo.height, photo.width)
    known = with_sizes(regions, size)
    for one in known:
        # A scaled picture may differ by rounding; boxes in shares (1, 1) have no shape
        ratio = one.size[1] * size[0] / (one.size[0] * size[1])
        if one.size != (1, 1) and not 1 / _STRETCH <= ratio <= _STRETCH:
            raise DataError(
                f"{file}: the picture has {size[1]} x {size[0]} pixels, and its annotations "
                f"are of another shape, {one.size[1]} x {one.size[0]}; name the annotations of "
                "these pictures (dataset.regions)"
            )
    return Drawn(np.asarray(photo), known)


def with_sizes(regions: Iterable[Region], size: tuple[int, int]) -> tuple[Region, ...]:
    """Regions with the size of their picture; a missing size is read from the file.

    Example:
        >>> with_sizes([Region("dog", (0, 0, 1, 1), (0, 0))], (2, 3))[0].size
        (2, 3)
    """
    return tuple(one if all(one.size) else replace(one, size=size) for one in regions)


def in_size(regions: tuple[Region, ...], file: Path | MissingPicture) -> tuple[Region, ...]:
    """Regions with the size of their picture; the file is opened only if this is needed."""
    if isinstance(file, MissingPicture) or all(all(region.size) for region in regions):
        return regions
    return with_sizes(regions, photo_size(file))


VERSION = 1  # raise it whenever any pixel changes


def read_pixels(pictures: Pictures, row: int, side: int) -> Pixels:
    """(side, side, 3) one picture with its edits applied, resized to a square."""
    from PIL import Image

    pixels = draw_picture(pictures, row, side).pixels
    if pixels.shape[:2] == (side, side):
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((side, side), reducing_gap=2.0))


def pixel_table(pictures: Pictures, side: int, cache: str | None) -> Pixels:
    """(N, side, side, 3) all pictures; memory-mapped from a file if there is a cache."""
    key = f"pixels {VERSION} {side} {pictures.pixels_digest}"
    shape = (len(pictures), side, side, 3)
    rows = ((row, read_pixels(pictures, row, side)) for row in range(len(pictures)))
    return mapped_table(cache, key, lambda: Filling(shape, np.uint8, rows))


SIDE = 64  # pixels
MOST_SIGNS = 12_000  # characters of a thumbnail; noise of this size has some 7,000
_QUALITY = 80
_GROUND = "white"
_SIGNS = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def thumbnail(picture: Image) -> str:
    """A picture within a square of :data:`SIDE` pixels, as a JPEG in base64.

    Example:
        >>> from PIL import Image
        >>> read_thumbnail(thumbnail(Image.new("RGB", (300, 200), "red"))).size
        (64, 64)
    """
    from PIL import Image

    small = picture.convert("RGB")
    small.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    square = Image.new("RGB", (SIDE, SIDE), _GROUND)
    square.paste(small, ((SIDE - small.width) // 2, (SIDE - small.height) // 2))
    return jpeg(square)


# Otherwise Pillow writes the metadata of the file
NO_METADATA = {"exif": b"", "comment": b"", "xmp": b""}


def jpeg(picture: Image) -> str:
    """A picture as a JPEG in base64, without metadata."""
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=_QUALITY, **NO_METADATA)
    return base64.b64encode(content.getvalue()).decode("ascii")


def read_thumbnail(text: str) -> Image:
    """Read the picture that :func:`thumbnail` wrote.

    Example:
        >>> read_thumbnail("<script>")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.DataError: no JPEG of 64 x 64 pixels
    """
    from PIL import Image

    try:
        if len(text) > MOST_SIGNS or not _SIGNS.fullmatch(text):
            raise ValueError
        image = Image.open(io.BytesIO(base64.b64decode(text, validate=True)), formats=["JPEG"])
        if image.size != (SIDE, SIDE):
            raise ValueError
        return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, binascii.Error) as error:
        raise DataError(f"no JPEG of {SIDE} x {SIDE} pixels") from error
