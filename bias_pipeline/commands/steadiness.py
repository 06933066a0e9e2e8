"""Analyses of finished runs: whether attackers, or metrics, agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.analysis.attacker_variants import KEYS, OVER, Variants, variants
from bias_pipeline.analysis.sensitivity import Interval, Sensitivity, reduction, sensitivity
from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import DataError, UsageError, did_you_mean
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.report.tables import number, percent

if TYPE_CHECKING:
    from bias_pipeline.analysis.sensitivity import Agreement


def _runs_parser(word: str, about: str) -> Parser:
    """The parser of an analysis of finished runs."""
    parser = Parser(f"{PROGRAM} analysis {word}", description=about)
    parser.add_argument("outputs", type=Path, help="a folder of finished runs; nothing is trained")
    help_text = (
        f"what varies: {', '.join(KEYS)}, or a setting in which the runs differ, such as "
        f"encoder.order or seeds (default: {' '.join(OVER)})"
    )
    parser.add_argument("--over", nargs="+", default=list(OVER), metavar="KEY", help=help_text)
    return parser


def _variants_in(folder: Path, over: Sequence[str], fewest: int = 2) -> list[Variants]:
    """The scores of a folder's runs under several variants, of at least ``fewest`` captioners.

    Raises:
        BiasPipelineError: if there are no runs, or nothing varies.
    """
    from bias_pipeline.report.page import finished_runs

    results, draws = finished_runs(folder)
    tables = variants(results, draws, over, fewest)
    if not tables:
        subject = "no captioner was" if fewest == 1 else "no two captioners were"
        raise DataError(
            f"{folder}: {subject} scored under two variants of {', '.join(over)}; run a sweep such "
            "as captioner=all encoder=ngram,lstm"
        )
    return tables


def _print_title(scores: Variants) -> None:
    """Print what was scored under which variants, and which captioners are left out."""
    print_out(f"{scores.setting} · {len(scores.variants)} variants: {', '.join(scores.variants)}")
    if scores.absent:
        print_out(f"left out, since a variant lacks them: {', '.join(scores.absent)}")


def _interval_text(interval: Interval, written: Callable[[float], str]) -> str:
    """A number with its interval, where there is one."""
    if math.isnan(interval.low):
        return written(interval.value)
    return f"{written(interval.value)} [{written(interval.low)}, {written(interval.high)}]"


def sensitivity_command(arguments: Sequence[str]) -> int:
    """Print how much scores vary; returns the exit code.

    Args:
        arguments: the folder of runs, ``--over`` KEY and ``--against`` METRIC.

    Raises:
        BiasPipelineError: if there are no such runs, or nothing varies among them.
    """
    options = sensitivity_parser().parse_args(list(arguments))
    all_scores = _variants_in(options.outputs, options.over, fewest=1)
    for scores in all_scores:
        _print_title(scores)
        _print_sensitivity(sensitivity(scores), "CV", number)
    for one, two in _opponents(all_scores, options.against):
        print_out(
            f"{one.setting} · how far its CV is below that of {two.setting.headline}, per cent"
        )
        gain = reduction(one, two)
        if gain.left_out:
            print_out(f"left out, since only one of the two has them: {', '.join(gain.left_out)}")
        _print_sensitivity(gain, "reduction", percent)
    return 0


def sensitivity_parser() -> Parser:
    """The options and their help."""
    parser = _runs_parser(
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


def _print_sensitivity(result: Sensitivity, what: str, written: Callable[[float], str]) -> None:
    lines = [
        [name, _interval_text(interval, written)] for name, interval in result.per_captioner.items()
    ]
    print_table(
        ["captioner", what], [*lines, ["mean", _interval_text(result.mean, written)]], keys=1
    )
    if result.one_sided:
        print_out(
            "some intervals do not include their number: noise of images adds to the spread of "
            "attackers, so resampled coefficients are higher"
        )
    print_out()


def consistency_command(arguments: Sequence[str]) -> int:
    """Print how far attackers, or metrics, agree; returns the exit code.

    Args:
        arguments: the folder of runs, and ``--over`` KEY.

    Raises:
        BiasPipelineError: if there are no such runs, or nothing varies among them.
    """
    from bias_pipeline.analysis.sensitivity import agreements

    options = consistency_parser().parse_args(list(arguments))
    for scores in _variants_in(options.outputs, options.over):
        _print_title(scores)
        header = ["pair", "conflicts", "Pearson", "Spearman", "Kendall", "who"]
        print_table(header, [_pair(pair) for pair in agreements(scores)], keys=1)
        print_out()
    return 0


def consistency_parser() -> Parser:
    """The options and their help."""
    about = "Conflict scores and correlations of attackers (ImageCaptioner2, 5.5.2)."
    return _runs_parser("consistency", about)


def _pair(pair: Agreement) -> list[str]:
    correlations = (pair.pearson, pair.spearman, pair.kendall)
    return [
        f"{pair.first}, {pair.second}",
        _interval_text(pair.conflicts, percent),
        *(_interval_text(one, number) for one in correlations),
        ", ".join(pair.conflicting),
    ]
