"""``anonymous``: pictures without any mark of a group, and what captions of them assume."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config import compose
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io.files import drafted
from bias_pipeline.io.machine import DIFFUSION
from bias_pipeline.io.terminal import print_out

if TYPE_CHECKING:
    from bias_pipeline.analysis.anonymous import Filtered

ASKED = "filter"  # the folder of raters' answers about the pictures
_LIMIT = 1000  # pictures that the paper keeps
_SCENES = ("dataset=scenes", "dataset.n_images=200", "dataset.seed=1")
_BUILD_ABOUT = (
    "Make pictures in which nobody can tell a person's group: scenes whose people bear no mark, "
    "with captions of the embedded captioners, or pictures of prompts by a diffusion pipeline"
)
_FILTER_ABOUT = (
    "Print the command that asks people whether they can tell the gender or race in each picture. "
    "Once they have answered, keep the pictures in which more than half cannot: kept.csv, and the "
    "folder kept"
)


def build_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} anonymous build",
        usage="%(prog)s --scenes|--model FOLDER --out DIR [dataset.n_images=N ...] [options]",
        description=_BUILD_ABOUT,
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="dataset.n_images=N",
        help="with --scenes: of dataset=scenes (dataset.n_images=200 dataset.seed=1)",
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="a new folder; --model goes on with one"
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--scenes", action="store_true", help="draw people of the embedded data set"
    )
    source.add_argument(
        "--model", type=Path, metavar="FOLDER", help="a diffusion pipeline, as diffusers saves it"
    )
    for name, kind, usual, about in (
        ("side", Annotated[int, Range(low=32, high=256)], 128, "of scenes, in pixels"),
        ("per-prompt", Count, 10, "pictures of each prompt"),
        ("steps", Count, 50, "of denoising"),
    ):
        parser.add_argument(
            f"--{name}", type=number(kind), default=usual, metavar="N", help=f"{about} ({usual})"
        )
    parser.add_argument(
        "--prompts", type=Path, metavar="FILE", help="a table with the column prompt (500 of ours)"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (auto)")
    return parser


def build_command(words: Sequence[str]) -> int:
    """Draw and write; returns the exit code.

    Raises:
        BiasPipelineError: if something does not fit, or cannot be written.
    """
    options = build_parser().parse_intermixed_args(list(words))
    (_draw_scenes if options.scenes else _make_pictures)(options)
    print_out(f"  {PROGRAM} anonymous filter {shlex.quote(str(options.out))}")
    return 0


def _draw_scenes(options: Namespace) -> None:
    from bias_pipeline.datasets.anonymous_pictures import write_unmarked
    from bias_pipeline.datasets.scenes import generate

    for word in options.overrides:
        if not word.lstrip("+~").startswith("dataset.") or "dataset.world=" in word:
            raise UsageError(
                f"{word}: --scenes takes settings of dataset=scenes, such as dataset.n_images=200"
            )
    cell = compose.cell([*_SCENES, *options.overrides])
    scenes = cell.build("dataset")
    world = generate(scenes.n_images, scenes.seed)
    names = scenes.all_captioners(cell.build("attribute"))
    with drafted(options.out) as draft:
        write_unmarked(world, draft, {name: scenes.dials[name] for name in names}, options.side)
    print_out(f"{options.out}: {len(world.images)} pictures, captions of {', '.join(names)}")


def _make_pictures(options: Namespace) -> None:
    from bias_pipeline.models.anonymous_prompts import (
        make_pictures,
        planned_pictures,
        read_prompts,
        usual_prompts,
    )
    from bias_pipeline.models.pretrained import device_of
    from bias_pipeline.models.text_to_image import find_image_model

    if options.overrides:
        raise UsageError(f"{options.overrides[0]}: --model takes no settings of a data set")
    DIFFUSION.require()
    prompts = read_prompts(options.prompts) if options.prompts else usual_prompts()
    pictures = planned_pictures(prompts, options.per_prompt)
    model, device = find_image_model(options.model), device_of(options.device)
    made = make_pictures(options.out, model, pictures, device, options.steps)
    before = len(pictures) - made
    print_out(
        f"{options.out}: {len(pictures)} pictures of {len(prompts)} prompts"
        + (f", {before} of them made before" if before else "")
    )


def filter_parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} anonymous filter", description=_FILTER_ABOUT)
    parser.add_argument("folder", type=Path, help="of anonymous build")
    parser.add_argument(
        "--limit",
        type=number(Count),
        default=_LIMIT,
        metavar="N",
        help=f"keep the first N pictures at most ({_LIMIT})",
    )
    return parser


def filter_command(words: Sequence[str]) -> int:
    """Print what asks raters, and keep what they leave; returns the exit code.

    Raises:
        BiasPipelineError: if pictures or answers are absent or damaged.
    """
    from bias_pipeline.analysis.anonymous import ANSWERS, QUESTION, filter_pictures
    from bias_pipeline.datasets.anonymous_pictures import KEPT, built_pictures
    from bias_pipeline.datasets.rating_tables import CANNOT_TELL, rater_answers
    from bias_pipeline.web.study import TABLE

    options = filter_parser().parse_args(list(words))
    pictures = built_pictures(options.folder)
    answers = options.folder / ASKED
    if not (answers / TABLE).is_file():
        question = ["--question", QUESTION, "--answers", ",".join(ANSWERS)]
        print_out("ask people, then run this command again:")
        print_out(f"  {_rate([str(pictures.shown), *question, '--out', str(answers)])}")
        return 0
    values = (*ANSWERS, CANNOT_TELL)
    votes = rater_answers(answers / TABLE, "question", values, pictures.photos)
    result = filter_pictures(pictures.photos, votes)
    if not result.retained:
        raise DataError(
            f"{answers / TABLE}: raters agree on no picture that they cannot tell; ask more, "
            "or build other pictures"
        )
    images = result.retained[: options.limit]
    pictures.keep(images)
    print_out(
        f"{options.folder / KEPT}: {len(images)} of {len(pictures.photos)} pictures are kept; "
        f"{_counted(result)}"
    )
    print_out("captioners describe this folder; their files go into captioners/NAME.json, then")
    print_out(f"  {PROGRAM} anonymous score {shlex.quote(str(options.folder))}")
    return 0


def _rate(words: Sequence[str]) -> str:
    """The command that asks raters."""
    return f"{PROGRAM} rate {shlex.join(words)}"


def _counted(result: Filtered) -> str:
    """What happened to the other pictures."""
    counts = {**result.dropped, "without an answer": result.unanswered}
    dropped = (f"{answer.replace('_', ' ')} {count}" for answer, count in counts.items() if count)
    return ", ".join(["cannot tell " + str(len(result.retained)), *dropped])
