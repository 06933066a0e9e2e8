"""``analysis words``: which words give the attribute away, and which the captioner added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config import compose
from bias_pipeline.config.compose import CellConfig
from bias_pipeline.config.overrides import sweeps
from bias_pipeline.declared import Count, Resamples
from bias_pipeline.errors import UsageError
from bias_pipeline.explain.gradients import BASELINES, Gradients
from bias_pipeline.explain.words import DEFAULT, RESAMPLES, words
from bias_pipeline.io.terminal import print_out
from bias_pipeline.report.word_attribution import print_words, save_words

_ABOUT = "Which words give the attribute away, and which the captioner added"


def command(arguments: Sequence[str]) -> int:
    """Explain the attackers of one captioner or several; returns the exit code.

    Args:
        arguments: overrides as of ``run``; ``captioner=`` may name several, or ``all``.

    Raises:
        BiasPipelineError: if there are no such attackers or files cannot be read or written.
    """
    options = parser().parse_intermixed_args(list(arguments))
    how = Gradients(options.baseline, options.steps)
    for cell in cells(options.overrides):
        corpus, metric = cell.corpus(), cell.build("metric")
        explanation = words(metric, corpus, cell.seeds, options.resamples, how)
        written = save_words(Path(cell.tree["paths"]["outputs"]), cell.run_id(corpus), explanation)
        print_words(explanation)
        print_out(written)
    return 0


def cells(overrides: Sequence[str]) -> list[CellConfig]:
    """One cell a captioner.

    Raises:
        UsageError: if anything else is swept.
    """
    rest = [word for word in overrides if not word.startswith("captioner=")]
    swept = next((word for word in rest if sweeps(word)), None)
    if swept:
        raise UsageError(f"{swept}: this analysis sweeps only over captioners; name one value")
    named = [word.partition("=")[2] for word in overrides if word.startswith("captioner=")]
    if not named:
        return [compose.cell(rest)]
    names = named[-1].split(",")
    if names == ["all"]:
        first = compose.cell(rest)
        names = first.build("dataset").everyone(first.build("attribute"))
    return [compose.cell([*rest, f"captioner={name}"]) for name in names]


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} analysis words", description=_ABOUT)
    parser.add_argument(
        "--resamples",
        type=number(Resamples),
        default=RESAMPLES,
        help=f"resamplings of images ({RESAMPLES})",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as of run")
    network = parser.add_argument_group("integrated gradients, for networks (encoder=lstm ...)")
    help_text = (
        f"{' or '.join(BASELINES)}: the vector that stands for no information ({DEFAULT.baseline})"
    )
    network.add_argument("--baseline", default=DEFAULT.baseline, help=help_text)
    help_text = f"points between the baseline and the caption ({DEFAULT.steps})"
    network.add_argument("--steps", type=number(Count), default=DEFAULT.steps, help=help_text)
    return parser
