"""``anonymous``: pictures without any mark of a group, and what captions of them assume."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config import compose
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io.files import drafted
from bias_pipeline.io.terminal import print_out

if TYPE_CHECKING:
    from bias_pipeline.analysis.anonymous_filter import Filtered

ASKED = "filter"  # the folder of raters' answers about the pictures
_SIDE = 128
_LIMIT = 1000  # pictures that the paper keeps
_SCENES = ("dataset=scenes", "dataset.n_images=200", "dataset.seed=1")
_BUILD_ABOUT = (
    "Make pictures in which nobody can tell a person's group: scenes whose people bear no mark, "
    "with captions of the embedded captioners"
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
        usage="%(prog)s --scenes --out DIR [dataset.key=value ...] [options]",
        description=_BUILD_ABOUT,
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="dataset.key=value",
        help="of dataset=scenes (dataset.n_images=200 dataset.seed=1)",
    )
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument(
        "--scenes", action="store_true", required=True, help="draw people of the embedded data set"
    )
    parser.add_argument(
        "--side",
        type=number(Annotated[int, Range(low=32, high=256)]),
        default=_SIDE,
        help=f"of the pictures, in pixels ({_SIDE})",
    )
    return parser


def build_command(words: Sequence[str]) -> int:
    """Draw and write; returns the exit code.

    Raises:
        BiasPipelineError: if something does not fit, or cannot be written.
    """
    from bias_pipeline.datasets.scenes import generate
    from bias_pipeline.datasets.scenes.unmarked import write_unmarked

    options = build_parser().parse_intermixed_args(list(words))
    for word in options.overrides:
        if not word.lstrip("+~").startswith("dataset.") or "dataset.world=" in word:
            raise UsageError(
                f"{word}: --scenes takes dataset.key=value of people in dataset=scenes"
            )
    cell = compose.cell([*_SCENES, *options.overrides])
    scenes = cell.build("dataset")
    world = generate(scenes.n_images, scenes.seed)
    names = scenes.all_captioners(cell.build("attribute"))
    with drafted(options.out) as draft:
        write_unmarked(world, draft, {name: scenes.dials[name] for name in names}, options.side)
    print_out(f"{options.out}: {len(world.images)} pictures, captions of {', '.join(names)}")
    print_out(f"  {PROGRAM} anonymous filter {shlex.quote(str(options.out))}")
    return 0


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
    from bias_pipeline.analysis.anonymous_filter import ANSWERS, QUESTION, filter_pictures
    from bias_pipeline.datasets.anonymous_pictures import KEPT, built_pictures
    from bias_pipeline.datasets.rater_answers import CANNOT_TELL, rater_answers
    from bias_pipeline.web.answers import TABLE

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
