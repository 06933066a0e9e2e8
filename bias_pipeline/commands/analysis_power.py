"""``analysis power``: how small a bias so many images can show."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Sequence

from bias_pipeline.analysis.power import balanced_images, measured_sizes
from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Count
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.report.smallest_bias import planted_shares, table_lines

_ABOUT = "How small a bias so many images can show, metric by metric, as measured"
_NOTES = (
    "5 %, 10 %, 20 %: trials in which an audit of the metric alone called so much planted bias "
    "biased, with the measured number of images nearest to yours; a dash where it gave no answer",
    "people words: a word that people say more often of the group, in so many of their captions; "
    "scenes a_to_t, t_to_a: settings of simulated captioners (docs/which_metric.md)",
)


def command(words: Sequence[str]) -> int:
    """Print the table; returns the exit code.

    Raises:
        UsageError: if the number of images is not given, or groups are not two.
    """
    sizes = parser().parse_args(list(words)).sizes
    balanced = balanced_images(sizes)
    smallest, largest = measured_sizes()
    print_out(
        f"{sum(sizes):g} images in groups of {sizes[0]:g} and {sizes[1]:g}; smallest score that is "
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


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} analysis power", description=_ABOUT)
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


def _halves(text: str) -> tuple[float, float]:
    images: int = number(Count)(text)
    return images / 2, images / 2


def _pair(text: str) -> tuple[int, int]:
    sizes = tuple(number(Count)(part) for part in text.split(","))
    if len(sizes) != 2:
        raise ArgumentTypeError(f"{text}: give the images of two groups, such as 300,200")
    return sizes
