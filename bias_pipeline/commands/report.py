"""``report``: writes finished runs as a page, as files for a paper, or as W&B runs."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.commands import arguments
from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of, number
from bias_pipeline.declared import Seconds
from bias_pipeline.errors import UsageError, cannot_write
from bias_pipeline.io.files import check_places, write_file
from bias_pipeline.io.machine import REPORT
from bias_pipeline.io.terminal import print_out
from bias_pipeline.report.conclusion_checks import Limits
from bias_pipeline.results.store import RESULT

if TYPE_CHECKING:
    from bias_pipeline.report.page import Report


def command(words: list[str]) -> int:
    from bias_pipeline.report.exports import CONTENTS, export
    from bias_pipeline.report.page import report_of_folder, save_page
    from bias_pipeline.report.text_formats import (
        FRAMEWORK,
        benchmark_file,
        evaluation_results,
        model_card,
    )

    options = parser().parse_args(words)
    if options.error and not options.export:
        raise UsageError(
            "--error is for the tables of --export DIR; add --export, or leave --error out"
        )
    if options.eval_results and not options.card:
        raise UsageError("--eval-results writes beside --card FILE.md; add --card")
    benchmark = options.card.parent / "eval.yaml" if options.eval_results else None
    if (
        benchmark
        and benchmark.exists()
        and FRAMEWORK not in benchmark.read_text("utf-8", "replace")
    ):
        raise UsageError(
            f"{benchmark} is of another program, and --eval-results would replace it; name a card "
            "in another folder"
        )
    _check_export(options.export, options.folder)
    REPORT.require()
    check_places(options.card)
    out = options.out or options.folder / "report.html"
    limits = Limits(coverage=options.least_coverage, negligible=options.negligible)
    report = report_of_folder(options.folder, limits)
    card = model_card(report) if options.card else ""  # refused before writing
    save_page(_with_illustrations(report, options.images, options.maps), out)
    print_out(out)
    if options.export:
        from bias_pipeline.report.exports import RUN_ERRORS

        export(report, options.export, RUN_ERRORS.get(options.error))
        print_out(options.export / CONTENTS)
    if options.card:
        write_file(options.card, card.encode("utf-8", "replace"))
        print_out(options.card)
    if options.eval_results:
        place = options.card.parent / ".eval_results" / "bias_pipeline.yaml"
        try:
            place.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(place, error) from error
        write_file(place, evaluation_results(report, options.eval_results).encode())
        print_out(place)
    if benchmark:
        write_file(benchmark, benchmark_file(report, options.eval_results).encode())
        print_out(benchmark)
    return 0


def _check_export(place: Path | None, runs: Path) -> None:
    """Refuse an export into a folder where it would overwrite files of runs."""
    if place is None:
        return
    of_all = place.resolve() == runs.resolve()
    if of_all or (place / RESULT).exists():
        raise UsageError(
            f"--export {place} is the folder of {'the runs' if of_all else 'a run'}, and would "
            "replace its rows.csv; name another folder"
        )


def _with_illustrations(report: Report, photos: Path | None, maps: Path | None) -> Report:
    """The report with photos and maps beside its examples, if their folders are given."""
    if photos is None and maps is None:
        return report
    from bias_pipeline.data.photos import find_photos
    from bias_pipeline.report.example_pictures import drawn_maps, with_pictures

    return with_pictures(
        report,
        None if photos is None else find_photos(photos),
        None if maps is None else drawn_maps(maps),
    )


def _hub_dataset(text: str) -> str:
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", text, re.ASCII):
        raise ArgumentTypeError(
            f"{text!r} is not the name of a data set on the hub, such as owner/photos"
        )
    return text


def parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} report",
        description="Write finished runs as one HTML page",
    )
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path("outputs"),
        help="folder of runs (default: outputs)",
    )
    page = file_of("HTML", ".html", ".htm")
    parser.add_argument(
        "--out", type=page, metavar="FILE", help="the page (default: FOLDER/report.html)"
    )
    parser.add_argument(
        "--export",
        type=Path,
        metavar="DIR",
        help="also write tables (LaTeX, Markdown, CSV, Parquet), figures (SVG, PNG) and "
        "references to this folder",
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="folder of photos that are named by image id; the page then shows at most 200 small "
        "photos beside the example captions, so check that you may share these photos",
    )
    parser.add_argument(
        "--maps",
        type=Path,
        metavar="DIR",
        help="folder written by the command 'explain gradcam'; beside the examples, the report "
        "then shows maps of the places where the captioner looked when it named a group",
    )
    parser.add_argument(
        "--card",
        type=file_of("Markdown", ".md"),
        metavar="FILE.md",
        help="also write the bias section of a model card, for runs of one captioner",
    )
    parser.add_argument(
        "--eval-results",
        type=_hub_dataset,
        metavar="OWNER/NAME",
        help="with --card: name of a data set on the Hugging Face hub. The report then also "
        "writes the numbers as evaluations on this data set "
        "(.eval_results/bias_pipeline.yaml beside the card), and eval.yaml for the data "
        "set's repository",
    )
    parser.add_argument(
        "--error",
        choices=("seeds", "interval"),
        help="the error that exported tables print instead of intervals: the standard deviation "
        "over seeds (seeds), or half the width of a 95%% interval over runs with different "
        "seeds (interval)",
    )
    arguments.add_limits(parser)
    return parser


def wandb_command(words: list[str]) -> int:
    from bias_pipeline.report.page import finished_results
    from bias_pipeline.run import workspace
    from bias_pipeline.run.push import push

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
    from bias_pipeline.run.push import RUN_S

    parser = Parser(f"{PROGRAM} report wandb", description="Write finished runs as W&B runs")
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path("outputs"),
        help="folder of runs (default: outputs)",
    )
    parser.add_argument(
        "--project", default="bias_pipeline", help="W&B project (default: bias_pipeline)"
    )
    parser.add_argument(
        "--entity", help="W&B user or team (default: the user or team in W&B's configuration)"
    )
    parser.add_argument(
        "--mode",
        default="",
        help="whether runs are sent at once (online) or kept for later (offline) (default: "
        "WANDB_MODE, else online if a key is set, else offline)",
    )
    parser.add_argument(
        "--timeout",
        type=number(Seconds),
        default=RUN_S,
        help=f"longest time for a run, in seconds (default: {RUN_S:g})",
    )
    parser.add_argument(
        "--workspace",
        action="store_true",
        help="also create or update a workspace on the server that compares the project's runs",
    )
    return parser
