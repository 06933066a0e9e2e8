"""Writes tables as Markdown and LaTeX, decisions as JUnit XML, and a section for a model card.

Text from data is escaped, so that it cannot become commands.

The LaTeX needs the package booktabs. LaTeX must be of 2020 or later, to read UTF-8 and to have the
text companion signs in its base. Chinese names and emoji are written without changes. Chinese names
and emoji need LuaLaTeX or XeLaTeX, and a font that has them. In JUnit XML, which CI reads, a
decision that is lost, or undecided within a margin, is a failure. A number that decides nothing, or
a metric that does not apply, is skipped.

A model card begins with the hub's YAML, the ``model-index``, which has a result for each number.
The interval is among the result's settings, since the hub has no field for intervals. The hub's
evaluation results (``.eval_results/*.yaml``) name a data set on the hub and a task of its
``eval.yaml``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import yaml

from bias_pipeline import __version__
from bias_pipeline.errors import DataError
from bias_pipeline.io.terminal import printable
from bias_pipeline.metrics.catalogue import info_of
from bias_pipeline.metrics.value_names import HEADLINES, MODEL
from bias_pipeline.report.answer_table import answers_table
from bias_pipeline.report.gate import Comparison
from bias_pipeline.report.table import Cell, NumberCell, Table, Weighted, cell_text, without_places
from bias_pipeline.results.manifest import manifest_of
from bias_pipeline.results.rows import Row

if TYPE_CHECKING:
    from bias_pipeline.report.page import Report
    from bias_pipeline.report.summary import Summary

# These characters get a backslash. Escaping the colon, "@" and "www." keeps an address from
# becoming a link.
_MARKDOWN_SIGNS = re.compile(r"[\\`*_\[\]<>#|~&$@^]|:(?=\S)|(?<=www)\.")


def escape_markdown(text: str) -> str:
    r"""Text escaped for Markdown.

    Example:
        >>> escape_markdown("a|b <i> sat_2")
        'a\\|b \\<i\\> sat\\_2'
    """
    return _MARKDOWN_SIGNS.sub(lambda match: f"\\{match.group()}", without_places(printable(text)))


def markdown_report(table: Table) -> str:
    """A table with its caption above it.

    Example:
        >>> print(markdown_report(Table("Scores", ["captioner", "score"], [["sat", None]])))
        **Scores**
        <BLANKLINE>
        | captioner | score |
        | :-- | --: |
        | sat | – |
        <BLANKLINE>
    """
    return f"**{escape_markdown(table.caption)}**\n\n{_markdown_table(table)}"


def _markdown_table(table: Table) -> str:
    texts = [not k or table.texts or table.has_words(k) for k in range(len(table.head))]
    rule = [":--" if text else "--:" for text in texts]
    lines = [[escape_markdown(name) for name in table.head], rule]
    lines += [[_markdown_cell(cell) for cell in row] for row in table.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markdown_cell(cell: Cell) -> str:
    if isinstance(cell, Weighted):
        return " ".join(_markdown_word(word, level) for word, level in cell.levels())
    text = escape_markdown(cell_text(cell))
    if not isinstance(cell, NumberCell):
        return text
    signs = "*" * (2 * cell.best + (cell.tone == "doubt"))
    return f"{signs}{text}{signs}"


def _markdown_word(word: str, level: int) -> str:
    """A word, underlined if it has a weight, and slanted if it points to the second group."""
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
    '"': r"\symbol{34}",  # a shorthand in babel's German, and another sign in old fonts
    "[": "{[}",  # after the end of a row LaTeX would read it as a length
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
    r"""Text escaped for LaTeX, without commands, formulas or ligatures of punctuation.

    Example:
        >>> print(escape_latex("50% of $x_1$ & \\input{a}"))
        50\% of \$x\_1\$ \& \textbackslash{}input\{a\}
    """
    broken = _LIGATURES.sub("\0", without_places(printable(text)))
    spaced = _SPACES.sub("\1", broken)
    marks = {**_LATEX_SIGNS, "\0": "{}", "\1": r"\ "}
    return "".join(marks.get(sign, sign) for sign in spaced)


_LONG = 30  # a cell with more characters wraps
_WIDE = 6  # a table with more columns is set in a smaller size


def latex(table: Table, label: str) -> str:
    r"""A table with a caption.

    Example:
        >>> print(latex(Table("Scores", ["captioner", "score"], [["sat", None]]), "t"))
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
    size = "\\footnotesize" if len(table.head) > _WIDE else ""
    kinds = "".join(_alignment(table, column) for column in range(len(table.head)))
    body = "".join(_line([_latex_cell(cell) for cell in row]) for row in table.rows)
    return (
        "% needs \\usepackage{booktabs}\n"
        f"\\begin{{table}}\n\\centering{size}\n"
        f"\\caption{{{escape_latex(table.caption)}}}\n\\label{{tab:{label}}}\n"
        f"\\begin{{tabular}}{{{kinds}}}\n\\toprule\n"
        f"{_line([escape_latex(name) for name in table.head])}\\midrule\n{body}"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


def _alignment(table: Table, column: int) -> str:
    """LaTeX's alignment of a column: left for names, right for numbers, wrapped for sentences."""
    if any(isinstance(row[column], Weighted) for row in table.rows):
        return r"p{0.5\linewidth}"
    if column and not table.has_words(column):
        return "r"
    longest = max((len(cell_text(row[column])) for row in table.rows), default=0)
    return r"p{0.2\linewidth}" if longest > _LONG else "l"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + " \\\\\n"


def _latex_cell(cell: Cell) -> str:
    if isinstance(cell, Weighted):
        return " ".join(_latex_word(word, level) for word, level in cell.levels())
    text = escape_latex(cell_text(cell))
    if not isinstance(cell, NumberCell):
        return text
    text = _MINUS.sub("$-$", text)
    text = rf"\textit{{{text}}}" if cell.tone == "doubt" else text
    return rf"\textbf{{{text}}}" if cell.best else text


def _latex_word(word: str, level: int) -> str:
    """A word, underlined if it has a weight, and slanted if it points to the second group."""
    text = escape_latex(word)
    if not level:
        return text
    return rf"\underline{{{text}}}" if level < 0 else rf"\underline{{\textsl{{{text}}}}}"


def skipped_cells(skipped: Mapping[str, str]) -> list[dict[str, str]]:
    """Skipped cells as plain data, in which paths are cut to their last name.

    Example:
        >>> skipped_cells({"metric=dpa captioner='/home/kim/new.json'": "no objects"})
        [{'cell': "metric=dpa captioner='…/new.json'", 'reason': 'no objects'}]
    """
    return [
        {"cell": without_places(cell), "reason": without_places(reason)}
        for cell, reason in skipped.items()
    ]


_KINDS = {"worse": "failure", "undecided": "skipped", "passed": "system-out"}
_NOTHING = "nothing could be decided, so nothing has passed"


def junit(comparison: Comparison) -> bytes:
    """JUnit XML with a test case for each decision and each skipped metric.

    The document has an error if nothing is decided.

    Example:
        >>> print(junit(Comparison([], [])).decode().splitlines()[1][:67])
        <testsuite name="bias_pipeline compare" tests="1" failures="0" skip
    """
    decisions, passed_over = comparison.decisions, comparison.skipped
    failed = (*comparison.lost, *comparison.undecided)
    kinds = ["failure" if one in failed else _KINDS[one.outcome] for one in decisions]
    undecided = kinds.count("skipped") == len(decisions)
    suite = ElementTree.Element(
        "testsuite",
        name="bias_pipeline compare",
        tests=str(len(decisions) + len(passed_over) + undecided),
        failures=str(kinds.count("failure")),
        skipped=str(kinds.count("skipped") + len(passed_over)),
        errors=str(int(undecided)),
    )
    for decision, kind in zip(decisions, kinds, strict=True):
        subject = f"{decision.metric} {decision.headline} {decision.settings}".rstrip()
        name = f"{subject}: {decision.first} against {decision.other}"
        case = _case(suite, f"bias_pipeline.{decision.attribute}", name)
        _add_outcome(case, kind, decision.sentence())
    for cell, reason in passed_over.items():
        _add_outcome(_case(suite, "bias_pipeline", cell), "skipped", reason)
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


FRAMEWORK = "bias_pipeline"  # in eval.yaml
_TASK = {"type": "image-to-text", "name": "Image Captioning"}
_LEVEL = "the model's own level: without human captions there is no score"
# Columns of a row that say how a number was made, if they are not empty.
_ARGUMENTS = ("attribute", "part", "encoder", "head", "masking", "alignment", "scoring")


def evaluation_results(report: Report, dataset: str) -> str:
    """Every headline number as an entry of a model's ``.eval_results`` folder on the hub.

    ``report`` has runs of one captioner; ``dataset`` is the name of a data set on the hub, as
    ``owner/photos``.
    """
    _, rows = _one_captioner(report)
    entries = [_evaluation(row, report, dataset) for row in rows]
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True)


def _evaluation(row: Row, report: Report, dataset: str) -> dict[str, Any]:
    """An entry, whose task identifies the number and whose notes contain everything else."""
    settings = _settings(row, report)
    arguments = _arguments(row, report)
    notes = [f"{key}={arguments[key]}" for key in arguments if key not in settings]
    return {
        "dataset": {"id": dataset, "task_id": _task_of(row, report)},
        "value": round(row.value, 6),
        "notes": f"bias_pipeline {__version__}: {', '.join(notes)}",
    }


def benchmark_file(report: Report, dataset: str) -> str:
    """The ``eval.yaml`` of a data set on the hub, with the tasks that a model's results name.

    Args:
        report: runs of one captioner.
        dataset: the data set's name on the hub.
    """
    _, rows = _one_captioner(report)
    tasks = dict.fromkeys(_task_of(row, report) for row in rows)
    benchmark = {
        "name": f"Bias of captions on {dataset}",
        "description": "How differently a captioner treats groups of people; a task is a metric.",
        "evaluation_framework": FRAMEWORK,
        "tasks": [{"id": task} for task in tasks],
    }
    return yaml.safe_dump(benchmark, sort_keys=False, allow_unicode=True)


def _task_of(row: Row, report: Report) -> str:
    """A unique name for a number, in characters that the hub permits."""
    return re.sub(r"[^\w.]+", "-", "-".join([row.metric, *_settings(row, report).values()]))


def _one_captioner(report: Report) -> tuple[str, list[Row]]:
    """The name and the headline numbers of the only captioner; several are refused."""
    names = sorted({row.captioner for row in report.rows})
    if len(names) > 1:
        raise DataError(
            f"a card is of one captioner, and these runs are of {len(names)} "
            f"({', '.join(names[:3])}): name a folder with the runs of one captioner"
        )
    rows = list(_headlines(report))
    if not rows:
        raise DataError("no run has a number that stands for its metric: there is nothing to write")
    return printable(without_places(names[0])), rows


def model_card(report: Report) -> str:
    """The section of a model card, for the README.md of a model."""
    name, rows = _one_captioner(report)
    index = {"model-index": [{"name": name, "results": [_result(row, report) for row in rows]}]}
    front = yaml.safe_dump(index, sort_keys=False, allow_unicode=True)
    sections = [text for summary in report.summaries for text in _summary(summary)]
    return "\n".join([f"---\n{front}---\n", *_body(report, rows, sections)])


def _headlines(report: Report) -> Iterator[Row]:
    """The headline numbers of each run, or the model's own numbers without human captions."""
    for run_id in dict.fromkeys(row.run_id for row in report.rows):
        defined = {
            row.part: row
            for row in report.rows
            if row.run_id == run_id and math.isfinite(row.value)
        }
        headlines = [defined[part] for part in HEADLINES if part in defined]
        yield from headlines or [defined[part] for part in (MODEL,) if part in defined]


def _settings(row: Row, report: Report) -> dict[str, str]:
    """A text on how a number was made: columns of its row, and settings in which runs differ."""
    columns = {name: text for name in _ARGUMENTS if (text := getattr(row, name))}
    differing = report.settings.get(row.run_id, {})
    return columns | {key: printable(without_places(value)) for key, value in differing.items()}


def _arguments(row: Row, report: Report) -> dict[str, Any]:
    """A text on how a number was made, with its interval and the data behind it."""
    arguments: dict[str, Any] = dict(_settings(row, report))
    ends = {"ci_low": row.ci_low, "ci_high": row.ci_high}
    arguments |= {name: round(value, 6) for name, value in ends.items() if math.isfinite(value)}
    if math.isfinite(row.p_value):
        arguments["p_value"] = float(f"{row.p_value:.4g}")  # never 0, however small
    return arguments | {
        "n_images": row.n_images,
        "n_seeds": row.n_seeds,
        "unit": row.unit,
        "metric_version": row.metric_version,
    }


def _result(row: Row, report: Report) -> dict[str, Any]:
    """A number in the form of the hub's ``model-index``; fractions stay fractions."""
    info = info_of(row.metric)
    metric = {
        "type": row.metric,
        "name": info.title if info else row.metric,
        "value": round(row.value, 6),
        "args": _arguments(row, report),
    }
    return {
        "task": dict(_TASK),
        "dataset": {"type": row.dataset, "name": row.dataset},
        "metrics": [metric],
    }


def _body(report: Report, rows: list[Row], sections: list[str]) -> Iterator[str]:
    yield "## Bias\n"
    yield (
        f"Measured by bias_pipeline {__version__}: is this model more biased than annotators who "
        "described the same images? Intervals cover attackers and images.\n"
    )
    yield from sections
    yield "### Numbers\n"
    head = ["metric", "attribute", "data set", "value", "reads", "settings", "images"]
    yield _markdown_table(Table("", head, [_card_line(row, report) for row in rows], texts=True))
    yield "Numbers whose unit is a fraction are in per cent here and fractions above.\n"
    yield "### Limits\n"
    limits = (limit.removeprefix("† ") for limit in report.caveats)  # a card has no mark
    yield from (f"* {escape_markdown(limit)}" for limit in limits)
    if report.bibtex:
        yield f"\n### Sources\n\n```bibtex\n{report.bibtex.strip()}\n```"
    yield ""


def _summary(summary: Summary) -> Iterator[str]:
    """Lines on the data, the verdict, and the things that are not known."""
    yield f"### {escape_markdown(summary.title)}\n"
    yield (
        "; ".join(f"{name.lower()}: {escape_markdown(value)}" for name, value in summary.facts)
        + ".\n"
    )
    yield from (
        f"{escape_markdown(sentence)}\n"
        for sentence in (*summary.verdict, summary.sure)
        if sentence
    )
    for answers in summary.answers.values():
        yield _markdown_table(replace(answers_table(answers), caption=""))
    if summary.undecided:
        yield "What else is known, and what is not:\n"
        yield from (f"* {escape_markdown(sentence)}" for sentence in summary.undecided)
    yield ""


def _card_line(row: Row, report: Report) -> list[Cell]:
    named = {"attribute", "part"}  # shown in their own columns
    settings = [f"{key} {text}" for key, text in _settings(row, report).items() if key not in named]
    number = NumberCell.of_row(row)
    return [
        f"{row.metric} {row.part}",
        row.attribute,
        row.dataset,
        number if math.isfinite(row.ci_low) else replace(number, low=None),
        _reading(row, report),
        ", ".join(settings) or None,
        f"{row.n_images:,}",
    ]


def _reading(row: Row, report: Report) -> str:
    """A text on how to read a number, in the words of its run; a ratio is compared with 1."""
    if row.part not in HEADLINES:
        return _LEVEL
    info = info_of(row.metric)
    stored = manifest_of(report.runs.get(row.run_id, {})).metric.direction
    return stored or (info.direction if info else "–")
