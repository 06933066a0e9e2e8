"""Exports files for a paper, which show the same as the HTML page.

The folder has ``contents.md`` (what each file shows), ``tables/NAME.tex`` (LaTeX with booktabs)
with .md, .csv and .parquet, ``figures/NAME.svg`` and .png, ``rows.csv`` and ``rows.parquet`` (every
number of every run), and ``references.bib`` (the sources of the metrics).

Our intervals include the variance over attackers and over images. Papers print smaller errors: the
standard deviation over seeds (RELIC), or half of the 95 % interval over runs (DBAC). Tables can
have these errors instead of our intervals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.files import csv_text, replace_file
from bias_pipeline.report.page import Report
from bias_pipeline.report.section import Section
from bias_pipeline.report.sections import BOLD, MARKED, UNUSED
from bias_pipeline.report.table import STRONG, Cell, NumberCell, Runs, Table, cell_text
from bias_pipeline.report.text_formats import escape_markdown, latex, markdown_report
from bias_pipeline.results.rows import COLUMNS, rows_csv
from bias_pipeline.results.settings import further_columns

Columns = Mapping[str, Sequence[Any]]
CONTENTS = "contents.md"


def export(report: Report, folder: Path, error: RunError | None = None) -> None:
    """Write a report's tables, figures, rows and references.

    A file of an earlier export stays if this report has no table or figure with its name;
    ``contents.md`` lists the files of this export.
    """
    try:
        for path, content in files(report, error):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            replace_file(folder / path, content, sync=False)
    except OSError as error:
        raise ResourceError(
            f"cannot write {folder}: {error.strerror}; choose another --export"
        ) from error


def files(report: Report, error: RunError | None = None) -> Iterator[tuple[str, bytes]]:
    """Every file of an export, as its path within the folder and its content."""
    contents = [f"# {escape_markdown(report.title)}\n\n{escape_markdown(report.described)}\n"]
    names: set[str] = set()
    sections = report.sections
    for section in [with_run_error(s, error) for s in sections] if error else sections:
        section_files = dict(_section_files(section, names))
        contents.append(_contents_of(section, list(section_files)))
        yield from section_files.items()
    further = further_columns(report.settings.values())
    rows = rows_csv(report.rows, further, report.settings)
    yield "rows.csv", rows.encode("utf-8", "replace")
    yield "rows.parquet", _parquet(_columns_of(report, further))
    yield "references.bib", report.bibtex.encode("utf-8", "replace")
    limits = "".join(f"* {escape_markdown(text)}\n" for text in report.caveats)
    contents.append(f"## Limits\n\n{limits}")
    yield CONTENTS, "\n".join(contents).encode("utf-8", "replace")


def _section_files(section: Section, names: set[str]) -> Iterator[tuple[str, bytes]]:
    for table in section.tables:
        name = _name(section.title, table.caption, names)
        stem = f"tables/{name}"
        columns = typed_columns(table)
        alone = replace(table, caption=_caption(section.title, table))
        yield f"{stem}.tex", latex(alone, name).encode("utf-8", "replace")
        yield f"{stem}.md", markdown_report(alone).encode("utf-8", "replace")
        text = csv_text([list(columns), *zip(*columns.values(), strict=True)])
        yield f"{stem}.csv", text.encode("utf-8", "replace")
        yield f"{stem}.parquet", _parquet(columns)
    for figure in section.figures:
        name = _name(section.title, figure.title, names)
        yield f"figures/{name}.svg", figure.svg().encode("utf-8", "replace")
        yield f"figures/{name}.png", figure.png()


def _name(title: str, shown: str, taken: set[str]) -> str:
    r"""The name of a table or figure, also for ``\ref``; it says what is shown, not where.

    So references in a paper stay right when further runs add sections.

    Example:
        >>> _name("lic, gender", "Parts beside the headline, 3 of 9", set())
        'lic-gender-parts-beside-the-headline'
        >>> _name("lic, gender", "lic, gender: values", set())
        'lic-gender-values'
    """
    label = shown.removeprefix(title) if shown.startswith(f"{title}:") else shown
    beginning = re.split(r"[;,.(\d]", label.lstrip(": "))[0]
    section, shows = _slug(title), _slug(beginning) if beginning.strip() else ""
    stem = section if shows in section else f"{section}-{shows}"
    candidate, number = stem, 2
    while candidate in taken:
        candidate, number = f"{stem}-{number}", number + 1
    taken.add(candidate)
    return candidate


def _caption(title: str, table: Table) -> str:
    """The caption of a table in its own file: section, caption, and how to read the cells."""
    numbers = [cell for row in table.rows for cell in row if isinstance(cell, NumberCell)]
    legend = {
        "Fractions in per cent": any(number.fraction for number in numbers),
        MARKED: any(number.mark for number in numbers),
        BOLD.rstrip("."): any(number.best for number in numbers),
        f"Italic: {UNUSED}": any(number.tone == "doubt" for number in numbers),
    }
    if table.towards:
        less, more = table.towards
        words = f"Underlined words point to {less}, and to {more} if they are slanted too"
        legend[f"{words} (from {STRONG} on)"] = True
    return ". ".join([title, table.caption, *(text for text, used in legend.items() if used)]) + "."


def _contents_of(section: Section, paths: Sequence[str]) -> str:
    """A section of ``contents.md``, with its texts and each table or figure with its files."""
    lines = [
        f"## {escape_markdown(section.title)}\n",
        *(f"{escape_markdown(text)}\n" for text in section.texts),
    ]
    titles = [table.caption for table in section.tables]
    titles += [figure.title for figure in section.figures]
    stems = dict.fromkeys(map(_stem, paths))
    for title, stem in zip(titles, stems, strict=True):
        links = " ".join(f"[{p.rpartition('.')[2]}]({p})" for p in paths if _stem(p) == stem)
        lines.append(f"* {escape_markdown(title)}: {links}")
    return "\n".join([*lines, *(f"\n{escape_markdown(note)}" for note in section.notes)]) + "\n"


def _stem(path: str) -> str:
    return path.rpartition(".")[0]


def typed_columns(table: Table) -> dict[str, list[Any]]:
    """A table as columns for files, with unrounded numbers, fractions, and None for empty cells.

    A column of numbers with intervals becomes the columns ``NAME``, ``NAME ci_low`` and ``NAME
    ci_high``. With errors over runs it becomes ``NAME`` and ``NAME std`` or ``NAME ci95``.

    Example:
        >>> score = NumberCell(0.5, 0.4, 0.6, fraction=True)
        >>> typed_columns(Table("t", ["who", "score"], [["sat", score]]))
        {'who': ['sat'], 'score': [0.5], 'score ci_low': [0.4], 'score ci_high': [0.6]}
    """
    columns: dict[str, list[Any]] = {}
    for place, name in enumerate(table.head):
        for suffix, values in _typed_column([row[place] for row in table.rows]).items():
            columns[_unused_name(f"{name}{suffix}", columns)] = values
    return columns


def _typed_column(cells: Sequence[Cell]) -> dict[str, list[Any]]:
    """One column of cells as columns for files, by the suffix of their names."""
    numbers = [cell for cell in cells if isinstance(cell, NumberCell)]
    if not numbers or any(not isinstance(cell, NumberCell) for cell in cells if cell is not None):
        return {"": [None if cell is None else cell_text(cell) for cell in cells]}
    columns = {"": [_finite(getattr(cell, "value", None)) for cell in cells]}
    if any(number.low is not None for number in numbers):
        columns[" ci_low"] = [_finite(getattr(cell, "low", None)) for cell in cells]
        columns[" ci_high"] = [_finite(getattr(cell, "high", None)) for cell in cells]
    for name in dict.fromkeys(number.half[0] for number in numbers if number.half):
        halves = [getattr(cell, "half", None) for cell in cells]
        columns[f" {name}"] = [half[1] if half else None for half in halves]
    return columns


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _unused_name(name: str, taken: Mapping[str, object]) -> str:
    """A name that no other column has, since two captioners may have the same name."""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name} ({number})", number + 1
    return candidate


def _parquet(columns: Columns) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    plain = {_utf8(name): [_utf8(v) for v in values] for name, values in columns.items()}
    file = pa.BufferOutputStream()
    parquet.write_table(pa.table(plain), file)
    return bytes(file.getvalue())


def _utf8(value: Any) -> Any:
    """A text without lone surrogates, which UTF-8 cannot encode."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _columns_of(report: Report, further: Sequence[str]) -> Columns:
    """Every number of every run, with the settings of its run."""
    values = {name: [getattr(row, name) for row in report.rows] for name in COLUMNS}
    settings = [report.settings.get(row.run_id, {}) for row in report.rows]
    return {
        **{
            name: [_finite(value) if isinstance(value, float) else value for value in column]
            for name, column in values.items()
        },
        **{name: [of_run.get(name, "") for of_run in settings] for name in further},
    }


def _slug(title: str) -> str:
    """A title as a file name of at most 60 letters, digits and hyphens.

    Example:
        >>> _slug("dbac A→T, gender, ../scenes")
        'dbac-a-t-gender-scenes'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "untitled"


def half_width(runs: Runs) -> float:
    """Half the width of the 95 % interval of a mean over runs (Student's t), or NaN of one run.

    Example:
        >>> round(half_width(Runs(std=0.02, count=10)), 4)
        0.0143
    """
    from scipy import stats

    if runs.count < 2:
        return math.nan
    return float(stats.t.ppf(0.975, runs.count - 1)) * runs.std / math.sqrt(runs.count)


@dataclass(frozen=True)
class RunError:
    name: str  # the name of its column in files
    size: Callable[[Runs], float]  # computes the error from a number's runs
    legend: str  # what ± means


RUN_ERRORS = {
    "seeds": RunError("std", attrgetter("std"), "± is the standard deviation over seeds"),
    "interval": RunError(
        "ci95",
        half_width,
        "± is half of the 95 % interval over runs, without the variance of images",
    ),
}


def with_run_error(section: Section, error: RunError) -> Section:
    """A section in which an error over runs replaces the interval of each number.

    Numbers without runs, such as counts, have no error then.
    """
    return replace(section, tables=[_table(table, error) for table in section.tables])


def _table(table: Table, error: RunError) -> Table:
    rows = [[_cell(cell, error) for cell in row] for row in table.rows]
    changed = any(isinstance(cell, NumberCell) and cell.half for row in rows for cell in row)
    caption = f"{table.caption}. {error.legend}" if changed else table.caption
    return replace(table, rows=rows, caption=caption)


def _cell(cell: Cell, error: RunError) -> Cell:
    if not isinstance(cell, NumberCell) or cell.runs is None:
        return cell
    size = error.size(cell.runs)
    half = None if math.isnan(size) else (error.name, size)
    return replace(cell, low=None, high=None, half=half)
