"""Commands that show which words leak groups and which words masking or alignment changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of, keys_parser, number
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.declared import Count, NotNegativeCount, Resamples
from bias_pipeline.errors import UsageError
from bias_pipeline.io.files import check_places, write_file
from bias_pipeline.io.terminal import print_out
from bias_pipeline.language.caption_words import (
    DELTAS,
    Likeness,
    Reach,
    likeness,
    print_collocations,
    print_unmasked_words,
    reach,
)
from bias_pipeline.language.contextual import ENOUGH, ContextualAlignment
from bias_pipeline.metrics.functional.quality import METEOR_ABSENT, has_meteor
from bias_pipeline.report.added_words import added_words
from bias_pipeline.report.explain.gradients import BASELINES, Gradients
from bias_pipeline.report.explain.words import DEFAULT, RESAMPLES, words
from bias_pipeline.report.figures import AXIS, substitution_curves
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, Table
from bias_pipeline.report.word_attribution import print_added, print_words, save_words
from bias_pipeline.run import compose
from bias_pipeline.run.overrides import captioners_in, quote_value, sweeps
from bias_pipeline.run.presets import preset


def analysis_words_command(arguments: Sequence[str]) -> int:
    """Explain the attackers of one captioner or several; returns the exit code."""
    options = analysis_words_parser().parse_intermixed_args(list(arguments))
    how = Gradients(options.baseline, options.steps)
    for cell in _cells(options.overrides):
        corpus, metric = cell.corpus(), cell.build("metric")
        explanation = words(metric, corpus, cell.seeds, options.resamples, how)
        if len(corpus.human):
            concepts = preset({"metric": "descriptions"}).build("metric").concepts
            print_added(added_words(corpus, cell.build("attribute"), concepts), corpus.captioner)
        written = save_words(Path(cell.tree["paths"]["outputs"]), cell.run_id(corpus), explanation)
        print_words(explanation)
        print_out(written)
    return 0


def _cells(overrides: Sequence[str]) -> list[compose.Cell]:
    rest = [word for word in overrides if not word.startswith("captioner=")]
    swept = next((word for word in rest if sweeps(word)), None)
    if swept:
        raise UsageError(f"{swept}: this analysis sweeps only over captioners; name one value")
    names = captioners_in(overrides)
    if not names:
        return [compose.cell(rest)]
    if names == ["all"]:
        first = compose.cell(rest)
        names = first.build("dataset").everyone(first.build("attribute"))
    return [compose.cell([*rest, f"captioner={quote_value(name)}"]) for name in names]


def analysis_words_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} analysis words",
        description="Print the words about people that the captioner uses more often than "
        "annotators do, for each group, and the words that leak the attribute",
    )
    parser.add_argument(
        "--resamples",
        type=number(Resamples),
        default=RESAMPLES,
        help=f"bootstrap resamples of the images (default: {RESAMPLES})",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as for run")
    network = parser.add_argument_group("integrated gradients, for networks (encoder=lstm ...)")
    help_text = (
        f"{' or '.join(BASELINES)}: the vector that stands for no information "
        f"(default: {DEFAULT.baseline})"
    )
    network.add_argument("--baseline", default=DEFAULT.baseline, help=help_text)
    help_text = f"points between the baseline and the caption (default: {DEFAULT.steps})"
    network.add_argument("--steps", type=number(Count), default=DEFAULT.steps, help=help_text)
    return parser


def analysis_unmasked_words_command(words: list[str]) -> int:
    cell = compose.cell(words)
    print_unmasked_words(cell.corpus(), cell.build("attribute"), cell.build("masking"))
    return 0


def analysis_unmasked_words_parser() -> Parser:
    return keys_parser("analysis unmasked_words", "Which words of the attribute masking leaves in.")


def analysis_collocations_command(words: list[str]) -> int:
    cell = compose.cell(words)
    print_collocations(cell.corpus(), cell.build("attribute"))
    return 0


def analysis_collocations_parser() -> Parser:
    return keys_parser("analysis collocations", "Which words follow the words of the attribute.")


def analysis_alignment_command(arguments: Sequence[str]) -> int:
    """Print what contextual alignment would replace; returns the exit code."""
    options = analysis_alignment_parser().parse_intermixed_args(list(arguments))
    check_places(options.figure)
    overrides = options.overrides
    if not any(word.startswith("alignment=") for word in overrides):
        overrides = ["alignment=contextual", *overrides]
    pairs = []
    for cell in _cells(overrides):
        align = cell.build("alignment")
        if not isinstance(align, ContextualAlignment):
            raise UsageError("analysis alignment needs alignment=contextual; leave alignment= out")
        masked: Corpus = cell.build("masking")(cell.build("text")(cell.corpus()))
        pairs.append((masked, align))
    _print_reach([reach(corpus, align) for corpus, align in pairs])
    if options.figure is not None:
        curves = {c.captioner: reach(c, align, AXIS).shares for c, align in pairs}
        figure, png = substitution_curves(curves, ENOUGH), options.figure.suffix.lower() == ".png"
        write_file(options.figure, figure.png() if png else figure.svg().encode())
        print_out(options.figure)
    if options.meteor and not has_meteor():
        print_out(METEOR_ABSENT)
    elif options.meteor:
        _print_likeness({c.captioner: likeness(c, align, options.meteor) for c, align in pairs})
    print_out(
        f"How well attackers read them (LIC_H, omega_H) needs runs: {PROGRAM} metric=lic,dbac "
        f"alignment=constant,contextual; experiments/alignment has the results of seven captioners"
    )
    return 0


def analysis_alignment_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} analysis alignment",
        description="Print how many words of human captions have a similar word in the captioner's "
        "vocabulary",
    )
    help_text = (
        "score N aligned captions against their originals by METEOR; 60 a second, needs Java "
        "(default: 0)"
    )
    parser.add_argument(
        "--meteor", type=number(NotNegativeCount), default=0, metavar="N", help=help_text
    )
    parser.add_argument(
        "--figure",
        type=file_of("figure", ".svg", ".png"),
        metavar="FILE",
        help="draw a figure of the shares at every delta (Figure 1 in appendix A of DBAC)",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as for run")
    return parser


def _print_reach(results: Sequence[Reach]) -> None:
    caption = (
        "Share of unknown words in human captions that have a similar word, by cosine "
        "distance, per cent"
    )
    header = ["captioner", "words", "running", *(f"{delta:g}" for delta in DELTAS)]
    header.append(f"delta of {ENOUGH:.0%}")
    lines: list[list[Cell]] = [
        [
            result.captioner,
            NumberCell(result.words, digits=0),
            NumberCell(result.running, digits=0),
            *(NumberCell(share, fraction=True, digits=1) for share in result.shares.tolist()),
            "none" if math.isinf(result.enough) else NumberCell(result.enough),
        ]
        for result in results
    ]
    print_table(Table(caption, header, lines))


def _print_likeness(results: dict[str, Likeness]) -> None:
    caption = (
        "METEOR of aligned human captions against their originals (METEOR 1.5, its authors' "
        "program)"
    )
    rows: list[list[Cell]] = [
        [
            name,
            NumberCell(result.captions, digits=0),
            NumberCell(result.constant),
            NumberCell(result.contextual),
        ]
        for name, result in results.items()
    ]
    print_table(Table(caption, ["captioner", "captions", "constant", "contextual"], rows))
