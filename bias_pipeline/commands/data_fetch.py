"""``data fetch``: where the published files are to be had, and those that anyone may download."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.terminal import say


def command(words: Sequence[str]) -> int:
    """Download what anyone may; say where the other files are to be had, and their names.

    Raises:
        UsageError: if a data set is unknown, or there is a folder but not one data set for it.
        ResourceError: if something could not be downloaded.
    """
    from bias_pipeline.datasets.download import download
    from bias_pipeline.datasets.sources import SOURCES, describe

    options = parser().parse_args(list(words))
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


def parser() -> Parser:
    """What it takes."""
    own = Parser(f"{PROGRAM} data fetch", description="Where the published files are to be had")
    own.add_argument("names", nargs="*", metavar="NAME", help="of data sets; all, if left out")
    own.add_argument("--out", type=Path, help="the data set's folder; download into it")
    return own
