"""The options that ``embed``, ``caption`` and ``data detect`` share."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Annotated

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Range
from bias_pipeline.errors import UsageError
from bias_pipeline.io.cores import n_threads

Batch = Annotated[int, Range(low=1, high=65_536)]
BATCH = 32
Threads = Annotated[int, Range(low=1, high=1024)]


def parser(command: str, description: str | None, noun: str) -> Parser:
    """The shared options and their help."""
    parser = Parser(f"{PROGRAM} {command}", description=description)
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder of photos; folders inside it are ignored"
    )
    parser.add_argument("--model", help="a folder, or a name on the hub; safetensors only")
    parser.add_argument("--revision", default="", help="revision of a model on the hub (main)")
    parser.add_argument("--out", type=Path, help="folder of the blocks; tasks may share it")
    parser.add_argument(
        "--shard",
        default="",
        metavar="K/N",
        help="this task's share, K of N (that of the Slurm array; 0/1)",
    )
    parser.add_argument(
        "--batch", type=number(Batch), default=BATCH, help=f"images at once ({BATCH})"
    )
    parser.add_argument(
        "--threads",
        type=number(Threads),
        default=n_threads(),
        help="threads that compute, and as many that read (OMP_NUM_THREADS, or what Slurm gives a "
        "task, or all cores)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (auto)")
    parser.add_argument(
        "--gather", type=Path, metavar="OUT", help=f"write the finished blocks of OUT as one {noun}"
    )
    parser.add_argument("--to", type=Path, metavar="FILE", help=f"the {noun} that --gather writes")
    parser.add_argument("--run", default="", help="which run, if OUT has several")
    parser.add_argument(
        "--no-strict", action="store_true", help="gather although something is missing"
    )
    return parser


def check_words(options: Namespace, *sources: str) -> None:
    """Refuse what does not fit together.

    Args:
        options: as parsed.
        sources: the options of which exactly one must be given.

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
            raise UsageError(f"--{name} is missing; see --help")


def _flag(name: str) -> str:
    return "FOLDER" if name == "folder" else f"--{name}"
