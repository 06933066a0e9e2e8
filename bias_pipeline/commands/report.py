"""``report``: finished runs as one HTML page, and as files for a paper."""

from __future__ import annotations

from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of
from bias_pipeline.io.extras import REPORT
from bias_pipeline.io.terminal import say


def command(words: list[str]) -> int:
    """Write the page, and what else is asked for; returns the exit code.

    Raises:
        BiasPipelineError: if there is nothing to report or it cannot be written.
    """
    from bias_pipeline.report.content import report_of_folder
    from bias_pipeline.report.page import save_page

    arguments = parser().parse_args(words)
    REPORT.require()
    out = arguments.out or arguments.folder / "report.html"
    report = report_of_folder(arguments.folder)
    save_page(report, out)
    say(out)
    if arguments.export:
        from bias_pipeline.report.export import export

        export(report, arguments.export)
        say(arguments.export / "contents.md")
    return 0


def parser() -> Parser:
    """What it takes."""
    own = Parser(
        f"{PROGRAM} report",
        description="Finished runs as one page",
    )
    own.add_argument("folder", type=Path, nargs="?", default=Path("outputs"), help="of runs")
    page = file_of("HTML", ".html", ".htm")
    own.add_argument("--out", type=page, metavar="FILE", help="the page (FOLDER/report.html)")
    own.add_argument(
        "--export",
        type=Path,
        metavar="DIR",
        help="also write tables (LaTeX, Markdown, CSV, Parquet), figures (SVG, PNG) and references",
    )
    return own
