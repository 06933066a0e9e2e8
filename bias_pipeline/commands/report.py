"""``report``: finished runs as one HTML page, and as files for a paper."""

from __future__ import annotations

from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of
from bias_pipeline.io.optional_dependencies import REPORT
from bias_pipeline.io.terminal import print_out


def command(words: list[str]) -> int:
    """Write the page, and with --export the files; returns the exit code.

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
    print_out(out)
    if arguments.export:
        from bias_pipeline.report.exports import export

        export(report, arguments.export)
        print_out(arguments.export / "contents.md")
    return 0


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} report",
        description="Write finished runs as one page",
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("outputs"), help="folder of runs (outputs)"
    )
    page = file_of("HTML", ".html", ".htm")
    parser.add_argument("--out", type=page, metavar="FILE", help="the page (FOLDER/report.html)")
    parser.add_argument(
        "--export",
        type=Path,
        metavar="DIR",
        help="also write tables (LaTeX, Markdown, CSV, Parquet), figures (SVG, PNG) and references",
    )
    return parser
