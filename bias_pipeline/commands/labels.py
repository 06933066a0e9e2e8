"""``labels plan``: says how many gold labels a narrow interval needs."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path
from typing import Annotated

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.data.gold_files import read_gold
from bias_pipeline.data.tables import check_file
from bias_pipeline.declared import Range
from bias_pipeline.io.terminal import print_out
from bias_pipeline.metrics.counting.gold_plan import NeededLabels
from bias_pipeline.run.compose import Cell, cell
from bias_pipeline.run.overrides import quote_value
from bias_pipeline.stats.shares import NORMAL_95

HalfWidth = Annotated[float, Range(above=0, below=0.5)]
_FEW = 100  # the usual number of gold labels in a pilot


def plan_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} labels plan",
        description="If a machine has labelled all images, print how many of these images "
        "people must label too, so that the share of captions that name the "
        "wrong group has a narrow interval",
    )
    parser.add_argument(
        "--half-width",
        type=number(HalfWidth),
        default=0.01,
        metavar="SHARE",
        help="half the width of the 95%% interval (default: 0.01, one point)",
    )
    parser.add_argument(
        "--gold",
        type=Path,
        required=True,
        metavar="FILE",
        help=f"file with about {_FEW} labels by people (a pilot), written by the command 'rate "
        f"--gold-size {_FEW}'",
    )
    add_machine_option(parser, required=True)
    parser.add_argument(
        "--captions", type=Path, required=True, metavar="FILE", help="captions of the model"
    )
    parser.add_argument(
        "--attribute",
        default="gender",
        metavar="NAME",
        help="the attribute that is labelled (default: gender)",
    )
    return parser


def add_machine_option(parser: Parser, *, required: bool = False) -> None:
    parser.add_argument(
        "--machine",
        type=Path,
        required=required,
        metavar="LABELS",
        help="file with machine-made labels of all images, in a form that dataset.attributes reads",
    )


def machine_labelled(options: Namespace) -> Cell:
    """The cell that reads the captions and the machine labels."""
    check_file(options.machine, "--machine")
    check_file(options.captions, "--captions")
    return cell(
        [
            "metric=gender_error",
            "dataset=coco",
            "dataset.strict=false",
            f"attribute={options.attribute}",
            f"dataset.attributes={quote_value(str(options.machine))}",
            f"captioner={quote_value(str(options.captions))}",
        ]
    )


def plan_command(words: list[str]) -> int:
    options = plan_parser().parse_args(words)
    here = machine_labelled(options)
    corpus, metric = here.corpus(), here.build("metric")
    pilot = read_gold(options.gold, "coco", metric.attribute)
    needed = NeededLabels.from_pilot(corpus, metric, pilot, options.half_width, NORMAL_95)
    n_gold = len(pilot.labels_in(corpus)[0])
    width = f"{100 * options.half_width:g} points"
    print_out(
        f"{corpus.captioner}: about {needed.wrong:.1%} of the captions "
        f"that name one {options.attribute} name the wrong one, by {n_gold} gold labels",
        "",
        f"Gold labels that give this share an interval of {width} on either side:",
        f"  drawn evenly, without machine labels        {_label_count(needed.evenly)}",
        f"  drawn by rate --gold-size, with correction  {_label_count(needed.drawn)}",
        f"  drawn where they reduce the error most      {_label_count(needed.best)}",
    )
    if math.isinf(needed.drawn):
        print_out(
            "",
            f"With {len(corpus.model):,} captions no number of gold labels gives less than "
            f"{100 * needed.floor:.2g} points: caption and label more images by machine.",
        )
    if n_gold < _FEW:
        print_out("", f"A pilot of {n_gold} labels is a rough guide; {_FEW} are a better one.")
    return 0


def _label_count(labels: float) -> str:
    return "none is enough" if math.isinf(labels) else f"{math.ceil(labels):,}"
