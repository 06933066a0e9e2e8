"""What analyses of finished runs share: which runs, what varies among them, numbers in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from bias_pipeline.analysis.sensitivity import Interval
from bias_pipeline.analysis.variants import KEYS, OVER, Variants, variants
from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import DataError
from bias_pipeline.io.terminal import say


def runs_parser(word: str, about: str) -> Parser:
    """The parser of an analysis of finished runs."""
    parser = Parser(f"{PROGRAM} analysis {word}", description=about)
    parser.add_argument("outputs", type=Path, help="a folder of finished runs; nothing is trained")
    told = (
        f"what varies: {', '.join(KEYS)}, or a setting in which the runs differ, such as "
        f"encoder.order or seeds (default: {' '.join(OVER)})"
    )
    parser.add_argument("--over", nargs="+", default=list(OVER), metavar="KEY", help=told)
    return parser


def found_in(folder: Path, over: Sequence[str], fewest: int = 2) -> list[Variants]:
    """What varies among the runs of a folder, of so many captioners at least.

    Raises:
        BiasPipelineError: if there are no runs, or nothing varies.
    """
    from bias_pipeline.report.content import finished_runs

    results, draws = finished_runs(folder)
    found = variants(results, draws, over, fewest)
    if not found:
        nobody = "no captioner was" if fewest == 1 else "no two captioners were"
        raise DataError(
            f"{folder}: {nobody} scored under two variants of {', '.join(over)}; run a sweep such "
            "as captioner=all encoder=ngram,lstm"
        )
    return found


def print_title(scores: Variants) -> None:
    """Say what was scored under which variants, and who is left out."""
    say(f"{scores.setting} · {len(scores.variants)} variants: {', '.join(scores.variants)}")
    if scores.absent:
        say(f"left out, since a variant lacks them: {', '.join(scores.absent)}")


def shown(own: Interval, written: Callable[[float], str]) -> str:
    """A number with its interval, where there is one."""
    if math.isnan(own.low):
        return written(own.value)
    return f"{written(own.value)} [{written(own.low)}, {written(own.high)}]"
