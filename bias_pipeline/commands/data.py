"""``data``: check, convert, draw and fetch data sets."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np

from bias_pipeline.commands import arguments
from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config.overrides import captioners_in, path_override
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.object_names import ObjectsRead
from bias_pipeline.corpus.pictures import MissingPicture
from bias_pipeline.declared import Count, NotNegative, Range, Seed
from bias_pipeline.errors import (
    BiasPipelineError,
    DataError,
    SweepError,
    UsageError,
    counted,
    did_you_mean,
)
from bias_pipeline.io.digests import digest_mismatch
from bias_pipeline.io.progress import bar, track
from bias_pipeline.io.terminal import print_out, print_table, print_text, warn
from bias_pipeline.text.scored_text import declined_images
from bias_pipeline.vision.photos import fault_of

_SHOWN = 5  # broken pictures by name


def validate_command(words: Sequence[str]) -> int:
    """Read a data set as a run would, pictures included, and print what it contains.

    Args:
        words: overrides, and options of columns; ``captioner=``
            may name several, or ``all``.

    Returns:
        0, or the exit code of the fault; 4 if some of several captioners have one.
    """
    from bias_pipeline.config import compose

    options, words = validate_parser().parse_known_args(list(words))
    words = [*words, *arguments.column_overrides(options)]
    cell = compose.cell([word for word in words if not word.startswith("captioner=")])
    dataset, attribute = cell.build("dataset"), cell.build("attribute")
    names = captioners_in(words) or [dataset.captioners()[0]]
    if names == ["all"]:
        names = dataset.everyone(attribute)
    corpora, faults = [], []
    for name in names:
        try:
            limit = cell.tree.get("limit")
            corpora.append(compose.corpus_of(dataset, name, attribute, limit))
        except BiasPipelineError as error:
            if len(names) == 1:
                raise
            faults.append(f"captioner={name}: {error}")
    if corpora:
        print_inventory(corpora)
        task = compose.cell(["metric=ba_mals"]).build("task")
        _print_unknown_objects(corpora[0], task)
    for fault in faults:
        warn(f"error: {fault}")
    _check_pictures(corpora)
    return SweepError.exit_code if faults else 0


def _print_unknown_objects(corpus: Corpus, vocabulary: TaskVocabulary) -> None:
    """Print every name of objects that no task has, with its number of images."""
    read = ObjectsRead.by(tuple(vocabulary.tasks), corpus.images_by_object, ())
    if read.unknown:
        names = ", ".join(f"{name!r} ({read.images[name]})" for name in read.unknown)
        print_text(f"names of objects that {vocabulary.name} does not have: {names}")


def _check_pictures(corpora: Sequence[Corpus]) -> None:
    """Look for broken and for changed pictures; a run would find them one by one."""
    file_lists = [corpus.pictures.files for corpus in corpora if corpus.pictures is not None]
    files = sorted({file for paths in file_lists for file in paths if isinstance(file, Path)})
    with bar("pictures' digests"):
        changed = digest_mismatch(track(files, len(files)))
    if changed:
        warn(
            f"{counted(len(changed), f'of {len(files)} pictures have')} changed since the last "
            f"reading, although nobody wrote to them: {_named(changed)}; run again what was made "
            "from them, and have the disk checked"
        )
    with bar("pictures"):
        faults = {file: fault_of(file) for file in track(files, len(files))}
    broken = [f"{file} ({fault})" for file, fault in faults.items() if fault]
    if broken:
        raise DataError(
            f"{counted(len(broken), f'of {len(files)} pictures are')} broken: {_named(broken)}; "
            "mend or remove them"
        )


def _named(some: Sequence[object]) -> str:
    return ", ".join([*map(str, some[:_SHOWN]), *(["..."] if len(some) > _SHOWN else [])])


def validate_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} data validate",
        usage="%(prog)s [key=value ...] [options]",
        description="Read a data set as a run would, and print what it contains",
        allow_abbrev=False,
    )
    arguments.add_column_options(parser)
    return parser


T = TypeVar("T")


def convert_command(words: Sequence[str]) -> int:
    """Turn pickles of LIC and JSON files of COCO into Parquet tables."""
    from bias_pipeline.datasets.convert import convert as convert_file

    options = convert_parser().parse_args(list(words))
    for path in options.files:
        for written in convert_file(path, options.out):
            print_out(written)
    return 0


def convert_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} data convert",
        description="Convert pickles of LIC and JSON files of COCO to Parquet",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files to convert")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the Parquet files (.)")
    return parser


_DRAW_ABOUT = (
    "Write the embedded data set with its pictures: the world of people with masks, in COCO's "
    "format, or the affective world, in ArtEmis'"
)


def draw_parser() -> Parser:
    """The options and their help."""
    from bias_pipeline.datasets.scenes import CAPTIONERS
    from bias_pipeline.datasets.scenes.affect_world import AFFECT_CAPTIONERS

    parser = Parser(f"{PROGRAM} data draw", description=_DRAW_ABOUT)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    for name, kind, usual, about in (
        ("n-images", Count, 2000, "number of pictures"),
        ("seed", Seed, 0, "seed of the scenes"),
        ("side", Annotated[int, Range(low=32, high=256)], 128, "of the pictures, in pixels"),
        ("leak", NotNegative, 0.0, "how far the mark of a group extends beyond the person"),
    ):
        parser.add_argument(
            f"--{name}", type=number(kind), default=usual, help=f"{about} ({usual})"
        )
    parser.add_argument(
        "--world", choices=["people", "affect"], default="people", help="which world (people)"
    )
    parser.add_argument(
        "--captioner",
        nargs="+",
        choices=sorted({*CAPTIONERS, *AFFECT_CAPTIONERS}),
        default=["amplifier", "faithful"],
        metavar="NAME",
        help="captioners whose captions are written too (amplifier faithful)",
    )
    return parser


def draw_command(arguments: Sequence[str]) -> int:
    """Draw and write."""
    options = draw_parser().parse_args(list(arguments))
    (_draw_affect if options.world == "affect" else _draw_people)(options)
    return 0


def _draw_affect(options: Namespace) -> None:
    from bias_pipeline.datasets.scenes import write_affect
    from bias_pipeline.datasets.scenes.affect_world import AFFECT_CAPTIONERS

    if options.leak:
        raise UsageError("--leak is for --world people only; leave it out")
    captioners = _dials(options, AFFECT_CAPTIONERS)
    write_affect(options.n_images, options.seed, options.out, captioners, options.side)
    print_out(f"{options.out}: {counted(options.n_images, 'pictures')}, read by")
    pictures = options.out / "wikiart"
    words = shlex.join(
        [path_override("dataset.root", options.out), path_override("dataset.images", pictures)]
    )
    chosen = f"attribute=emotion captioner={options.captioner[0]}"
    print_out(f"  python -m bias_pipeline dataset=artemis {words} {chosen}")


def _draw_people(options: Namespace) -> None:
    from bias_pipeline.datasets.scenes import CAPTIONERS, generate, write_drawn

    captioners = _dials(options, CAPTIONERS)
    world = generate(n_images=options.n_images, seed=options.seed)
    write_drawn(world, options.out, captioners, options.side, options.leak)
    folder, notes = options.out, options.out / "annotations"
    print_out(f"{folder}: {counted(options.n_images, 'pictures')} with masks, read by")
    files = {
        "dataset.attributes": folder / "attributes.csv",
        "dataset.captions": notes / "captions.json",
        "dataset.instances": notes / "instances.json",
        "dataset.images": folder / "images",
        "captioner": folder / "captioners" / f"{options.captioner[0]}.json",
    }
    chosen = shlex.join(path_override(key, path) for key, path in files.items())
    print_out(f"  python -m bias_pipeline dataset=coco {chosen}")


def _dials(options: Namespace, known: Mapping[str, T]) -> dict[str, T]:
    """The dials of the captioners whose captions are written."""
    for name in options.captioner:
        if name not in known:
            raise UsageError(
                f"--captioner {name}: the world {options.world!r} has no such captioner; "
                f"{did_you_mean(name, known)}"
            )
    return {name: known[name] for name in options.captioner}


def fetch_command(words: Sequence[str]) -> int:
    """Print where the files are and their names; download those that anyone may.

    Raises:
        UsageError: if a data set is unknown, or there is a folder but not one data set for it.
        ResourceError: if something could not be downloaded.
    """
    from bias_pipeline.datasets.sources import SOURCES, describe_sources, download

    options = fetch_parser().parse_args(list(words))
    for name in options.names:
        if name not in SOURCES:
            raise UsageError(f"data set {name!r} is unknown; {did_you_mean(name, SOURCES)}")
    if options.out and len(options.names) != 1:
        raise UsageError("--out is the folder of one data set; name one")
    for name in options.names or SOURCES:
        print_out(*describe_sources(name, SOURCES[name]).splitlines(), "")
    if options.out:
        archives = SOURCES[options.names[0]].archives
        written = [path for archive in archives for path in download(archive, options.out)]
        lines = [f"downloaded {path}" for path in written]
        print_out(*(lines or ["nothing was downloaded"]))
    return 0


def fetch_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} data fetch",
        description="Print where to get the published files; with --out, also download those "
        "that anyone may download",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets (all)")
    parser.add_argument("--out", type=Path, help="download into this folder of the data set")
    return parser


def inventory(corpus: Corpus) -> dict[str, str]:
    """Facts on a corpus, name to value, in reading order."""
    facts = {"images": str(len(corpus))}
    for side in SIDES:
        captions = corpus.side(side)
        described = len(np.unique(captions.image_rows))
        facts[f"{side} captions"] = f"{len(captions)} of {described} images"
        facts[f"blank {side} captions"] = _blanks(corpus, side)
    facts["captions that decline"] = str(int(declined_images(corpus).sum()))
    for attribute, grouping in corpus.groupings.items():
        labelled = grouping.codes >= 0
        for code, group in enumerate(grouping.names):
            facts[f"{attribute} {group}"] = str(int((grouping.codes == code).sum()))
        for label, count in sorted(grouping.strata.items()):
            facts[f"{attribute}: {label or 'empty'} (no group)"] = str(count)
        silent = int((~labelled).sum()) - sum(grouping.strata.values())
        if silent:
            facts[f"{attribute}: unlabelled"] = str(silent)
        facts["labelled, with captions of both sides"] = _coverage(corpus, labelled)
    facts["images with objects"] = (
        "objects unknown" if corpus.objects is None else str(sum(map(bool, corpus.objects)))
    )
    if corpus.pictures is not None:
        n_elsewhere = sum(isinstance(file, MissingPicture) for file in corpus.pictures.files)
        shown = "images with boxes alone" if n_elsewhere else "images with a picture"
        facts[shown] = str(int(corpus.pictures.present.sum()))
    return facts


def _blanks(corpus: Corpus, side: str) -> str:
    count = corpus.blanks.get(side, 0)
    return f"{count} ({count / (count + len(corpus.side(side))):.1%})" if count else "0"


def _coverage(corpus: Corpus, labelled: np.ndarray) -> str:
    """How many of the labelled images both sides describe."""
    both = np.ones(len(corpus), bool)
    for side in SIDES:
        both &= np.bincount(corpus.side(side).image_rows, minlength=len(corpus)) > 0
    total = int(labelled.sum())
    share = f" ({(both & labelled).sum() / total:.0%})" if total else ""
    return f"{int((both & labelled).sum())} of {total}{share}"


def print_inventory(corpora: Sequence[Corpus]) -> None:
    """Print the facts, one column a captioner, and the notes of reading."""
    facts: list[Mapping[str, str]] = [inventory(corpus) for corpus in corpora]
    header = [f"dataset {corpora[0].dataset}", *(corpus.captioner for corpus in corpora)]
    names = dict.fromkeys(name for column in facts for name in column)
    print_table(header, [[n, *(column.get(n, "–") for column in facts)] for n in names], keys=1)
    for note in dict.fromkeys(note for corpus in corpora for note in corpus.notes):
        who = ", ".join(corpus.captioner for corpus in corpora if note in corpus.notes)
        print_text(f"{who}: {note}")
