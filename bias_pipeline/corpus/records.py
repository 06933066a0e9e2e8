"""Defines the record of an image, and cleans records before they become columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.captions import Captions, ReadCache, cut, is_blank, may_be_blank
from bias_pipeline.corpus.pictures import Picture, Region
from bias_pipeline.errors import DataError, inflect

T = TypeVar("T")
LONGEST = 10_000  # characters of a caption that are read


class StockCaption(str):
    """A caption that its file marks as describing nothing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One image.

    Attributes:
        id: canonical, see :func:`~bias_pipeline.corpus.image_ids.canonical_id`.
        model: the captioner's caption, or None without a caption.
        human: the annotators' captions; there may be none.
        labels: by attribute name, the raw label in the data set.
        objects: the objects in the image by task name, None if unknown.
        image: the file of the picture, or an object that draws the picture, or None.
        regions: the annotated regions of the picture, or None without annotation.
        picture_id: the picture that this record shares with other records; empty if it has its own
            picture.
        set_id: the set of pictures that differ only in a person's group; empty if the picture is in
            no set.
    """

    id: str
    model: str | None = None
    human: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    objects: frozenset[str] | None = None
    image: Picture | None = None
    regions: tuple[Region, ...] | None = None
    picture_id: str = ""
    set_id: str = ""


@dataclass(frozen=True)
class RecordColumns(ReadCache):
    """N records as columns.

    Attributes:
        labels: by attribute name, N raw labels; None for images without a label.
        objects: the objects of each image, or None if all are unknown. Each later column is also
            None if no record has a value for the column.
    """

    ids: Sequence[str]
    model: Sequence[str | None]
    human: Sequence[Sequence[str]]
    labels: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    objects: Sequence[frozenset[str] | None] | None = None
    images: Sequence[Picture | None] | None = None
    regions: Sequence[tuple[Region, ...] | None] | None = None
    picture_ids: Sequence[str] | None = None
    set_ids: Sequence[str] | None = None

    @classmethod
    def from_records(cls, rows: Sequence[Record]) -> RecordColumns:
        names = dict.fromkeys(name for row in rows for name in row.labels)
        return cls(
            [row.id for row in rows],
            [row.model for row in rows],
            [row.human for row in rows],
            {name: [row.labels.get(name) for row in rows] for name in names},
            [row.objects for row in rows],
            [row.image for row in rows],
            [row.regions for row in rows],
            [row.picture_id for row in rows],
            [row.set_id for row in rows],
        )

    def texts(self, side: str) -> list[str]:
        """The captions of one side, ``model`` or ``human``, in the order of the records."""
        if side == "human":
            return [*chain.from_iterable(self.human)]
        return [text for text in self.model if text is not None]

    def rows(self, side: str) -> IntArray:
        """For each caption that :meth:`texts` returns, the index of its record."""
        if side == "human":
            return np.repeat(np.arange(len(self.ids)), np.array([*map(len, self.human)], np.int64))
        return np.flatnonzero([text is not None for text in self.model])

    def captions(self, side: str) -> Captions:
        """The captions that :meth:`texts` returns, as numbered words."""
        return Captions.from_texts(self.texts(side), self.rows(side))

    def take(self, order: Sequence[int]) -> RecordColumns:
        """Some of the records, or the records in another order."""

        def taken_rows(column: Sequence[T]) -> list[T]:
            return [column[row] for row in order]

        return RecordColumns(
            taken_rows(self.ids),
            taken_rows(self.model),
            taken_rows(self.human),
            {name: taken_rows(column) for name, column in self.labels.items()},
            None if self.objects is None else taken_rows(self.objects),
            None if self.images is None else taken_rows(self.images),
            None if self.regions is None else taken_rows(self.regions),
            None if self.picture_ids is None else taken_rows(self.picture_ids),
            None if self.set_ids is None else taken_rows(self.set_ids),
        )


def collapse_repeated(records: Iterable[Record], dataset: str) -> tuple[list[Record], list[str]]:
    """Merge equal duplicates with a note. Different duplicates raise an error."""
    rows = list(records)
    if len({record.id for record in rows}) == len(rows):
        return rows, []
    by_id: dict[str, Record] = {}
    repeated = 0
    for record in rows:
        first = by_id.setdefault(record.id, record)
        if first is record:
            continue
        if first != record:
            name = next(n for n in Record.__slots__ if getattr(first, n) != getattr(record, n))
            contents = f"{name} {getattr(first, name)!r} and {getattr(record, name)!r}"
            raise DataError(
                f"dataset {dataset!r}: image id {record.id} occurs twice with different contents "
                f"({contents}); keep one of the two"
            )
        repeated += 1
    note = inflect(repeated, "repeated images with equal contents were collapsed")
    return list(by_id.values()), [note] if repeated else []


class ReadCaptions(NamedTuple):
    """The captions of one side that are not blank."""

    captions: Captions
    marked: BoolArray  # (C,) captions that their file marks as describing nothing
    blanks: IntArray  # (N,) how many blank captions each image had
    n_cut: int  # how many captions were cut because they were too long


def read_captions(columns: RecordColumns, side: str, order: Sequence[int]) -> ReadCaptions:
    """The captions of one side that are not blank; captions that are too long are cut.

    ``order`` (N,) has the record of each image.
    """
    captions, texts = columns.read(RecordColumns.captions, side), columns.texts(side)
    perhaps = np.flatnonzero(may_be_blank(captions)).tolist()
    blank = {text for text in {texts[row] for row in perhaps} if is_blank(text)}
    flags = np.zeros(len(texts), bool)
    flags[[row for row in perhaps if texts[row] in blank]] = True
    long = [row for row, n in enumerate(map(len, texts)) if n > LONGEST and not flags[row]]
    if long:
        for row in long:
            texts[row] = cut(texts[row], LONGEST)
        captions = Captions.from_texts(texts, captions.image_rows)
    stock = StockCaption in set(map(type, texts))
    marked = np.array([stock and isinstance(text, StockCaption) for text in texts], bool)
    place = np.argsort(order)
    images = place[captions.image_rows]
    retained = np.argsort(images, kind="stable")
    retained = retained[~flags[retained]]
    blanks = np.bincount(images[flags], minlength=len(order))
    if not np.array_equal(retained, np.arange(len(texts))):
        captions = replace(captions, image_rows=images).take(retained)
    return ReadCaptions(captions, marked[retained], blanks, len(long))
