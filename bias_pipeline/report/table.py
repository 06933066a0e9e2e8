"""Tables without any output format.

Cells keep unrounded numbers. ``screen.py`` formats them for the terminal, ``page.html.j2`` for the
page, ``text_formats.py`` for Markdown and LaTeX, and ``exports.py`` for CSV and Parquet. Content
that is sent to others loses the machine's paths and names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bias_pipeline.results.rows import Row


def percent(value: float, digits: int = 1) -> str:
    """A fraction in per cent, or a dash for NaN.

    Example:
        >>> percent(0.4567), percent(float("nan"))
        ('45.7', '–')
    """
    return number(100 * value, digits)


def number(value: float, digits: int = 2) -> str:
    """A number without a minus sign at zero, or a dash for NaN.

    Example:
        >>> number(1.25), number(-0.001), number(float("nan"))
        ('1.25', '0.00', '–')
    """
    return "–" if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def p_cell(p_value: float) -> str:
    """A p value to three digits, or a dash for NaN.

    Example:
        >>> p_cell(0.0412), p_cell(1e-9), p_cell(float("nan"))
        ('0.041', '<0.001', '–')
    """
    if math.isnan(p_value):
        return "–"
    return "<0.001" if p_value < 0.0005 else f"{p_value:.3f}"


@dataclass(frozen=True)
class Runs:
    """The runs behind a number."""

    std: float  # standard deviation over the runs (n - 1), NaN of fewer than two runs
    count: int  # how many


@dataclass(frozen=True)
class NumberCell:
    """A number, with its interval if known."""

    value: float  # NaN if the number does not exist
    low: float | None = None  # lower end, None for a number without an interval
    high: float | None = None  # upper end
    fraction: bool = False  # whether it is shown in per cent; files have fractions
    digits: int = 2  # digits after the decimal point
    mark: str = ""  # an arrow after the number
    tone: str = ""  # `worse` or `better` than the no-bias value; `doubt` if not used
    best: bool = False  # whether it is significantly fairer than all others in its column
    runs: Runs | None = None  # runs with different seeds; None for a number without runs
    # Another error in place of the interval: its name in files, and its size
    half: tuple[str, float] | None = None

    @classmethod
    def of_row(cls, row: Row, mark: str = "", tone: str = "", best: bool = False) -> NumberCell:
        runs = Runs(row.seed_std, row.n_seeds)
        cell = cls.in_unit(row.unit, row.value, row.ci_low, row.ci_high)
        return replace(cell, mark=mark, tone=tone, best=best, runs=runs)

    @classmethod
    def in_unit(
        cls, unit: str, value: float, low: float | None = None, high: float | None = None
    ) -> NumberCell:
        """A cell with a number in its unit, where fractions are in per cent."""
        fraction = unit == "fraction"
        return cls(value, low, high, fraction, digits=1 if fraction else 2)

    @property
    def text(self) -> str:
        """The number as text, with interval and mark.

        Example:
            >>> NumberCell(0.123, 0.1, 0.15, fraction=True, digits=1, mark="↑").text
            '12.3 [10.0, 15.0] ↑'
            >>> NumberCell(math.nan).text
            '–'
        """
        written = percent if self.fraction else number
        text = written(self.value, self.digits)
        if self.half is not None:
            text += f" ± {written(self.half[1], self.digits)}"
        elif self.low is not None and self.high is not None:
            text += f" [{written(self.low, self.digits)}, {written(self.high, self.digits)}]"
        return f"{text} {self.mark}".rstrip()


@dataclass(frozen=True)
class PCell(NumberCell):
    @property
    def text(self) -> str:
        return p_cell(self.value)


STRONG = 0.3
STRONGEST = 0.9


@dataclass(frozen=True)
class Weighted:
    """A caption whose words have weights."""

    words: tuple[tuple[str, float], ...]  # words with their weights, in the order of the caption

    @property
    def text(self) -> str:
        return " ".join(word for word, _ in self.words)

    def levels(self) -> list[tuple[str, int]]:
        """Each word with the strength of its weight, from -2 to 2, where 0 means a small weight.

        Example:
            >>> Weighted((("a", 0.1), ("truck", -1.2), ("red", 0.5))).levels()
            [('a', 0), ('truck', -2), ('red', 1)]
        """
        return [(word, _level(weight)) for word, weight in self.words]


def _level(weight: float) -> int:
    strength = (abs(weight) >= STRONG) + (abs(weight) >= STRONGEST)
    return int(math.copysign(strength, weight))


@dataclass(frozen=True)
class Illustrated:
    """An image id with a small picture, a map, or both."""

    text: str  # the id
    picture: str  # a thumbnail as base64 of a JPEG, or empty
    word: str = ""  # the word of the caption whose map is shown; empty if there is no map
    map: str = ""  # where the captioner looked for the word, as base64 of a JPEG


Cell = str | NumberCell | Weighted | Illustrated | None  # None becomes a dash


def cell_text(cell: Cell) -> str:
    """A cell as plain text; None becomes a dash.

    Example:
        >>> cell_text("sat"), cell_text(None), cell_text(NumberCell(3, digits=0))
        ('sat', '–', '3')
    """
    if cell is None:
        return "–"
    return cell if isinstance(cell, str) else cell.text


@dataclass(frozen=True)
class Table:
    caption: str  # what the table shows
    head: Sequence[str]  # names of its columns
    rows: Sequence[Sequence[Cell]]  # cells; the first column names the row
    folded: bool = False  # whether a page shows it only after a click
    metrics: Sequence[str] = ()  # the metric of each column, empty for a column without
    captioners: Sequence[str] = ()  # the captioner of each column, empty for a column without
    # What words of captions with weights point to, below 0 and above it; formats mark them in
    # different ways
    towards: tuple[str, str] | None = None
    keys: int = 1  # how many columns name the row; a screen repeats them in every block
    texts: bool = False  # whether all columns are set flush left, not only those that name the row

    def has_words(self, column: int) -> bool:
        """Whether a column has words, and is therefore aligned to the left."""
        return any(
            not isinstance(row[column], NumberCell) and _WORD.search(cell_text(row[column]))
            for row in self.rows
        )


_WORD = re.compile(r"[^\W\d_]{2}")
# A slash after no word, then two or more names: neither "and/or" nor a URL.
_PATH = re.compile(r"(?<![\w:/.<~])/(?:[\w.+@%~-]+/)+([\w.+@%~-]*)")
_OF_MACHINE = ("host", "pid")


def without_places(text: str) -> str:
    """A text in which only the last name of each absolute path stays.

    Example:
        >>> without_places("dataset.root=/home/kim/data/coco, and/or https://a.org/b/c")
        'dataset.root=…/coco, and/or https://a.org/b/c'
    """
    return _PATH.sub(lambda match: f"…/{match.group(1)}", text)


def shareable(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest without absolute paths, the name of the host and the number of the process.

    Example:
        >>> shareable({"machine": {"host": "a", "pid": 1, "cores": 2}, "overrides": ["x=/a/b/c"]})
        {'machine': {'cores': 2}, 'overrides': ['x=…/c']}
    """
    cleaned = {key: _shareable(value) for key, value in manifest.items()}
    machine = cleaned.get("machine")
    if isinstance(machine, dict):
        cleaned["machine"] = {key: fact for key, fact in machine.items() if key not in _OF_MACHINE}
    return cleaned


def _shareable(value: Any) -> Any:
    if isinstance(value, str):
        return without_places(value)
    if isinstance(value, Mapping):
        return {without_places(str(key)): _shareable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shareable(item) for item in value]
    return value
