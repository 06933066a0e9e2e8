"""Printing of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.analysis.compare import Contest
from bias_pipeline.analysis.gate import Decision
from bias_pipeline.report.tables import interval
from bias_pipeline.terminal import Grid, say, show


def print_contests(contests: Sequence[Contest], decisions: Sequence[Decision]) -> None:
    """Print each contest's leaderboard, then what is decided of the first captioner."""
    several = len({decision.attribute for decision in decisions}) > 1
    for contest in contests:
        of = f" ({contest.standings[0].row.attribute})" if several else ""
        title = f"{contest.metric} {contest.part}{of}"
        rows = [(own.row.captioner, interval(own.row), own.letters) for own in contest.standings]
        show(Grid(("captioner", contest.part, "group"), rows, title, left=3))
    say(
        "captioners that share a letter cannot be told apart; the fairest (the best) stands first",
        "",
    )
    for decision in decisions:
        whose = f"{decision.attribute}: " if several else ""
        say(whose + decision.sentence())
