"""``report wandb``: finished runs as Weights & Biases runs."""

from __future__ import annotations

from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Seconds
from bias_pipeline.io.terminal import say
from bias_pipeline.loggers import workspace
from bias_pipeline.loggers.push import RUN_S, push
from bias_pipeline.report.content import finished_results


def command(words: list[str]) -> int:
    """Write the runs, or send them; returns the exit code.

    Raises:
        BiasPipelineError: if there are none, or a server does not take them.
    """
    arguments = parser().parse_args(words)
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


def parser() -> Parser:
    """What it takes."""
    own = Parser(f"{PROGRAM} report wandb", description="Finished runs as W&B runs")
    own.add_argument("folder", type=Path, nargs="?", default=Path("outputs"), help="of runs")
    own.add_argument("--project", default="bias_pipeline", help="(bias_pipeline)")
    own.add_argument("--entity", help="user or team (your default)")
    own.add_argument(
        "--mode",
        default="",
        help="offline or online (WANDB_MODE; else online where a key is set)",
    )
    own.add_argument(
        "--timeout", type=number(Seconds), default=RUN_S, help=f"seconds a run ({RUN_S:g})"
    )
    own.add_argument(
        "--workspace",
        action="store_true",
        help="also make, or renew, a workspace on the server that compares the project's runs",
    )
    return own
