"""``analysis words``: which words give the attribute away, and which the captioner added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config import compose
from bias_pipeline.config.compose import Cell
from bias_pipeline.config.overrides import sweeps
from bias_pipeline.declared import Count, Resamples
from bias_pipeline.errors import UsageError
from bias_pipeline.explain.gradients import BASELINES, Gradients
from bias_pipeline.explain.words import DEFAULT, RESAMPLES, words
from bias_pipeline.io.terminal import say
from bias_pipeline.report.words import print_words, save_words

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
        found = words(metric, corpus, cell.seeds, options.resamples, how)
        written = save_words(Path(cell.tree["paths"]["outputs"]), cell.run_id(corpus), found)
        print_words(found)
        say(written)
    return 0


def cells(overrides: Sequence[str]) -> list[Cell]:
    """One cell a captioner.

    Raises:
        UsageError: if anything else is swept.
    """
    rest = [word for word in overrides if not word.startswith("captioner=")]
    swept = next((word for word in rest if sweeps(word)), None)
    if swept:
        raise UsageError(f"{swept}: this analysis sweeps over captioners alone; name one value")
    named = [word.partition("=")[2] for word in overrides if word.startswith("captioner=")]
    if not named:
        return [compose.cell(rest)]
    names = named[-1].split(",")
    if names == ["all"]:
        first = compose.cell(rest)
        names = first.build("dataset").everyone(first.build("attribute"))
    return [compose.cell([*rest, f"captioner={name}"]) for name in names]


def parser() -> Parser:
    """What it takes."""
    own = Parser(f"{PROGRAM} analysis words", description=_ABOUT)
    own.add_argument(
        "--resamples", type=number(Resamples), default=RESAMPLES, help=f"of images ({RESAMPLES})"
    )
    own.add_argument("overrides", nargs="*", metavar="key=value", help="as of run")
    network = own.add_argument_group("integrated gradients, for networks (encoder=lstm ...)")
    told = f"{' or '.join(BASELINES)}: the vector of no information ({DEFAULT.baseline})"
    network.add_argument("--baseline", default=DEFAULT.baseline, help=told)
    told = f"points from there to the caption ({DEFAULT.steps})"
    network.add_argument("--steps", type=number(Count), default=DEFAULT.steps, help=told)
    return own
