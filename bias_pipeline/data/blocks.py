"""Rows of a file as columns. Most files are read in this form, without an object per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bias_pipeline.array_types import IntArray

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table

T = TypeVar("T")

ROWS = 1 << 16  # rows of a block, at most
_AT_ONCE = 1 << 9  # rows that are read one by one: Python looks through many objects for garbage


@dataclass(frozen=True)
class ArrowColumns(Mapping[str, Sequence[Any]]):
    """Columns of Arrow; a column becomes Python's objects when it is first read."""

    table: Table | RecordBatch
    # Python's objects of the columns that were looked at
    objects: dict[str, list[Any]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self.objects:
            # Not `to_numpy`, which would import pandas, a tenth of the time to start a small cell.
            self.objects[name] = self.table.column(name).to_pylist()
        return self.objects[name]

    def __contains__(self, name: object) -> bool:
        return name in self.table.schema.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.schema.names)

    def __len__(self) -> int:
        return self.table.num_columns

    def whole_numbers(self, name: str) -> IntArray | None:
        """The whole numbers of a column, or None if a cell has another value."""
        import pyarrow as pa

        column = self.table.column(name)
        if not pa.types.is_int64(column.type) or column.null_count:
            return None
        # From buffers, since `to_numpy` would import pandas
        parts = [
            np.frombuffer(one.buffers()[1], np.int64)[one.offset :][: len(one)]
            for one in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
            if len(one)
        ]
        return np.concatenate([np.empty(0, np.int64), *parts])


@dataclass(frozen=True)
class Block:
    """Some successive rows of a file, with the same columns."""

    numbers: Sequence[int]  # numbers of the rows in the file, for messages
    columns: Mapping[str, Sequence[Any]]
    # The first row with the columns that were not read, for messages; None if all were read
    shown: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def cells(self, name: str) -> Sequence[Any]:
        """The values of a column, or None for rows without it."""
        return self.columns.get(name) or [None] * len(self)

    def whole_numbers(self, name: str) -> IntArray | None:
        """The whole numbers of a column that was read as whole numbers; None for other columns."""
        return self.columns.whole_numbers(name) if isinstance(self.columns, ArrowColumns) else None

    def row(self, place: int) -> dict[str, Any]:
        return {name: column[place] for name, column in self.columns.items()}

    @property
    def first_row(self) -> Mapping[str, Any]:
        """The first row, including columns that were not read."""
        return self.row(0) if self.shown is None else self.shown

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for place, number in enumerate(self.numbers):
            yield number, self.row(place) if place else self.first_row

    def take(self, places: Sequence[int]) -> Block:
        return Block(
            [self.numbers[place] for place in places],
            {name: [column[k] for k in places] for name, column in self.columns.items()},
            None if self.shown is None or 0 not in places[:1] else self.shown,
        )


def blocks_of(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[Block]:
    """The blocks of rows that are read singly, each row with its own keys.

    A fault is raised only after all rows before the fault were returned, so messages follow the
    rows' order.

    Example:
        >>> rows = enumerate([{"id": 7}, {"id": 8}, {"id": 9, "caption": "a dog"}])
        >>> [block.columns for block in blocks_of(rows)]
        [{'id': [7, 8]}, {'id': [9], 'caption': ['a dog']}]
    """
    for part in until_fault(rows):
        for names, alike in groupby(part, lambda pair: tuple(pair[1])):
            numbers, contents = zip(*alike, strict=True)
            yield Block(numbers, {name: [row[name] for row in contents] for name in names})


def until_fault(items: Iterable[T]) -> Iterator[list[T]]:
    """The items in lists; a fault is raised only after all items before the fault were returned."""
    iterator = iter(items)
    while True:
        part: list[T] = []
        try:
            part.extend(islice(iterator, _AT_ONCE))
        except Exception:
            if part:
                yield part
            raise
        if not part:
            return
        yield part
