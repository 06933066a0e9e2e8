"""``benchmark``: one row of six numbers about a captioner, on a list of images that never changes.

``benchmark list`` prints the images and how to caption them; ``benchmark table`` joins rows.
"""

from __future__ import annotations

import math
import shlex
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bias_pipeline import __version__
from bias_pipeline.commands import audit
from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.commands.audit import FileSource, reading_notes, slug, source_of_file
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.binary_tables import file_of, stem
from bias_pipeline.data.columns import DECODING
from bias_pipeline.data.label_files import Labels, read_labels
from bias_pipeline.data.photos import find_photos
from bias_pipeline.data.tables import open_rows
from bias_pipeline.errors import (
    BiasPipelineError,
    DataError,
    ResourceError,
    UsageError,
    cannot_write,
    inflect,
)
from bias_pipeline.io.digests import sha256_of
from bias_pipeline.io.files import write_file
from bias_pipeline.io.paths import safe_name
from bias_pipeline.io.terminal import print_out, print_text, warn
from bias_pipeline.metrics.base import UNSURE
from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.report.answers import Answer
from bias_pipeline.report.benchmark import (
    ATTRIBUTE,
    LABELS,
    LEAST,
    LIST,
    METRICS,
    PROMPTS,
    SPLIT,
    VERSION,
    BenchmarkNumber,
    BenchmarkRow,
    Captioned,
    labels_digest,
    listed_images,
    read_row,
    table_notes,
    table_of,
)
from bias_pipeline.report.conclusion_checks import LIMITS
from bias_pipeline.report.screen import print_table
from bias_pipeline.run.audit import Audit, Plan, labelled_corpora, score_plans
from bias_pipeline.run.overrides import quote_value
from bias_pipeline.run.presets import preset

_SEEDS = 2  # as in an audit; counting metrics have no seeds
_ABOUT = f"""\
Score captions of the benchmark's images, and write a row of six numbers. A card says which
images and files these numbers are based on. Each number answers one question of audit. The list
(version {VERSION}) has {{n}} images: those images of COCO val2014 in Karpathy's test part that
people labelled male, female or Unsure (Zhao, Wang and Russakovsky, 2021). Pictures, labels and
captions are not part of this program: name your copies.

examples:
  {PROGRAM} benchmark list --photos val2014 --out listed
  {PROGRAM} benchmark captions.json --attributes coco/attributes/images_val2014.csv \\
    --captions coco/annotations/captions_val2014.json \\
    --objects coco/annotations/instances_val2014.json --out mine
  {PROGRAM} benchmark table mine/row.json yours/row.json
"""
_LIST_ABOUT = f"""\
Print the images of the benchmark as a table. With --photos, make links to the photos in a folder,
and print the commands that caption the photos. Add --to-batch FILE.jsonl to such a command to
write requests for a batch service instead.

examples:
  {PROGRAM} benchmark list > images.csv
  {PROGRAM} benchmark list --photos val2014 --out listed
"""
_TABLE_ABOUT = f"""\
Print rows of the benchmark as one table. Rows are refused if they differ in the version of
the list or of a metric, or if only some rows are about the whole list.

example:
  {PROGRAM} benchmark table */row.json
"""


def command(words: Sequence[str]) -> int:
    options = parser().parse_args(list(words))
    out = options.out or Path("outputs") / f"benchmark-{slug(stem(options.file))}"
    images = "part" if options.part else "list"
    source = _source(options, out)
    labels = _checked_labels(options.attributes, images)
    corpora = labelled_corpora(source)
    corpus = corpora[ATTRIBUTE]
    if images == "list":
        _check_complete(options, corpus)
    warn(*reading_notes(corpora))
    plans = {ATTRIBUTE: Plan([*METRICS.values()], (), _SEEDS, 0.0)}
    result = score_plans(source, corpora, plans, LIMITS)
    row = _row(options, images, result, labels)
    write_file(out / "row.json", row.as_json())
    write_file(out / "card.md", row.as_markdown().encode())
    _print_rows([row])
    print_out(out / "card.md")
    return result.exit_code


def parser() -> Parser:
    about = _ABOUT.format(n=f"{len(listed_images()):,}")
    parser = Parser(
        f"{PROGRAM} benchmark", description=about, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "file", type=Path, help="file with the model's captions, in a form that audit reads"
    )
    for name, metavar, what in (
        ("attributes", "LABELS", "labels of val2014, known by their digest"),
        ("captions", "FILE", "annotators' captions: COCO's captions_val2014.json"),
        ("objects", "FILE", "objects in the images: COCO's instances_val2014.json"),
    ):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar=metavar, help=what)
    parser.add_argument(
        "--part",
        action="store_true",
        help="score the labelled images of val2014 that the file has; use this option if the file "
        "has too few images of the list, and keep such rows in a separate table",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for row.json, card.md and runs (default: outputs/benchmark-NAME)",
    )
    return parser


def _source(options: Namespace, out: Path) -> FileSource:
    """The files as an audit reads them, restricted to the list's images unless --part is given."""
    named = ("attributes", "captions", "objects")
    words = [word for key in named for word in (f"--{key}", str(getattr(options, key)))]
    as_audit = audit.parser().parse_args([f"--only={ATTRIBUTE}", *words, "--", str(options.file)])
    listed = [f"dataset.split_file={quote_value(str(LIST))}", f"dataset.split={SPLIT}"]
    return source_of_file(as_audit, out, [] if options.part else listed)


def _checked_labels(path: Path, images: str) -> Labels:
    """Read the labels; refuse labels that differ from the labels by which the list was made."""
    attribute = preset({"attribute": ATTRIBUTE, "dataset": "coco"}).build("attribute")
    labels = read_labels(path, "coco", attribute, {})
    wanted = listed_images() if images == "list" else [*labels.raw]
    absent = [image for image in wanted if image not in labels.raw]
    if absent:
        raise DataError(
            f"{path}: has no label of {inflect(len(absent), 'images')} of the list, such as "
            f"{absent[0]}; it needs the labels of all images of val2014 ({PROGRAM} data fetch coco)"
        )
    if labels_digest(labels.raw, labels.map, wanted) != LABELS[images]:
        raise DataError(
            f"{path}: its labels are not the labels of version {VERSION} of the benchmark (their "
            "digest differs); use images_val2014.csv as Zhao, Wang and Russakovsky (2021) give "
            "it out"
        )
    return labels


def _check_complete(options: Namespace, corpus: Corpus) -> None:
    """Refuse captions, human captions or objects if they lack too many of the list's images."""
    labelled, unsure = _count_captioned(corpus)
    n, of = labelled.n + unsure.n, labelled.of + unsure.of
    if max(labelled.share, unsure.share) < LEAST:
        raise DataError(
            f"{options.file}: has captions of {n:,} of the {of:,} images of the list, and a row "
            f"needs {LEAST:.0%}; caption the others ({PROGRAM} benchmark list), or give --part "
            "for a row about other images"
        )
    described = len(np.unique(corpus.human.image_rows))
    known = sum(objects is not None for objects in corpus.objects or ())
    for path, count, what in (
        (options.captions, described, "annotators' captions"),
        (options.objects, known, "objects"),
    ):
        if count < LEAST * of:
            raise DataError(
                f"{path}: has {what} of {count:,} of the {of:,} images of the list; name COCO's "
                "whole file of val2014"
            )


def _count_captioned(corpus: Corpus) -> tuple[Captioned, Captioned]:
    """The number of captioned images that have a group, and of captioned images labelled as unsure.

    A caption that declines to describe the image is a caption.
    """
    grouping = corpus.groupings[ATTRIBUTE]
    has = np.zeros(len(corpus), bool)
    has[corpus.model.image_rows] = True
    if len(corpus.declined):
        has |= corpus.declined > 0
    of_group, unsure = grouping.codes >= 0, grouping.unsure
    return (
        Captioned(int((has & of_group).sum()), int(of_group.sum())),
        Captioned(int((has & unsure).sum()), int(unsure.sum())),
    )


def _row(options: Namespace, images: str, result: Audit, labels: Labels) -> BenchmarkRow:
    labelled, unsure = _count_captioned(result.corpora[ATTRIBUTE])
    numbers = {}
    for question, metric in METRICS.items():
        info = infos()[metric]
        answers = [one for one in result.answers_on(ATTRIBUTE) if one.question == question]
        captioned = unsure if info.images == UNSURE else labelled
        number = BenchmarkNumber(reason="no run tests it")
        if images == "list" and captioned.share < LEAST:
            reason = f"captions of {captioned} images, {LEAST:.0%} are needed"
            number = BenchmarkNumber(reason=reason)
        elif answers:
            number = _number(answers[0])
        numbers[question] = replace(number, metric=metric, metric_version=info.version)
    file, facts = file_of(options.file), result.results[0].facts.corpus
    naming = [r for one in result.results for r in one.rows if r.metric == METRICS["naming"]]
    if all(math.isnan(one.value) for one in numbers.values()):
        reasons = "; ".join(f"{question}: {one.reason}" for question, one in numbers.items())
        raise DataError(f"{options.file}: gives none of the numbers: {reasons}")
    return BenchmarkRow(
        captioner=safe_name(stem(options.file)),
        images=images,
        labelled=labelled,
        unsure=unsure,
        numbers=numbers,
        no_group=next((row.neutral_rate for row in naming), math.nan),
        prompt=_prompt_of(options.file),
        captions_sha256=sha256_of(file) if file.is_file() else facts.digest,
        labels_sha256=LABELS[images],
        reference_sha256=facts.reference or "",
        program=__version__,
    )


def _number(answer: Answer) -> BenchmarkNumber:
    judged = answer.answer != "not_tested"
    return BenchmarkNumber(
        part=answer.part,
        value=answer.value,
        ci_low=answer.ci_low,
        ci_high=answer.ci_high,
        unit=answer.unit,
        answer=answer.answer,
        annotators=answer.annotators,
        n_images=answer.n_images,
        coverage=answer.coverage,
        by_group={
            name: (row.value, row.ci_low, row.ci_high) for name, row in answer.by_group.items()
        },
        reason=answer.reason if judged or math.isnan(answer.value) else "",
    )


def _prompt_of(path: Path) -> str:
    """The benchmark's prompt if all captions were made with it; otherwise what the file says."""
    try:
        rows = open_rows(path, what="captions", wanted=(DECODING,))
        written_with = [row.get(DECODING) for _, row in rows.items if isinstance(row, Mapping)]
    except BiasPipelineError:  # such as for a file that is not a table
        written_with = []
    decodings = {str(one or "") for one in written_with} or {""}
    for name, decoding in PROMPTS.items():
        if all(written.startswith(str(decoding)) for written in decodings):
            return f"{name}: {decoding}"
    written = "; ".join(sorted(filter(None, decodings)))
    return f"not the benchmark's: {written}" if written else "the file does not say"


def _print_rows(rows: Sequence[BenchmarkRow]) -> None:
    print_table(table_of(rows))
    for note in table_notes(rows):
        print_text(note)


def list_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} benchmark list",
        description=_LIST_ABOUT,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--photos", type=Path, metavar="FOLDER", help="COCO's photos of val2014")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for links to the photos")
    return parser


def list_command(words: Sequence[str]) -> int:
    options = list_parser().parse_args(list(words))
    if (options.photos is None) != (options.out is None):
        raise UsageError("--photos FOLDER and --out DIR go together; give both, or neither")
    if options.photos is None:
        lines = (f"{image},COCO_val2014_{int(image):012}.jpg" for image in listed_images())
        print_out("image_id,file_name", *lines)
        return 0
    _link_photos(options.photos, options.out)
    print_out(*_commands(options.out))
    return 0


def _link_photos(folder: Path, out: Path) -> None:
    photos, listed = find_photos(folder), listed_images()
    absent = [image for image in listed if image not in photos]
    if absent:
        raise ResourceError(
            f"{folder}: lacks {len(absent):,} of the list's {len(listed):,} photos, such as "
            f"COCO_val2014_{int(absent[0]):012}.jpg; unpack COCO's val2014.zip"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        for image in listed:
            link = out / photos[image].name
            if not link.exists():
                link.symlink_to(photos[image].resolve())
    except OSError as error:
        raise cannot_write(out, error) from error
    print_out(f"{out}: {len(listed):,} photos")


def _commands(folder: Path) -> Iterator[str]:
    """The commands that caption the photos as the benchmark asks."""
    for name, decoding in PROMPTS.items():
        answers = folder.with_name(f"{folder.name}-{name}")
        words = [
            *("caption", str(folder), "--server", "URL", "--model", "NAME"),
            *("--prompt", decoding.prompt, "--max-new-tokens", str(decoding.max_new_tokens)),
            *("--out", str(answers)),
        ]
        yield f"{PROGRAM} {shlex.join(words)}"
        yield f"{PROGRAM} {shlex.join(['caption', '--gather', str(answers)])}"


def table_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} benchmark table",
        description=_TABLE_ABOUT,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "rows", type=Path, nargs="+", help="files row.json, written by the command benchmark"
    )
    return parser


def table_command(words: Sequence[str]) -> int:
    options = table_parser().parse_args(list(words))
    _print_rows([read_row(path) for path in options.rows])
    return 0
