"""``rate``: a page that asks people about pictures or captions, and agreement of their answers."""

from __future__ import annotations

import secrets
import socket
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.commands.photo_masking import (
    add_masking_options,
    masked_photos,
    masking_of,
    without_settings,
)
from bias_pipeline.config import compose
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.datasets.coco_files import model_captions
from bias_pipeline.datasets.tables import check_file, open_rows
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import DataError, ResourceError, UsageError, did_you_mean
from bias_pipeline.io.optional_dependencies import WEB
from bias_pipeline.io.terminal import print_out
from bias_pipeline.text.tokenize import tokenize_word
from bias_pipeline.vision.photos import find_photos, read_photo

Port = Annotated[int, Range(low=0, high=65_535)]
PORT = 8000
_LOOPBACK = "127.0.0.1"
_HERE = frozenset({"localhost", _LOOPBACK, "[::1]"})
_EVERYWHERE = ("0.0.0.0", "::", "*", "")  # noqa: S104 - refused
_LEAST_TOKEN = 12  # characters
_AT_ONCE = 64  # requests
_ABOUT = (
    "Ask people about pictures, captions or both, in a browser; nothing leaves the machine. "
    "Answers are written to answers.csv, which dataset.attributes reads"
)


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} rate", description=_ABOUT)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of photos")
    parser.add_argument("--out", type=Path, help="folder of the study; goes on with one")
    parser.add_argument("--attribute", metavar="NAME", help="ask for this attribute's groups")
    parser.add_argument("--question", metavar="TEXT", help="ask this (a question of the attribute)")
    parser.add_argument(
        "--answers", metavar="A,B,...", help='of --question; "cannot tell" is added (yes,no)'
    )
    parser.add_argument(
        "--ordinal", action="store_true", help="the answers are ordered, for alpha of ranks"
    )
    parser.add_argument("--captions", type=Path, metavar="FILE", help="show these captions")
    parser.add_argument(
        "--mask-captions",
        action="store_true",
        help="mask the attribute's words in captions, as for attackers",
    )
    add_masking_options(parser)
    parser.add_argument("--limit", type=number(Count), metavar="N", help="only N items")
    parser.add_argument(
        "--gold", type=Path, metavar="FILE", help="known answers: a table of image_id, value"
    )
    parser.add_argument("--consent", type=Path, metavar="FILE", help="text that raters agree to")
    parser.add_argument(
        "--port", type=number(Port), default=PORT, help=f"0 takes any free one ({PORT})"
    )
    parser.add_argument(
        "--host", metavar="NAME", help="name or address of this machine, for raters elsewhere"
    )
    parser.add_argument(
        "--token",
        nargs="?",
        const="",
        metavar="SECRET",
        help="what raters' links must hold, needed with --host; one is made if none is given",
    )
    parser.add_argument(
        "--gather", type=Path, metavar="DIR", help="print agreement of the answers in DIR"
    )
    return parser


def command(words: Sequence[str]) -> int:
    """Serve pages until the process is ended, or print agreement; returns the exit code.

    Raises:
        BiasPipelineError: if something is missing, does not fit or cannot be read.
    """
    words, settings = without_settings(words)
    options = parser().parse_args(words)
    if options.gather:
        _gather(options)
        return 0
    _check(options)
    options.masking = masking_of(options, settings)
    WEB.require()
    _serve(options)
    return 0


def _check(options: Namespace) -> None:
    """Refuse words that do not fit together."""
    alone = options.folder is None
    masks = options.image_masking or options.crop or options.regions
    refused = {
        "name a folder of photos, --captions FILE, or both; see --help": alone
        and options.captions is None,
        "--out is missing; see --help": options.out is None,
        "name what is asked: --attribute NAME or --question TEXT": not (
            options.attribute or options.question
        ),
        "--answers are those of --question; an attribute has its groups": options.answers
        and options.attribute,
        "--mask-captions needs --captions FILE and --attribute NAME": options.mask_captions
        and not (options.attribute and options.captions),
        "--image-masking, --crop and --regions need a folder of photos": alone and masks,
        "--host takes the name or address by which raters reach this machine": options.host
        in _EVERYWHERE,
        "--host lets others in and needs --token": options.host and options.token is None,
        f"--token: give {_LEAST_TOKEN} characters or more, or none": options.token
        and len(options.token) < _LEAST_TOKEN,
    }
    for words, applies in refused.items():
        if applies:
            raise UsageError(words)


def _serve(options: Namespace) -> None:
    import uvicorn

    from bias_pipeline.web.answers import AnswerStore
    from bias_pipeline.web.rating import RatingPages

    study = _study(options)
    with _listening(options) as listener:
        port = listener.getsockname()[1]
        store = AnswerStore(options.out, study)
        try:
            token = "" if options.token is None else options.token or secrets.token_urlsafe(12)
            pages = RatingPages(store, token)
            hosts = _HERE | ({options.host.lower()} if options.host else set())
            config = uvicorn.Config(
                pages.application(frozenset(hosts)),
                log_level="error",
                access_log=False,
                limit_concurrency=_AT_ONCE,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=2,
            )
            link = f"http://{options.host or _LOOPBACK}:{port}/"
            print_out(f"{link}{f'?token={token}' if token else ''}  ({len(study.images)} items)")
            print_out("stop with Ctrl-C; the same command goes on")
            sys.stdout.flush()
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            print_out(f"{options.out / 'answers.csv'}: {len(store.ratings())} answers")
            store.close()


def _listening(options: Namespace) -> socket.socket:
    """A socket at the address."""
    place = (options.host or _LOOPBACK, options.port)
    try:
        return socket.create_server(place)
    except OSError as error:
        raise ResourceError(
            f"{place[0]}:{place[1]} cannot be used ({error.strerror or error}); choose another "
            "--port, or 0 for any"
        ) from error


def _study(options: Namespace) -> Any:
    """The study that the options describe."""
    from bias_pipeline.web.study import CONSENT, RatingQuestion, Study

    cell = compose.cell([f"attribute={options.attribute}"] if options.attribute else [])
    attribute = cell.build("attribute")
    if options.attribute:
        shown = "picture" if options.folder else "caption"
        usual = (
            f"What is the {attribute.name} of the person in the {shown}, as far as you can tell?"
        )
        groups = tuple(attribute.groups)
        question = RatingQuestion(
            options.question or usual, attribute.name, groups, options.ordinal
        )
    else:
        answers = tuple(filter(None, map(str.strip, (options.answers or "yes,no").split(","))))
        if len(set(answers)) < max(2, len(answers)):
            raise UsageError("--answers takes two different answers or more, with commas between")
        question = RatingQuestion(options.question, "question", answers, options.ordinal)
    photos = find_photos(options.folder) if options.folder else {}
    captions = _captions(options, cell) if options.captions else {}
    masked = masked_photos(options, photos)
    able = {i: path for i, path in photos.items() if masked is None or not masked.absent(path)}
    if len(able) < len(photos):
        print_out(f"{len(photos) - len(able)} photos have nobody to mask; they are not shown")
    study = Study(
        question,
        {short_id(image): path for image, path in able.items()},
        captions,
        masked or read_photo,
        str(masked or ""),
        _text(options.consent) if options.consent else CONSENT,
        _gold(options.gold, tuple(question.values)) if options.gold else {},
        options.limit,
    )
    if not study.images:
        shown = options.captions or options.regions
        raise DataError(f"{shown}: fits none of the photos in {options.folder}; nothing is left")
    return study


def _captions(options: Namespace, cell: compose.CellConfig) -> dict[str, str]:
    """Image id to caption, masked if wanted."""
    read = model_captions(check_file(options.captions, "--captions"), None).captions
    texts = list(read.values())
    if options.mask_captions:
        masked = cell.build("masking").mask(Captions.from_texts(texts).rewrite(_tokens))
        texts = [masked.text(row) for row in range(len(masked))]
    return {short_id(image): text for image, text in zip(read, texts, strict=True)}


def _tokens(word: str) -> list[str]:
    return tokenize_word(word.lower(), keep_punctuation=True, keep_unknown=True)


def _text(path: Path) -> str:
    try:
        text = check_file(path, "--consent").read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is no text in UTF-8") from error
    if not text.strip():
        raise DataError(f"{path}: is empty; write what raters agree to")
    return text


def _gold(path: Path, answers: Sequence[str]) -> dict[str, str]:
    """Image id to known answer."""
    what = "known answers: a table of image_id and value"
    rows = open_rows(check_file(path, "--gold"), what=what, wanted=("image_id", "value"))
    for column in ("image_id", "value"):
        rows.require(column)
    known: dict[str, str] = {}
    for line, row in rows.items:
        value = rows.text(line, row, "value")
        if value not in answers:
            rows.refuse(line, f"{value!r} is none of the answers; {did_you_mean(value, answers)}")
        known[short_id(rows.id(line, row, "image_id"))] = value
    return known


def _gather(options: Namespace) -> None:
    """Print agreement of the answers of a study."""
    from bias_pipeline.web.summary import agreement_lines

    if options.out or options.folder:
        raise UsageError("--gather DIR takes no photos and no --out")
    for line in agreement_lines(options.gather):
        print_out(line)
