"""The door: choose the command, run it, turn what went wrong into a sentence and an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence

from bias_pipeline import __version__
from bias_pipeline.commands import shorthand
from bias_pipeline.errors import (
    BiasPipelineError,
    ResourceError,
    UsageError,
    did_you_mean,
    refused_by_system,
)
from bias_pipeline.io import stopping, streams
from bias_pipeline.io.included import including, places
from bias_pipeline.io.terminal import guard, say, warn

Command = Callable[[list[str]], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a user's mistake never shows a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    streams.open_streams()
    _settle()
    guard()
    stopping.listen()
    try:
        code = _obey(words)
        stopped = code != 0 and stopping.requested()
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt) and not stopping.requested():
            raise
        stopped = True
    if not stopped:
        return code
    warn("stopped; what was finished is kept")
    return stopping.exit_code()


def _settle() -> None:
    """Set what suits this program better than what Python and NumPy start with."""
    # Composing a sweep makes nodes by the hundred thousand that stay until their job ran; looking
    # for garbage among them every 700 took a sixth of a sweep of cached cells.
    gc.set_threshold(10_000, 10, 10)
    # Read when NumPy is imported, which nothing here has done yet. Its products are small, and
    # cells run side by side: threads that share one wait for each other on busy cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _obey(words: list[str]) -> int:
    try:
        with including(words) as rest:
            for name, place in places().items():
                warn(f"included: {name} from {place}; a configuration may build its classes")
            return _run_command(rest) or _printed()
    except BiasPipelineError as error:
        stopping.stop_if_requested()  # what failed then is nobody's mistake
        warn(f"error: {error}")
        return error.exit_code


def _printed() -> int:
    """What a command ends with that went well.

    Raises:
        ResourceError: if what it printed is lost.
    """
    fault = streams.fault()
    if fault:
        raise ResourceError(
            f"standard output took not all that was printed: {fault.strerror}; files are whole"
        )
    return 0


def _run_command(words: list[str]) -> int:
    command, rest = _command(words)
    try:
        return command(rest)
    except OSError as error:
        if error.filename is None:
            raise
        raise refused_by_system(error) from error


def _command(words: list[str]) -> tuple[Command, list[str]]:
    """The command that the first word names; without one, ``run``."""
    commands: dict[str, Command] = {
        "run": _run,
        "submit": _submit,
        "audit": _audit,
        "compare": _compare,
        "report": _report,
        "data": _data,
        "embed": _embed,
        "caption": _caption,
        "metrics": _metrics,
        "analysis": _analysis,
    }
    first = words[0] if words else ""
    if first in ("-h", "--help", "help"):
        return _help, words[1:]
    if first == "--version":
        return _version, words[1:]
    if not first or first[0] in "-+~" or "=" in first:
        return _run, words
    if first not in commands:
        raise UsageError(f"command {first!r} is unknown; {did_you_mean(first, commands)}")
    return commands[first], words[1:]


def _help(rest: list[str]) -> int:
    from bias_pipeline.catalogue.listing import help_text

    del rest
    say(*help_text().split("\n"))
    return 0


def _version(rest: list[str]) -> int:
    del rest
    say(f"bias_pipeline {__version__}")
    return 0


def _run(words: list[str]) -> int:
    from bias_pipeline.sweeps import launch, planning

    if words[:1] in (["-h"], ["--help"]):
        return _help(words)
    words = shorthand.keys_of(words)
    if shorthand.DRY_RUN in words:
        return planning.foretell([word for word in words if word != shorthand.DRY_RUN])
    return launch.run(words).exit_code


def _submit(words: list[str]) -> int:
    from bias_pipeline.commands import submit

    return submit.submit(shorthand.keys_of(words))


def _audit(words: list[str]) -> int:
    from bias_pipeline.commands import audit

    return audit.command(words)


def _compare(words: list[str]) -> int:
    from bias_pipeline.commands import compare

    return compare.run(shorthand.keys_of(words))


def _push(words: list[str]) -> int:
    from pathlib import Path

    from bias_pipeline.commands.arguments import Parser, number
    from bias_pipeline.declared import Seconds
    from bias_pipeline.loggers import workspace
    from bias_pipeline.loggers.push import RUN_S, push
    from bias_pipeline.report.content import finished_results

    parser = Parser("python -m bias_pipeline report wandb", description="Finished runs as W&B runs")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("outputs"), help="of runs")
    parser.add_argument("--project", default="bias_pipeline", help="(bias_pipeline)")
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
        help="also make, or renew, a workspace on the server that compares the project's runs",
    )
    arguments = parser.parse_args(words)
    if arguments.workspace:
        workspace.require_server(arguments.mode)
    pushed = push(
        arguments.folder,
        project=arguments.project,
        entity=arguments.entity,
        mode="online" if arguments.workspace else arguments.mode,
        timeout_s=arguments.timeout,
    )
    say(pushed.sentence())
    if arguments.workspace:
        say(
            workspace.save_workspace(
                finished_results(arguments.folder),
                project=arguments.project,
                entity=arguments.entity,
            )
        )
    return 0


def _report(words: list[str]) -> int:
    if words[:1] == ["wandb"]:
        return _push(words[1:])
    from pathlib import Path

    from bias_pipeline.commands.arguments import Parser, file_of
    from bias_pipeline.io.extras import REPORT
    from bias_pipeline.report.content import report_of_folder
    from bias_pipeline.report.page import save_page

    parser = Parser(
        "python -m bias_pipeline report",
        description="Finished runs as one page",
        epilog="report wandb [FOLDER] [--mode offline|online] [--workspace]: finished runs as W&B "
        "runs, and a workspace that compares them",
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path("outputs"), help="of runs")
    page = file_of("HTML", ".html", ".htm")
    parser.add_argument("--out", type=page, metavar="FILE", help="the page (FOLDER/report.html)")
    parser.add_argument(
        "--export",
        type=Path,
        metavar="DIR",
        help="also write tables (LaTeX, Markdown, CSV, Parquet), figures (SVG, PNG) and references",
    )
    arguments = parser.parse_args(words)
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


def _metrics(words: list[str]) -> int:
    from bias_pipeline.catalogue.cards import cards
    from bias_pipeline.catalogue.listing import print_metrics
    from bias_pipeline.commands.arguments import Parser

    parser = Parser("python -m bias_pipeline metrics", description="What each metric can tell")
    parser.add_argument("--cards", action="store_true", help="a page in Markdown: docs/metrics.md")
    if parser.parse_args(words).cards:
        say(*cards().splitlines())
    else:
        print_metrics()
    return 0


def _survivors(words: list[str]) -> int:
    from bias_pipeline.analysis.survivors import print_survivors
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_survivors(cell.corpus(), cell.build("attribute"), cell.build("masking"))
    return 0


def _beside(words: list[str]) -> int:
    from bias_pipeline.analysis.beside import print_beside
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_beside(cell.corpus(), cell.build("attribute"))
    return 0


def _words(words: list[str]) -> int:
    from bias_pipeline.commands import explain

    return explain.command(words)


def _claims(words: list[str]) -> int:
    from bias_pipeline.analysis.claims import judge, report
    from bias_pipeline.io.paths import experiments_dir

    _refuse(words, "analysis claims")
    say(*report(judge(experiments_dir())).splitlines())
    return 0


def _alignment(words: list[str]) -> int:
    from bias_pipeline.commands import alignment

    return alignment.command(words)


def _sensitivity(words: list[str]) -> int:
    from bias_pipeline.commands import steadiness

    return steadiness.sensitivity_command(words)


def _consistency(words: list[str]) -> int:
    from bias_pipeline.commands import steadiness

    return steadiness.consistency_command(words)


_PLAIN = ("beside", "claims", "survivors")  # analyses without options
_ANALYSES = """\
usage: python -m bias_pipeline analysis beside|survivors|words [key=value ...]
       python -m bias_pipeline analysis alignment [--meteor N] [key=value ...]
       python -m bias_pipeline analysis consistency|sensitivity OUTPUTS [--over KEY ...]
       python -m bias_pipeline analysis claims
       python -m bias_pipeline analysis metrics

alignment    how many of people's words have a near one of the captioner, by distance
beside       what words stand beside those of the attribute
survivors    which words of the attribute a masking leaves
words        which words give the attribute away; words --help has its options
claims       which conclusions of the papers hold in our runs
consistency  whether attackers, or metrics, agree who is biased and in which order
sensitivity  how much scores vary with the attacker; both train nothing
metrics      what each metric can tell"""


def _analysis(words: list[str]) -> int:
    analyses: dict[str, Command] = {
        "alignment": _alignment,
        "beside": _beside,
        "claims": _claims,
        "consistency": _consistency,
        "metrics": _metrics,
        "sensitivity": _sensitivity,
        "survivors": _survivors,
        "words": _words,
    }
    first = words[0] if words else ""
    if first in ("", "-h", "--help") or (first in _PLAIN and {"-h", "--help"} & set(words)):
        say(*_ANALYSES.splitlines())
        return 0 if first else UsageError.exit_code
    if first not in analyses:
        raise UsageError(f"analysis {first!r} is unknown; {did_you_mean(first, analyses)}")
    return analyses[first](words[1:])


def _data(words: list[str]) -> int:
    from bias_pipeline.commands import data

    return data.command(words)


def _embed(words: list[str]) -> int:
    from bias_pipeline.commands import embed

    return embed.command(words)


def _caption(words: list[str]) -> int:
    from bias_pipeline.commands import caption

    return caption.command(words)


def _refuse(words: list[str], command: str) -> None:
    if words:
        raise UsageError(f"{command} takes no options, found {words[0]!r}")
