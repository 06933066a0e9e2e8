"""Reads a folder of Parquet files that one program wrote in parts as one file.

Names of parts differ only in digits, as ``train-00000-of-00002.parquet`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.errors import DataError
from bias_pipeline.io.kept_files import note_opened

if TYPE_CHECKING:
    from pyarrow import Schema

ENDING = ".parquet"
_SHOWN = 4  # files in a message


def is_parquet_folder(path: Path) -> bool:
    """Whether a folder has Parquet files and, besides them, only hidden and empty files."""
    if not path.is_dir():
        return False
    files = _files(path)
    return bool(files) and all(file.suffix.lower() == ENDING for file in files)


def parquet_files(folder: Path) -> list[Path]:
    """The parts in the order of their numbers; other names are refused."""
    note_opened(folder.absolute())
    files = sorted(_files(folder), key=_in_order)
    kinds = [[*alike] for _, alike in groupby(sorted(files, key=_without_digits), _without_digits)]
    if len(kinds) > 1:
        names = ", ".join(kind[0].name for kind in kinds[:_SHOWN])
        raise DataError(
            f"{folder}: has Parquet files that are not parts of one file, such as {names}; name "
            "one file, or a folder of parts whose names differ only in digits"
        )
    return files


def check_same_columns(
    path: Path, schema: Schema, first: Path, expected: Schema, columns: Iterable[str]
) -> None:
    """Refuse a part in which a column of the first part is absent or has another type."""
    for name in columns:
        if name not in schema.names:
            raise DataError(
                f"{path}: column {name!r} is absent, and {first.name} has it; write all parts with "
                "the same columns"
            )
        kind, usual = schema.field(name).type, expected.field(name).type
        if kind != usual:
            raise DataError(
                f"{path}: column {name!r} is {kind}, and {usual} in {first.name}; write all parts "
                "with the same types"
            )


def _files(folder: Path) -> list[Path]:
    """The files with content; programs mark a finished folder with an empty ``_SUCCESS``."""
    return [
        file
        for file in folder.iterdir()
        if file.name[0] != "." and file.is_file() and (file.suffix or file.stat().st_size)
    ]


def _without_digits(path: Path) -> str:
    return re.sub(r"\d+", "", path.name)


def _in_order(path: Path) -> list[tuple[int, str]]:
    """The name with its numbers, compared as numbers: part 10 comes after part 9."""
    parts = re.findall(r"(\d*)(\D*)", path.name)
    return [(int(digits or 0), text) for digits, text in parts]
