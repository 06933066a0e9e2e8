"""The words that ``embed``, ``caption`` and ``data detect`` have in common."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Annotated

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Range
from bias_pipeline.errors import UsageError
from bias_pipeline.io.cores import n_cores

Batch = Annotated[int, Range(low=1, high=65_536)]
Threads = Annotated[int, Range(low=1, high=1024)]


def parser(command: str, description: str | None, noun: str) -> Parser:
    """The options that these commands have."""
    own = Parser(f"{PROGRAM} {command}", description=description)
    own.add_argument("folder", type=Path, nargs="?", help="of photos; folders in it are left out")
    own.add_argument("--model", help="a folder, or a name on the hub; safetensors only")
    own.add_argument("--revision", default="", help="of a name on the hub (its main one)")
    own.add_argument("--out", type=Path, help="folder of the blocks; may be shared by tasks")
    own.add_argument("--shard", default="", metavar="K/N", help="(this task of a Slurm array; 0/1)")
    own.add_argument("--batch", type=number(Batch), default=32, help="images at once (32)")
    own.add_argument(
        "--threads",
        type=number(Threads),
        default=n_cores(),
        help="that compute, and that read (what Slurm gives a task; all cores)",
    )
    own.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (auto)")
    own.add_argument("--gather", type=Path, metavar="OUT", help=f"finished blocks as one {noun}")
    own.add_argument("--to", type=Path, metavar="FILE", help=f"the {noun} that --gather writes")
    own.add_argument("--run", default="", help="which one, where OUT holds several")
    own.add_argument(
        "--no-strict", action="store_true", help="gather although something is missing"
    )
    return own


def check_words(options: Namespace, *sources: str) -> None:
    """Refuse what does not fit together.

    Args:
        options: as parsed.
        sources: the options of which one says what is described.

    Raises:
        UsageError: naming what is absent or too much.
    """
    given = [name for name in sources if getattr(options, name) is not None]
    if options.gather:
        if given or options.model or options.out:
            raise UsageError("--gather OUT takes no other source, --model or --out")
        return
    if len(given) != 1:
        raise UsageError(f"name one source: {' or '.join(map(_flag, sources))}; or --gather OUT")
    for name in ("model", "out"):
        if getattr(options, name) is None:
            raise UsageError(f"--{name} is absent; see --help")


def _flag(name: str) -> str:
    return "FOLDER" if name == "folder" else f"--{name}"
