"""``caption --server``: captions by a model behind a server, now or by a batch."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from bias_pipeline.captioners.batch_files import (
    BatchAnswers,
    check_ids,
    requests_of,
    write_requests,
)
from bias_pipeline.captioners.chat_server import ChatServer
from bias_pipeline.captioners.served import ServedBar, ServedCaptioner
from bias_pipeline.commands.arguments import Parser, file_of, number
from bias_pipeline.commands.photo_masking import masking_settings
from bias_pipeline.declared import Range
from bias_pipeline.errors import BiasPipelineError, ResourceError, UsageError
from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.runner import (
    ProgressCounts,
    describe_share,
    first_reasons,
    remaining,
)
from bias_pipeline.inference.shards import photo_stamps
from bias_pipeline.io.machine import OPENAI
from bias_pipeline.io.progress import bar, showing, track
from bias_pipeline.io.terminal import print_out
from bias_pipeline.models.generation import usual_prompt
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.vision.masking import MaskedPhotos
from bias_pipeline.vision.photos import UnreadableError

NEW_TOKENS, AT_ONCE, TIMEOUT_S = 256, 8, 120.0
_ONLY_HERE = ("timeout", "longest_side", "to_batch", "from_batch")
Seconds = Annotated[float, Range(above=0, high=86_400)]
Side = Annotated[int, Range(low=16, high=100_000)]
VERSION = 1  # raise it when an answer would become another caption


def add_server_options(parser: Parser) -> None:
    """The options of a server."""
    group = parser.add_argument_group(
        "a server that speaks chat completions (its key is read from OPENAI_API_KEY)"
    )
    group.add_argument(
        "--server",
        metavar="URL",
        help="ask the model behind this address, such as http://localhost:8000/v1; --model is its "
        f"name there, --batch so many requests at once ({AT_ONCE}), --max-new-tokens {NEW_TOKENS}",
    )
    group.add_argument(
        "--timeout",
        type=number(Seconds),
        metavar="S",
        help=f"longest wait for an answer ({TIMEOUT_S:g})",
    )
    group.add_argument(
        "--longest-side",
        type=number(Side),
        metavar="PIXELS",
        help="send larger photos in this size (as they are)",
    )
    group.add_argument(
        "--to-batch",
        type=file_of("JSON Lines", ".jsonl"),
        metavar="FILE",
        help="send nothing; write the requests that are left for a service that takes batches",
    )
    group.add_argument(
        "--from-batch",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="read the answers of such a batch",
    )


def check(options: Namespace) -> None:
    """Refuse what does not fit together.

    Raises:
        UsageError: naming an option.
    """
    given = [name for name in _ONLY_HERE if getattr(options, name) is not None]
    if options.server is None:
        if given:
            raise UsageError(f"{_flag(given[0])} needs --server URL")
        return
    defaults = {"revision": "", "device": "auto", "beams": 1, "dtype": "float32"}
    unfit = [name for name in defaults if getattr(options, name) != defaults[name]]
    if unfit:
        raise UsageError(f"{_flag(unfit[0])}: a server takes none; leave it out")
    if options.to_batch and options.from_batch:
        raise UsageError("--to-batch writes requests, --from-batch reads answers; give one")
    options.chat = ChatServer(options.server, options.model, options.longest_side)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def caption_served(
    options: Namespace, photos: Mapping[str, Path], job: str, masked: MaskedPhotos | None
) -> tuple[BlockStore, ProgressCounts, list[str]]:
    """Caption photos by a server, or read what it answered to a batch.

    Args:
        options: of the command.
        photos: image to file.
        job: the command's name.
        masked: what reads photos masked; None if they are sent whole.

    Returns:
        The blocks, what was done, and lines to report about the answers.

    Raises:
        BiasPipelineError: if the server cannot be used or fails, or a file is broken.
    """
    store, decoding = _store(options, job, masked)
    if options.from_batch:
        check_ids(photos)
        answers = BatchAnswers(options.from_batch, photos, decoding.n)
        tally = describe_share(photos, photo_stamps, store, lambda: answers, options, options.limit)
        return store, tally, answers.counts.sentences()
    OPENAI.require()
    options.threads = options.batch  # each waits for the answers about a photo
    with (
        ServedCaptioner(
            _server(options, masked), decoding, options.batch, options.timeout or TIMEOUT_S
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
    options: Namespace, photos: Mapping[str, Path], job: str, masked: MaskedPhotos | None
) -> None:
    """Write the requests that are left for a service that takes batches.

    Args:
        options: of the command.
        photos: image to file.
        job: the command's name.
        masked: what reads photos masked; None if they are sent whole.

    Raises:
        ResourceError: if a file cannot be written.
        UsageError: if an image's id cannot be told from the number of a caption.
    """
    check_ids(photos)
    store, decoding = _store(options, job, masked)
    server = _server(options, masked)
    store.plan(list(photos))
    images = remaining(photos, photo_stamps, store, options.shard, options.limit).images
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
        print_out(f"{path}: {count} requests")
    if not written:
        print_out("no request is left to write")
    if unreadable:
        print_out(f"{len(unreadable)} cannot be read: {first_reasons(unreadable)}")


def _server(options: Namespace, masked: MaskedPhotos | None) -> ChatServer:
    server: ChatServer = options.chat
    return server if masked is None else replace(server, read=masked)


def _store(
    options: Namespace, job: str, masked: MaskedPhotos | None
) -> tuple[BlockStore, Decoding]:
    """The blocks, which captions by requests and by batches share."""
    decoding: Decoding = options.decoding
    decoding = replace(decoding, prompt=decoding.prompt or usual_prompt(""))
    recorded = {"decoding": str(decoding), **asdict(decoding)}
    shown = masking_settings(masked, options)
    settings = {"job": job, "answers": VERSION, **recorded, **shown, **options.chat.settings}
    return BlockStore(options.out, settings, options.chat.model), decoding
