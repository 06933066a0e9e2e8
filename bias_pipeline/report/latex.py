r"""Tables as LaTeX with booktabs; text from data stays text, whatever characters it has.

The output needs ``\usepackage{booktabs}`` and a LaTeX of 2020 or later, whose input is UTF-8
and whose base has the text companion signs. Names in scripts that pdfLaTeX's fonts lack (Chinese,
emoji) need LuaLaTeX or XeLaTeX and a font that has them; they are written as they are.
"""

from __future__ import annotations

import re

from bias_pipeline.io.terminal import printable
from bias_pipeline.report.places import without_places
from bias_pipeline.report.report_tables import Cell, Sheet, SheetNumber, Weighted, cell_text

_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",  # a shorthand under babel's German, another sign in old fonts
    "[": "{[}",  # after the end of a row it would be a length
    "]": "{]}",
    "*": "{*}",  # likewise
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "†": r"\textdagger{}",
    "…": r"\textellipsis{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "→": r"$\rightarrow$",
    "≈": r"$\approx$",
}
_LIGATURES = re.compile(r"(?<=[-'`,!?])(?=[-'`,])")
_MINUS = re.compile(r"-(?=\d)")
_SPACES = re.compile(r"(?<= ) |^ | $")


def escape(text: str) -> str:
    r"""Text escaped for LaTeX: no commands, formulas or ligatures of punctuation.

    Args:
        text: any text; control characters and direction marks are written out.

    Example:
        >>> print(escape("50% of $x_1$ & \\input{a}"))
        50\% of \$x\_1\$ \& \textbackslash{}input\{a\}
    """
    broken = _LIGATURES.sub("\0", without_places(printable(text)))
    spaced = _SPACES.sub("\1", broken)
    marks = {**_SIGNS, "\0": "{}", "\1": r"\ "}
    return "".join(marks.get(sign, sign) for sign in spaced)


def latex(sheet: Sheet, label: str) -> str:
    r"""A table with a caption.

    Args:
        sheet: what it shows.
        label: its name for ``\ref``, letters, digits and hyphens.

    Example:
        >>> print(latex(Sheet("Scores", ["captioner", "score"], [["sat", None]]), "t"))
        % needs \usepackage{booktabs}
        \begin{table}
        \centering
        \caption{Scores}
        \label{tab:t}
        \begin{tabular}{lr}
        \toprule
        captioner & score \\
        \midrule
        sat & \textendash{} \\
        \bottomrule
        \end{tabular}
        \end{table}
        <BLANKLINE>
    """
    kinds = "".join(_alignment(sheet, column) for column in range(len(sheet.head)))
    body = "".join(_line([_cell(cell) for cell in row]) for row in sheet.rows)
    return (
        "% needs \\usepackage{booktabs}\n"
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{escape(sheet.caption)}}}\n\\label{{tab:{label}}}\n"
        f"\\begin{{tabular}}{{{kinds}}}\n\\toprule\n"
        f"{_line([escape(name) for name in sheet.head])}\\midrule\n{body}"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


def _alignment(sheet: Sheet, column: int) -> str:
    """Left for names, right for numbers, lines that wrap for captions."""
    if any(isinstance(row[column], Weighted) for row in sheet.rows):
        return r"p{0.5\linewidth}"
    return "r" if column else "l"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + " \\\\\n"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Weighted):
        return " ".join(_word(word, level) for word, level in cell.levels())
    text = escape(cell_text(cell))
    if not isinstance(cell, SheetNumber):
        return text
    text = _MINUS.sub("$-$", text)
    return rf"\textbf{{{text}}}" if cell.best else text


def _word(word: str, level: int) -> str:
    """A word with weight is underlined; one that points to the second group is also slanted."""
    text = escape(word)
    if not level:
        return text
    return rf"\underline{{{text}}}" if level < 0 else rf"\underline{{\textsl{{{text}}}}}"
