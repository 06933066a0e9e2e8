"""What the report page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """A table of text.

    Attributes:
        caption: what it shows.
        head: names of its columns.
        rows: its cells.
        folded: whether it is shown only on demand.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page: texts, figures, tables and notes, in this order."""

    title: str
    texts: Sequence[str] = ()
    figures: Sequence[str] = ()
    sheets: Sequence[Sheet] = ()
    notes: Sequence[str] = ()
