"""Printing of comparisons."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bias_pipeline.analysis.compare import Contest
from bias_pipeline.analysis.gate import Decision
from bias_pipeline.report.tables import PLAIN_WIDTH, interval, printable


def print_contests(contests: Sequence[Contest], decisions: Sequence[Decision]) -> None:
    """Print each contest's leaderboard, then what is decided of the first captioner."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    console = Console(width=width, highlight=False, emoji=False)
    several = len({decision.attribute for decision in decisions}) > 1
    for contest in contests:
        of = f" ({contest.standings[0].row.attribute})" if several else ""
        title = f"{contest.metric} {contest.part}{of}"
        shown = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
        for name in ("captioner", contest.part, "group"):
            shown.add_column(name, overflow="fold")
        for standing in contest.standings:
            name = escape(printable(standing.row.captioner))
            shown.add_row(name, interval(standing.row), standing.letters)
        console.print(shown)
    console.print(
        "captioners that share a letter cannot be told apart; the fairest (the best) stands first\n"
    )
    for decision in decisions:
        whose = f"{decision.attribute}: " if several else ""
        console.print(printable(whose + decision.sentence()), soft_wrap=True, markup=False)
