"""Reads the rows of an Excel sheet; needs the extra ``sheets``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from bias_pipeline.errors import DataError
from bias_pipeline.io.machine import SHEETS

MAX_UNPACKED = 1 << 30  # bytes


def sheet_rows(path: Path) -> tuple[list[str], Iterator[tuple[int, Mapping[str, Any]]]]:
    """Read the only sheet of a workbook.

    Args:
        path: the ``.xlsx`` file, known to be a file.

    Returns:
        The columns, named by the first row; and number (from 2) and content of each further row. A
        whole number stays one, an empty cell is None.

    Raises:
        DataError: if the file is broken or too large, has several sheets, or two columns of one
            name (while going through the rows, too).
        ResourceError: if the extra is not installed.
    """
    SHEETS.require()
    _check_size(path)
    rows = _cells(path)
    header = list(next(rows, ()))
    while header and header[-1] is None:
        header.pop()
    if None in header:
        raise DataError(f"{path}, row 1: a column has no name; name it or delete it")
    names = [str(cell).strip() for cell in header]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}, row 1: column {twice!r} occurs twice; rename one")
    return names, (
        (number, dict(zip(names, chain(cells, repeat(None)), strict=False)))
        for number, cells in enumerate(rows, start=2)
        if any(cell is not None for cell in cells)
    )


def _check_size(path: Path) -> None:
    """Refuse a file that is no archive, or unpacks to more than is read."""
    try:
        with ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (BadZipFile, OSError, ValueError) as error:
        raise _broken(path, error) from error
    if size > MAX_UNPACKED:
        raise DataError(
            f"{path}: unpacks to {size:,} bytes, more than the {MAX_UNPACKED:,} that are read; "
            "save it as CSV"
        )


def _cells(path: Path) -> Iterator[tuple[Any, ...]]:
    """The cells of each row of the only sheet that has any."""
    from openpyxl import load_workbook

    try:
        workbook = load_workbook(path, read_only=True, data_only=True, keep_links=False)
        with closing(workbook):
            sheets = workbook.worksheets
            if len(sheets) != 1:
                raise DataError(f"{path}: has {len(sheets)} sheets; keep the one that is meant")
            yield from sheets[0].iter_rows(values_only=True)
    except DataError:
        raise
    except Exception as error:  # openpyxl raises whatever its parsers do
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> DataError:
    first = (str(error).splitlines() or [""])[0][:200]
    return DataError(f"{path}: not a readable .xlsx file ({first}); save it again, or as CSV")
