"""``caption``: captions photos with a model on this machine or behind a server, in many tasks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from bias_pipeline.commands.arguments import Parser, file_of, number
from bias_pipeline.commands.photos import (
    BATCH,
    add_masking_options,
    check_photo_options,
    masked_photos,
    masking_of,
    masking_settings,
    photo_parser,
    without_settings,
)
from bias_pipeline.data.image_masking import MaskedPhotos
from bias_pipeline.data.photos import UnreadableError, find_photos, read_photo
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import BiasPipelineError, ResourceError, UsageError, inflect
from bias_pipeline.io.machine import OPENAI
from bias_pipeline.io.progress import bar, showing, track
from bias_pipeline.io.terminal import print_out, refuse_secrets
from bias_pipeline.models.blocks import BlockStore, photo_stamps
from bias_pipeline.models.generation import KINDS as PUBLISHED
from bias_pipeline.models.generation import Captioner, usual_prompt
from bias_pipeline.models.merge_shards import all_empty, gather, write_gathered_captions
from bias_pipeline.models.model_location import require_vocabulary
from bias_pipeline.models.picture_text import require_image_text
from bias_pipeline.models.pretrained import device_of, find_pretrained
from bias_pipeline.models.runner import (
    Model,
    ProgressCounts,
    describe_share,
    first_reasons,
    remaining,
    report_progress,
)
from bias_pipeline.models.sampling import Decoding, describe_decoding, own_settings
from bias_pipeline.pictures.captioners.batch_files import (
    BatchAnswers,
    check_ids,
    requests_of,
    write_requests,
)
from bias_pipeline.pictures.captioners.chat_server import ChatServer
from bias_pipeline.pictures.captioners.fitted import KINDS as FITTED
from bias_pipeline.pictures.captioners.fitted import FittedCaptioner, check_emotion, read_emotion
from bias_pipeline.pictures.captioners.served import GIVE_UP_S, ServedBar, ServedCaptioner

NewTokens = Annotated[int, Range(low=1, high=4096)]
Beams = Annotated[int, Range(low=1, high=1000)]
Number = Annotated[int, Range(low=1, high=1000)]
Temperature = Annotated[float, Range(low=0, high=100)]
Seed = Annotated[int, Range(low=0, high=2**32 - 1)]
_ABOUT = (
    "Caption photos with any image-text model of transformers, a captioner trained by fit, or a "
    "model behind a server; the work can be split over parallel jobs"
)
JOB = "caption"
NEW_TOKENS = 30
VERSION = 2  # raise it when the same model would write other captions


def command(words: Sequence[str]) -> int:
    options = options_of(words)
    if options.gather:
        gathered = gather(options, JOB, "captions.json")
        print_out(f"{gathered.out}: {write_gathered_captions(gathered)}")
    elif options.to_batch:
        photos = find_photos(options.folder)
        write_batch(options, photos, masked_photos(options, photos))
    else:
        write_captions(options)
    return 0


def parser() -> Parser:
    parser = photo_parser(JOB, _ABOUT, "JSON file")
    parser.add_argument(
        "--prompt",
        default="",
        help="a question to the model, or the beginning of every caption; this text is removed "
        "from the captions in the file (default: nothing for BLIP, GIT and "
        "vision-encoder-decoder, the authors' prompt for BLIP-2, Florence-2 and PaliGemma, "
        "a question for all others)",
    )
    for name, kind, usual, about in (
        ("max-new-tokens", NewTokens, None, f"most tokens of a caption (default: {NEW_TOKENS})"),
        ("beams", Beams, 1, "beams of beam search; 1 is greedy decoding (default: 1)"),
        (
            "temperature",
            Temperature,
            0.0,
            "sample words at this temperature; 0 does not sample (default: 0)",
        ),
        ("seed", Seed, 0, "seed of the sampling (default: 0)"),
        (
            "n",
            Number,
            1,
            "captions for each photo: samples, or the best of as many --beams (default: 1)",
        ),
    ):
        parser.add_argument(f"--{name}", type=number(kind), default=usual, help=about)
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16"),
        default="float32",
        help="precision of the computation; bfloat16 is for GPUs and takes half the memory, but "
        "single words may then depend on the batch size (default: float32)",
    )
    parser.add_argument(
        "--limit",
        type=number(Count),
        metavar="N",
        help="caption only the first N photos; with --shard, caption the first N photos of the "
        "share",
    )
    add_masking_options(parser)
    parser.add_argument(
        "--emotion",
        metavar="NAME|predicted|FILE",
        help="the emotion that captions should express: a name, the word predicted (each photo's "
        "predicted emotion), or a table with the columns image_id and emotion; only for "
        "captioners fitted with encoder.grounding=emotion",
    )
    add_server_options(parser)
    parser.set_defaults(batch=None)
    return parser


def options_of(words: Sequence[str]) -> Namespace:
    words, settings = without_settings(words)
    options = parser().parse_args(words)
    check_photo_options(options, "folder")
    if options.gather:
        return options
    refuse_secrets({"--model": str(options.model), "--prompt": options.prompt})
    options.masking = masking_of(options, settings)
    check_server_options(options)
    served = options.server is not None
    if served and options.emotion is not None:
        raise UsageError("--emotion is for a captioner of fit sat; leave it out with --server")
    if options.batch is None:
        options.batch = AT_ONCE if served else BATCH
    if options.max_new_tokens is None:
        options.max_new_tokens = SERVED_TOKENS if served else NEW_TOKENS
    options.decoding = Decoding(
        prompt=options.prompt,
        max_new_tokens=options.max_new_tokens,
        beams=options.beams,
        n=options.n,
        temperature=options.temperature,
        seed=options.seed if options.temperature else 0,
    )
    return options


def write_captions(options: Namespace) -> BlockStore:
    photos = find_photos(options.folder)
    masked = masked_photos(options, photos)
    lines: list[str] = []
    if options.server is None:
        store, tally = _caption_here(options, photos, masked)
    else:
        store, tally, lines = caption_served(options, photos, masked)
    n_written = options.n * (tally.described - len(tally.unreadable))
    if tally.empty and tally.empty == n_written:
        for line in lines:
            print_out(line)
        raise all_empty(store, tally.empty)
    report_progress(tally, "images", JOB, store, lines)
    return store


def _caption_here(
    options: Namespace, photos: Mapping[str, Path], masked: MaskedPhotos | None
) -> tuple[BlockStore, ProgressCounts]:
    model = find_pretrained(options.model, None, revision=options.revision)
    fitted = model.kind in FITTED
    decoding: Decoding = options.decoding
    if fitted and options.prompt:
        raise UsageError(f"{model.name}: a {model.kind} takes no prompt; leave out --prompt")
    if fitted and options.dtype != "float32":
        raise UsageError(f"{model.name}: a {model.kind} computes in float32; leave out --dtype")
    emotion = None if options.emotion is None else read_emotion(options.emotion)
    if not fitted:
        check_emotion(model.name, (), emotion)
        decoding = replace(decoding, prompt=decoding.prompt or usual_prompt(model.kind))
        if model.kind not in PUBLISHED:  # importing the library takes a second
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


SERVED_TOKENS, AT_ONCE, TIMEOUT_S = 256, 8, 120.0
_ONLY_HERE = ("timeout", "give_up", "longest_side", "to_batch", "from_batch")
Seconds = Annotated[float, Range(above=0, high=86_400)]
Side = Annotated[int, Range(low=16, high=100_000)]
SERVED_VERSION = 1  # raise it when an answer would become another caption


def add_server_options(parser: Parser) -> None:
    group = parser.add_argument_group(
        "a server that speaks chat completions (its key is read from OPENAI_API_KEY)"
    )
    group.add_argument(
        "--server",
        metavar="URL",
        help="send photos to the server at this address, such as http://localhost:8000/v1; "
        "--model is then the name of the model on the server, --batch is how many requests "
        f"are sent at once (default: {AT_ONCE}), and --max-new-tokens is {SERVED_TOKENS} by "
        "default",
    )
    group.add_argument(
        "--timeout",
        type=number(Seconds),
        metavar="S",
        help=f"longest wait for an answer, in seconds (default: {TIMEOUT_S:g})",
    )
    group.add_argument(
        "--give-up",
        type=number(Seconds),
        metavar="S",
        help="stop if the server fails and then does not answer for this many seconds "
        f"(default: {GIVE_UP_S:g})",
    )
    group.add_argument(
        "--longest-side",
        type=number(Side),
        metavar="PIXELS",
        help="longest side of photos in pixels; larger photos are shrunk before they are sent "
        "(default: no shrinking)",
    )
    group.add_argument(
        "--to-batch",
        type=file_of("JSON Lines", ".jsonl"),
        metavar="FILE",
        help="send nothing; write the requests that have no answer yet to FILE, for a service "
        "that takes batches",
    )
    group.add_argument(
        "--from-batch",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="read the answers to the requests that --to-batch wrote",
    )


def check_server_options(options: Namespace) -> None:
    given = [name for name in _ONLY_HERE if getattr(options, name) is not None]
    if options.server is None:
        if given:
            raise UsageError(f"{_flag(given[0])} needs --server URL")
        return
    defaults = {"revision": "", "device": "auto", "beams": 1, "dtype": "float32"}
    unfit = [name for name in defaults if getattr(options, name) != defaults[name]]
    if unfit:
        raise UsageError(f"{_flag(unfit[0])} does not go with --server; leave it out")
    if options.to_batch and options.from_batch:
        raise UsageError("--to-batch writes requests, --from-batch reads answers; give one")
    options.chat = ChatServer(options.server, options.model, options.longest_side)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def caption_served(
    options: Namespace, photos: Mapping[str, Path], masked: MaskedPhotos | None
) -> tuple[BlockStore, ProgressCounts, list[str]]:
    store, decoding = _store(options, masked)
    if options.from_batch:
        check_ids(photos)
        answers = BatchAnswers(options.from_batch, photos, decoding.n)
        tally = describe_share(photos, photo_stamps, store, lambda: answers, options, options.limit)
        if tally.unreadable and len(tally.unreadable) == tally.described:
            named = ", ".join(map(str, options.from_batch))
            raise ResourceError(
                f"{named}: no answer is a caption: {first_reasons(tally.unreadable)}"
            )
        return store, tally, answers.counts.sentences()
    OPENAI.require()
    options.threads = 2 * options.batch  # a thread for each photo whose request is sent or waits
    with (
        ServedCaptioner(
            _server(options, masked),
            decoding,
            options.batch,
            options.timeout or TIMEOUT_S,
            options.give_up or GIVE_UP_S,
        ) as captioner,
        showing(ServedBar(captioner)),
    ):
        try:
            tally = describe_share(
                photos, photo_stamps, store, captioner.start, options, options.limit
            )
        except BiasPipelineError:
            for line in captioner.sentences():
                print_out(line)
            raise
    if tally.unreadable and not captioner.n_captions:
        raise ResourceError(f"no photo has a caption: {first_reasons(tally.unreadable)}")
    return store, tally, captioner.sentences()


def write_batch(
    options: Namespace, photos: Mapping[str, Path], masked: MaskedPhotos | None
) -> None:
    check_ids(photos)
    store, decoding = _store(options, masked)
    server = _server(options, masked)
    images = remaining(photos, photo_stamps, store, options.shard, options.limit).images
    store.plan(list(photos))
    unreadable: dict[str, str] = {}

    def requests() -> Iterator[bytes]:
        for image in track(images, len(images)):
            try:
                picture = server.picture(photos[image])
            except UnreadableError as error:
                unreadable[image] = str(error)
            else:
                yield from requests_of(image, picture, server, decoding)

    with bar("requests"):
        written = write_requests(requests(), options.to_batch)
    for path, count in written.items():
        print_out(f"{path}: {inflect(count, 'requests')}")
    if not written:
        print_out("no request is left to write")
    if unreadable:
        print_out(f"{len(unreadable)} cannot be read: {first_reasons(unreadable)}")


def _server(options: Namespace, masked: MaskedPhotos | None) -> ChatServer:
    server: ChatServer = options.chat
    return server if masked is None else replace(server, read=masked)


def _store(options: Namespace, masked: MaskedPhotos | None) -> tuple[BlockStore, Decoding]:
    """The store of blocks and the decoding, which requests and batches share."""
    decoding: Decoding = options.decoding
    decoding = replace(decoding, prompt=decoding.prompt or usual_prompt(""))
    recorded = {"decoding": str(decoding), **asdict(decoding)}
    shown = masking_settings(masked, options)
    settings = {"job": JOB, "answers": SERVED_VERSION, **recorded, **shown, **options.chat.settings}
    return BlockStore(options.out, settings, options.chat.model), decoding
