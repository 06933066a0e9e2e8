"""``analysis sensitivity``: how much scores of finished runs vary with the attacker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bias_pipeline.analysis.attacker_variants import Variants
from bias_pipeline.analysis.sensitivity import Sensitivity, reduction, sensitivity
from bias_pipeline.commands.arguments import Parser
from bias_pipeline.commands.steadiness import (
    interval_text,
    print_title,
    runs_parser,
    variants_in,
)
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.report.tables import number, percent


def command(arguments: Sequence[str]) -> int:
    """Print how much scores vary; returns the exit code.

    Args:
        arguments: the folder of runs, ``--over`` KEY and ``--against`` METRIC.

    Raises:
        BiasPipelineError: if there are no such runs, or nothing varies among them.
    """
    options = parser().parse_args(list(arguments))
    all_scores = variants_in(options.outputs, options.over, fewest=1)
    for scores in all_scores:
        print_title(scores)
        _print(sensitivity(scores), "CV", number)
    for one, two in _opponents(all_scores, options.against):
        print_out(
            f"{one.setting} · how far its CV is below that of {two.setting.headline}, per cent"
        )
        gain = reduction(one, two)
        if gain.left_out:
            print_out(f"left out, since only one of the two has them: {', '.join(gain.left_out)}")
        _print(gain, "reduction", percent)
    return 0


def parser() -> Parser:
    """The options and their help."""
    parser = runs_parser(
        "sensitivity", "Coefficients of variation over attackers (DBAC, section 5.3)."
    )
    parser.add_argument(
        "--against", metavar="METRIC", help="how much less other metrics vary than this one"
    )
    return parser


def _opponents(
    all_scores: Sequence[Variants], against: str | None
) -> list[tuple[Variants, Variants]]:
    """Every number with the number that it is compared with."""
    if against is None:
        return []
    others = [scores for scores in all_scores if scores.setting.headline == against]
    pairs = [(one, two) for one in all_scores for two in others if one.setting.rivals(two.setting)]
    if not pairs:
        headlines = sorted({scores.setting.headline for scores in all_scores})
        raise UsageError(
            f"--against {against}: no other number of the same captions; "
            f"{did_you_mean(against, headlines)}"
        )
    return pairs


def _print(result: Sensitivity, what: str, written: Callable[[float], str]) -> None:
    lines = [
        [name, interval_text(interval, written)] for name, interval in result.per_captioner.items()
    ]
    print_table(
        ["captioner", what], [*lines, ["mean", interval_text(result.mean, written)]], keys=1
    )
    if result.one_sided:
        print_out(
            "some intervals do not include their number: noise of images adds to the spread of "
            "attackers, so resampled coefficients are higher"
        )
    print_out()
