"""Writes tables of pandas, polars, Arrow, DuckDB and Hugging Face's data sets as Parquet.

A table that offers Arrow's stream (``__arrow_c_stream__``) is written batch by batch, and no cell
becomes an object of Python. Columns that cannot hold ids, texts, labels or objects, such as dates
and pictures, are left out; a picture of Hugging Face is known by its path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from bias_pipeline.data.columns import IMAGE, plain_name

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from pyarrow import ChunkedArray, DataType, Table

IDS = ("image_id", "id", "img_id")  # the first of these columns that a table has
_IN_GROUP = 1 << 14  # rows; the reader takes only few rows at once from larger groups
_AT_ONCE = 1000  # rows of a Hugging Face data set


class FrameColumns(NamedTuple):
    ids: str  # the column for ids that are in no column
    only: str  # the column for data that is a single column and no table
    chosen: str | None = None  # the user's column of ids


def is_frame(data: object) -> bool:
    """Whether the data is a table of any package, with named columns.

    Example:
        >>> import pyarrow as pa
        >>> is_frame(pa.table({"caption": ["a dog"]})), is_frame(pa.array(["a dog"]))
        (True, False)
    """
    if _is_pandas(data):
        return hasattr(data, "columns")
    return _is_data_set(data) or (hasattr(data, "__arrow_c_stream__") and not is_column(data))


def is_column(data: object) -> bool:
    """Whether the data is a column without ids: an Arrow array or a polars Series."""
    if _is_pandas(data) or hasattr(data, "columns") or hasattr(data, "schema"):
        return False
    return hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_c_stream__")


def has_positions_as_ids(data: object, id_column: str | None) -> bool:
    """Whether the data's rows have no ids of their own; pandas' index counts as ids."""
    if is_column(data):
        return True
    if not is_frame(data) or _is_pandas(data) or isinstance(data, Mapping):
        return False
    return hasattr(data, "__len__") and not _has_ids(_names(data), id_column)


def write_frame(data: Any, path: Path, columns: FrameColumns) -> None:
    """Write a table or a column, with ids from a column, from pandas' index, or by position."""
    from pyarrow.parquet import ParquetWriter

    writer: ParquetWriter | None = None
    start = 0
    for table in _tables(data, columns):
        with_ids = _with_ids(table, columns, start)
        start += table.num_rows
        if writer is None:
            writer = ParquetWriter(
                path, with_ids.schema, compression="none", write_statistics=False
            )
        writer.write_table(with_ids, row_group_size=_IN_GROUP)
    if writer is not None:
        writer.close()


def _tables(data: Any, columns: FrameColumns) -> Iterator[Table]:
    """The rows, in tables with the same readable columns."""
    import pyarrow as pa

    if _is_pandas(data):
        yield _readable(_of_pandas(data, columns))
    elif is_column(data):
        array = data if hasattr(data, "__arrow_c_stream__") else [data]
        yield pa.table({columns.only: pa.chunked_array(array)})
    elif _is_data_set(data):
        # A stream without known types changes the type of a column that begins with None.
        rows = data if data.features is None else data.with_format("arrow")
        parts = [_readable(pa.table(part)) for part in rows.iter(_AT_ONCE)]
        table = pa.concat_tables(parts, promote_options="permissive")
        yield _with_names(table, data.features or {})
    else:
        for batch in pa.RecordBatchReader.from_stream(data):
            yield _readable(pa.Table.from_batches([batch]))


def _is_pandas(data: object) -> bool:
    """Whether the data is of pandas, which is then already imported."""
    return hasattr(data, "to_csv") and hasattr(data, "rename_axis")


def _is_data_set(data: object) -> bool:
    """Whether the data is a data set of Hugging Face, in memory or streamed."""
    return hasattr(data, "with_format") and hasattr(data, "select_columns")


def _names(data: Any) -> list[str]:
    names = getattr(data, "column_names", None) or data.columns
    return [str(name) for name in names]


def _has_ids(names: Iterable[object], id_column: str | None) -> bool:
    """Whether one of these columns holds ids of images, or names of their files."""
    texts = [str(name) for name in names]
    return id_column in texts or any(plain_name(name) in IMAGE.names for name in texts)


def _with_ids(table: Table, columns: FrameColumns, start: int) -> Table:
    """The table with a column of ids; if there are no ids, rows are numbered from ``start``."""
    names = table.column_names
    column = next((name for name in IDS if name in names), None)
    if column is None and not _has_ids(names, columns.chosen):
        return table.add_column(0, columns.ids, [np.arange(start, start + table.num_rows)])
    if column is None or columns.ids != "image_id" or column == columns.chosen:
        return table
    return table.rename_columns([columns.ids if name == column else name for name in names])


def _of_pandas(frame: DataFrame, columns: FrameColumns) -> Table:
    """A table of pandas, with its index as a column if the index holds the ids."""
    import pyarrow as pa

    names, index = _names(frame), frame.index
    has_ids = index.name is None and index.dtype.kind not in "iu"
    has_ids = has_ids or _has_ids(index.names, columns.chosen)
    if not {*IDS} & {*names} and (has_ids or not _has_ids(names, columns.chosen)):
        of_user = columns.chosen if columns.chosen in index.names else None
        frame = frame.rename_axis(of_user or columns.ids).reset_index()
    arrays = [_array_of(frame.iloc[:, place]) for place in range(frame.shape[1])]
    return pa.table(arrays, names=_names(frame))


def _array_of(cells: Series) -> Any:
    """A pandas column as an Arrow array. Values of mixed kinds become texts or lists of texts."""
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(cells)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        texts = [_texts_in(cell) for cell in cells]
    if any(isinstance(text, list) for text in texts):
        texts = [[text] if isinstance(text, str) else text for text in texts]
    return pa.array(texts)


def _texts_in(cell: object) -> str | list[str] | None:
    if is_absent(cell):
        return None
    if not is_several(cell):
        return str(cell)
    return [str(one) for one in (sorted(cell, key=str) if isinstance(cell, AbstractSet) else cell)]


def _readable(table: Table) -> Table:
    import pyarrow.compute as pc

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if _is_struct(kind) and {field.name for field in kind} == {"bytes", "path"}:
            columns[name] = pc.struct_field(column, "path")
        elif _is_readable(kind):
            columns[name] = column
    return table.select([]) if not columns else type(table).from_pydict(columns)


def _is_struct(kind: DataType) -> bool:
    from pyarrow import types

    return types.is_struct(kind)


def _is_readable(kind: DataType) -> bool:
    """Whether a column of this type may be of use."""
    from pyarrow import types

    if hasattr(kind, "value_type"):  # lists, and repeated values that are stored once
        return _is_readable(kind.value_type)
    if types.is_struct(kind):
        return all(_is_readable(field.type) for field in kind)
    plain = ("string", "large_string", "string_view", "binary", "large_binary", "null")
    return str(kind) in plain or any(
        holds(kind)
        for holds in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    )


def _with_names(table: Table, features: Mapping[str, Any]) -> Table:
    """The table with names of classes instead of their numbers; -1 becomes an absent value."""
    for name in table.column_names:
        names = getattr(features.get(name), "names", None)
        if names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, _names_of_classes(table.column(name), names))
    return table


def _names_of_classes(numbers: ChunkedArray, names: list[str]) -> ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pc.if_else(pc.less(numbers, 0), None, numbers)
    return pc.take(pa.array(names), known)


def is_several(item: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(item, Iterable) and not isinstance(item, str | bytes | Mapping)


def is_absent(value: object) -> bool:
    """Whether the value is None, NaN, or pandas' NA or NaT."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    pandas = sys.modules.get("pandas")
    return value is None or (pandas is not None and (value is pandas.NA or value is pandas.NaT))
