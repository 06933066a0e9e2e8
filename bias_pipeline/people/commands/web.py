"""Commands that serve pages from this machine: ``rate`` asks raters, ``browse`` shows runs."""

from __future__ import annotations

import secrets
import threading
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.commands.labels import add_machine_option
from bias_pipeline.commands.photos import (
    add_masking_options,
    masked_photos,
    masking_of,
    without_settings,
)
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.data.photos import find_photos, read_photo
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import DataError, ResourceError, UsageError, inflect
from bias_pipeline.io.files import write_file
from bias_pipeline.io.machine import WEB
from bias_pipeline.io.terminal import print_out, warn
from bias_pipeline.people.commands.gold_images import check_gold_size, drawn_photos
from bias_pipeline.people.commands.rated_items import (
    check_items,
    consent_text,
    known_answers,
    pair_study,
    rated_captions,
    rating_question,
)
from bias_pipeline.report.caption_pairs import write_pairs
from bias_pipeline.run import compose
from bias_pipeline.run.overrides import quote_value
from bias_pipeline.run.presets import preset
from bias_pipeline.text.descriptions import ConceptTable

if TYPE_CHECKING:
    from bias_pipeline.people.web.captions_behind import CaptionsBehind
    from bias_pipeline.results.rows import Result

Port = Annotated[int, Range(low=0, high=65_535)]
PORT = 8000
LOOPBACK = "127.0.0.1"
_HERE = frozenset({"localhost", LOOPBACK, "[::1]"})
_EVERYWHERE = ("0.0.0.0", "::", "*", "")  # noqa: S104 - refused
_LEAST_TOKEN = 12  # fewest characters of a token


def add_address_options(parser: Parser, others: str) -> None:
    parser.add_argument(
        "--port",
        type=number(Port),
        default=PORT,
        help=f"port; 0: any free port (default: {PORT})",
    )
    parser.add_argument(
        "--host",
        metavar="NAME",
        help=f"name or address under which {others} can reach this machine",
    )
    parser.add_argument(
        "--token",
        nargs="?",
        const="",
        metavar="SECRET",
        help=f"secret that is part of the links for {others}, needed with --host; generated if no "
        "value is given",
    )


def check_address(options: Namespace) -> None:
    refused = {
        "--host takes this machine's name or address in the network": options.host in _EVERYWHERE,
        "--host lets others in and needs --token": options.host and options.token is None,
        f"--token: give {_LEAST_TOKEN} characters or more, or none": options.token
        and len(options.token) < _LEAST_TOKEN,
    }
    for words, applies in refused.items():
        if applies:
            raise UsageError(words)


def token_of(options: Namespace) -> str:
    """The secret token in links; empty if links have no token."""
    return "" if options.token is None else options.token or secrets.token_urlsafe(12)


def hosts_of(options: Namespace) -> frozenset[str]:
    """The host names that may call the page, without ports."""
    return _HERE | ({options.host.lower()} if options.host else frozenset())


_RATE_ABOUT = (
    "Ask people about pictures, captions or both, in a browser; nothing leaves the machine. "
    "Answers are written to answers.csv, which can be the file of labels (dataset.attributes)"
)


def rate_parser() -> Parser:
    parser = Parser(f"{PROGRAM} rate", description=_RATE_ABOUT)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of photos")
    parser.add_argument(
        "--out", type=Path, help="folder for the answers: a new folder, or a study to continue"
    )
    parser.add_argument("--attribute", metavar="NAME", help="ask for the groups of this attribute")
    parser.add_argument(
        "--question",
        metavar="TEXT",
        help="the question that raters see (default: a question about the attribute)",
    )
    parser.add_argument(
        "--answers",
        metavar="A,B,...",
        help='the answers, separated by commas; "cannot tell" is added (default: yes,no)',
    )
    parser.add_argument(
        "--ordinal",
        action="store_true",
        help="treat the answers as ordered: agreement is then Krippendorff's alpha for ordinal "
        "data",
    )
    parser.add_argument("--captions", type=Path, metavar="FILE", help="show these captions")
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help="show the pairs of captions in this table, written by the command 'analysis pairs', "
        "and ask which caption of a pair treats its person differently",
    )
    parser.add_argument(
        "--mask-captions",
        action="store_true",
        help="mask the attribute's words in captions, as metrics with attackers do",
    )
    add_masking_options(parser)
    parser.add_argument(
        "--limit", type=number(Count), metavar="N", help="ask about at most N pictures or captions"
    )
    parser.add_argument(
        "--gold",
        type=Path,
        metavar="FILE",
        help="a table (image_id, value) of items with known answers, which show how reliable "
        "raters are",
    )
    parser.add_argument(
        "--gold-size",
        type=number(Count),
        metavar="N",
        help="draw N photos at random and ask about these; dataset.gold=answers.csv then "
        "corrects the labels of --machine. On half of the photos, machine label and caption "
        "disagree. Raters do not see the captions. answers.csv also has the probability "
        "with which each photo was drawn",
    )
    add_machine_option(parser)
    parser.add_argument(
        "--consent", type=Path, metavar="FILE", help="text to which raters must agree"
    )
    add_address_options(parser, "raters")
    parser.add_argument(
        "--gather",
        type=Path,
        nargs="+",
        metavar="DIR",
        help="print how well the raters of the study in DIR agree, and write how often labels "
        "are wrong; for studies of pairs, also print the raters' answers",
    )
    parser.add_argument(
        "--runs",
        type=Path,
        metavar="DIR",
        help="with --gather and at least three studies of pairs: print how the numbers of "
        "finished runs correlate with the raters' answers",
    )
    return parser


def rate_command(words: Sequence[str]) -> int:
    """Serve the pages of ``rate`` until the process is ended, or print raters' agreement."""
    words, settings = without_settings(words)
    options = rate_parser().parse_args(words)
    if options.gather:
        from bias_pipeline.people.web.summary import agreement_lines, pair_lines, print_correlations

        if options.out or options.folder:
            raise UsageError("--gather DIR takes no photos and no --out")
        for folder in options.gather:
            for line in [*agreement_lines(folder), *pair_lines(folder)]:
                print_out(line)
        if options.runs:
            print_correlations(options.gather, options.runs)
        return 0
    if options.runs:
        raise UsageError("--runs DIR goes with --gather DIR")
    (_check_pairs if options.pairs else _check)(options)
    check_address(options)
    options.masking = masking_of(options, settings)
    WEB.require()
    _serve(options)
    return 0


def _check(options: Namespace) -> None:
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
    check_gold_size(options)


def _check_pairs(options: Namespace) -> None:
    """Refuse options that contradict a study of pairs."""
    others = (
        *("folder", "captions", "attribute", "answers", "ordinal", "mask_captions"),
        *("image_masking", "crop", "regions"),
    )
    given = next((name for name in others if getattr(options, name)), None)
    if given:
        name = "photos" if given == "folder" else f"--{given.replace('_', '-')}"
        raise UsageError(f"--pairs shows two captions and has its own answers; leave {name} out")
    if options.out is None:
        raise UsageError("--out is missing; see --help")


def _serve(options: Namespace) -> None:
    from bias_pipeline.people.web.application import listening, serve
    from bias_pipeline.people.web.rating import RatingPages
    from bias_pipeline.people.web.study import AnswerStore
    from bias_pipeline.people.web.summary import PAIRS_FILE

    study, pairs = pair_study(options) if options.pairs else (_study(options), [])
    host = options.host or LOOPBACK
    with listening(host, options.port) as listener:
        store = AnswerStore(options.out, study)
        if pairs:
            write_file(options.out / PAIRS_FILE, write_pairs(pairs), sync=True)
        try:
            token = token_of(options)
            application = RatingPages(store, token).application(hosts_of(options))
            about = f"({inflect(len(study.images), 'items')})"
            stop = "the same command continues the study"
            serve(application, listener, host, token, about=about, stop=stop)
        finally:
            print_out(f"{options.out / 'answers.csv'}: {inflect(len(store.ratings()), 'answers')}")
            store.close()


def _study(options: Namespace) -> Any:
    from bias_pipeline.people.web.study import Study

    cell = compose.cell([f"attribute={options.attribute}"] if options.attribute else [])
    attribute = cell.build("attribute")
    question = rating_question(options, attribute)
    photos = find_photos(options.folder) if options.folder else {}
    chances = drawn_photos(options, photos) if options.gold_size else {}
    if chances:
        photos = {image: path for image, path in photos.items() if short_id(image) in chances}
    shown = options.captions and not chances
    captions = rated_captions(options, cell, photos) if shown else {}
    masked = masked_photos(options, photos)
    able = {i: path for i, path in photos.items() if masked is None or not masked.absent(path)}
    if len(able) < len(photos):
        print_out(inflect(len(photos) - len(able), "photos have nobody to mask and are not shown"))
    if masked is not None and not able:
        lacking = masked.absent(next(iter(photos.values())))
        raise DataError(
            f"{options.regions} has no {lacking} in any photo of {options.folder}; show the "
            "photos whole, or give a file that has it"
        )
    study = Study(
        question,
        {short_id(image): path for image, path in able.items()},
        captions,
        masked or read_photo,
        str(masked or ""),
        consent_text(options.consent),
        known_answers(options.gold, question, attribute, photos),
        options.limit,
        chances=chances,
    )
    check_items(study, options)
    return study


_COMPOSING = threading.Lock()  # Hydra composes one configuration at a time
_ALIGNMENT = "alignment"  # changes human captions by the words in all captions of the captioner


def browse_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} browse",
        description="Look through finished runs in a browser; nothing is changed and nothing "
        "leaves the machine",
    )
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path("outputs"),
        help="folder of runs (default: outputs)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder with the files that were scored, if you have moved these files",
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="FOLDER",
        help="folder of photos that are named by image id, for runs that scored captions without "
        "pictures",
    )
    add_address_options(parser, "readers")
    return parser


def browse_command(words: list[str]) -> int:
    options = browse_parser().parse_args(words)
    check_address(options)
    if options.data and not options.data.is_dir():
        raise ResourceError(f"--data {options.data} is not a folder")
    WEB.require()
    from bias_pipeline.people.web.application import listening, serve
    from bias_pipeline.people.web.browsing import BrowsePages
    from bias_pipeline.people.web.captions_behind import Library
    from bias_pipeline.people.web.run_folder import RunFolder

    folder = RunFolder(options.folder)
    files = ScoredFiles(options.data, find_photos(options.images) if options.images else {})
    for fault in folder.index.faults:
        warn(fault)
    token = token_of(options)
    pages = BrowsePages(folder, Library(files), token)
    host = options.host or LOOPBACK
    with listening(host, options.port) as listener:
        about = f"({inflect(len(folder.index.runs), 'runs')})"
        application = pages.application(hosts_of(options))
        serve(application, listener, host, token, about=about, stop="runs are only read")
    return 0


@dataclass(frozen=True)
class ScoredFiles:
    """Reads the captions and pictures that a run scored, from the files that its manifest names."""

    # A folder whose files of the same name are read instead; None: no such folder
    data: Path | None = None
    photos: Mapping[str, Path] = field(default_factory=dict)  # photos by image id

    def __call__(self, result: Result) -> CaptionsBehind:
        """The captions and pictures that a run scored, before their digest is checked."""
        from bias_pipeline.people.web.captions_behind import CaptionsBehind

        given = result.facts.overrides
        if given is None:
            raise DataError(
                "this run was made in Python and names no files, so only its numbers are shown"
            )
        words = [word for word in given if not word.startswith("-")]
        with _COMPOSING:
            cell = compose.cell([*map(self._with_moved_file, words), *self._moved_root(words)])
            keys, attribute, metric = cell.keys, cell.build("attribute"), cell.build("metric")
            transforms = getattr(metric, "transforms", ())
            concepts = getattr(metric, "concepts", None)  # the run's concepts, if it has any
            if not isinstance(concepts, ConceptTable):
                concepts = preset({"metric": "descriptions"}).build("metric").concepts
        of_captions = [
            transform
            for number, transform in enumerate(transforms)
            if keys.get(f"transforms.{number}") != _ALIGNMENT
        ]
        return CaptionsBehind(cell.corpus(), attribute, concepts, of_captions, self.photos)

    def _with_moved_file(self, word: str) -> str:
        """An override that replaces a moved file by the file of the same name in the folder."""
        key, equals, value = word.partition("=")
        name = Path(value.strip("'\"")).name
        file = key.startswith("dataset.") or key == "captioner"
        known = self.data is not None and name not in ("", "..") and (self.data / name).exists()
        if not (self.data and equals and file and known):
            return word
        return f"{key}={quote_value(str((self.data / name).absolute()))}"

    def _moved_root(self, words: Sequence[str]) -> list[str]:
        """The override that gives the data set its moved folder, if it has a folder."""
        if self.data is None or "root" not in compose.cell(words).tree["dataset"]:
            return []
        return [f"dataset.root={quote_value(str(self.data.absolute()))}"]
