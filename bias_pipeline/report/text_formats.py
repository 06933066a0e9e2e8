"""Tables as Markdown and LaTeX, and decisions as JUnit XML; text from data stays text.

LaTeX's output needs the package booktabs and a LaTeX of 2020 or later, whose input is UTF-8 and
whose base has the text companion signs. Names in scripts that pdfLaTeX's fonts lack (Chinese,
emoji) need LuaLaTeX or XeLaTeX and a font that has them; they are written as they are. In JUnit
XML, for CI, lost is a failure and undecided is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from bias_pipeline.analysis.gate import Decision
from bias_pipeline.io.terminal import printable
from bias_pipeline.report.report_tables import (
    Cell,
    Sheet,
    SheetNumber,
    Weighted,
    cell_text,
    without_places,
)

# These get a backslash. Escaping the colon, "@" and "www." keeps an address from becoming a link.
_MARKDOWN_SIGNS = re.compile(r"[\\`*_\[\]<>#|~&$@^]|:(?=\S)|(?<=www)\.")


def escape_markdown(text: str) -> str:
    r"""Text escaped for Markdown.

    Example:
        >>> escape_markdown("a|b <i> sat_2")
        'a\\|b \\<i\\> sat\\_2'
    """
    return _MARKDOWN_SIGNS.sub(lambda match: f"\\{match.group()}", without_places(printable(text)))


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
    lines = [[escape_markdown(name) for name in sheet.head], rule]
    lines += [[_markdown_cell(cell) for cell in row] for row in sheet.rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"**{escape_markdown(sheet.caption)}**\n\n{table}"


def _markdown_cell(cell: Cell) -> str:
    if isinstance(cell, Weighted):
        return " ".join(_markdown_word(word, level) for word, level in cell.levels())
    text = escape_markdown(cell_text(cell))
    return f"**{text}**" if isinstance(cell, SheetNumber) and cell.best else text


def _markdown_word(word: str, level: int) -> str:
    """A word with weight is underlined; one that points to the second group is also slanted."""
    text = escape_markdown(word)
    if not level:
        return text
    return f"<u>{text}</u>" if level < 0 else f"<u><i>{text}</i></u>"


_LATEX_SIGNS = {
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
    "±": r"$\pm$",
}
_LIGATURES = re.compile(r"(?<=[-'`,!?])(?=[-'`,])")
_MINUS = re.compile(r"-(?=\d)")
_SPACES = re.compile(r"(?<= ) |^ | $")


def escape_latex(text: str) -> str:
    r"""Text escaped for LaTeX: no commands, formulas or ligatures of punctuation.

    Args:
        text: any text; control characters and direction marks are written out.

    Example:
        >>> print(escape_latex("50% of $x_1$ & \\input{a}"))
        50\% of \$x\_1\$ \& \textbackslash{}input\{a\}
    """
    broken = _LIGATURES.sub("\0", without_places(printable(text)))
    spaced = _SPACES.sub("\1", broken)
    marks = {**_LATEX_SIGNS, "\0": "{}", "\1": r"\ "}
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
    body = "".join(_line([_latex_cell(cell) for cell in row]) for row in sheet.rows)
    return (
        "% needs \\usepackage{booktabs}\n"
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{escape_latex(sheet.caption)}}}\n\\label{{tab:{label}}}\n"
        f"\\begin{{tabular}}{{{kinds}}}\n\\toprule\n"
        f"{_line([escape_latex(name) for name in sheet.head])}\\midrule\n{body}"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


def _alignment(sheet: Sheet, column: int) -> str:
    """Left for names, right for numbers, lines that wrap for captions."""
    if any(isinstance(row[column], Weighted) for row in sheet.rows):
        return r"p{0.5\linewidth}"
    return "r" if column else "l"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + " \\\\\n"


def _latex_cell(cell: Cell) -> str:
    if isinstance(cell, Weighted):
        return " ".join(_latex_word(word, level) for word, level in cell.levels())
    text = escape_latex(cell_text(cell))
    if not isinstance(cell, SheetNumber):
        return text
    text = _MINUS.sub("$-$", text)
    return rf"\textbf{{{text}}}" if cell.best else text


def _latex_word(word: str, level: int) -> str:
    """A word with weight is underlined; one that points to the second group is also slanted."""
    text = escape_latex(word)
    if not level:
        return text
    return rf"\underline{{{text}}}" if level < 0 else rf"\underline{{\textsl{{{text}}}}}"


_KINDS = {"worse": "failure", "undecided": "skipped", "passed": "system-out"}
_NOTHING = "nothing could be decided, so nothing has passed"


def junit(decisions: Sequence[Decision]) -> bytes:
    """One test case for each decision; an error if nothing was decided.

    Args:
        decisions: of the first captioner against others.

    Example:
        >>> print(junit([]).decode().splitlines()[1][:67])
        <testsuite name="bias_pipeline compare" tests="1" failures="0" skip
    """
    kinds = [_KINDS[decision.outcome] for decision in decisions]
    undecided = kinds.count("skipped") == len(decisions)
    suite = ElementTree.Element(
        "testsuite",
        name="bias_pipeline compare",
        tests=str(len(decisions) + undecided),
        failures=str(kinds.count("failure")),
        skipped=str(kinds.count("skipped")),
        errors=str(int(undecided)),
    )
    for decision, kind in zip(decisions, kinds, strict=True):
        subject = f"{decision.metric} {decision.headline} {decision.settings}".rstrip()
        name = f"{subject}: {decision.first} against {decision.other}"
        case = _case(suite, f"bias_pipeline.{decision.attribute}", name)
        _add_outcome(case, kind, decision.sentence())
    if undecided:
        _add_outcome(_case(suite, "bias_pipeline", "gate"), "error", _NOTHING)
    ElementTree.indent(suite)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return (head + ElementTree.tostring(suite, "unicode") + "\n").encode("utf-8", "replace")


def _case(suite: ElementTree.Element, group: str, name: str) -> ElementTree.Element:
    attributes = {"classname": printable(group), "name": printable(name)}
    return ElementTree.SubElement(suite, "testcase", attributes)


def _add_outcome(case: ElementTree.Element, kind: str, sentence: str) -> None:
    element = ElementTree.SubElement(case, kind)
    if kind == "system-out":
        element.text = printable(sentence)
    else:
        element.set("message", printable(sentence))
