"""``analysis sensitivity``: how much scores of finished runs vary with the attacker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bias_pipeline.analysis.sensitivity import Sensitivity, reduction, sensitivity
from bias_pipeline.analysis.variants import Variants
from bias_pipeline.commands.arguments import Parser
from bias_pipeline.commands.steadiness import found_in, print_title, runs_parser, shown
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.grid import print_table
from bias_pipeline.io.terminal import say
from bias_pipeline.report.tables import number, percent


def command(arguments: Sequence[str]) -> int:
    """Print how much scores vary; returns the exit code.

    Args:
        arguments: the folder of runs, ``--over`` what, ``--against`` which metric.

    Raises:
        BiasPipelineError: if there are no such runs, or nothing varies among them.
    """
    options = parser().parse_args(list(arguments))
    found = found_in(options.outputs, options.over, fewest=1)
    for scores in found:
        print_title(scores)
        _print(sensitivity(scores), "CV", number)
    for one, two in _opponents(found, options.against):
        say(f"{one.setting} · how far its CV is below that of {two.setting.headline}, per cent")
        gain = reduction(one, two)
        if gain.left_out:
            say(f"left out, since only one of them has them: {', '.join(gain.left_out)}")
        _print(gain, "reduction", percent)
    return 0


def parser() -> Parser:
    """What it takes."""
    own = runs_parser(
        "sensitivity", "Coefficients of variation over attackers (DBAC, section 5.3)."
    )
    own.add_argument("--against", metavar="METRIC", help="by how much others vary less than it")
    return own


def _opponents(found: Sequence[Variants], against: str | None) -> list[tuple[Variants, Variants]]:
    """Every number with the one that it is compared with."""
    if against is None:
        return []
    others = [own for own in found if own.setting.headline == against]
    pairs = [(one, two) for one in found for two in others if one.setting.rivals(two.setting)]
    if not pairs:
        known = sorted({own.setting.headline for own in found})
        raise UsageError(
            f"--against {against}: no other number of the same captions; "
            f"{did_you_mean(against, known)}"
        )
    return pairs


def _print(found: Sensitivity, what: str, written: Callable[[float], str]) -> None:
    lines = [[name, shown(own, written)] for name, own in found.per_captioner.items()]
    print_table(["captioner", what], [*lines, ["mean", shown(found.mean, written)]], keys=1)
    if found.one_sided:
        say(
            "an interval beside its number: noise of images adds to the spread of attackers, so "
            "resampled coefficients lie higher"
        )
    say()
