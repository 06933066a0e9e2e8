"""Parquet as rows: only the columns that are asked for, and never more than fits in memory.

A Parquet file says once what stands a million times in it, so its own size says little of how large
it becomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.datasets.columns import plain_name
from bias_pipeline.errors import DataError

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAX_ROWS = 100_000_000
MAX_TEXT = 1 << 30  # characters of all texts that are read, as in a JSON file
_AT_ONCE = 1 << 30  # bytes that a batch may become
_MOST = 4096  # rows of a batch


def parquet_rows(
    path: Path, wanted: Sequence[str] | None = None
) -> tuple[list[str], Iterator[tuple[int, Mapping[str, Any]]]]:
    """Read a Parquet file, a few rows at a time.

    Args:
        path: the file, known to be one.
        wanted: the columns that are read, of those that are there, however their names are spelled
            (:func:`~bias_pipeline.datasets.columns.plain_name`); all if left out.

    Returns:
        The names of all columns; and number and content of each row, in the columns that are read.

    Raises:
        DataError: if the file is broken or too large (while going through the rows, too), or two
            columns have one name.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(path)
        names = list(file.schema_arrow.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _broken(path, error) from error
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: column {twice!r} stands twice; rename one")
    if file.metadata.num_rows > MAX_ROWS:
        raise DataError(
            f"{path}: {file.metadata.num_rows:,} rows are more than the {MAX_ROWS:,} that are "
            "read; split the file"
        )
    asked = {plain_name(name) for name in wanted or ()}
    own = names if wanted is None else [name for name in names if plain_name(name) in asked]
    return names, _rows(path, file, own)


def _rows(
    path: Path, file: ParquetFile, columns: Sequence[str]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow as pa

    size = _batch_size(file)
    number = text = 0
    try:
        for batch in file.iter_batches(batch_size=size, columns=list(columns)):
            for row in batch.to_pylist():
                text += sum(len(value) for value in row.values() if isinstance(value, str))
                if text > MAX_TEXT:
                    raise _too_large(path, number)
                yield number, row
                number += 1
    # ValueError, OverflowError: a date that Python has not
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _broken(path, error) from error


def _batch_size(file: ParquetFile) -> int:
    """So many rows that a batch stays small even if each holds the largest text there can be.

    A text that stands in many rows is stored once, so any row may hold all of its row group. The
    sizes of single columns are not asked for: where they are damaged, Arrow ends the process.
    """
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    return min(_MOST, max(1, _AT_ONCE // max([1, *(group.total_byte_size for group in groups)])))


def _too_large(path: Path, row: int) -> DataError:
    return DataError(
        f"{path}: its texts are more than the {MAX_TEXT:,} characters that are read, from row "
        f"{row:,} on; split the file, or cut its captions"
    )


def _broken(path: Path, error: Exception) -> DataError:
    first = (str(error).splitlines() or [""])[0][:200]
    return DataError(f"{path}: not a readable Parquet file ({first}); fetch or make it again")
