"""``data draw``: the embedded data set with its pictures and masks, as files in COCO's format."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Count, NotNegative, Range, Seed
from bias_pipeline.io.terminal import say

_ABOUT = "The embedded data set with its pictures and masks, as files in COCO's format"


def parser() -> Parser:
    """What it takes."""
    from bias_pipeline.datasets.scenes.captioners import CAPTIONERS

    own = Parser(f"{PROGRAM} data draw", description=_ABOUT)
    own.add_argument("--out", type=Path, required=True, help="the folder")
    for name, kind, usual, about in (
        ("n-images", Count, 2000, "how many"),
        ("seed", Seed, 0, "of the scenes"),
        ("side", Annotated[int, Range(low=32, high=256)], 128, "of the pictures, in pixels"),
        ("leak", NotNegative, 0.0, "how far what shows a group spills over a person's edge"),
    ):
        own.add_argument(f"--{name}", type=number(kind), default=usual, help=f"{about} ({usual})")
    own.add_argument(
        "--captioner",
        nargs="+",
        choices=sorted(CAPTIONERS),
        default=["amplifier", "faithful"],
        metavar="NAME",
        help="whose captions are written too (amplifier faithful)",
    )
    return own


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
    own, notes = options.out, options.out / "annotations"
    say(f"{own}: {options.n_images} pictures with masks, read by")
    words = [
        f"attributes={own / 'attributes.csv'}",
        f"captions={notes / 'captions.json'}",
        f"instances={notes / 'instances.json'}",
        f"images={own / 'images'}",
    ]
    chosen = shlex.join(f"dataset.{word}" for word in words)
    captions = shlex.quote(str(own / "captioners" / f"{options.captioner[0]}.json"))
    say(f"  python -m bias_pipeline dataset=coco {chosen} captioner={captions}")
    return 0
