"""``analysis consistency``: whether attackers, or metrics, of finished runs agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bias_pipeline.commands.arguments import Parser
from bias_pipeline.commands.steadiness import (
    interval_text,
    print_title,
    runs_parser,
    variants_in,
)
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.report.tables import number, percent

if TYPE_CHECKING:
    from bias_pipeline.analysis.sensitivity import Agreement


def command(arguments: Sequence[str]) -> int:
    """Print how far attackers, or metrics, agree; returns the exit code.

    Args:
        arguments: the folder of runs, and ``--over`` KEY.

    Raises:
        BiasPipelineError: if there are no such runs, or nothing varies among them.
    """
    from bias_pipeline.analysis.sensitivity import agreements

    options = parser().parse_args(list(arguments))
    for scores in variants_in(options.outputs, options.over):
        print_title(scores)
        header = ["pair", "conflicts", "Pearson", "Spearman", "Kendall", "who"]
        print_table(header, [_pair(pair) for pair in agreements(scores)], keys=1)
        print_out()
    return 0


def parser() -> Parser:
    """The options and their help."""
    about = "Conflict scores and correlations of attackers (ImageCaptioner2, 5.5.2)."
    return runs_parser("consistency", about)


def _pair(pair: Agreement) -> list[str]:
    correlations = (pair.pearson, pair.spearman, pair.kendall)
    return [
        f"{pair.first}, {pair.second}",
        interval_text(pair.conflicts, percent),
        *(interval_text(one, number) for one in correlations),
        ", ".join(pair.conflicting),
    ]
