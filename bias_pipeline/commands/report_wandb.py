"""``report wandb``: finished runs as Weights & Biases runs."""

from __future__ import annotations

from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Seconds
from bias_pipeline.io.terminal import print_out
from bias_pipeline.loggers import workspace
from bias_pipeline.loggers.push import RUN_S, push
from bias_pipeline.report.content import finished_results


def command(words: list[str]) -> int:
    """Write the runs, or send them; returns the exit code.

    Raises:
        BiasPipelineError: if there are none, or a server does not accept them.
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


def parser() -> Parser:
    """The options and their help."""
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
