"""``data draw``: the embedded data set with its pictures, in COCO's format or in ArtEmis'."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Count, NotNegative, Range, Seed
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.terminal import print_out

T = TypeVar("T")
_ABOUT = (
    "Write the embedded data set with its pictures: the world of people with masks, in COCO's "
    "format, or the affective world, in ArtEmis'"
)


def parser() -> Parser:
    """The options and their help."""
    from bias_pipeline.datasets.scenes import AFFECT_CAPTIONERS, CAPTIONERS

    parser = Parser(f"{PROGRAM} data draw", description=_ABOUT)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    for name, kind, usual, about in (
        ("n-images", Count, 2000, "number of pictures"),
        ("seed", Seed, 0, "seed of the scenes"),
        ("side", Annotated[int, Range(low=32, high=256)], 128, "of the pictures, in pixels"),
        ("leak", NotNegative, 0.0, "how far the mark of a group extends beyond the person"),
    ):
        parser.add_argument(
            f"--{name}", type=number(kind), default=usual, help=f"{about} ({usual})"
        )
    parser.add_argument(
        "--world", choices=["people", "affect"], default="people", help="which world (people)"
    )
    parser.add_argument(
        "--captioner",
        nargs="+",
        choices=sorted({*CAPTIONERS, *AFFECT_CAPTIONERS}),
        default=["amplifier", "faithful"],
        metavar="NAME",
        help="captioners whose captions are written too (amplifier faithful)",
    )
    return parser


def command(arguments: Sequence[str]) -> int:
    """Draw and write; returns the exit code.

    Raises:
        BiasPipelineError: if the folder cannot be written.
    """
    options = parser().parse_args(list(arguments))
    (_affect if options.world == "affect" else _people)(options)
    return 0


def _affect(options: Namespace) -> None:
    from bias_pipeline.datasets.scenes import AFFECT_CAPTIONERS, write_affect

    if options.leak:
        raise UsageError("--leak is for --world people only; leave it out")
    captioners = _chosen(options, AFFECT_CAPTIONERS)
    write_affect(options.n_images, options.seed, options.out, captioners, options.side)
    print_out(f"{options.out}: {options.n_images} pictures, read by")
    words = shlex.join([f"dataset.root={options.out}", f"dataset.images={options.out / 'wikiart'}"])
    chosen = f"attribute=emotion captioner={options.captioner[0]}"
    print_out(f"  python -m bias_pipeline dataset=artemis {words} {chosen}")


def _people(options: Namespace) -> None:
    from bias_pipeline.datasets.scenes import CAPTIONERS, generate, write_drawn

    captioners = _chosen(options, CAPTIONERS)
    world = generate(n_images=options.n_images, seed=options.seed)
    write_drawn(world, options.out, captioners, options.side, options.leak)
    folder, notes = options.out, options.out / "annotations"
    print_out(f"{folder}: {options.n_images} pictures with masks, read by")
    words = [
        f"attributes={folder / 'attributes.csv'}",
        f"captions={notes / 'captions.json'}",
        f"instances={notes / 'instances.json'}",
        f"images={folder / 'images'}",
    ]
    chosen = shlex.join(f"dataset.{word}" for word in words)
    captions = shlex.quote(str(folder / "captioners" / f"{options.captioner[0]}.json"))
    print_out(f"  python -m bias_pipeline dataset=coco {chosen} captioner={captions}")


def _chosen(options: Namespace, known: Mapping[str, T]) -> dict[str, T]:
    """The dials of the captioners whose captions are written.

    Raises:
        UsageError: if the world has no captioner of a name.
    """
    for name in options.captioner:
        if name not in known:
            raise UsageError(
                f"--captioner {name}: the world {options.world!r} has none of that name; "
                f"{did_you_mean(name, known)}"
            )
    return {name: known[name] for name in options.captioner}
