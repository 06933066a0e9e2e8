"""``data validate``: read a data set as a run would, and print what is there."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.commands import own_columns
from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import BiasPipelineError, SweepError
from bias_pipeline.io.terminal import warn


def command(words: Sequence[str]) -> int:
    """Read a data set as a run would, and print what is there.

    Args:
        words: overrides, and options of :mod:`~bias_pipeline.commands.own_columns`; ``captioner=``
            may name several, or ``all``.

    Returns:
        0, or the exit code of the fault; 4 if some of several captioners have one.
    """
    from bias_pipeline.analysis.inventory import print_inventory
    from bias_pipeline.config import compose

    options, words = parser().parse_known_args(list(words))
    words = [*words, *own_columns.overrides_of(options)]
    wanted = [w.partition("=")[2] for w in words if w.startswith("captioner=")]
    cell = compose.cell([word for word in words if not word.startswith("captioner=")])
    dataset, attribute = cell.build("dataset"), cell.build("attribute")
    names = wanted[-1].split(",") if wanted else [dataset.captioners()[0]]
    if names == ["all"]:
        names = dataset.everyone(attribute)
    corpora, faults = [], []
    for name in names:
        try:
            limit = cell.tree.get("limit")
            corpora.append(compose.corpus_of(dataset, name, attribute, limit))
        except BiasPipelineError as error:
            if len(names) == 1:
                raise
            faults.append(f"captioner={name}: {error}")
    if corpora:
        print_inventory(corpora)
    for fault in faults:
        warn(f"error: {fault}")
    return SweepError.exit_code if faults else 0


def parser() -> Parser:
    """What it takes."""
    own = Parser(
        f"{PROGRAM} data validate",
        usage="%(prog)s [key=value ...] [options]",
        description="Read a data set as a run would, and print what is there",
        allow_abbrev=False,
    )
    own_columns.add_options(own)
    return own
