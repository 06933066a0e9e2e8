"""``analysis claims``: which conclusions of the papers hold in our runs."""

from __future__ import annotations

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.io.terminal import print_out


def command(words: list[str]) -> int:
    """Print every claim and check; returns the exit code.

    Raises:
        BiasPipelineError: if there are no studies, as in an installed package.
    """
    from bias_pipeline.analysis.claims import claims_report, judge_claim
    from bias_pipeline.io.paths import experiments_dir

    parser().parse_args(words)
    print_out(*claims_report(judge_claim(experiments_dir())).splitlines())
    return 0


def parser() -> Parser:
    """No options."""
    about = "Which conclusions of the papers hold in our runs"
    return Parser(f"{PROGRAM} analysis claims", description=about)
