"""``data validate``, ``data convert`` and ``data fetch``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import Parser
from bias_pipeline.errors import BiasPipelineError, SweepError, UsageError, did_you_mean
from bias_pipeline.io.terminal import say, warn

_HELP = """\
usage: python -m bias_pipeline data validate [key=value ...] [options]
       python -m bias_pipeline data convert FILE ... [--out DIR]
       python -m bias_pipeline data fetch [NAME ...] [--out DIR]

validate reads a data set as a run would and prints what is there; convert turns pickles and COCO's
JSON into Parquet; fetch says where data sets are to be had. Each has --help."""


def command(words: Sequence[str]) -> int:
    """Run one of the three; returns the exit code.

    Raises:
        UsageError: if there is no such word.
    """
    words_of = {"validate": validate, "convert": convert, "fetch": fetch}
    first = words[0] if words else ""
    if first in ("", "-h", "--help"):
        say(*_HELP.splitlines())
        return 0 if first else UsageError.exit_code
    if first not in words_of:
        raise UsageError(f"data {first!r} is unknown; {did_you_mean(first, words_of)}")
    return words_of[first](words[1:])


def validate(words: Sequence[str]) -> int:
    """Read a data set as a run would, and print what is there.

    Args:
        words: overrides, and options of :mod:`~bias_pipeline.commands.own_columns`; ``captioner=``
            may name several, or ``all``.

    Returns:
        0, or the exit code of the fault; 4 if some of several captioners have one.
    """
    from bias_pipeline.analysis.inventory import print_inventory
    from bias_pipeline.commands import own_columns
    from bias_pipeline.config import compose

    parser = Parser(
        "python -m bias_pipeline data validate",
        usage="%(prog)s [key=value ...] [options]",
        description="Read a data set as a run would, and print what is there",
        allow_abbrev=False,
    )
    own_columns.add_options(parser)
    options, words = parser.parse_known_args(list(words))
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


def convert(words: Sequence[str]) -> int:
    """Turn pickles of LIC and JSON files of COCO into Parquet tables."""
    from bias_pipeline.datasets.convert import convert as convert_file

    parser = Parser(prog="python -m bias_pipeline data convert")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args(list(words))
    for path in options.files:
        for written in convert_file(path, options.out):
            say(written)
    return 0


def fetch(words: Sequence[str]) -> int:
    """Download what anyone may; say where the other files are to be had, and their names.

    Raises:
        UsageError: if a data set is unknown, or there is a folder but not one data set for it.
        ResourceError: if something could not be downloaded.
    """
    from bias_pipeline.datasets.download import download
    from bias_pipeline.datasets.sources import SOURCES, describe

    parser = Parser(prog="python -m bias_pipeline data fetch")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, help="the data set's folder; download into it")
    options = parser.parse_args(list(words))
    for name in options.names:
        if name not in SOURCES:
            raise UsageError(f"data set {name!r} is unknown; {did_you_mean(name, SOURCES)}")
    if options.out and len(options.names) != 1:
        raise UsageError("--out is the folder of one data set; name one")
    for name in options.names or SOURCES:
        say(*describe(name, SOURCES[name]).splitlines(), "")
    if options.out:
        archives = SOURCES[options.names[0]].archives
        written = [path for archive in archives for path in download(archive, options.out)]
        lines = [f"downloaded {path}" for path in written]
        say(*(lines or ["nothing was downloaded"]))
    return 0
