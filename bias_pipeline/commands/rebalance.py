"""``analysis rebalance``: from a finished run to the weights that ``fit --weights`` takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.analysis.rebalance import (
    METRIC,
    effective_share,
    groups_of,
    image_weights,
    too_often,
)
from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of
from bias_pipeline.config import compose
from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.fitting.mitigation import write_weights
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.report.tables import number, percent
from bias_pipeline.results.store import ResultStore


def rebalance_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} analysis rebalance",
        usage="%(prog)s RUN --out FILE.parquet [key=value ...] [options]",
        description="Weights of training images, so that fit --weights draws less often what a "
        "captioner puts together too often: a group and an object",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help=f"folder of a run of metric={METRIC}")
    parser.add_argument(
        "overrides", nargs="*", metavar="key=value", help="the data that are fitted to, as of fit"
    )
    parser.add_argument(
        "--out",
        type=file_of("table", ".parquet"),
        required=True,
        help="the table, with the columns image and weight",
    )
    parser.add_argument(
        "--captions",
        choices=["human", "model"],
        default="human",
        help="as of fit: people's captions, or those of captioner=... (human)",
    )
    return parser


def rebalance_command(words: Sequence[str]) -> int:
    """Write the weights; returns the exit code.

    Raises:
        BiasPipelineError: if there is no such run, or nothing to rebalance, or the data do not fit.
    """
    options = rebalance_parser().parse_intermixed_args(list(words))
    folder = options.run.resolve()
    result = ResultStore(folder.parent).read(folder.name)
    if result is None:
        raise ResourceError(f"{options.run}: holds no finished run; name a folder of one")
    objects, groups = too_often(result), groups_of(result)
    cell = compose.cell([f"metric={METRIC}", *options.overrides])
    attribute = cell.build("attribute").name
    if attribute != result.rows[0].attribute:
        raise UsageError(
            f"{options.run}: is of attribute={result.rows[0].attribute}, not {attribute}; give "
            f"attribute={result.rows[0].attribute}"
        )
    corpus = cell.corpus()
    weights = image_weights(
        corpus, options.captions, attribute, cell.build("task"), groups, objects
    )
    write_weights(options.out, dict(zip(corpus.ids, weights.tolist(), strict=True)))
    first, second = groups
    header = ["object", f"{first}, people", f"{first}, {result.rows[0].captioner}", *groups]
    lines = [
        [item.name, percent(item.human), percent(item.model), *map(number, item.factors)]
        for item in objects
    ]
    print_out(f"{result.run_id}: {len(objects)} objects go with one group more than people's do")
    print_out(f"share of {first}, per cent; how often captions of {first} and {second} are drawn")
    print_table(header, lines, keys=1)
    print_out(
        f"{options.out}: weights of {len(weights)} images, {weights.min():.2f} to "
        f"{weights.max():.2f}, worth {percent(effective_share(weights))} % of as many equal ones; "
        f"fit sat --weights {options.out} takes it"
    )
    return 0
