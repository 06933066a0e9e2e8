"""``caption``: captions of photos by a model of this machine or behind a server, in many tasks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from bias_pipeline.captioners.fitted import KINDS as FITTED
from bias_pipeline.captioners.fitted import FittedCaptioner
from bias_pipeline.captioners.grounding import check_emotion, read_emotion
from bias_pipeline.commands import caption_server
from bias_pipeline.commands.arguments import (
    BATCH,
    Parser,
    check_photo_options,
    number,
    photo_parser,
)
from bias_pipeline.commands.photo_masking import (
    add_masking_options,
    masked_photos,
    masking_of,
    masking_settings,
    without_settings,
)
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import UsageError
from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.merge_shards import all_empty, gather, write_gathered_captions
from bias_pipeline.inference.runner import (
    Model,
    ProgressCounts,
    describe_share,
    report_progress,
)
from bias_pipeline.inference.shards import photo_stamps
from bias_pipeline.io.terminal import print_out
from bias_pipeline.models.folders import require_vocabulary
from bias_pipeline.models.generation import KINDS as PUBLISHED
from bias_pipeline.models.generation import Captioner, usual_prompt
from bias_pipeline.models.picture_text import require_image_text
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.models.sampling import Decoding, describe_decoding, own_settings
from bias_pipeline.vision.masking import MaskedPhotos
from bias_pipeline.vision.photos import find_photos, read_photo

NewTokens = Annotated[int, Range(low=1, high=4096)]
Beams = Annotated[int, Range(low=1, high=1000)]
Number = Annotated[int, Range(low=1, high=1000)]
Temperature = Annotated[float, Range(low=0, high=100)]
Seed = Annotated[int, Range(low=0, high=2**32 - 1)]
_ABOUT = (
    "Caption photos with any image-text model of transformers, a captioner of fit, or a model "
    "behind a server; in any number of tasks"
)
JOB = "caption"
NEW_TOKENS = 30
VERSION = 2  # raise it when the same model would write other captions


def command(words: Sequence[str]) -> int:
    """Caption one task's share, or gather all shares; returns the exit code.

    Raises:
        BiasPipelineError: if something is missing or cannot be read.
    """
    options = options_of(words)
    if options.gather:
        gathered = gather(options, JOB, "captions.json")
        print_out(f"{gathered.out}: {write_gathered_captions(gathered)}")
    elif options.to_batch:
        photos = find_photos(options.folder)
        caption_server.write_batch(options, photos, JOB, masked_photos(options, photos))
    else:
        _caption(options)
    return 0


def parser() -> Parser:
    """The options and their help."""
    parser = photo_parser(JOB, _ABOUT, "JSON file")
    parser.add_argument(
        "--prompt",
        default="",
        help="what the model is asked, or how its captions begin; not part of the captions "
        "(nothing for BLIP and GIT, the authors' own for BLIP-2, Florence-2 and PaliGemma, a "
        "question for all others)",
    )
    parser.add_argument(
        "--max-new-tokens", type=number(NewTokens), help=f"longest caption ({NEW_TOKENS})"
    )
    parser.add_argument(
        "--beams",
        type=number(Beams),
        default=1,
        help="of beam search; 1 takes the likeliest word each time (1)",
    )
    parser.add_argument(
        "--temperature",
        type=number(Temperature),
        default=0.0,
        help="draw words at this temperature instead; 1 is the model's own (0: no draws)",
    )
    parser.add_argument("--seed", type=number(Seed), default=0, help="of the draws (0)")
    parser.add_argument(
        "--n",
        type=number(Number),
        default=1,
        help="captions for each photo: draws, or the best of as many --beams (1)",
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16"),
        default="float32",
        help="precision of the computation; bfloat16 takes half the memory and is for GPUs; "
        "with it the batch can change a word (float32)",
    )
    parser.add_argument(
        "--limit", type=number(Count), metavar="N", help="only the first N photos of the share"
    )
    add_masking_options(parser)
    parser.add_argument(
        "--emotion",
        metavar="NAME|predicted|FILE",
        help="what a captioner of fit sat encoder.grounding=emotion writes for: an emotion, the "
        "one that it predicts of each photo, or a table with image_id, emotion",
    )
    caption_server.add_server_options(parser)
    parser.set_defaults(batch=None)
    return parser


def options_of(words: Sequence[str]) -> Namespace:
    """The command's words, checked.

    Raises:
        UsageError: if they do not fit together.
    """
    words, settings = without_settings(words)
    options = parser().parse_args(words)
    check_photo_options(options, "folder")
    if options.gather:
        return options
    options.masking = masking_of(options, settings)
    caption_server.check(options)
    served = options.server is not None
    if served and options.emotion is not None:
        raise UsageError("--emotion is for a captioner of fit sat; leave it out with --server")
    if options.batch is None:
        options.batch = caption_server.AT_ONCE if served else BATCH
    if options.max_new_tokens is None:
        options.max_new_tokens = caption_server.NEW_TOKENS if served else NEW_TOKENS
    options.decoding = Decoding(
        prompt=options.prompt,
        max_new_tokens=options.max_new_tokens,
        beams=options.beams,
        n=options.n,
        temperature=options.temperature,
        seed=options.seed if options.temperature else 0,
    )
    return options


def _caption(options: Namespace) -> None:
    photos = find_photos(options.folder)
    masked = masked_photos(options, photos)
    lines: list[str] = []
    if options.server is None:
        store, tally = _caption_here(options, photos, masked)
    else:
        store, tally, lines = caption_server.caption_served(options, photos, JOB, masked)
    n_written = options.n * (tally.described - len(tally.unreadable))
    if tally.empty and tally.empty == n_written:
        raise all_empty(store, tally.empty)
    report_progress(tally, "images", JOB, store, lines)


def _check_fitted(model: Pretrained, options: Namespace) -> None:
    """Refuse options that captioners of fit do not take."""
    if options.prompt:
        raise UsageError(f"{model.name}: a {model.kind} takes no prompt; leave out --prompt")
    if options.dtype != "float32":
        raise UsageError(f"{model.name}: a {model.kind} computes in float32; leave out --dtype")


def _caption_here(
    options: Namespace, photos: Mapping[str, Path], masked: MaskedPhotos | None
) -> tuple[BlockStore, ProgressCounts]:
    """Caption photos by a model on this machine."""
    model = find_pretrained(options.model, None, revision=options.revision)
    fitted = model.kind in FITTED
    decoding: Decoding = options.decoding
    if fitted:
        _check_fitted(model, options)
    emotion = None if options.emotion is None else read_emotion(options.emotion)
    if not fitted:
        check_emotion(model.name, (), emotion)
        decoding = replace(decoding, prompt=decoding.prompt or usual_prompt(model.kind))
        if model.kind not in PUBLISHED:  # asks the library, which takes a second
            require_image_text(model, (*PUBLISHED, *FITTED))
        require_vocabulary(model.folder, model.files)

    def load() -> Model:
        device, reader = device_of(options.device), masked or read_photo
        if fitted:
            return FittedCaptioner(model, device, decoding, reader, emotion)
        return Captioner(model, device, decoding, reader, options.dtype)

    described = describe_decoding(decoding, {} if fitted else own_settings(model.folder))
    recorded: dict[str, object] = {"decoding": described, **asdict(decoding)}
    if options.dtype != "float32":
        recorded |= {"decoding": f"{described}, in {options.dtype}", "dtype": options.dtype}
    shown = masking_settings(masked, options)
    if emotion is not None:
        shown = {**shown, "emotion": emotion}
    settings = {"job": JOB, "version": VERSION, **recorded, **shown, "files": model.files}
    store = BlockStore(options.out, settings, model.name)
    return store, describe_share(photos, photo_stamps, store, load, options, options.limit)
