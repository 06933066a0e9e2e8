"""Reads Parquet as rows: only the requested columns, and never more than fits in memory.

A Parquet file stores a repeated value once, so its size says little about the memory it needs.
Where a column has pictures, as Hugging Face's data sets store them, their paths are read instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.datasets.columns import plain_name
from bias_pipeline.errors import DataError

if TYPE_CHECKING:
    from pyarrow import DataType, RecordBatch, Schema
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
        wanted: the columns to read if present, in any spelling
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
        raise broken(path, error) from error
    if file.metadata.num_rows > MAX_ROWS:
        raise DataError(
            f"{path}: {file.metadata.num_rows:,} rows are more than the {MAX_ROWS:,} that are "
            "read; split the file"
        )
    columns = columns_to_read(path, file.schema_arrow, wanted)
    places = [f"{name}.path" if is_picture else name for name, is_picture in columns.items()]
    batches = file.iter_batches(batch_size=_batch_size(file), columns=places)
    return names, rows_of_batches(path, batches)


def columns_to_read(path: Path, schema: Schema, wanted: Sequence[str] | None) -> dict[str, bool]:
    """The columns of a file that are read, and whether each has pictures.

    Args:
        path: the file.
        schema: its columns.
        wanted: see :func:`parquet_rows`.

    Raises:
        DataError: if two columns have one name, or a name is no text.
    """
    try:
        names = list(schema.names)
        pictures = {
            name for name, kind in zip(names, schema.types, strict=True) if _has_pictures(kind)
        }
    except UnicodeDecodeError as error:
        raise broken(path, error) from error
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: column {twice!r} occurs twice; rename one")
    requested = {plain_name(name) for name in wanted or ()}
    return {
        name: name in pictures for name in names if wanted is None or plain_name(name) in requested
    }


def _has_pictures(kind: DataType) -> bool:
    """Whether it is the type of pictures: their bytes, and the paths they were read from."""
    import pyarrow as pa

    if not pa.types.is_struct(kind):
        return False
    return {kind.field(k).name for k in range(kind.num_fields)} == {"bytes", "path"}


def rows_of_batches(
    path: Path, batches: Iterator[RecordBatch]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Number and content of each row.

    Args:
        path: the file, for messages.
        batches: its rows; a column of ``{"path": ...}`` becomes one of texts.

    Raises:
        DataError: if the file is broken or has too much text.
    """
    import pyarrow as pa

    number = text = 0
    try:
        for batch in batches:
            for columns in batch.to_pylist():
                row = {name: _path_or_value(value) for name, value in columns.items()}
                text += sum(len(value) for value in row.values() if isinstance(value, str))
                if text > MAX_TEXT or number >= MAX_ROWS:
                    raise _too_large(path, number)
                yield number, row
                number += 1
    # ValueError, OverflowError: a date that Python has not
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise broken(path, error) from error


def _path_or_value(value: Any) -> Any:
    return value["path"] if isinstance(value, dict) and list(value) == ["path"] else value


def _batch_size(file: ParquetFile) -> int:
    """The rows per batch, so that a batch stays small even with the longest possible texts.

    A repeated text is stored once, so any row may contain the largest text of its row group. Sizes
    of single columns are not read: if they are damaged, Arrow ends the process.
    """
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    return min(_MOST, max(1, _AT_ONCE // max([1, *(group.total_byte_size for group in groups)])))


def _too_large(path: Path, row: int) -> DataError:
    return DataError(
        f"{path}: its texts are more than the {MAX_TEXT:,} characters, or its rows more than the "
        f"{MAX_ROWS:,}, that are read, from row {row:,} on; split the file, or cut its captions"
    )


def broken(path: Path, error: Exception) -> DataError:
    """The refusal of a file that Arrow cannot read."""
    first = (str(error).splitlines() or [""])[0][:200]
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
    return DataError(f"{path}: not a readable {kind} file ({first}); fetch or make it again")
