"""``analysis sensitivity`` and ``analysis consistency``: what runs say of their attackers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.analysis.sensitivity import Interval, Sensitivity, reduction, sensitivity
from bias_pipeline.analysis.variants import KEYS, Variants, variants
from bias_pipeline.commands.arguments import Parser
from bias_pipeline.errors import DataError, UsageError, did_you_mean
from bias_pipeline.io.grid import print_table
from bias_pipeline.io.terminal import say
from bias_pipeline.report.tables import number, percent

if TYPE_CHECKING:
    from bias_pipeline.analysis.consistency import Agreement

OVER = ("encoder", "head")


def sensitivity_command(arguments: Sequence[str]) -> int:
    """Print how much scores vary; returns the exit code.

    Args:
        arguments: the folder of runs, ``--over`` what, ``--against`` which metric.

    Raises:
        BiasPipelineError: if there are no such runs, or nothing varies among them.
    """
    options = sensitivity_parser().parse_args(list(arguments))
    found = _found(options.outputs, options.over)
    for scores in found:
        own = sensitivity(scores)
        _title(scores)
        _print(own, "CV", number)
    for one, two in _opponents(found, options.against):
        own = reduction(one, two)
        say(f"{one.setting} · how far its CV is below that of {two.setting.headline}, per cent")
        _print(own, "reduction", percent)
    return 0


def consistency_command(arguments: Sequence[str]) -> int:
    """Print how far attackers, or metrics, agree; returns the exit code.

    Args:
        arguments: the folder of runs, ``--over`` what.

    Raises:
        BiasPipelineError: if there are no such runs, or nothing varies among them.
    """
    from bias_pipeline.analysis.consistency import agreements

    options = consistency_parser().parse_args(list(arguments))
    for scores in _found(options.outputs, options.over):
        _title(scores)
        header = ["pair", "conflicts", "Pearson", "Spearman", "Kendall", "who"]
        print_table(header, [_pair(own) for own in agreements(scores)], keys=1)
        say()
    return 0


def sensitivity_parser() -> Parser:
    """What ``analysis sensitivity`` takes."""
    own = _parser("sensitivity", "Coefficients of variation over attackers (DBAC, section 5.3).")
    own.add_argument("--against", metavar="METRIC", help="by how much others vary less than it")
    return own


def consistency_parser() -> Parser:
    """What ``analysis consistency`` takes."""
    about = "Conflict scores and correlations of attackers (ImageCaptioner2, 5.5.2)."
    return _parser("consistency", about)


def _parser(word: str, description: str) -> Parser:
    parser = Parser(f"python -m bias_pipeline analysis {word}", description=description)
    parser.add_argument("outputs", type=Path, help="a folder of finished runs; nothing is trained")
    told = (
        f"what varies: {', '.join(KEYS)}, or a setting in which the runs differ, such as "
        f"encoder.order or seeds (default: {' '.join(OVER)})"
    )
    parser.add_argument("--over", nargs="+", default=list(OVER), metavar="KEY", help=told)
    return parser


def _found(folder: Path, over: Sequence[str]) -> list[Variants]:
    from bias_pipeline.report.content import finished_runs

    results, draws = finished_runs(folder)
    found = variants(results, draws, over)
    if not found:
        raise DataError(
            f"{folder}: no two captioners were scored under two variants of {', '.join(over)}; "
            "run a sweep such as captioner=all encoder=ngram,lstm"
        )
    return found


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


def _title(scores: Variants) -> None:
    say(f"{scores.setting} · {len(scores.variants)} variants: {', '.join(scores.variants)}")
    if scores.absent:
        say(f"left out, since a variant lacks them: {', '.join(scores.absent)}")


def _print(found: Sensitivity, what: str, written: Callable[[float], str]) -> None:
    lines = [[name, _shown(own, written)] for name, own in found.per_captioner.items()]
    print_table(["captioner", what], [*lines, ["mean", _shown(found.mean, written)]], keys=1)
    say()


def _pair(own: Agreement) -> list[str]:
    correlations = (own.pearson, own.spearman, own.kendall)
    return [
        f"{own.first}, {own.second}",
        _shown(own.conflicts, percent),
        *(_shown(one, number) for one in correlations),
        ", ".join(own.conflicting),
    ]


def _shown(own: Interval, written: Callable[[float], str]) -> str:
    """A number with its interval, where there is one."""
    if math.isnan(own.low):
        return written(own.value)
    return f"{written(own.value)} [{written(own.low)}, {written(own.high)}]"
