"""``metrics``: what each metric can tell."""

from __future__ import annotations

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.io.terminal import say


def command(words: list[str]) -> int:
    """Print the metrics; returns the exit code."""
    from bias_pipeline.catalogue.cards import cards
    from bias_pipeline.catalogue.listing import print_metrics

    if parser().parse_args(words).cards:
        say(*cards().splitlines())
    else:
        print_metrics()
    return 0


def parser() -> Parser:
    """What it takes."""
    own = Parser(f"{PROGRAM} metrics", description="What each metric can tell")
    own.add_argument("--cards", action="store_true", help="a page in Markdown: docs/metrics.md")
    return own
