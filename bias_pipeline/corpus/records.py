"""An image's record, and how records are cleaned before they become columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import cut, is_blank
from bias_pipeline.corpus.pictures import Picture, Region
from bias_pipeline.errors import DataError, counted

LONGEST = 10_000  # characters of a caption that are read


class StockCaption(str):
    """A caption of which its file says that it describes nothing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One image.

    Attributes:
        id: canonical, see :func:`~bias_pipeline.corpus.image_ids.canonical_id`.
        model: the captioner's caption, None if it wrote none.
        human: the captions people wrote, possibly none.
        labels: attribute name to raw label, as the data set writes it.
        objects: the objects in the image by task name, None if unknown.
        image: where the picture is, or what draws it; None if there is none.
        regions: the annotated regions of the picture, None if it was not annotated.
        picture_id: the picture that this record shares with others; empty if it has its own.
    """

    id: str
    model: str | None = None
    human: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    objects: frozenset[str] | None = None
    image: Picture | None = None
    regions: tuple[Region, ...] | None = None
    picture_id: str = ""


def unique(records: Iterable[Record], dataset: str) -> tuple[list[Record], list[str]]:
    """Collapse equal duplicates with a note; refuse different ones."""
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
    note = counted(repeated, "repeated images with equal contents were collapsed")
    return list(by_id.values()), [note] if repeated else []


def within_length(rows: list[Record]) -> tuple[list[Record], list[str]]:
    """Records whose captions are not too long, and a note on how many were."""
    n_cut = 0

    def shortened(text: str | None) -> str | None:
        nonlocal n_cut
        if text is None or len(text) <= LONGEST:
            return text
        n_cut += 1
        return cut(text, LONGEST)

    if all(len(text) <= LONGEST for row in rows for text in (row.model or "", *row.human)):
        return rows, []
    for place, row in enumerate(rows):
        if any(len(text) > LONGEST for text in (row.model or "", *row.human)):
            human = tuple(shortened(text) or "" for text in row.human)
            rows[place] = replace(row, model=shortened(row.model), human=human)
    note = counted(n_cut, f"captions of more than {LONGEST:,} characters were cut")
    return rows, [note] if n_cut else []


def without_blanks(
    rows: Sequence[Record],
) -> tuple[list[Record], dict[str, IntArray]]:
    """Records without their blank captions, and (N,) how many each had, by side."""
    texts = {text for row in rows for text in (row.model or "", *row.human)}
    empty = {text for text in texts if is_blank(text)}
    cleaned = []
    blanks: dict[str, IntArray] = {
        side: np.zeros(len(rows), np.int64) for side in ("model", "human")
    }
    for place, row in enumerate(rows):
        human = row.human
        if not empty.isdisjoint(human):
            human = tuple(text for text in human if text not in empty)
        silent = row.model in empty
        if silent or len(human) < len(row.human):
            blanks["model"][place] = silent
            blanks["human"][place] = len(row.human) - len(human)
            cleaned.append(replace(row, model=None if silent else row.model, human=human))
        else:
            cleaned.append(row)
    return cleaned, blanks
