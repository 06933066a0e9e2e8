"""``caption``: captions of photos by a published captioner, or one fitted here, in many tasks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Annotated

from bias_pipeline.captioners.fitted import KINDS as FITTED
from bias_pipeline.captioners.fitted import FittedCaptioner
from bias_pipeline.commands.arguments import Parser, number
from bias_pipeline.commands.photo_options import check_words
from bias_pipeline.commands.photo_options import parser as photo_parser
from bias_pipeline.declared import Range
from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.gathering import all_empty, gather, write_captions
from bias_pipeline.inference.runner import Model, describe_share, report
from bias_pipeline.inference.stamps import photo_stamps
from bias_pipeline.io.terminal import say
from bias_pipeline.models.folders import require_vocabulary
from bias_pipeline.models.generation import KINDS as PUBLISHED
from bias_pipeline.models.generation import Captioner, check_prompt
from bias_pipeline.models.pretrained import device_of, find_pretrained
from bias_pipeline.vision.photos import find_photos

NewTokens = Annotated[int, Range(low=1, high=4096)]
Beams = Annotated[int, Range(low=1, high=1000)]
_ABOUT = "Captions of photos by a published captioner, or one of fit; in any number of tasks"
JOB = "caption"
VERSION = 1  # raised when the same model would write other captions


def command(words: Sequence[str]) -> int:
    """Caption one task's share, or gather that of all; returns the exit code.

    Raises:
        BiasPipelineError: if something is missing or cannot be read.
    """
    options = options_of(words)
    if options.gather:
        gathered = gather(options, JOB, "captions.json")
        written, empty = write_captions(gathered)
        say(f"{gathered.out}: {written} captions{f', {empty} of them empty' if empty else ''}")
    else:
        _caption(options)
    return 0


def parser() -> Parser:
    """What it takes."""
    own = photo_parser(JOB, _ABOUT, "JSON file")
    own.add_argument("--prompt", default="", help="how every caption begins (BLIP)")
    own.add_argument(
        "--max-new-tokens", type=number(NewTokens), default=30, help="longest caption (30)"
    )
    own.add_argument(
        "--beams", type=number(Beams), default=1, help="1: the likeliest word each time (1)"
    )
    return own


def options_of(words: Sequence[str]) -> Namespace:
    """The command's words, checked.

    Raises:
        UsageError: if they do not fit together.
    """
    options = parser().parse_args(list(words))
    check_words(options, "folder")
    return options


def _caption(options: Namespace) -> None:
    photos = find_photos(options.folder)
    model = find_pretrained(options.model, (*PUBLISHED, *FITTED), revision=options.revision)
    check_prompt(model, options.prompt)
    fitted = model.kind in FITTED
    if not fitted:
        require_vocabulary(model.folder, model.files)
    generation = {
        "prompt": options.prompt,
        "max_new_tokens": options.max_new_tokens,
        "beams": options.beams,
    }

    def load() -> Model:
        kind = FittedCaptioner if fitted else Captioner
        return kind(model, device_of(options.device), **generation)

    settings = {"job": JOB, "version": VERSION, **generation, "files": model.files}
    store = BlockStore(options.out, settings, model.name)
    tally = describe_share(photos, photo_stamps, store, load, options)
    if tally.empty and tally.empty == tally.described - len(tally.unreadable):
        raise all_empty(store, tally.empty)
    report(tally, "images", JOB, store)
