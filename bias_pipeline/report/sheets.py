"""What a report holds, before it is written as HTML, LaTeX, Markdown, CSV or Parquet.

Cells keep their numbers: how many digits, what is bold and what a dash looks like is for those who
write them (``page.py``, ``latex.py``, ``markdown.py``, ``export.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bias_pipeline.report.figures import Plot
from bias_pipeline.report.tables import number, percent
from bias_pipeline.results.store import Row

STRONG = 0.3
STRONGEST = 0.9


@dataclass(frozen=True)
class Number:
    """A number, with its interval if it has one.

    Attributes:
        value: NaN where it does not exist.
        low: lower end, None for a number without an interval.
        high: upper end.
        fraction: whether people see it in per cent; files hold fractions.
        digits: behind the point, as people see it.
        mark: an arrow behind it: where it points.
        tone: ``worse`` or ``better`` than neutral, ``doubt`` where nothing is concluded from it.
        best: whether a test says that it is fairer than every other of its column.
    """

    value: float
    low: float | None = None
    high: float | None = None
    fraction: bool = False
    digits: int = 2
    mark: str = ""
    tone: str = ""
    best: bool = False

    @classmethod
    def of(cls, row: Row, mark: str = "", tone: str = "", best: bool = False) -> Number:
        """Value and interval of a row."""
        fraction = row.unit == "fraction"
        digits = 1 if fraction else 2
        return cls(row.value, row.ci_low, row.ci_high, fraction, digits, mark, tone, best)

    @property
    def text(self) -> str:
        """As people see it, the mark included.

        Example:
            >>> Number(0.123, 0.1, 0.15, fraction=True, digits=1, mark="↑").text
            '12.3 [10.0, 15.0] ↑'
            >>> Number(math.nan).text
            '–'
        """
        written = percent if self.fraction else number
        text = written(self.value, self.digits)
        if self.low is not None and self.high is not None:
            text += f" [{written(self.low, self.digits)}, {written(self.high, self.digits)}]"
        return f"{text} {self.mark}".rstrip()


@dataclass(frozen=True)
class Weighted:
    """A caption whose words have weights.

    Attributes:
        words: each with its weight, in the order of the caption.
    """

    words: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """The caption alone."""
        return " ".join(word for word, _ in self.words)

    def levels(self) -> list[tuple[str, int]]:
        """Each word with how strongly it points, -2 to 2, where 0 is hardly at all.

        Example:
            >>> Weighted((("a", 0.1), ("truck", -1.2), ("red", 0.5))).levels()
            [('a', 0), ('truck', -2), ('red', 1)]
        """
        return [(word, _level(weight)) for word, weight in self.words]


def _level(weight: float) -> int:
    strength = (abs(weight) >= STRONG) + (abs(weight) >= STRONGEST)
    return int(math.copysign(strength, weight))


Cell = str | Number | Weighted | None  # None: there is nothing to say, written as a dash


def cell_text(cell: Cell) -> str:
    """A cell as plain text; a dash where there is nothing.

    Example:
        >>> cell_text("sat"), cell_text(None), cell_text(Number(3, digits=0))
        ('sat', '–', '3')
    """
    if cell is None:
        return "–"
    return cell if isinstance(cell, str) else cell.text


@dataclass(frozen=True)
class Sheet:
    """A table.

    Attributes:
        caption: what it shows.
        head: names of its columns.
        rows: its cells; the first column names the row.
        folded: whether it is shown only on demand.
        metrics: of each column the metric it tells of, empty where it tells of none in particular.
        captioners: of each column the captioner it tells of, likewise.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    folded: bool = False
    metrics: Sequence[str] = ()
    captioners: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    """A part of a report: texts, figures, tables and notes, in this order.

    Attributes:
        title: its heading.
        texts: paragraphs above the figures.
        figures: not drawn yet.
        sheets: tables.
        notes: paragraphs below the tables.
        metrics: those it tells of; empty if it tells of all.
        captioner: the only one it tells of; empty if there are more.
        chapter: under which heading it is folded; empty: it stands open, under its own.
    """

    title: str
    texts: Sequence[str] = ()
    figures: Sequence[Plot] = ()
    sheets: Sequence[Sheet] = ()
    notes: Sequence[str] = ()
    metrics: Sequence[str] = ()
    captioner: str = ""
    chapter: str = ""
