"""``analysis alignment``: how many of people's words have a similar word of the captioner."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bias_pipeline.analysis.alignment import DELTAS, Likeness, Reach, likeness, reach
from bias_pipeline.array_types import Float64Array
from bias_pipeline.commands.analysis_words import cells
from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of, number
from bias_pipeline.config.compose import CellConfig
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.declared import NotNegativeCount
from bias_pipeline.errors import UsageError
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.metrics.meteor import ABSENT, available
from bias_pipeline.report.exports import check_places, write_file
from bias_pipeline.report.substitution_curves import AXIS, substitution_curves
from bias_pipeline.report.tables import number as decimal
from bias_pipeline.report.tables import percent
from bias_pipeline.text.contextual import ENOUGH, ContextualAlignment

_ABOUT = "How many of people's words have a similar word of the captioner"


def command(arguments: Sequence[str]) -> int:
    """Print what contextual alignment would replace; returns the exit code.

    Args:
        arguments: overrides as of ``run``; ``captioner=`` may name several, or ``all``.

    Raises:
        BiasPipelineError: if captions or vectors cannot be read.
    """
    options = parser().parse_intermixed_args(list(arguments))
    check_places(options.figure)
    pairs = [(_masked(cell), _alignment(cell)) for cell in cells(_contextual(options.overrides))]
    _print_reach([reach(corpus, align) for corpus, align in pairs])
    if options.figure is not None:
        curves = {c.captioner: reach(c, align, AXIS).shares for c, align in pairs}
        write_file(options.figure, _drawn(curves, options.figure.suffix))
        print_out(options.figure)
    if options.meteor and not available():
        print_out(ABSENT)
    elif options.meteor:
        _print_likeness({c.captioner: likeness(c, align, options.meteor) for c, align in pairs})
    print_out(
        f"How well attackers read them (LIC_H, omega_H) needs runs: {PROGRAM} metric=lic,dbac "
        f"alignment=constant,contextual; experiments/alignment has the results of seven captioners"
    )
    return 0


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} analysis alignment", description=_ABOUT)
    help_text = (
        "score N aligned captions against their originals by METEOR; 60 a second, needs Java (0)"
    )
    parser.add_argument(
        "--meteor", type=number(NotNegativeCount), default=0, metavar="N", help=help_text
    )
    parser.add_argument(
        "--figure",
        type=file_of("figure", ".svg", ".png"),
        metavar="FILE",
        help="draw the shares at every delta (Figure 1 of DBAC's appendix A)",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as of run")
    return parser


def _contextual(overrides: Sequence[str]) -> list[str]:
    named = any(word.startswith("alignment=") for word in overrides)
    return [*overrides] if named else ["alignment=contextual", *overrides]


def _alignment(cell: CellConfig) -> ContextualAlignment:
    align = cell.build("alignment")
    if not isinstance(align, ContextualAlignment):
        raise UsageError("analysis alignment needs alignment=contextual; leave alignment= out")
    return align


def _masked(cell: CellConfig) -> Corpus:
    """The captions as they reach the alignment."""
    corpus: Corpus = cell.build("masking")(cell.build("text")(cell.corpus()))
    return corpus


def _print_reach(results: Sequence[Reach]) -> None:
    print_out("Share of people's unknown words with a similar word, by cosine distance, per cent")
    header = ["captioner", "words", "running", *(f"{delta:g}" for delta in DELTAS)]
    header.append(f"delta of {ENOUGH:.0%}")
    print_table(header, [_line(result) for result in results], keys=1)


def _line(result: Reach) -> list[str]:
    enough = "none" if math.isinf(result.enough) else decimal(result.enough)
    shares = map(percent, result.shares.tolist())
    return [result.captioner, str(result.words), str(result.running), *shares, enough]


def _drawn(curves: Mapping[str, Float64Array], ending: str) -> bytes:
    figure = substitution_curves(curves, ENOUGH)
    return figure.png() if ending.lower() == ".png" else figure.svg().encode()


def _print_likeness(results: dict[str, Likeness]) -> None:
    print_out("METEOR 1.5, its authors' program, of aligned human captions with their originals")
    lines = [
        [name, str(result.captions), decimal(result.constant), decimal(result.contextual)]
        for name, result in results.items()
    ]
    print_table(["captioner", "captions", "constant", "contextual"], lines, keys=1)
