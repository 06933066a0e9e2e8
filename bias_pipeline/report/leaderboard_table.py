"""Printing of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.analysis.compare import Leaderboard
from bias_pipeline.analysis.gate import Decision
from bias_pipeline.io.terminal import print_out, print_table, print_text
from bias_pipeline.report.tables import interval


def print_leaderboards(leaderboards: Sequence[Leaderboard], decisions: Sequence[Decision]) -> None:
    """Print each leaderboard's leaderboard, then the decisions on the first captioner."""
    several = len({decision.attribute for decision in decisions}) > 1
    for leaderboard in leaderboards:
        of = f"({leaderboard.ranks[0].row.attribute})" if several else ""
        print_out(
            " ".join(filter(None, [leaderboard.metric, leaderboard.part, leaderboard.settings, of]))
        )
        lines = [
            [rank.row.captioner, interval(rank.row), rank.letters] for rank in leaderboard.ranks
        ]
        print_table(["captioner", leaderboard.part, "group"], lines, keys=1, left=3)
        print_out()
    print_text(
        "captioners that share a letter do not differ significantly; fairest (or best) first"
    )
    print_out()
    for decision in decisions:
        whose = f"{decision.attribute}: " if several else ""
        print_text(whose + decision.sentence())
