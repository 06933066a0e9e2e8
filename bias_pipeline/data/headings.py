"""Finds a table's heading, which may be below ``sep=;``, blank rows and titles, or absent."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from bias_pipeline.corpus.image_ids import ENDINGS
from bias_pipeline.data.columns import IMAGE, plain_name

FIRST_ROWS = 20  # the first rows, among which the heading is
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # Excel reads and writes this line


class Heading(NamedTuple):
    """Where a text table's heading is."""

    place: int  # number of lines before the heading
    separator: str  # separator of the columns
    note: str  # how the heading deviates from the usual; empty if it does not


def heading_place(rows: Sequence[Sequence[str]]) -> int | None:
    """The number of the first row that names a column of ids; all rows above it must be shorter.

    Example:
        >>> heading_place([["My captions", ""], ["", ""], ["image_id", "caption"]])
        2
        >>> heading_place([["photo_key", "caption"], ["7", "image"]])
    """
    most = 1
    for place, row in enumerate(rows):
        filled = sum(bool(cell.strip()) for cell in row)
        if filled > most and any(plain_name(cell.strip()) in IMAGE.names for cell in row):
            return place
        most = max(most, filled)
    return None


def find_heading(lines: Sequence[str], usual: str) -> Heading:
    """The heading of a text table.

    Example:
        >>> find_heading(["sep=;", "image_id;caption"], ",")
        Heading(place=1, separator=';', note='columns separated by semicolons')
        >>> find_heading(["My captions", "", "image_id,caption"], ",")
        Heading(place=2, separator=',', note='heading in line 3')
    """
    named = _SEPARATOR_LINE.fullmatch(lines[0]) if lines else None
    start = 1 if named else 0
    separators = [named[1]] if named else [usual, *(sign for sign in SEPARATORS if sign != usual)]
    places = {sign: heading_place(_cells(lines[start:], sign)) for sign in separators}
    named_places = [(place, sign) for sign, place in places.items() if place is not None]
    if named_places:
        below, separator = min(
            named_places, key=lambda pair: pair[0]
        )  # the usual separator, if both are first
    else:
        below = next((k for k, line in enumerate(lines[start:]) if line.strip()), 0)
        # The usual one, unless the heading lacks it and has exactly one other
        heading = lines[start + below] if lines else ""
        single = len(_cells([heading], separators[0])[0]) < 2
        others = [sign for sign in separators if single and sign in heading]
        separator = others[0] if len(others) == 1 else separators[0]
    title = any(line.strip() for line in lines[start : start + below])
    notes = [
        f"columns separated by {SEPARATORS.get(separator, repr(separator))}"
        if separator != usual
        else "",
        f"heading in line {start + below + 1}" if title else "",
    ]
    return Heading(start + below, separator, ", ".join(filter(None, notes)))


def _cells(lines: Iterable[str], separator: str) -> list[list[str]]:
    return [next(csv.reader([line], delimiter=separator), []) for line in lines]


def lacks_heading(names: Sequence[str], known: Collection[str]) -> bool:
    """Whether a first row of two cells is not a heading but a picture's id and its caption.

    Flickr30k numbers an image's captions behind its file name (``7.jpg#0``).

    Example:
        >>> lacks_heading(["1000", "a dog"], []), lacks_heading(["image_id", "caption"], [])
        (True, False)
    """
    plain = {plain_name(name) for name in (*known, *IMAGE.names)}
    if len(names) != 2 or any(plain_name(name) in plain for name in names):
        return False
    return names[0].isdigit() or names[0].partition("#")[0].lower().endswith(ENDINGS)
