"""``data convert`` and ``data fetch``: write published files as tables, and say where they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.terminal import print_out


def data_convert_command(words: Sequence[str]) -> int:
    """Turn pickles of LIC and JSON files of COCO into Parquet tables."""
    from bias_pipeline.published.convert import convert as convert_file

    options = data_convert_parser().parse_args(list(words))
    for path in options.files:
        for written in convert_file(path, options.out):
            print_out(written)
    return 0


def data_convert_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} data convert",
        description="Convert pickles of LIC and JSON files of COCO to Parquet",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="pickles or JSON files")
    parser.add_argument(
        "--out", type=Path, default=Path(), help="folder for the Parquet files (default: .)"
    )
    return parser


def data_fetch_command(words: Sequence[str]) -> int:
    """Print the addresses and names of published files; download files that are free for all."""
    from bias_pipeline.published.sources import SOURCES, describe_sources, download

    options = data_fetch_parser().parse_args(list(words))
    for name in options.names:
        if name not in SOURCES:
            raise UsageError(f"data set {name!r} is unknown; {did_you_mean(name, SOURCES)}")
    if options.out and len(options.names) != 1:
        raise UsageError("--out is the folder of one data set; name one")
    for name in options.names or SOURCES:
        print_out(*describe_sources(name, SOURCES[name]).splitlines(), "")
    if options.out:
        archives = SOURCES[options.names[0]].archives
        written = [path for archive in archives for path in download(archive, options.out)]
        lines = [f"downloaded {path}" for path in written]
        print_out(*(lines or ["nothing was downloaded"]))
    return 0


def data_fetch_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} data fetch",
        description="Print where to get the published files; with --out, also download the "
        "files that anyone may download",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets (default: all)")
    parser.add_argument("--out", type=Path, help="download the data set's files into this folder")
    return parser
