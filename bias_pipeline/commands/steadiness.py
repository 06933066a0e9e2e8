"""Helpers of analyses of finished runs: their options, the runs to compare, and printing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from bias_pipeline.analysis.attacker_variants import KEYS, OVER, Variants, variants
from bias_pipeline.analysis.sensitivity import Interval
from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import DataError
from bias_pipeline.io.terminal import print_out


def runs_parser(word: str, about: str) -> Parser:
    """The parser of an analysis of finished runs."""
    parser = Parser(f"{PROGRAM} analysis {word}", description=about)
    parser.add_argument("outputs", type=Path, help="a folder of finished runs; nothing is trained")
    help_text = (
        f"what varies: {', '.join(KEYS)}, or a setting in which the runs differ, such as "
        f"encoder.order or seeds (default: {' '.join(OVER)})"
    )
    parser.add_argument("--over", nargs="+", default=list(OVER), metavar="KEY", help=help_text)
    return parser


def variants_in(folder: Path, over: Sequence[str], fewest: int = 2) -> list[Variants]:
    """The scores of a folder's runs under several variants, of at least ``fewest`` captioners.

    Raises:
        BiasPipelineError: if there are no runs, or nothing varies.
    """
    from bias_pipeline.report.content import finished_runs

    results, draws = finished_runs(folder)
    tables = variants(results, draws, over, fewest)
    if not tables:
        subject = "no captioner was" if fewest == 1 else "no two captioners were"
        raise DataError(
            f"{folder}: {subject} scored under two variants of {', '.join(over)}; run a sweep such "
            "as captioner=all encoder=ngram,lstm"
        )
    return tables


def print_title(scores: Variants) -> None:
    """Print what was scored under which variants, and which captioners are left out."""
    print_out(f"{scores.setting} · {len(scores.variants)} variants: {', '.join(scores.variants)}")
    if scores.absent:
        print_out(f"left out, since a variant lacks them: {', '.join(scores.absent)}")


def interval_text(interval: Interval, written: Callable[[float], str]) -> str:
    """A number with its interval, where there is one."""
    if math.isnan(interval.low):
        return written(interval.value)
    return f"{written(interval.value)} [{written(interval.low)}, {written(interval.high)}]"
