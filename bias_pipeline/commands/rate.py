"""``rate``: a page that asks people about pictures or captions, and agreement of their answers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.commands.photo_masking import (
    add_masking_options,
    masked_photos,
    masking_of,
    without_settings,
)
from bias_pipeline.commands.serving import (
    add_address_options,
    check_address,
    hosts_of,
    listening,
    serve,
    token_of,
)
from bias_pipeline.config import compose
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.datasets.coco_files import model_captions
from bias_pipeline.datasets.tables import check_file, open_rows
from bias_pipeline.declared import Count
from bias_pipeline.errors import DataError, UsageError, did_you_mean
from bias_pipeline.io.machine import WEB
from bias_pipeline.io.terminal import print_out
from bias_pipeline.text.tokenize import tokenize_word
from bias_pipeline.vision.photos import find_photos, read_photo

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
    add_address_options(parser, "raters")
    parser.add_argument(
        "--gather",
        type=Path,
        metavar="DIR",
        help="print agreement of the answers in DIR, and write how often labels err",
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
    }
    for words, applies in refused.items():
        if applies:
            raise UsageError(words)
    check_address(options)


def _serve(options: Namespace) -> None:
    from bias_pipeline.web.rating import RatingPages
    from bias_pipeline.web.study import AnswerStore

    study = _study(options)
    with listening(options) as listener:
        store = AnswerStore(options.out, study)
        try:
            token = token_of(options)
            application = RatingPages(store, token).application(hosts_of(options))
            about, stop = f"({len(study.images)} items)", "the same command goes on"
            serve(application, listener, options, token, about=about, stop=stop)
        finally:
            print_out(f"{options.out / 'answers.csv'}: {len(store.ratings())} answers")
            store.close()


def _study(options: Namespace) -> Any:
    """The study that the options describe."""
    from bias_pipeline.web.study import CONSENT, NO_ATTRIBUTE, RatingQuestion, Study

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
        question = RatingQuestion(options.question, NO_ATTRIBUTE, answers, options.ordinal)
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
    if study.gold and study.gold.keys().isdisjoint(study.images):
        raise DataError(
            f"{options.gold}: has answers about none of the items; name them by image_id, as "
            f"{study.images[0]}"
        )
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
    """Print agreement of the answers of a study, and write how often labels err."""
    from bias_pipeline.web.summary import agreement_lines

    if options.out or options.folder:
        raise UsageError("--gather DIR takes no photos and no --out")
    for line in agreement_lines(options.gather):
        print_out(line)
