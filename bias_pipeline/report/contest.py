"""Printing of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.analysis.compare import Contest
from bias_pipeline.analysis.gate import Decision
from bias_pipeline.io.grid import print_table, print_text
from bias_pipeline.io.terminal import say
from bias_pipeline.report.tables import interval


def print_contests(contests: Sequence[Contest], decisions: Sequence[Decision]) -> None:
    """Print each contest's leaderboard, then what is decided of the first captioner."""
    several = len({decision.attribute for decision in decisions}) > 1
    for contest in contests:
        of = f"({contest.standings[0].row.attribute})" if several else ""
        say(" ".join(filter(None, [contest.metric, contest.part, contest.settings, of])))
        lines = [
            [standing.row.captioner, interval(standing.row), standing.letters]
            for standing in contest.standings
        ]
        print_table(["captioner", contest.part, "group"], lines, keys=1, left=3)
        say()
    print_text(
        "captioners that share a letter cannot be told apart; the fairest (the best) stands first"
    )
    say()
    for decision in decisions:
        whose = f"{decision.attribute}: " if several else ""
        print_text(whose + decision.sentence())
