"""``anonymous``: makes pictures without any sign of a group, and finds the groups captions name."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import (
    DataError,
    NotApplicableError,
    ResourceError,
    UsageError,
    cannot_write,
    inflect,
)
from bias_pipeline.io.files import draft_of, replace_file
from bias_pipeline.io.machine import DIFFUSION, REPORT
from bias_pipeline.io.terminal import print_out
from bias_pipeline.run import compose
from bias_pipeline.run.overrides import quote_value

if TYPE_CHECKING:
    from bias_pipeline.corpus.attribute import Attribute
    from bias_pipeline.people.anonymous import AnonymousRow, CorrelationRow
    from bias_pipeline.people.anonymous_pictures import AnonymousPictures

RATING_FOLDER = "filter"  # the folder of raters' answers about the pictures
_LIMIT = 1000  # pictures that the paper keeps
_SIDE, _PER_PROMPT, _STEPS = 128, 10, 50
_SCENES = ("dataset=scenes", "dataset.n_images=200", "dataset.seed=1")
_BUILD_ABOUT = (
    "Make pictures that do not show a person's group: either scenes in which people show no sign "
    "of a group, with captions by the embedded captioners, or pictures by a diffusion pipeline"
)
_FILTER_ABOUT = (
    "Print the command that asks raters whether they can tell the gender or race in each "
    "picture. Once raters have answered, write the pictures in which more than half of the "
    "raters cannot tell to the folder kept and the table kept.csv"
)


def build_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} anonymous build",
        usage="%(prog)s --scenes|--model FOLDER --out DIR [dataset.n_images=N ...] [options]",
        description=_BUILD_ABOUT,
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="dataset.n_images=N",
        help="with --scenes: settings of the data set scenes (default: dataset.n_images=200 "
        "dataset.seed=1)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="a new folder for the pictures; with --model also a folder to continue",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--scenes",
        action="store_true",
        help="draw scenes of the embedded data set, with people who show no sign of a group",
    )
    source.add_argument(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="folder of a diffusion pipeline, saved by diffusers",
    )
    for name, kind, about in (
        (
            "side",
            Annotated[int, Range(low=32, high=256)],
            f"width of scenes in pixels (default: {_SIDE})",
        ),
        ("per-prompt", Count, f"pictures for each prompt (default: {_PER_PROMPT})"),
        ("steps", Count, f"steps of denoising (default: {_STEPS})"),
    ):
        parser.add_argument(f"--{name}", type=number(kind), metavar="N", help=about)
    parser.add_argument(
        "--prompts",
        type=Path,
        metavar="FILE",
        help="a table of prompts with the column prompt (default: our 500 prompts)",
    )
    parser.add_argument(
        "--device", default="auto", help="the device: auto, cpu, cuda, cuda:1, ... (default: auto)"
    )
    return parser


def build_command(words: Sequence[str]) -> int:
    options = build_parser().parse_intermixed_args(list(words))
    source, others = (
        ("scenes", ("per_prompt", "steps", "prompts")) if options.scenes else ("model", ("side",))
    )
    for name in others:
        if getattr(options, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} does not go with --{source}; leave it out"
            )
    (_draw_scenes if options.scenes else _make_pictures)(options)
    print_out(f"  {PROGRAM} anonymous filter {shlex.quote(str(options.out))}")
    return 0


def _draw_scenes(options: Namespace) -> None:
    from bias_pipeline.people.anonymous_pictures import write_unmarked

    for word in options.overrides:
        if not word.lstrip("+~").startswith("dataset.") or "dataset.world=" in word:
            raise UsageError(
                f"{word}: --scenes takes settings of dataset=scenes, such as dataset.n_images=200"
            )
    cell = compose.cell([*_SCENES, *options.overrides])
    scenes = cell.build("dataset")
    names = scenes.all_captioners(cell.build("attribute"))
    with draft_of(options.out) as draft:
        n_pictures = write_unmarked(scenes, draft, names, options.side or _SIDE)
    print_out(f"{options.out}: {inflect(n_pictures, 'pictures')}, captions of {', '.join(names)}")


def _make_pictures(options: Namespace) -> None:
    from bias_pipeline.models.pretrained import device_of
    from bias_pipeline.people.text_to_image import (
        find_image_model,
        make_pictures,
        planned_pictures,
        read_prompts,
        usual_prompts,
    )

    if options.overrides:
        raise UsageError(f"{options.overrides[0]}: --model takes no settings of a data set")
    DIFFUSION.require()
    prompts = read_prompts(options.prompts) if options.prompts else usual_prompts()
    pictures = planned_pictures(prompts, options.per_prompt or _PER_PROMPT)
    model, device = find_image_model(options.model), device_of(options.device)
    made = make_pictures(options.out, model, pictures, device, options.steps or _STEPS)
    before = len(pictures) - made
    print_out(
        f"{options.out}: {inflect(len(pictures), 'pictures')} of {inflect(len(prompts), 'prompts')}"
        + (f", {before} of them made before" if before else "")
    )


def filter_parser() -> Parser:
    parser = Parser(f"{PROGRAM} anonymous filter", description=_FILTER_ABOUT)
    parser.add_argument("folder", type=Path, help="folder written by the command 'anonymous build'")
    parser.add_argument(
        "--limit",
        type=number(Count),
        default=_LIMIT,
        metavar="N",
        help=f"keep at most the first N pictures (default: {_LIMIT})",
    )
    return parser


def filter_command(words: Sequence[str]) -> int:
    from bias_pipeline.data.rating_tables import CANNOT_TELL, rater_answers
    from bias_pipeline.people.anonymous import ANSWERS, QUESTION, filter_pictures
    from bias_pipeline.people.anonymous_pictures import ACCEPTED, built_pictures
    from bias_pipeline.people.web.study import TABLE

    options = filter_parser().parse_args(list(words))
    pictures = built_pictures(options.folder)
    answers = options.folder / RATING_FOLDER
    if not (answers / TABLE).is_file():
        question = ["--question", QUESTION, "--answers", ",".join(ANSWERS)]
        rate = shlex.join([str(pictures.picture_folder), *question, "--out", str(answers)])
        print_out("ask people, then run this command again:", f"  {PROGRAM} rate {rate}")
        return 0
    values = (*ANSWERS, CANNOT_TELL)
    votes = rater_answers(answers / TABLE, "question", values, pictures.photos)
    result = filter_pictures(pictures.photos, votes)
    if not result.retained:
        raise DataError(
            f"{answers / TABLE}: most raters can tell the group in every picture; ask more "
            "raters, or build other pictures"
        )
    images = result.retained[: options.limit]
    pictures.keep(images)
    counts = {
        "cannot tell": len(result.retained),
        **result.dropped,
        "without an answer": result.unanswered,
    }
    of_answers = (
        f"{answer.replace('_', ' ')} {count}" for answer, count in counts.items() if count
    )
    print_out(
        f"{options.folder / ACCEPTED}: "
        f"{inflect(len(images), f'of {len(pictures.photos)} pictures are')} kept; "
        f"{', '.join(of_answers)}"
    )
    print_out(
        "let captioners describe this folder, put their files there as captioners/NAME.json, "
        "and run"
    )
    print_out(f"  {PROGRAM} anonymous score {shlex.quote(str(options.folder))}")
    return 0


ANSWERED, CAPTIONS = "answers", "captions.json"
METRICS = ("lic", "imagecaptioner2")  # the metrics in the columns of Table 5
_SCORE_ABOUT = (
    "Read captions of anonymous pictures (captioners/NAME.json) and the answers of raters who "
    "read these captions. Print how often raters name a group (GT of AnonymousBench), which "
    "groups they name, and how often this is right where the true group is known. With "
    "--reference, attackers that learn from labelled data read the same captions, and "
    "correlations over captioners say how well metrics agree with raters. For captioners without "
    "answers, the command prints how to ask raters"
)


def score_parser() -> Parser:
    parser = Parser(f"{PROGRAM} anonymous score", description=_SCORE_ABOUT)
    parser.add_argument("folder", type=Path, help="folder written by the command 'anonymous build'")
    parser.add_argument(
        "--attribute",
        nargs="+",
        default=["gender"],
        metavar="NAME",
        help="attributes whose groups captions may name (default: gender)",
    )
    parser.add_argument(
        "--reference",
        nargs="+",
        metavar="key=value",
        default=[],
        help="labelled data with captions by the same captioners, given as settings of a run "
        "(dataset=...)",
    )
    parser.add_argument(
        "--metric",
        nargs="+",
        action="append",
        metavar=("lic|imagecaptioner2", "key=value"),
        help="a metric and its settings; the metric's attackers learn from the labelled data. "
        "Repeat the option for more metrics (default: both metrics)",
    )
    parser.add_argument(
        "--runs",
        type=Path,
        metavar="DIR",
        help="folder of finished runs with the metrics' scores on labelled data",
    )
    return parser


def score_command(words: Sequence[str]) -> int:
    from bias_pipeline.people.anonymous import SCORES, write_rows
    from bias_pipeline.people.anonymous_pictures import scored_pictures

    options = score_parser().parse_args(list(words))
    _check(options)
    pictures = scored_pictures(options.folder)
    if not pictures.captioners:
        raise ResourceError(
            f"{options.folder / 'captioners'}: no captions; caption {pictures.picture_folder} and "
            "put each captioner's file there as NAME.json"
        )
    captions = {name: pictures.captions(name) for name in pictures.captioners}
    rows, lines = [], []
    for name in options.attribute:
        of_attribute = _rows(options, name, pictures, captions)
        rows += of_attribute
        if of_attribute:
            lines += _report(options.folder, of_attribute)
    if rows:
        try:
            write_rows(options.folder, rows, lines)
        except OSError as error:
            raise cannot_write(options.folder, error) from error
        print_out(f"{options.folder / SCORES}: {inflect(len(rows), 'rows')}")
    return 0


def _check(options: Namespace) -> None:
    if options.metric and not options.reference:
        raise UsageError("--metric needs --reference: attackers learn from labelled data")
    given = [(f"--metric {name}", settings) for name, *settings in options.metric or ()]
    for name, *_ in options.metric or ():
        if name not in METRICS:
            raise UsageError(f"--metric {name}: name one of {', '.join(METRICS)}")
    for option, settings in [*given, ("--reference", options.reference)]:
        for word in settings:
            if "=" not in word:
                raise UsageError(f"{option} {word}: settings are written key=value")


def _rows(
    options: Namespace,
    attribute_name: str,
    pictures: AnonymousPictures,
    captions: dict[str, dict[str, str]],
) -> list[AnonymousRow]:
    from bias_pipeline.people.anonymous import labelled_rows
    from bias_pipeline.report.page import finished_results

    attribute = compose.cell([f"attribute={attribute_name}"]).build("attribute")
    rows = _people(options.folder, attribute, pictures, captions)
    if options.reference:
        for metric, *settings in options.metric or [[name] for name in METRICS]:
            words = [*options.reference, f"attribute={attribute_name}", f"metric={metric}"]
            rows += _attack_rows(pictures, captions, [*words, *settings])
    if options.runs:
        rows += labelled_rows(finished_results(options.runs), list(captions), attribute_name)
    return rows


def _people(
    folder: Path,
    attribute: Attribute,
    pictures: AnonymousPictures,
    captions: dict[str, dict[str, str]],
) -> list[AnonymousRow]:
    """Rows on groups that raters named; prints how to ask about captioners without answers."""
    from bias_pipeline.data.rating_tables import CANNOT_TELL, rater_answers
    from bias_pipeline.people.anonymous import PEOPLE, anonymous_rows, human_scores
    from bias_pipeline.people.web.study import TABLE

    rows: list[AnonymousRow] = []
    open_questions = []
    truth = pictures.groups(attribute)
    for captioner, texts in captions.items():
        study = folder / ANSWERED / attribute.name / captioner
        if not (study / TABLE).is_file():
            open_questions.append(_rate_command(study, attribute.name, texts))
            continue
        votes = rater_answers(
            study / TABLE, attribute.name, [*attribute.groups, CANNOT_TELL], texts
        )
        if len(votes) < len(texts):
            print_out(f"{captioner}: answers about {len(votes)} of {len(texts)} captions")
        scores = human_scores(votes, attribute.groups, truth)
        rows += anonymous_rows(captioner, attribute.name, PEOPLE, scores)
    if open_questions:
        print_out(f"{attribute.name}: ask people, then run this command again:", *open_questions)
        print_out()
    return rows


def _rate_command(study: Path, attribute: str, captions: dict[str, str]) -> str:
    """The command that asks raters about captions in the folder of the answers."""
    listed = [{"image_id": image, "caption": text} for image, text in captions.items()]
    try:
        study.mkdir(parents=True, exist_ok=True)
        replace_file(study / CAPTIONS, json.dumps(listed).encode())
    except OSError as error:
        raise cannot_write(study, error) from error
    words = ["--captions", str(study / CAPTIONS), "--attribute", attribute, "--out", str(study)]
    return f"  {PROGRAM} rate {shlex.join(words)}"


def _attack_rows(
    pictures: AnonymousPictures, captions: dict[str, dict[str, str]], words: Sequence[str]
) -> list[AnonymousRow]:
    """Rows on the groups that attackers guess from each captioner's captions."""
    from bias_pipeline.people.anonymous import (
        LARGEST,
        anonymous_attack,
        anonymous_corpus,
        anonymous_rows,
    )

    rows: list[AnonymousRow] = []
    for captioner, texts in captions.items():
        cell = compose.cell([*words, f"captioner={quote_value(captioner)}"])
        cell.require()
        reference = cell.corpus()
        attribute = cell.build("attribute").name
        labelled = reference.groupings[attribute].labelled
        both = {reference.ids[row] for row in np.flatnonzero(labelled).tolist()} & set(
            pictures.photos
        )
        if 2 * len(both) > len(pictures.photos):
            raise NotApplicableError(
                f"--reference: {len(both)} of {len(pictures.photos)} anonymous pictures are among "
                "the labelled images; choose other pictures (in scenes another dataset.seed)"
            )
        text: Any = cell.build("text")
        score = anonymous_attack(
            cell.build("metric"),
            [text, cell.build("masking")],
            reference,
            anonymous_corpus(captioner, texts, pictures.photos, text.scored),
            cell.seeds,
        )
        rows += anonymous_rows(captioner, attribute, cell.metric.name, {LARGEST: score})
    return rows


def _report(folder: Path, rows: list[AnonymousRow]) -> list[CorrelationRow]:
    """Print an attribute's numbers and draw its figure; returns the correlations."""
    from bias_pipeline.people.anonymous import (
        correlations,
        figure_of,
        print_correlations,
        print_scores,
        printed_correlations,
        write_figure,
    )
    from bias_pipeline.stats.compare import FEWEST_CORRELATED

    print_scores(rows)
    print_out()
    lines = correlations(rows)
    few = [line for line in lines if line.n_captioners < FEWEST_CORRELATED]
    if few:
        print_out(
            f"a correlation needs {FEWEST_CORRELATED} captioners or more with raters' answers; "
            f"{few[0].metric} has {few[0].n_captioners}"
        )
    if len(few) == len(lines):
        return lines
    lines += printed_correlations(lines)
    print_correlations(lines)
    plot = figure_of(rows, lines)
    if plot is not None and REPORT.is_installed:
        print_out(*write_figure(folder, rows[0].attribute, plot))
    return lines
