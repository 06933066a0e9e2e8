"""Reads Parquet and Excel files, and folders that stand for one file, as rows.

Only the requested columns of Parquet are read, and never more than fits in memory. A Parquet file
stores a repeated value once, so its size does not show how much memory it needs. If a column has
pictures, as in Hugging Face's data sets, their paths are read instead. The folders are saved
Hugging Face data sets, lmms-eval's samples, and Parquet files that a program wrote in parts. Excel
needs the extra ``sheets``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import accumulate, chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from bias_pipeline.data.blocks import ArrowColumns, Block, blocks_of
from bias_pipeline.data.columns import plain_name
from bias_pipeline.data.headings import FIRST_ROWS, heading_place
from bias_pipeline.data.parquet_folders import (
    check_same_columns,
    is_parquet_folder,
    parquet_files,
)
from bias_pipeline.data.text_folders import is_text_folder
from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json, open_input
from bias_pipeline.io.machine import SHEETS

if TYPE_CHECKING:
    from pyarrow import Array, DataType, RecordBatch, Schema
    from pyarrow.parquet import ParquetFile


MAX_ROWS = 100_000_000
MAX_TEXT = 1 << 30  # characters of all texts that are read, as in a JSON file
_AT_ONCE = 1 << 30  # bytes that a batch may become
_MOST = 4096  # rows of a batch
_MANY = 1_000_000  # rows of a file whose size is checked first, since reading takes seconds
_MANY_AT_ONCE = 1 << 16  # rows of a batch whose texts are counted


def parquet_blocks(
    path: Path, wanted: Sequence[str] | None = None
) -> tuple[list[str], Iterator[Block], Sequence[tuple[int, Path]]]:
    """Read a Parquet file, or a folder of Parquet files as one file, a few rows at a time.

    Returns the columns' names, the rows, and the first row of each file, for messages.
    """
    files = parquet_files(path) if path.is_dir() else [path]
    schema, n_rows = parquet_head(files[0])
    columns = columns_to_read(files[0], schema, wanted)
    starts = [(0, files[0])]
    for file in files[1:]:
        starts.append((n_rows, file))
        other, n_more = parquet_head(file)
        check_same_columns(file, other, files[0], schema, columns)
        n_rows += n_more
    if n_rows > MAX_ROWS:
        raise DataError(
            f"{path}: {n_rows:,} rows are more than the {MAX_ROWS:,} that are read; split the file"
        )
    for file in files if n_rows > _MANY else []:
        _check_text(file, schema, columns)
    places = [f"{name}.path" if is_picture else name for name, is_picture in columns.items()]
    batches = chain.from_iterable(parquet_batches(file, places) for file in files)
    return list(schema.names), blocks_of_batches(path, batches), starts


def parquet_head(path: Path) -> tuple[Schema, int]:
    """The columns of a Parquet file, and its number of rows."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            schema = file.schema_arrow
            list(schema.names)  # names that are not UTF-8 are a fault here
            return schema, file.metadata.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise arrow_fault(path, error) from error


def parquet_batches(path: Path, places: Sequence[str]) -> Iterator[RecordBatch]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=_batch_size(file), columns=places)
    except (pa.ArrowException, OSError) as error:
        raise arrow_fault(path, error) from error


def _check_text(path: Path, schema: Schema, columns: Iterable[str]) -> None:
    """Refuse too many characters; counting them takes a tenth of the time of reading rows."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow.parquet import ParquetFile

    texts = [name for name in columns if pa.types.is_string(schema.field(name).type)]
    row = text = 0
    try:
        file = ParquetFile(path, read_dictionary=texts)
        for batch in file.iter_batches(batch_size=_MANY_AT_ONCE, columns=texts):
            for column in batch.columns:
                lengths = pc.utf8_length(column.dictionary).cast(pa.int64())
                text += pc.sum(lengths.take(column.indices)).as_py() or 0
            if text > MAX_TEXT:
                raise _too_large(path, row)
            row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise arrow_fault(path, error) from error


def columns_to_read(path: Path, schema: Schema, wanted: Sequence[str] | None) -> dict[str, bool]:
    """The columns of a file that are read, and whether each column has pictures."""
    try:
        names = list(schema.names)
        pictures = {
            name for name, kind in zip(names, schema.types, strict=True) if _has_pictures(kind)
        }
    except UnicodeDecodeError as error:
        raise arrow_fault(path, error) from error
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: column {twice!r} occurs twice; rename one")
    requested = {plain_name(name) for name in wanted or ()}
    return {
        name: name in pictures for name in names if wanted is None or plain_name(name) in requested
    }


def _has_pictures(kind: DataType) -> bool:
    """Whether a column has pictures: their bytes and the paths of their files."""
    import pyarrow as pa

    if not pa.types.is_struct(kind):
        return False
    return {kind.field(k).name for k in range(kind.num_fields)} == {"bytes", "path"}


def blocks_of_batches(path: Path, batches: Iterator[RecordBatch]) -> Iterator[Block]:
    """The rows of batches; Arrow reads only a few batches in advance."""
    import pyarrow as pa

    read = text = 0
    try:
        for batch in batches:
            arrays = [_paths(column) for column in batch.columns]
            columns = ArrowColumns(pa.record_batch(arrays, names=batch.schema.names))
            ended, text = text, text + sum(map(_characters, columns.values()))
            if text > MAX_TEXT or read + batch.num_rows > MAX_ROWS:
                ends = accumulate(map(_characters, zip(*columns.values(), strict=True)))
                within = sum(ended + end <= MAX_TEXT for end in ends)
                raise _too_large(path, min(read + within, MAX_ROWS))
            yield Block(range(read, read + batch.num_rows), columns)
            read += batch.num_rows
    # ValueError, OverflowError: a date that Python cannot represent
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise arrow_fault(path, error) from error


def _paths(column: Array) -> Array:
    """The column itself, or the paths of its pictures."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    is_path = pa.types.is_struct(kind) and [field.name for field in kind] == ["path"]
    return pc.struct_field(column, "path") if is_path else column


def _characters(values: Iterable[Any]) -> int:
    return sum(len(value) for value in values if isinstance(value, str))


def _batch_size(file: ParquetFile) -> int:
    """The rows per batch, so that a batch stays small even with the longest possible texts.

    A repeated text is stored once, so any row may contain the largest text of its row group. Sizes
    of single columns are not read, since Arrow ends the process if they are damaged.
    """
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    return min(_MOST, max(1, _AT_ONCE // max([1, *(group.total_byte_size for group in groups)])))


def _too_large(path: Path, row: int) -> DataError:
    return DataError(
        f"{path}: row {row:,} goes beyond the {MAX_TEXT:,} characters or the {MAX_ROWS:,} "
        "rows that are read; split the file, or cut its captions"
    )


def arrow_fault(path: Path, error: Exception) -> DataError:
    """The refusal of a file that Arrow cannot read."""
    first = (str(error).splitlines() or [""])[0][:200]
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
    return DataError(f"{path}: not a readable {kind} file ({first}); fetch or make it again")


_STATE, _PARTS = "state.json", "dataset_dict.json"  # of a saved data set, and of saved parts
_WHAT = "a data set as save_to_disk of Hugging Face's datasets writes it"
# Bytes of an Arrow file, which may contain pictures; only requested columns are read
_MAX_BYTES = 1 << 40
_SAMPLES = re.compile(r"(?:[\d-]+_)*samples_(?P<task>.+?)(?:_\d{4}-?\d\d-?\d\d.*)?\.jsonl")


def is_saved(path: Path) -> bool:
    """Whether a path is a folder that can be read as a file of rows."""
    return path.is_dir() and (
        _is_data_set(path)
        or bool(_samples(path))
        or is_text_folder(path)
        or is_parquet_folder(path)
    )


def stem(path: Path) -> str:
    """A file's name without its ending; a folder's whole name.

    Example:
        >>> stem(Path("mine.json")), stem(Path("/tmp"))
        ('mine', 'tmp')
    """
    return path.resolve().name if path.is_dir() else path.stem


def file_of(path: Path) -> Path:
    """The only file of samples in a folder; any other path is returned unchanged."""
    if not path.is_dir() or _is_data_set(path):
        return path
    samples = _samples(path)
    if len(samples) < 2:
        return next(iter(samples), path)
    tasks = sorted(set(samples.values()))
    what = f"the tasks {', '.join(tasks)}" if len(tasks) > 1 else f"several runs of {tasks[0]}"
    names = ", ".join(sorted(file.name for file in samples))
    raise DataError(f"{path}: has samples of {what}; name one of its files ({names})")


def _samples(folder: Path) -> dict[Path, str]:
    """The task of each file of samples."""
    matches = {path: _SAMPLES.fullmatch(path.name) for path in folder.iterdir()}
    return {path: match["task"] for path, match in matches.items() if match}


def _is_data_set(folder: Path) -> bool:
    return (folder / _STATE).is_file() or (folder / _PARTS).is_file()


def saved_blocks(folder: Path, wanted: Sequence[str] | None) -> tuple[list[str], Iterator[Block]]:
    """Read a saved data set, a batch of rows at a time."""
    if not (folder / _STATE).is_file():
        folder = _only_part(folder)
    state = expect(load_json(folder / _STATE, what=_WHAT), dict, folder / _STATE, "")
    if state.get("_indices_data_files"):
        raise DataError(
            f"{folder}: a file of indices chooses its rows; save it again after flatten_indices()"
        )
    listed: list[Any] = expect(state.get("_data_files"), list, folder / _STATE, "_data_files")
    files = [_data_file(folder, entry, number) for number, entry in enumerate(listed)]
    if not files:
        raise DataError(f"{folder / _STATE}: names no data file; expected {_WHAT}")
    schema = _schema(files[0])
    columns = columns_to_read(folder, schema, wanted)
    batches = (batch for file in files for batch in _batches(file, schema, columns))
    return list(schema.names), blocks_of_batches(folder, batches)


def _only_part(folder: Path) -> Path:
    path = folder / _PARTS
    content = expect(load_json(path, what=_WHAT), dict, path, "")
    parts: list[Any] = expect(content.get("splits"), list, path, "splits")
    names = [expect(part, str, path, f"splits[{k}]") for k, part in enumerate(parts)]
    if len(names) != 1:
        listed = ", ".join(str(folder / name) for name in names) or "nothing"
        raise DataError(f"{folder}: has {len(names)} parts; name one of them ({listed})")
    return _find_inside(folder, names[0])


def _data_file(folder: Path, entry: object, number: int) -> Path:
    path = folder / _STATE
    fields = expect(entry, dict, path, f"_data_files[{number}]")
    name = expect(fields.get("filename"), str, path, f"_data_files[{number}].filename")
    return _find_inside(folder, name)


def _find_inside(folder: Path, name: str) -> Path:
    """Find a file or folder by name inside ``folder``, never outside it."""
    if name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise DataError(f"{folder}: {name!r} is not in the folder; save the data set again")
    return folder / name


def _schema(path: Path) -> Schema:
    """The columns of an Arrow file."""
    import pyarrow as pa
    from pyarrow import ipc

    open_input(path, what=_WHAT, max_bytes=_MAX_BYTES).close()
    try:
        with pa.memory_map(str(path)) as source, ipc.open_stream(source) as reader:
            return reader.schema
    except (pa.ArrowException, OSError, ValueError) as error:
        raise arrow_fault(path, error) from error


def _batches(path: Path, schema: Schema, columns: Mapping[str, bool]) -> Iterator[RecordBatch]:
    """The batches of an Arrow file, with some of its columns; paths replace pictures.

    Arrow trusts the positions in a file, so they are checked before they are used.
    """
    import pyarrow as pa
    from pyarrow import ipc

    open_input(path, what=_WHAT, max_bytes=_MAX_BYTES).close()
    try:
        with pa.memory_map(str(path)) as source, ipc.open_stream(source) as reader:
            if not reader.schema.equals(schema):
                raise DataError(
                    f"{path}: its columns are not the columns of the folder's first file"
                )
            for batch in reader:
                arrays = []
                for name, has_pictures in columns.items():
                    array = batch.column(name)
                    arrays.append(array.field("path") if has_pictures else array)
                    arrays[-1].validate(full=True)
                yield pa.record_batch(arrays, names=list(columns))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise arrow_fault(path, error) from error


MAX_UNPACKED = 1 << 30  # bytes


def sheet_blocks(path: Path) -> tuple[list[str], Iterator[Block], str]:
    """Read the only sheet of a workbook."""
    SHEETS.require()
    _check_size(path)
    rows = _cells(path)
    first = list(islice(rows, FIRST_ROWS))
    texts = [["" if cell is None else str(cell) for cell in row] for row in first]
    place = heading_place(texts)
    if place is None:
        place = next((k for k, row in enumerate(texts) if any(row)), 0)
    header = list(first[place]) if first else []
    while header and header[-1] is None:
        header.pop()
    if None in header:
        raise DataError(f"{path}, row {place + 1}: a column has no name; name it or delete it")
    names = [str(cell).strip() for cell in header]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}, row {place + 1}: column {twice!r} occurs twice; rename one")
    items = (
        (number, dict(zip(names, chain(cells, repeat(None)), strict=False)))
        for number, cells in enumerate(chain(first[place + 1 :], rows), start=place + 2)
        if any(cell is not None for cell in cells)
    )
    title = any(map(any, texts[:place]))
    return names, blocks_of(items), f"heading in row {place + 1}" if title else ""


def _check_size(path: Path) -> None:
    """Refuse a file that is not an archive, or that unpacks to more than is read."""
    try:
        with ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise _sheet_fault(path, error) from error
    if size > MAX_UNPACKED:
        raise DataError(
            f"{path}: unpacks to {size:,} bytes, more than the {MAX_UNPACKED:,} that are read; "
            "save it as CSV"
        )


def _cells(path: Path) -> Iterator[tuple[Any, ...]]:
    """The cells of each row of the only sheet that has rows."""
    from openpyxl import load_workbook

    try:
        workbook = load_workbook(path, read_only=True, data_only=True, keep_links=False)
        with closing(workbook):
            sheets = workbook.worksheets
            if len(sheets) != 1:
                raise DataError(f"{path}: has {len(sheets)} sheets; keep one of them")
            yield from sheets[0].iter_rows(values_only=True)
    except DataError:
        raise
    except Exception as error:  # openpyxl raises whatever its parsers do
        raise _sheet_fault(path, error) from error


def _sheet_fault(path: Path, error: Exception) -> DataError:
    first = (str(error).splitlines() or [""])[0][:200]
    return DataError(f"{path}: not a readable .xlsx file ({first}); save it again, or as CSV")
