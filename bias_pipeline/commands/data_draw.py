"""``data draw``: the embedded data set with its pictures and masks, as files in COCO's format."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Count, NotNegative, Range, Seed
from bias_pipeline.io.terminal import print_out

_ABOUT = "Write the embedded data set with its pictures and masks, as files in COCO's format"


def parser() -> Parser:
    """The options and their help."""
    from bias_pipeline.datasets.scenes.captioners import CAPTIONERS

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
        "--captioner",
        nargs="+",
        choices=sorted(CAPTIONERS),
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
    from bias_pipeline.datasets.scenes import CAPTIONERS, generate, write_drawn

    options = parser().parse_args(list(arguments))
    captioners = {name: CAPTIONERS[name] for name in options.captioner}
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
    return 0
