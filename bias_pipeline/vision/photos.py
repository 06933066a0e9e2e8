"""Finds and reads the photos of a folder.

They are returned upright (EXIF), with three channels of eight bits, first frame only. Only decoders
of picture formats are used, and none for a picture too large for memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.corpus.image_ids import ENDINGS, canonical_id, short_id
from bias_pipeline.errors import DataError, ResourceError

if TYPE_CHECKING:
    from PIL.Image import Image

# Detected by content, not by ending; some other formats of Pillow start programs.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
MAX_PIXELS = 89_478_485  # Pillow's limit for a warning: a quarter of a gigabyte in three channels
MAX_STRETCH = 100
_JPEG_END, _TAIL = b"\xff\xd9", 1024  # cameras write a few bytes after the end
_STRIP = 256  # rows
_FIRST_LYING = 5  # EXIF orientations from this one on swap rows and columns


class UnreadableError(Exception):
    """Why a photo cannot be read.

    Args:
        reason: in words.
        lasting: whether the file's content is broken, so that trying again is useless.
    """

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


def image_id(name: str) -> str:
    """The image that a file shows: its name without the ending, as a canonical id.

    COCO's long names become their numbers, as in COCO's own annotations.

    Example:
        >>> image_id("000000000139.jpg"), image_id("COCO_val2014_000000000042.jpg")
        ('139', '42')
    """
    return canonical_id(short_id(name))


def find_photos(folder: Path) -> dict[str, Path]:
    """The photos of a folder by image id; subfolders, hidden and other files are skipped.

    Raises:
        DataError: if two files have one image id, or a name is not text.
        ResourceError: if there is no such folder, or no photo in it.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _is_photo(entry))
    except OSError as error:
        raise ResourceError(
            f"{folder}: cannot be read ({error.strerror}); name a folder of photos"
        ) from error
    if not names:
        raise ResourceError(f"{folder}: no photos in it; known endings: {', '.join(ENDINGS)}")
    return _by_id(folder, names)


def _is_photo(entry: os.DirEntry[str]) -> bool:
    if entry.name[0] == "." or not entry.name.lower().endswith(ENDINGS):
        return False
    try:
        return entry.is_file()
    except OSError as error:
        raise ResourceError(
            f"{entry.path}: cannot be read ({error.strerror}); repair or remove it"
        ) from error


def _by_id(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for name in names:
        if not name.isprintable():  # bytes that are not UTF-8, line breaks
            raise DataError(f"{folder}: the file name {name!r} cannot be an image id; rename it")
        first = paths.setdefault(image_id(name), folder / name)
        if first.name != name:
            raise DataError(
                f"{folder}: {first.name} and {name} are both image {image_id(name)}; "
                "keep one of the two, or rename one"
            )
    return paths


def read_photo(path: Path) -> Image:
    """A photo as an upright RGB image.

    Transparency becomes white, sixteen bits become eight, an animation becomes its first frame. 32
    bits a channel are refused: the format does not define white.

    Raises:
        UnreadableError: with the reason, if it is no picture, or broken, or too large.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        if path.stat().st_size == 0:
            raise UnreadableError("the file is empty")
        with _opened(path, _formats()) as opened:
            _check_size(opened)
            _check_depth(opened)
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
        raise UnreadableError(str(error) or type(error).__name__, lasting=not failed) from error


def photo_size(path: Path) -> tuple[int, int]:
    """Height and width of an upright photo; (0, 0) if the file has none."""
    from PIL import ExifTags

    try:
        with _opened(path, _formats()) as opened:
            lies = opened.getexif().get(ExifTags.Base.Orientation, 1) >= _FIRST_LYING
            return (opened.width, opened.height) if lies else (opened.height, opened.width)
    except Exception:  # decoders raise any exception; reading reports it
        return 0, 0


def fault_of(path: Path) -> str | None:
    """Why a photo cannot be read, None if it seems readable.

    A JPEG with valid beginning and end is not decoded: its decoder mostly ignores damage in
    between. All others are read, once per process unless size or time change.
    """
    try:
        status = path.stat()
    except OSError as error:
        return error.strerror or str(error)
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
    """Whether its header can be read and it is not cut off."""
    try:
        with path.open("rb") as file:
            file.seek(-min(path.stat().st_size, _TAIL), os.SEEK_END)
            ends = _JPEG_END in file.read()
        with _opened(path, ["JPEG"]) as opened:
            _check_size(opened)
    except UnreadableError:
        raise
    except Exception:  # decoders raise any exception; reading reports it
        return False
    return ends


def _opened(path: Path, formats: Sequence[str]) -> Image:
    """An opened file; our own check replaces Pillow's size warning."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return Image.open(path, formats=list(formats))


def _formats() -> list[str]:
    """The supported formats that this Pillow has."""
    from PIL import Image

    Image.init()  # otherwise only a few are loaded
    return [name for name in FORMATS if name in Image.OPEN]


def _check_size(image: Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise UnreadableError(f"more than {MAX_PIXELS:,} pixels")
    short, long = sorted(image.size)
    if long > MAX_STRETCH * short:  # scaled to a model's height it would fill the memory
        raise UnreadableError(f"more than {MAX_STRETCH} times as long as wide")


def _check_depth(image: Image) -> None:
    """Refuse pixel types without a defined white."""
    if image.mode == "F" or (image.mode == "I" and image.format == "TIFF"):
        raise UnreadableError("of 32 bits a channel; save it with 8 or 16")


def _rgb(image: Image) -> Image:

    if image.mode.startswith("I;16"):
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
