"""``metrics``: what each metric can detect."""

from __future__ import annotations

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.io.terminal import print_out


def command(words: list[str]) -> int:
    """Print the metrics; returns the exit code."""
    from bias_pipeline.report.catalogue import cards, print_metrics

    if parser().parse_args(words).cards:
        print_out(*cards().splitlines())
    else:
        print_metrics()
    return 0


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} metrics", description="Print what each metric can detect")
    parser.add_argument(
        "--cards", action="store_true", help="print a page in Markdown: docs/metrics.md"
    )
    return parser
