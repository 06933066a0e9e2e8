"""``analysis``: what metrics detect, the papers' conclusions, revealing words, alignment, power."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from pathlib import Path

from bias_pipeline.analysis.caption_words import DELTAS, Likeness, Reach, likeness, reach
from bias_pipeline.analysis.power import balanced_images, measured_sizes
from bias_pipeline.array_types import Float64Array
from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of, keys_parser, number
from bias_pipeline.config import compose
from bias_pipeline.config.compose import CellConfig
from bias_pipeline.config.overrides import sweeps
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.declared import Count, NotNegativeCount, Resamples
from bias_pipeline.errors import UsageError
from bias_pipeline.explain.gradients import BASELINES, Gradients
from bias_pipeline.explain.words import DEFAULT, RESAMPLES, words
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.metrics.functional.quality import METEOR_ABSENT, has_meteor
from bias_pipeline.report.figures import AXIS, substitution_curves
from bias_pipeline.report.smallest_bias import planted_shares, table_lines
from bias_pipeline.report.tables import number as decimal
from bias_pipeline.report.tables import percent
from bias_pipeline.report.word_attribution import print_words, save_words
from bias_pipeline.text.contextual import ENOUGH, ContextualAlignment


def metrics_command(words: list[str]) -> int:
    """Print the metrics; returns the exit code."""
    from bias_pipeline.report.metric_cards import cards, print_metrics

    if metrics_parser().parse_args(words).cards:
        print_out(*cards().splitlines())
    else:
        print_metrics()
    return 0


def metrics_parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} metrics", description="Print what each metric can detect")
    parser.add_argument(
        "--cards", action="store_true", help="print a page in Markdown: docs/metrics.md"
    )
    return parser


def claims_command(words: list[str]) -> int:
    """Print every claim and check; returns the exit code.

    Raises:
        BiasPipelineError: if there are no studies, as in an installed package.
    """
    from bias_pipeline.analysis.claims import claims_report, judge_claim
    from bias_pipeline.io.paths import experiments_dir

    claims_parser().parse_args(words)
    print_out(*claims_report(judge_claim(experiments_dir())).splitlines())
    return 0


def claims_parser() -> Parser:
    """No options."""
    about = "Which conclusions of the papers hold in our runs"
    return Parser(f"{PROGRAM} analysis claims", description=about)


def words_command(arguments: Sequence[str]) -> int:
    """Explain the attackers of one captioner or several; returns the exit code.

    Args:
        arguments: overrides as of ``run``; ``captioner=`` may name several, or ``all``.

    Raises:
        BiasPipelineError: if there are no such attackers or files cannot be read or written.
    """
    options = words_parser().parse_intermixed_args(list(arguments))
    how = Gradients(options.baseline, options.steps)
    for cell in _cells(options.overrides):
        corpus, metric = cell.corpus(), cell.build("metric")
        explanation = words(metric, corpus, cell.seeds, options.resamples, how)
        written = save_words(Path(cell.tree["paths"]["outputs"]), cell.run_id(corpus), explanation)
        print_words(explanation)
        print_out(written)
    return 0


def _cells(overrides: Sequence[str]) -> list[CellConfig]:
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


def words_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} analysis words",
        description="Which words give the attribute away, and which the captioner added",
    )
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


def unmasked_words_command(words: list[str]) -> int:
    """Print the table; returns the exit code.

    Raises:
        BiasPipelineError: if the data set cannot be read.
    """
    from bias_pipeline.analysis.caption_words import print_unmasked_words
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_unmasked_words(cell.corpus(), cell.build("attribute"), cell.build("masking"))
    return 0


def unmasked_words_parser() -> Parser:
    """The options and their help."""
    return keys_parser("analysis unmasked_words", "Which words of the attribute masking leaves in.")


def collocations_command(words: list[str]) -> int:
    """Print the table; returns the exit code.

    Raises:
        BiasPipelineError: if the data set cannot be read.
    """
    from bias_pipeline.analysis.caption_words import print_collocations
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_collocations(cell.corpus(), cell.build("attribute"))
    return 0


def collocations_parser() -> Parser:
    """The options and their help."""
    return keys_parser("analysis collocations", "Which words follow those of the attribute.")


def alignment_command(arguments: Sequence[str]) -> int:
    """Print what contextual alignment would replace; returns the exit code.

    Args:
        arguments: overrides as of ``run``; ``captioner=`` may name several, or ``all``.

    Raises:
        BiasPipelineError: if captions or vectors cannot be read.
    """
    from bias_pipeline.report.exports import check_places, write_file

    options = alignment_parser().parse_intermixed_args(list(arguments))
    check_places(options.figure)
    pairs = [(_masked(cell), _alignment(cell)) for cell in _cells(_contextual(options.overrides))]
    _print_reach([reach(corpus, align) for corpus, align in pairs])
    if options.figure is not None:
        curves = {c.captioner: reach(c, align, AXIS).shares for c, align in pairs}
        write_file(options.figure, _drawn(curves, options.figure.suffix))
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


def alignment_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} analysis alignment",
        description="How many of people's words have a similar word of the captioner",
    )
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


_NOTES = (
    "5 %, 10 %, 20 %: trials in which an audit of the metric alone called so much planted bias "
    "biased, with the measured number of images nearest to yours; a dash where it gave no answer",
    "people words: a word that people say more often of the group, in so many of their captions; "
    "scenes a_to_t, t_to_a: settings of simulated captioners (docs/which_metric.md)",
)


def power_command(words: Sequence[str]) -> int:
    """Print the table; returns the exit code.

    Raises:
        UsageError: if the number of images is not given, or groups are not two.
    """
    sizes = power_parser().parse_args(list(words)).sizes
    balanced = balanced_images(sizes)
    smallest, largest = measured_sizes()
    print_out(
        f"{sum(sizes)} images in groups of {sizes[0]} and {sizes[1]}; smallest score that is "
        "above chance in four of five cases"
    )
    if not smallest <= balanced <= largest:
        print_out(
            f"measured with {smallest:.0f} to {largest:.0f} images in groups of equal size; beyond "
            "that, scores follow the root of the number of images"
        )
    header = ["metric", "planted bias", "smallest score"]
    header += [f"{share} %" for share in planted_shares()]
    print_table(header, table_lines(balanced), keys=2)
    for note in _NOTES:
        print_out(note)
    return 0


def power_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} analysis power",
        description="How small a bias so many images can show, metric by metric, as measured",
    )
    sizes = parser.add_mutually_exclusive_group(required=True)
    sizes.add_argument(
        "--n",
        type=_halves,
        dest="sizes",
        metavar="N",
        help="images that have a label and captions, half of them of each group",
    )
    sizes.add_argument(
        "--groups", type=_pair, dest="sizes", metavar="N,N", help="images of each of two groups"
    )
    return parser


def _halves(text: str) -> tuple[int, int]:
    images: int = number(Count)(text)
    return (images + 1) // 2, images // 2


def _pair(text: str) -> tuple[int, int]:
    sizes = tuple(number(Count)(part) for part in text.split(","))
    if len(sizes) != 2:
        raise ArgumentTypeError(f"{text}: give the images of two groups, such as 300,200")
    return sizes
