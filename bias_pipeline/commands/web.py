"""Pages of this machine: ``rate`` asks people, ``browse`` shows finished runs."""

from __future__ import annotations

import secrets
import threading
from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.commands.photos import (
    add_masking_options,
    masked_photos,
    masking_of,
    without_settings,
)
from bias_pipeline.config import compose
from bias_pipeline.config.overrides import quoted
from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.datasets.coco_files import model_captions
from bias_pipeline.datasets.columns import IMAGE, Layout
from bias_pipeline.datasets.image_numbers import noting_names, of_photos
from bias_pipeline.datasets.label_values import recognised
from bias_pipeline.datasets.rating_tables import CANNOT_TELL
from bias_pipeline.datasets.tables import check_file, open_rows
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import DataError, ResourceError, UsageError, counted, did_you_mean
from bias_pipeline.io.machine import WEB
from bias_pipeline.io.terminal import print_out, warn
from bias_pipeline.text.tokenize import tokenize_word
from bias_pipeline.vision.photos import find_photos, read_photo

if TYPE_CHECKING:
    from bias_pipeline.results.rows import Result
    from bias_pipeline.web.captions_behind import CaptionsBehind
    from bias_pipeline.web.study import RatingQuestion

Port = Annotated[int, Range(low=0, high=65_535)]
PORT = 8000
LOOPBACK = "127.0.0.1"
_HERE = frozenset({"localhost", LOOPBACK, "[::1]"})
_EVERYWHERE = ("0.0.0.0", "::", "*", "")  # noqa: S104 - refused
_LEAST_TOKEN = 12  # characters
_ADDED = frozenset({CANNOT_TELL, "cannot tell"})  # to every question's answers


def add_address_options(parser: Parser, others: str) -> None:
    """Add ``--port``, ``--host`` and ``--token``.

    Args:
        parser: of the command.
        others: who reaches it from elsewhere, for the help.
    """
    parser.add_argument(
        "--port", type=number(Port), default=PORT, help=f"port; 0 takes any free one ({PORT})"
    )
    parser.add_argument(
        "--host", metavar="NAME", help=f"name or address of this machine, for {others} elsewhere"
    )
    parser.add_argument(
        "--token",
        nargs="?",
        const="",
        metavar="SECRET",
        help=f"a secret in the links of {others}, needed with --host; without a value one is made",
    )


def check_address(options: Namespace) -> None:
    """Refuse an address that lets others in without a token.

    Raises:
        UsageError: saying what is missing.
    """
    refused = {
        "--host takes the name or address by which others reach this machine": options.host
        in _EVERYWHERE,
        "--host lets others in and needs --token": options.host and options.token is None,
        f"--token: give {_LEAST_TOKEN} characters or more, or none": options.token
        and len(options.token) < _LEAST_TOKEN,
    }
    for words, applies in refused.items():
        if applies:
            raise UsageError(words)


def token_of(options: Namespace) -> str:
    """What links must hold; empty if nothing."""
    return "" if options.token is None else options.token or secrets.token_urlsafe(12)


def hosts_of(options: Namespace) -> frozenset[str]:
    """The names by which the page may be called, without ports."""
    return _HERE | ({options.host.lower()} if options.host else frozenset())


_RATE_ABOUT = (
    "Ask people about pictures, captions or both, in a browser; nothing leaves the machine. "
    "Answers are written to answers.csv, which dataset.attributes reads"
)


def rate_parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} rate", description=_RATE_ABOUT)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of photos")
    parser.add_argument(
        "--out", type=Path, help="folder of the answers; a new one, or one to continue"
    )
    parser.add_argument(
        "--attribute", metavar="NAME", help="ask for this attribute, its groups are the answers"
    )
    parser.add_argument(
        "--question", metavar="TEXT", help="what raters are asked (a question about the attribute)"
    )
    parser.add_argument(
        "--answers",
        metavar="A,B,...",
        help='answers to --question; "cannot tell" is added (yes,no)',
    )
    parser.add_argument(
        "--ordinal",
        action="store_true",
        help="the answers have an order: agreement is Krippendorff's alpha for ordinal data",
    )
    parser.add_argument("--captions", type=Path, metavar="FILE", help="show these captions")
    parser.add_argument(
        "--mask-captions",
        action="store_true",
        help="mask the attribute's words in captions, as for attackers",
    )
    add_masking_options(parser)
    parser.add_argument(
        "--limit", type=number(Count), metavar="N", help="only N pictures or captions"
    )
    parser.add_argument(
        "--gold",
        type=Path,
        metavar="FILE",
        help="items with known answers, which show how reliable raters are: a table of "
        "image_id, value",
    )
    parser.add_argument("--consent", type=Path, metavar="FILE", help="text that raters agree to")
    add_address_options(parser, "raters")
    parser.add_argument(
        "--gather",
        type=Path,
        metavar="DIR",
        help="print how far raters in DIR agree, and write how often labels are wrong",
    )
    return parser


def rate_command(words: Sequence[str]) -> int:
    """Serve pages until the process is ended, or print agreement."""
    words, settings = without_settings(words)
    options = rate_parser().parse_args(words)
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
        "--answers goes with --question; an attribute has its groups as answers": options.answers
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
    from bias_pipeline.web.application import listening, serve
    from bias_pipeline.web.rating import RatingPages
    from bias_pipeline.web.study import AnswerStore

    study = _study(options)
    host = options.host or LOOPBACK
    with listening(host, options.port) as listener:
        store = AnswerStore(options.out, study)
        try:
            token = token_of(options)
            application = RatingPages(store, token).application(hosts_of(options))
            about = f"({counted(len(study.images), 'items')})"
            stop = "the same command continues the study"
            serve(application, listener, host, token, about=about, stop=stop)
        finally:
            print_out(f"{options.out / 'answers.csv'}: {counted(len(store.ratings()), 'answers')}")
            store.close()


def _study(options: Namespace) -> Any:
    """The study that the options describe."""
    from bias_pipeline.web.study import CONSENT, Study

    cell = compose.cell([f"attribute={options.attribute}"] if options.attribute else [])
    attribute = cell.build("attribute")
    question = _question(options, attribute)
    photos = find_photos(options.folder) if options.folder else {}
    captions = _captions(options, cell, photos) if options.captions else {}
    masked = masked_photos(options, photos)
    able = {i: path for i, path in photos.items() if masked is None or not masked.absent(path)}
    if len(able) < len(photos):
        print_out(counted(len(photos) - len(able), "photos have nobody to mask and are not shown"))
    if masked is not None and not able:
        lacking = masked.absent(next(iter(photos.values())))
        raise DataError(
            f"{options.regions} has no {lacking} in any photo of {options.folder}; show them "
            "whole, or give a file that has one"
        )
    study = Study(
        question,
        {short_id(image): path for image, path in able.items()},
        captions,
        masked or read_photo,
        str(masked or ""),
        _text(options.consent) if options.consent else CONSENT,
        _gold(options.gold, question, attribute, photos) if options.gold else {},
        options.limit,
    )
    _check_items(study, options)
    return study


def _question(options: Namespace, attribute: Any) -> Any:
    """About the group of who is shown, or with answers of its own."""
    from bias_pipeline.web.study import NO_ATTRIBUTE, RatingQuestion

    if options.attribute:
        shown = "picture" if options.folder else "caption"
        usual = (
            f"What is the {attribute.name} of the person in the {shown}, as far as you can tell?"
        )
        groups = tuple(attribute.groups)
        return RatingQuestion(options.question or usual, attribute.name, groups, options.ordinal)
    answers = tuple(filter(None, map(str.strip, (options.answers or "yes,no").split(","))))
    if len(set(answers)) < max(2, len(answers)):
        raise UsageError("--answers needs two different answers or more, separated by commas")
    for added in _ADDED & set(answers):
        raise UsageError(f"--answers: {added!r} is always added; leave it out")
    return RatingQuestion(options.question, NO_ATTRIBUTE, answers, options.ordinal)


def _check_items(study: Any, options: Namespace) -> None:
    """Refuse a study without items, or with known answers about none of them."""
    if not study.images:
        shown = options.captions or options.regions
        raise DataError(
            f"{shown} fits none of the photos in {options.folder}; give the file of these photos"
        )
    if not study.gold:
        return
    n_fit = len(study.gold.keys() & set(study.images))
    if not n_fit:
        raise DataError(
            f"{options.gold} has no answers about these items; name them by image_id, as "
            f"{study.images[0]}"
        )
    print_out(
        f"{options.gold}: {counted(n_fit, f'of {len(study.gold)} answers are')} about these items"
    )


def _captions(
    options: Namespace, cell: compose.CellConfig, photos: Collection[str] = ()
) -> dict[str, str]:
    """Image id to caption, masked if wanted."""
    layout = Layout()
    captions = model_captions(check_file(options.captions, "--captions"), None, layout).captions
    whole = of_photos(options.captions, captions, photos, layout) if photos else captions
    read = {image: text for image, text in whole.items() if text.strip()}
    if len(read) < len(whole):
        print_out(counted(len(whole) - len(read), "captions are blank and not shown"))
    if not read:
        raise DataError(f"{options.captions} has no caption with words to show; give another file")
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
        raise DataError(f"{path} is not in UTF-8; save it as UTF-8") from error
    if not text.strip():
        raise DataError(f"{path} is empty; write what raters agree to")
    return text


def _gold(
    path: Path, question: RatingQuestion, attribute: Attribute, photos: Collection[str] = ()
) -> dict[str, str]:
    """Image id to known answer; answers may be written as labels are: "Male", "m", "woman"."""
    what, layout = "known answers: a table of image_id and value", Layout()
    wanted = ("image_id", "value", *layout.wanted(IMAGE))
    rows = open_rows(check_file(path, "--gold"), what=what, wanted=wanted)
    rows.require("image_id", "value")
    first, rows = rows.peek()
    rows = noting_names(rows, first, "image_id", layout)
    lines = [(line, row, rows.text(line, row, "value").strip()) for line, row in rows.items]
    answers = LabelMap("value", {value: value for value in question.values})
    answers, facts = recognised((value for _, _, value in lines), answers, attribute)
    for fact in facts:
        print_out(f"{path}: {fact}")
    known, by_short = dict[str, str](), dict[str, str]()
    for line, row, value in lines:
        if value not in answers.groups:
            hint = did_you_mean(value, tuple(question.values))
            rows.refuse(line, f"{value!r} is not one of the answers; {hint}")
        image, answer = rows.id(line, row, "image_id"), answers.groups[value]
        if by_short.setdefault(short_id(image), answer) != answer:
            rows.refuse(line, f"image id {image} has another answer above; keep one of the lines")
        known[image] = answer
    return of_photos(path, known, photos, layout) if photos else by_short


def _gather(options: Namespace) -> None:
    """Print agreement of the answers of a study, and write how often labels err."""
    from bias_pipeline.web.summary import agreement_lines

    if options.out or options.folder:
        raise UsageError("--gather DIR takes no photos and no --out")
    for line in agreement_lines(options.gather):
        print_out(line)


_COMPOSING = threading.Lock()  # Hydra composes one configuration at a time
_ALIGNMENT = "alignment"  # it changes people's captions, by the words of all of the captioner's


def browse_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} browse",
        description="Look through finished runs in a browser; nothing is changed and nothing "
        "leaves the machine",
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("outputs"), help="folder of runs (outputs)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the files that were scored, if they have moved",
    )
    add_address_options(parser, "readers")
    return parser


def browse_command(words: list[str]) -> int:
    """Serve pages until the process is ended."""
    options = browse_parser().parse_args(words)
    check_address(options)
    if options.data and not options.data.is_dir():
        raise ResourceError(f"--data {options.data} is not a folder")
    WEB.require()
    from bias_pipeline.web.application import listening, serve
    from bias_pipeline.web.browsing import BrowsePages
    from bias_pipeline.web.captions_behind import Library
    from bias_pipeline.web.run_folder import RunFolder

    folder = RunFolder(options.folder)
    for fault in folder.index.faults:
        warn(fault)
    token = token_of(options)
    pages = BrowsePages(folder, Library(ScoredFiles(options.data)), token)
    host = options.host or LOOPBACK
    with listening(host, options.port) as listener:
        about = f"({counted(len(folder.index.runs), 'runs')})"
        application = pages.application(hosts_of(options))
        serve(application, listener, host, token, about=about, stop="runs are only read")
    return 0


@dataclass(frozen=True)
class ScoredFiles:
    """Reads what runs scored, from the files that their manifests name."""

    # Folder in which files of the same name are taken instead; None for none
    data: Path | None = None

    def __call__(self, result: Result) -> CaptionsBehind:
        """What a run scored, not yet checked against its digest."""
        from bias_pipeline.web.captions_behind import CaptionsBehind

        given = result.manifest.get("overrides")
        if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
            raise DataError(
                "this run was made in Python and names no files, so only its numbers are shown"
            )
        words = [word for word in given if not word.startswith("-")]
        with _COMPOSING:
            cell = compose.cell([*map(self._here, words), *self._root(words)])
            keys, attribute = cell.keys, cell.build("attribute")
            transforms = getattr(cell.build("metric"), "transforms", ())
        of_captions = [
            transform
            for number, transform in enumerate(transforms)
            if keys.get(f"transforms.{number}") != _ALIGNMENT
        ]
        return CaptionsBehind(cell.corpus(), attribute, of_captions)

    def _here(self, word: str) -> str:
        """An override of a file, with the file of that name in the folder if there is one."""
        key, equals, value = word.partition("=")
        name = Path(value.strip("'\"")).name
        file = key.startswith("dataset.") or key == "captioner"
        known = self.data is not None and name not in ("", "..") and (self.data / name).exists()
        if not (self.data and equals and file and known):
            return word
        return f"{key}={quoted(str((self.data / name).absolute()))}"

    def _root(self, words: Sequence[str]) -> list[str]:
        """The override of the data set's own folder, if it has one."""
        if self.data is None or "root" not in compose.cell(words).tree["dataset"]:
            return []
        return [f"dataset.root={quoted(str(self.data.absolute()))}"]
