"""Folders with a .txt file for each picture. The file's name is the image id."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from bias_pipeline.corpus.image_ids import ENDINGS
from bias_pipeline.data.columns import IMAGE, MODEL
from bias_pipeline.errors import DataError, ResourceError, inflect
from bias_pipeline.io.json_files import decode
from bias_pipeline.io.kept_files import note_opened

ENDING = ".txt"
COLUMNS = (IMAGE.name, MODEL.name)
WHAT = "one caption of one picture"

_MAX_BYTES = 1 << 20  # bytes of one caption


def is_text_folder(path: Path) -> bool:
    """Whether a folder has .txt files and, besides them, only pictures and hidden files."""
    endings = {Path(name).suffix.lower() for name in _names(path)} if path.is_dir() else set()
    return ENDING in endings and endings <= {ENDING, *ENDINGS}


def text_files(folder: Path) -> list[Path]:
    return [folder / name for name in sorted(_names(folder)) if name.lower().endswith(ENDING)]


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.name[0] != "." and entry.is_file()]
    except OSError as error:
        raise ResourceError(f"{folder}: cannot be read ({error.strerror})") from error


def text_rows(folder: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Number, image id and caption of each file."""
    note_opened(folder.absolute())
    for number, path in enumerate(text_files(folder)):
        note_opened(path.absolute())
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise DataError(
                f"{path}: {size:,} bytes are more than the {_MAX_BYTES:,} of {WHAT}; name a "
                "folder with one file for each picture"
            )
        try:
            text = decode(path.read_bytes(), path, WHAT)
        except OSError as error:
            raise ResourceError(f"{path}: cannot be read ({error.strerror})") from error
        yield number, dict(zip(COLUMNS, (path.stem, text.strip()), strict=True))


def check_not_one_of_many(path: Path) -> None:
    folder = path.resolve().parent
    several = is_text_folder(folder) and len(text_files(folder)) > 1
    if path.suffix.lower() == ENDING and several:
        raise DataError(
            f"{path} is {WHAT}; name its folder, {path.parent if path.parent.name else folder}, "
            f"with {inflect(len(text_files(folder)), 'such files')}"
        )
