"""A report as one HTML file that loads nothing and runs only its own scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.files import replace_file
from bias_pipeline.io.terminal import printable
from bias_pipeline.report import interaction
from bias_pipeline.report.content import Report, report_of, report_of_folder
from bias_pipeline.report.report_tables import cell_text, shareable, without_places
from bias_pipeline.results.store import Result
from bias_pipeline.stats.bootstrap import Draws

MOST_RUNS = 200  # with more, the page does not list their settings


def write_page(folder: Path, out: Path) -> None:
    """Write the report of all finished runs of a folder.

    Args:
        folder: of results.
        out: the HTML file.

    Raises:
        BiasPipelineError: if there is nothing to report or it cannot be written.
    """
    save_page(report_of_folder(folder), out)


def save_page(report: Report, out: Path) -> None:
    """Write a report as HTML.

    Raises:
        ResourceError: if it cannot be written.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, html(report).encode("utf-8", "replace"))
    except OSError as error:
        raise ResourceError(
            f"cannot write {out}: {error.strerror}; choose another --out"
        ) from error


def page(results: Sequence[Result], draws: Mapping[str, Mapping[str, Draws]]) -> str:
    """The report of some results as HTML."""
    return html(report_of(results, draws))


def html(report: Report) -> str:
    """A report as HTML; all text that comes from data is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bias_pipeline.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["text"] = lambda cell: without_places(printable(cell_text(cell)))
    drawn = [plot for section in report.sections for plot in section.figures]
    plots = [plot for plot in drawn if plot.points.rows]  # those that can be zoomed
    page_scripts = interaction.scripts(plots)
    text = environment.get_template("page.html.j2").render(
        report=report,
        runs=_runs(report),
        metrics=sorted({row.metric for row in report.rows}),
        names={row.captioner for row in report.rows},
        charts=interaction.data(plots) if page_scripts and plots else "",
        sources=[script.source for script in page_scripts],
    )
    # Scripts are inserted last, so that nothing changes their hash.
    before, _, after = _inert(text).rpartition("<!-- scripts -->")
    return "".join(
        [before, *(f"<script>{script.text}</script>\n" for script in page_scripts), after]
    )


def _inert(text: str) -> str:
    """A page whose control characters and direction marks are written out."""
    return "".join(
        sign if sign in "\n\t" or sign.isprintable() else ascii(sign)[1:-1] for sign in text
    )


def _runs(report: Report) -> list[dict[str, str]]:
    """Name and manifest of each run; empty if there are too many."""
    if len(report.runs) > MOST_RUNS:
        return []
    return [{"name": name, "manifest": _json(manifest)} for name, manifest in report.runs.items()]


def _json(manifest: Mapping[str, object]) -> str:
    content = shareable({key: value for key, value in manifest.items() if key != "image_std"})
    return json.dumps(content, indent=1, ensure_ascii=False)
