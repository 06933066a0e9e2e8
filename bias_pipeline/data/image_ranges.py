"""Splits Parquet files that do not fit into memory into ranges of image ids, on disk.

Each range has all rows of its images, so it can be read like a small file. Rows keep their numbers,
so messages name the row of the user's file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.data.binary_tables import (
    arrow_fault,
    columns_to_read,
    parquet_batches,
    parquet_head,
)
from bias_pipeline.data.blocks import ArrowColumns, Block
from bias_pipeline.data.parquet_folders import (
    ENDING,
    check_same_columns,
    is_parquet_folder,
    parquet_files,
)
from bias_pipeline.data.tables import Rows
from bias_pipeline.errors import UsageError
from bias_pipeline.io.json_files import open_input

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

_LARGEST = 1 << 40  # bytes of a file
_AT_ONCE = 1 << 17  # rows of a batch
_BYTES = 1 << 27  # of a batch
_IMAGES = 1 << 17  # images of a range
_RANGES = 200  # the most ranges, each of which has an open file
_ABSENT = -1  # the number of an absent id
_DIGITS = r"^\s*[0-9]{1,18}\s*$"


def first_rows(
    path: Path,
    *,
    what: str,
    wanted: Sequence[str] | None = None,
    key: str | None = None,
    column: str | None = None,
) -> Rows:
    """The first rows of a Parquet file, or of a folder of parts; all other rows are left out."""
    del key, column  # of JSON
    folder = is_parquet_folder(path)
    if not folder and path.suffix.lower() != ENDING:
        raise UsageError(
            f"{path}: --stream reads Parquet alone; write the file as Parquet, or leave out "
            "--stream"
        )
    files = parquet_files(path) if folder else [path]
    starts: list[tuple[int, Path]] = []
    n_rows = 0
    for file in files:
        open_input(file, what=what, max_bytes=_LARGEST).close()
        schema, n_more = parquet_head(file)
        if not starts:
            names, expected = list(schema.names), schema
            columns = [*columns_to_read(file, schema, wanted)]
        check_same_columns(file, schema, files[0], expected, columns)
        starts.append((n_rows, file))
        n_rows += n_more
    blocks = (
        Block(range(batch.num_rows), ArrowColumns(batch))
        for batch in parquet_batches(files[0], columns)
    )
    first = next(blocks, None)
    return Rows(path, "row", names, iter([first] if first else []), starts=starts)


def image_ids(rows: Rows, key: str) -> IntArray:
    """The distinct ids of a table's images, ascending."""
    ids = [_whole_numbers(rows, batch, 0, number) for number, batch in _batches(rows, [key])]
    every = np.sort(np.concatenate([np.empty(0, np.int64), *ids]))
    return every[np.diff(every, prepend=_ABSENT) > 0]


def check_annotations(rows: Rows, key: str, annotation: str) -> None:
    """Refuse an annotation id that two images share. Other faults show when a range is read."""
    columns = [key, annotation]
    pairs = [
        np.stack([_whole_numbers(rows, batch, place, number) for place in (0, 1)])
        for number, batch in _batches(rows, columns)
    ]
    images, numbers = np.concatenate([np.empty((2, 0), np.int64), *pairs], axis=1)
    order = np.argsort(numbers, kind="stable")
    same = (
        (np.diff(numbers[order]) == 0)
        & (np.diff(images[order]) != 0)
        & (numbers[order[1:]] != _ABSENT)
    )
    if same.any():
        row = int(order[1:][np.argmax(same)])
        rows.refuse(row, f"annotation id {numbers[row]} occurs twice with different contents")


@dataclass(frozen=True)
class ImageRanges:
    """Successive ranges of image ids."""

    edges: IntArray  # the first id of each range but the first
    folder: Path  # for the rows of each range

    @classmethod
    def of_images(cls, ids: IntArray, folder: Path) -> ImageRanges:
        """Ranges of about equally many of the images."""
        n_ranges = min(_RANGES, -(-len(ids) // _IMAGES))
        ends = np.linspace(0, len(ids), n_ranges + 1).astype(np.int64)
        return cls(ids[ends[1:-1]], folder)

    def __len__(self) -> int:
        return len(self.edges) + 1

    def split(self, rows: Rows, key: str) -> Iterator[Rows]:
        """The rows of each range of ids, from all rows of the file.

        ``rows`` has only the file's first rows.
        """
        import pyarrow as pa

        first = next(rows.blocks, None)
        if first is None:
            return (rows for _ in range(len(self)))
        columns = [*first.columns]
        place = self.folder / f"{len([*self.folder.iterdir()])}"
        place.mkdir()
        with ExitStack() as files:
            writers: dict[int, Any] = {}
            for number, batch in _batches(rows, columns):
                ids = _whole_numbers(rows, batch, columns.index(key), number)
                numbers = np.arange(number, number + len(ids))
                numbered = pa.record_batch([*batch.columns, pa.array(numbers)], [*columns, ""])
                of_row = np.searchsorted(self.edges, ids, side="right")
                for k, part in _parts(numbered, of_row):
                    if k not in writers:
                        sink = files.enter_context(pa.OSFile(str(place / str(k)), "wb"))
                        writers[k] = files.enter_context(pa.ipc.new_stream(sink, part.schema))
                    writers[k].write_batch(part)
        return (_rows_of(rows, place / str(k)) for k in range(len(self)))


def _parts(batch: RecordBatch, of_row: IntArray) -> Iterator[tuple[int, RecordBatch]]:
    """The rows of each range in a batch, in the order of the file."""
    if (of_row[1:] < of_row[:-1]).any():
        order = np.argsort(of_row, kind="stable")
        batch, of_row = batch.take(order), of_row[order]
    ends = [0, *(np.flatnonzero(np.diff(of_row)) + 1).tolist(), len(of_row)]
    for begin, end in pairwise(ends):
        if end > begin:
            yield int(of_row[begin]), batch.slice(begin, end - begin)


def _rows_of(rows: Rows, path: Path) -> Rows:
    """The rows of one range; the range's file is deleted."""
    import pyarrow as pa

    if not path.exists():
        return replace(rows, blocks=iter(()))
    with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
    path.unlink()
    last = table.num_columns - 1
    numbers = table.column(last).to_numpy().tolist()
    block = Block(numbers, ArrowColumns(table.remove_column(last)))
    return replace(rows, blocks=iter([block]))


def _batches(rows: Rows, columns: Sequence[str]) -> Iterator[tuple[int, RecordBatch]]:
    """All rows of the table's files in batches, each with the number of its first row."""
    for number, file in rows.starts:
        for batch in _batches_of(file, columns):
            yield number, batch
            number += batch.num_rows


def _batches_of(path: Path, columns: Sequence[str]) -> Iterator[RecordBatch]:
    """The batches of one file; repeated texts are written out for only a few rows at once."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        schema = parquet_head(path)[0]
        texts = [name for name in columns if pa.types.is_string(schema.field(name).type)]
        with ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(batch_size=_AT_ONCE, columns=columns):
                n_bytes = sum(_n_bytes(column) for column in batch.columns)
                step = max(1, batch.num_rows * _BYTES // max(n_bytes, _BYTES))
                for first in range(0, batch.num_rows, step):
                    yield _whole_texts(batch.slice(first, step))
    except (pa.ArrowException, OSError) as error:
        raise arrow_fault(path, error) from error


def _n_bytes(column: Array) -> int:
    """The number of bytes in a column's texts if every repeated text is written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return pc.sum(lengths.take(column.indices)).as_py() or 0


def _whole_texts(batch: RecordBatch) -> RecordBatch:
    import pyarrow as pa

    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.record_batch(columns, names=batch.schema.names)


def _whole_numbers(rows: Rows, batch: RecordBatch, place: int, first: int) -> IntArray:
    """The ids of a batch as numbers; ids that are not numbers are refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = batch.column(place)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        whole = pc.match_substring_regex(column, _DIGITS)
        _check_whole(rows, column, whole, first)
        column = pc.utf8_trim_whitespace(column)
    elif pa.types.is_floating(kind):
        _check_whole(rows, column, pc.equal(column, pc.round(column)), first)
    elif not pa.types.is_integer(kind):
        _check_whole(rows, column, pa.array(np.zeros(len(column), bool)), first)
    numbers = column.cast(pa.int64())
    _check_whole(rows, column, pc.greater_equal(numbers, 0), first)
    ids: IntArray = pc.fill_null(numbers, _ABSENT).to_numpy(zero_copy_only=False)
    return ids


def _check_whole(rows: Rows, column: Array, whole: Any, first: int) -> None:
    import pyarrow.compute as pc

    bad = pc.invert(pc.fill_null(whole, True)).to_numpy(zero_copy_only=False)
    if bad.any():
        place = int(np.argmax(bad))
        rows.refuse(
            first + place,
            f"id {str(column[place].as_py())[:80]!r} is no whole number of at most 18 digits, "
            "and --stream sorts by number; number the images alike in all files, or leave "
            "out --stream",
        )
