"""``data draw``: writes the embedded data set and its pictures as files."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Count, NotNegative, Range, Seed
from bias_pipeline.errors import UsageError, did_you_mean, inflect
from bias_pipeline.io.terminal import print_out
from bias_pipeline.run.overrides import path_override

T = TypeVar("T")

_DRAW_ABOUT = (
    "Write the embedded data set with its pictures: the world of people with masks, in COCO's "
    "format, or the affective world in the format of ArtEmis"
)


def data_draw_parser() -> Parser:
    from bias_pipeline.scenes.affect_world import AFFECT_CAPTIONERS
    from bias_pipeline.scenes.captioners import CAPTIONERS

    parser = Parser(f"{PROGRAM} data draw", description=_DRAW_ABOUT)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    for name, kind, usual, about in (
        ("n-images", Count, 2000, "number of pictures"),
        ("seed", Seed, 0, "seed of the scenes"),
        ("side", Annotated[int, Range(low=32, high=256)], 128, "side of a picture in pixels"),
        ("leak", NotNegative, 0.0, "how far the mark of a group extends beyond the person"),
    ):
        parser.add_argument(
            f"--{name}", type=number(kind), default=usual, help=f"{about} (default: {usual})"
        )
    parser.add_argument(
        "--world",
        choices=["people", "affect"],
        default="people",
        help="the kind of scenes to draw (default: people)",
    )
    parser.add_argument(
        "--captioner",
        nargs="+",
        choices=sorted({*CAPTIONERS, *AFFECT_CAPTIONERS}),
        default=["amplifier", "faithful"],
        metavar="NAME",
        help="names of captioners whose captions are written too (default: amplifier faithful)",
    )
    return parser


def data_draw_command(arguments: Sequence[str]) -> int:
    options = data_draw_parser().parse_args(list(arguments))
    (_draw_affect if options.world == "affect" else _draw_people)(options)
    return 0


def _draw_affect(options: Namespace) -> None:
    from bias_pipeline.scenes.affect_world import AFFECT_CAPTIONERS
    from bias_pipeline.scenes.dataset import write_affect

    if options.leak:
        raise UsageError("--leak is for --world people only; leave it out")
    captioners = _dials(options, AFFECT_CAPTIONERS)
    write_affect(options.n_images, options.seed, options.out, captioners, options.side)
    print_out(f"{options.out}: {inflect(options.n_images, 'pictures')}, read by")
    pictures = options.out / "wikiart"
    words = shlex.join(
        [path_override("dataset.root", options.out), path_override("dataset.images", pictures)]
    )
    chosen = f"attribute=emotion captioner={options.captioner[0]}"
    print_out(f"  python -m bias_pipeline dataset=artemis {words} {chosen}")


def _draw_people(options: Namespace) -> None:
    from bias_pipeline.scenes.captioners import CAPTIONERS
    from bias_pipeline.scenes.dataset import write_drawn
    from bias_pipeline.scenes.world import generate

    captioners = _dials(options, CAPTIONERS)
    world = generate(n_images=options.n_images, seed=options.seed)
    write_drawn(world, options.out, captioners, options.side, options.leak)
    folder, notes = options.out, options.out / "annotations"
    print_out(f"{folder}: {inflect(options.n_images, 'pictures')} with masks, read by")
    files = {
        "dataset.attributes": folder / "attributes.csv",
        "dataset.captions": notes / "captions.json",
        "dataset.instances": notes / "instances.json",
        "dataset.images": folder / "images",
        "captioner": folder / "captioners" / f"{options.captioner[0]}.json",
    }
    chosen = shlex.join(path_override(key, path) for key, path in files.items())
    print_out(f"  python -m bias_pipeline dataset=coco {chosen}")


def _dials(options: Namespace, known: Mapping[str, T]) -> dict[str, T]:
    """The dials of each captioner whose captions are written to files."""
    for name in options.captioner:
        if name not in known:
            raise UsageError(
                f"--captioner {name}: the world {options.world!r} has no such captioner; "
                f"{did_you_mean(name, known)}"
            )
    return {name: known[name] for name in options.captioner}
