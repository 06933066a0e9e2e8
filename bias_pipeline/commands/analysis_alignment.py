"""``analysis alignment``: how many of people's words have a near one of the captioner."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bias_pipeline.analysis.alignment import DELTAS, ENOUGH, Likeness, Reach, likeness, reach
from bias_pipeline.commands.analysis_words import cells
from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config.compose import Cell
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.declared import NotNegativeCount
from bias_pipeline.errors import UsageError
from bias_pipeline.io.grid import print_table
from bias_pipeline.io.terminal import say
from bias_pipeline.metrics.meteor import ABSENT, available
from bias_pipeline.report.tables import number as decimal
from bias_pipeline.report.tables import percent
from bias_pipeline.text.contextual import ContextualAlignment

_ABOUT = "How many of people's words have a near one of the captioner"


def command(arguments: Sequence[str]) -> int:
    """Print what contextual alignment would replace; returns the exit code.

    Args:
        arguments: overrides as of ``run``; ``captioner=`` may name several, or ``all``.

    Raises:
        BiasPipelineError: if captions or vectors cannot be read.
    """
    options = parser().parse_intermixed_args(list(arguments))
    found = [(_masked(cell), _alignment(cell)) for cell in cells(_contextual(options.overrides))]
    _print_reach([reach(corpus, align) for corpus, align in found])
    if options.meteor and not available():
        say(ABSENT)
    elif options.meteor:
        _print_likeness({c.captioner: likeness(c, align, options.meteor) for c, align in found})
    say(
        f"What attackers read of them (LIC_H, omega_H) takes runs: {PROGRAM} metric=lic,dbac "
        f"alignment=constant,contextual; experiments/alignment has those of seven captioners"
    )
    return 0


def parser() -> Parser:
    """What it takes."""
    own = Parser(f"{PROGRAM} analysis alignment", description=_ABOUT)
    told = "METEOR of N aligned captions with their originals; 60 a second, needs Java (0)"
    own.add_argument("--meteor", type=number(NotNegativeCount), default=0, metavar="N", help=told)
    own.add_argument("overrides", nargs="*", metavar="key=value", help="as of run")
    return own


def _contextual(overrides: Sequence[str]) -> list[str]:
    named = any(word.startswith("alignment=") for word in overrides)
    return [*overrides] if named else ["alignment=contextual", *overrides]


def _alignment(cell: Cell) -> ContextualAlignment:
    align = cell.build("alignment")
    if not isinstance(align, ContextualAlignment):
        raise UsageError("analysis alignment is about alignment=contextual; leave alignment= out")
    return align


def _masked(cell: Cell) -> Corpus:
    """The captions as they reach the alignment."""
    corpus: Corpus = cell.build("masking")(cell.build("text")(cell.corpus()))
    return corpus


def _print_reach(found: Sequence[Reach]) -> None:
    say("Share of people's words to be replaced that have a near one, by cosine distance, per cent")
    header = ["captioner", "words", "running", *(f"{delta:g}" for delta in DELTAS)]
    header.append(f"delta of {ENOUGH:.0%}")
    print_table(header, [_line(own) for own in found], keys=1)


def _line(own: Reach) -> list[str]:
    enough = "none" if math.isinf(own.enough) else decimal(own.enough)
    shares = map(percent, own.shares.tolist())
    return [own.captioner, str(own.words), str(own.running), *shares, enough]


def _print_likeness(found: dict[str, Likeness]) -> None:
    say("METEOR 1.5, its authors' program, of aligned human captions with their originals")
    lines = [
        [name, str(own.captions), decimal(own.constant), decimal(own.contextual)]
        for name, own in found.items()
    ]
    print_table(["captioner", "captions", "constant", "contextual"], lines, keys=1)
