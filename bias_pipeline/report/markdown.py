"""Tables as GitHub-flavoured Markdown; text from data stays text."""

from __future__ import annotations

import re

from bias_pipeline.io.terminal import printable
from bias_pipeline.report.places import without_places
from bias_pipeline.report.report_tables import Cell, Sheet, SheetNumber, Weighted, cell_text

# These get a backslash. Escaping the colon, "@" and "www." keeps an address from becoming a link.
_SIGNS = re.compile(r"[\\`*_\[\]<>#|~&$@^]|:(?=\S)|(?<=www)\.")


def escape(text: str) -> str:
    r"""Text escaped for Markdown.

    Example:
        >>> escape("a|b <i> sat_2")
        'a\\|b \\<i\\> sat\\_2'
    """
    return _SIGNS.sub(lambda match: f"\\{match.group()}", without_places(printable(text)))


def markdown_report(sheet: Sheet) -> str:
    """A table with its caption above it.

    Example:
        >>> print(markdown_report(Sheet("Scores", ["captioner", "score"], [["sat", None]])))
        **Scores**
        <BLANKLINE>
        | captioner | score |
        | :-- | --: |
        | sat | – |
        <BLANKLINE>
    """
    rule = [":--", *(["--:"] * (len(sheet.head) - 1))]
    lines = [[escape(name) for name in sheet.head], rule]
    lines += [[_cell(cell) for cell in row] for row in sheet.rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"**{escape(sheet.caption)}**\n\n{table}"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Weighted):
        return " ".join(_word(word, level) for word, level in cell.levels())
    text = escape(cell_text(cell))
    return f"**{text}**" if isinstance(cell, SheetNumber) and cell.best else text


def _word(word: str, level: int) -> str:
    """A word with weight is underlined; one that points to the second group is also slanted."""
    text = escape(word)
    if not level:
        return text
    return f"<u>{text}</u>" if level < 0 else f"<u><i>{text}</i></u>"
