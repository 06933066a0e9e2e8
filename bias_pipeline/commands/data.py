"""The command ``data validate``: checks the files of a data set, and prints what they contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bias_pipeline.commands import arguments
from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.object_names import ObjectsRead
from bias_pipeline.corpus.pictures import MissingPicture
from bias_pipeline.data.photos import fault_of
from bias_pipeline.errors import (
    BiasPipelineError,
    DataError,
    SweepError,
    inflect,
)
from bias_pipeline.io.digests import digest_mismatch
from bias_pipeline.io.progress import bar, track
from bias_pipeline.io.terminal import print_text, warn
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Table
from bias_pipeline.run.overrides import captioners_in
from bias_pipeline.text.scored_text import declined_images

_SHOWN = 5  # how many broken pictures are named


def validate_command(words: Sequence[str]) -> int:
    """Read a data set and its pictures as a run would, and print what the data set contains."""
    from bias_pipeline.run import compose

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
        print_inventory({corpus.captioner: corpus for corpus in corpora})
        task = compose.cell(["metric=ba_mals"]).build("task")
        _print_unknown_objects(corpora[0], task)
    for fault in faults:
        warn(f"error: {fault}")
    _check_pictures(corpora)
    return SweepError.exit_code if faults else 0


def _print_unknown_objects(corpus: Corpus, vocabulary: TaskVocabulary) -> None:
    """Print each name of an object that belongs to no task, and the number of its images."""
    read = ObjectsRead.match(tuple(vocabulary.tasks), corpus.images_by_object, ())
    if read.unknown:
        names = ", ".join(f"{name!r} ({read.images[name]})" for name in read.unknown)
        print_text(f"names of objects that {vocabulary.name} does not have: {names}")


def _check_pictures(corpora: Sequence[Corpus]) -> None:
    """Refuse broken pictures, all in one message, and warn of changed pictures."""
    file_lists = [corpus.pictures.files for corpus in corpora if corpus.pictures is not None]
    files = sorted({file for paths in file_lists for file in paths if isinstance(file, Path)})
    with bar("pictures' digests"):
        changed = digest_mismatch(track(files, len(files)))
    if changed:
        warn(
            f"{inflect(len(changed), f'of {len(files)} pictures have')} changed since the last "
            f"reading, although nobody wrote to them: {_first_few(changed)}; repeat what was "
            "computed from them, and have the disk checked"
        )
    with bar("pictures"):
        faults = {file: fault_of(file) for file in track(files, len(files))}
    broken = [f"{file} ({fault})" for file, fault in faults.items() if fault]
    if broken:
        raise DataError(
            f"{inflect(len(broken), f'of {len(files)} pictures are')} broken: "
            f"{_first_few(broken)}; repair or remove them"
        )


def _first_few(some: Sequence[object]) -> str:
    return ", ".join([*map(str, some[:_SHOWN]), *(["..."] if len(some) > _SHOWN else [])])


def validate_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} data validate",
        usage="%(prog)s [key=value ...] [options]",
        description="Read a data set as a run would, and print what it contains",
        allow_abbrev=False,
    )
    arguments.add_column_options(parser)
    return parser


def inventory(corpus: Corpus) -> dict[str, str]:
    """Facts about a corpus, each with its name, in the order in which they are printed."""
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
        both = np.ones(len(corpus), bool)
        for side in SIDES:
            both &= np.bincount(corpus.side(side).image_rows, minlength=len(corpus)) > 0
        total = int(labelled.sum())
        share = f" ({(both & labelled).sum() / total:.0%})" if total else ""
        facts["labelled, with model and human captions"] = (
            f"{int((both & labelled).sum())} of {total}{share}"
        )
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


def print_inventory(corpora: Mapping[str, Corpus]) -> None:
    """Print a table of facts, with a column for each corpus, and the notes on files."""
    facts = {name: inventory(corpus) for name, corpus in corpora.items()}
    dataset = next(iter(corpora.values())).dataset
    names = dict.fromkeys(name for column in facts.values() for name in column)
    rows = [[name, *(column.get(name) for column in facts.values())] for name in names]
    print_table(Table("", [f"dataset {dataset}", *corpora], rows))
    for note in dict.fromkeys(note for corpus in corpora.values() for note in corpus.notes):
        who = ", ".join(name for name, corpus in corpora.items() if note in corpus.notes)
        print_text(f"{who}: {note}")
