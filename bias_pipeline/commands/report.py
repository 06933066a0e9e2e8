"""``report``: finished runs as a page, as files for a paper, and as Weights & Biases runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of, number
from bias_pipeline.declared import Seconds
from bias_pipeline.errors import UsageError
from bias_pipeline.io.machine import REPORT
from bias_pipeline.io.terminal import print_out

if TYPE_CHECKING:
    from bias_pipeline.report.page import Report


def command(words: list[str]) -> int:
    """Write the page, and with --export the files; returns the exit code.

    Raises:
        BiasPipelineError: if there is nothing to report or it cannot be written.
    """
    from bias_pipeline.report.exports import check_places, export, write_file
    from bias_pipeline.report.page import report_of_folder, save_page

    arguments = parser().parse_args(words)
    if arguments.error and not arguments.export:
        raise UsageError("--error is for the tables of --export DIR; add it, or leave --error out")
    REPORT.require()
    check_places(arguments.card)
    out = arguments.out or arguments.folder / "report.html"
    report = report_of_folder(arguments.folder)
    save_page(_illustrated(report, arguments.images, arguments.maps), out)
    print_out(out)
    if arguments.export:
        from bias_pipeline.report.exports import RUN_ERRORS

        export(report, arguments.export, RUN_ERRORS.get(arguments.error))
        print_out(arguments.export / "contents.md")
    if arguments.card:
        from bias_pipeline.report.model_card import model_card

        write_file(arguments.card, model_card(report).encode("utf-8", "replace"))
        print_out(arguments.card)
    return 0


def _illustrated(report: Report, photos: Path | None, maps: Path | None) -> Report:
    """The report with pictures and maps beside its examples, if there are folders of them."""
    if photos is None and maps is None:
        return report
    from bias_pipeline.report.attribution_maps import drawn_maps, with_pictures
    from bias_pipeline.vision.photos import find_photos

    return with_pictures(
        report,
        None if photos is None else find_photos(photos),
        None if maps is None else drawn_maps(maps),
    )


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
    parser.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="photos by image id: small pictures of at most 200 are put into the page, beside the "
        "captions that are examples; see that you may pass them on",
    )
    parser.add_argument(
        "--maps",
        type=Path,
        metavar="DIR",
        help="a folder of explain gradcam: where the captioner looked for the word that names a "
        "group, folded beside each example whose caption it maps",
    )
    parser.add_argument(
        "--card",
        type=file_of("Markdown", ".md"),
        metavar="FILE.md",
        help="also write the bias section of a model card, for runs of one captioner",
    )
    parser.add_argument(
        "--error",
        choices=("seeds", "interval"),
        help="in exported tables, instead of our intervals over attackers and images: the standard "
        "deviation over seeds, or half of the 95%% interval over runs, as papers print them",
    )
    return parser


def wandb_command(words: list[str]) -> int:
    """Write the runs, or send them; returns the exit code.

    Raises:
        BiasPipelineError: if there are none, or a server does not accept them.
    """
    from bias_pipeline.loggers import workspace
    from bias_pipeline.loggers.push import push
    from bias_pipeline.report.page import finished_results

    arguments = wandb_parser().parse_args(words)
    if arguments.workspace:
        workspace.require_server(arguments.mode)
    pushed = push(
        arguments.folder,
        project=arguments.project,
        entity=arguments.entity,
        mode="online" if arguments.workspace else arguments.mode,
        timeout_s=arguments.timeout,
    )
    print_out(pushed.sentence())
    if arguments.workspace:
        print_out(
            workspace.save_workspace(
                finished_results(arguments.folder),
                project=arguments.project,
                entity=arguments.entity,
            )
        )
    return 0


def wandb_parser() -> Parser:
    """The options and their help."""
    from bias_pipeline.loggers.push import RUN_S

    parser = Parser(f"{PROGRAM} report wandb", description="Write finished runs as W&B runs")
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("outputs"), help="folder of runs (outputs)"
    )
    parser.add_argument("--project", default="bias_pipeline", help="W&B project (bias_pipeline)")
    parser.add_argument("--entity", help="user or team (your default)")
    parser.add_argument(
        "--mode",
        default="",
        help="offline or online (WANDB_MODE; else online where a key is set)",
    )
    parser.add_argument(
        "--timeout", type=number(Seconds), default=RUN_S, help=f"seconds a run ({RUN_S:g})"
    )
    parser.add_argument(
        "--workspace",
        action="store_true",
        help="also create or update a workspace on the server that compares the project's runs",
    )
    return parser
