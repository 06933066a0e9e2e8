"""``analysis consistency``: whether attackers, or metrics, of finished runs agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bias_pipeline.commands.arguments import Parser
from bias_pipeline.commands.steadiness import found_in, print_title, runs_parser, shown
from bias_pipeline.io.grid import print_table
from bias_pipeline.io.terminal import say
from bias_pipeline.report.tables import number, percent

if TYPE_CHECKING:
    from bias_pipeline.analysis.consistency import Agreement


def command(arguments: Sequence[str]) -> int:
    """Print how far attackers, or metrics, agree; returns the exit code.

    Args:
        arguments: the folder of runs, ``--over`` what.

    Raises:
        BiasPipelineError: if there are no such runs, or nothing varies among them.
    """
    from bias_pipeline.analysis.consistency import agreements

    options = parser().parse_args(list(arguments))
    for scores in found_in(options.outputs, options.over):
        print_title(scores)
        header = ["pair", "conflicts", "Pearson", "Spearman", "Kendall", "who"]
        print_table(header, [_pair(own) for own in agreements(scores)], keys=1)
        say()
    return 0


def parser() -> Parser:
    """What it takes."""
    about = "Conflict scores and correlations of attackers (ImageCaptioner2, 5.5.2)."
    return runs_parser("consistency", about)


def _pair(own: Agreement) -> list[str]:
    correlations = (own.pearson, own.spearman, own.kendall)
    return [
        f"{own.first}, {own.second}",
        shown(own.conflicts, percent),
        *(shown(one, number) for one in correlations),
        ", ".join(own.conflicting),
    ]
