"""``data convert``: pickles of LIC and JSON files of COCO as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.io.terminal import print_out

_ABOUT = "Convert pickles of LIC and JSON files of COCO to Parquet"


def command(words: Sequence[str]) -> int:
    """Turn pickles of LIC and JSON files of COCO into Parquet tables."""
    from bias_pipeline.datasets.convert import convert as convert_file

    options = parser().parse_args(list(words))
    for path in options.files:
        for written in convert_file(path, options.out):
            print_out(written)
    return 0


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} data convert", description=_ABOUT)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files to convert")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the Parquet files (.)")
    return parser
