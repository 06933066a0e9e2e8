"""``doctor``: says what files are, what can be measured with them, and what this machine has.

Packages are imported when they are needed, since ``doctor --requirements`` runs on machines
where nothing else is installed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError, UsageError, inflect
from bias_pipeline.io import installation, plugins
from bias_pipeline.io.terminal import print_out

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus

MODEL, PEOPLE, LABELS, OBJECTS, PHOTOS, RUNS = (
    "captions of a model",
    "human captions",
    "labels",
    "objects",
    "photos",
    "finished runs",
)
# By kind of file, the option of audit that takes it
_OPTIONS = {LABELS: "--attributes", PEOPLE: "--captions", OBJECTS: "--objects", PHOTOS: "--images"}
_GPUS = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
_SECONDS = 5  # how long a program of another package may take to answer


def command(words: list[str]) -> int:
    """Print what files are and which questions they allow, or what this machine has."""
    options = parser().parse_args(words)
    if options.requirements and options.files:
        raise UsageError("--requirements takes no files; call doctor once for each")
    if options.requirements:
        lines = installation.requirements_of_audit()
        if not lines:
            raise ResourceError(
                "bias_pipeline is not installed, so what it requires is not known: pip install "
                "--no-deps bias_pipeline, or in a checkout pip install --no-deps -e ."
            )
        print_out(*lines)
    elif options.files:
        _examine(options.files)
    else:
        print_out(*environment())
    return 0


def parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} doctor",
        description="Say what files are, which questions they allow, what other questions need, "
        "and what to type next; without files, say what this machine has",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files and folders")
    parser.add_argument(
        "--requirements",
        choices=["audit"],
        help="print the packages that audit, compare and report need, in a form for 'pip install "
        "-r'; PyTorch is not among them",
    )
    return parser


def environment() -> list[str]:
    """Lines on packages, published weights and other programs."""
    return [
        *installation.versions(),
        "",
        *_extras(),
        "",
        *plugins.plugin_lines(),
        f"published weights: {_weights()}",
        f"GPU: {'; '.join(_program_output(*_GPUS)) or 'none found'}",
        f"Java (for METEOR): {_first_line(_program_output('java', '-version'))}",
        f"Slurm: {_first_line(_program_output('sbatch', '--version'))}",
        f"W&B: {_wandb()}",
    ]


def _extras() -> Iterator[str]:
    """A line for each extra: what it is for, and how to install it."""
    from bias_pipeline.io.machine import extras

    for name, group in extras().items():
        absent = [extra.purpose for extra in group if not extra.is_installed]
        lacks = f"absent, for {', '.join(absent)}: pip install 'bias_pipeline[{name}]'"
        yield f"extra {name}: {lacks if absent else 'installed'}"


def _weights() -> str:
    """A line that counts how many models of ``models list`` this machine has."""
    if find_spec("huggingface_hub") is None:
        return "none can be read: transformers is not installed"
    from bias_pipeline.models.model_location import encoder_needs, find_place, metric_needs

    names = {
        need.model: need.revision for need in (*encoder_needs().values(), *metric_needs().values())
    }
    there = []
    for name, revision in names.items():
        try:
            find_place(name, revision)
        except ResourceError:
            continue
        there.append(name)
    here = ", ".join(there) or "none"
    return f"{here} of {len(names)} that encoders and metrics name ({PROGRAM} models list)"


def _first_line(lines: Sequence[str]) -> str:
    return lines[0] if lines else "absent"


def _program_output(*words: str) -> list[str]:
    """The lines that a program prints; empty if the program is absent or fails."""
    if shutil.which(words[0]) is None:
        return []
    try:
        done = subprocess.run(  # noqa: S603 - programs of this machine, without input
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (subprocess.SubprocessError, OSError):
        return []
    return done.stdout.splitlines()


def _wandb() -> str:
    """Whether runs can be written for W&B, and where they go."""
    from bias_pipeline.run.loggers import has_key

    try:
        version = metadata.version("wandb")
    except metadata.PackageNotFoundError:
        return "wandb is not installed; logger=csv writes results"
    mode = os.environ.get("WANDB_MODE", "offline")
    return f"wandb {version}, {'with' if has_key() else 'without'} a key, mode {mode}"


@dataclass(frozen=True)
class FileKinds:
    """A file and the kinds of content that were recognised in it."""

    path: Path
    kinds: Mapping[str, str] = field(default_factory=dict)  # a description of the content, by kind
    fault: str = ""  # why no kind was recognised


def recognise(path: Path) -> FileKinds:
    """Try to read a file as every kind of file; returns the kinds as which it can be read."""
    from bias_pipeline.data.tables import check_file

    if path.is_dir() and (n_runs := sum(1 for _ in path.glob("*/result.json"))):
        return FileKinds(path, {RUNS: inflect(n_runs, "runs")})
    if path.is_dir() and (n_photos := _number_of_photos(path)):
        return FileKinds(path, {PHOTOS: inflect(n_photos, "photos")})
    try:
        check_file(path)
    except BiasPipelineError as error:
        return FileKinds(path, fault=str(error))
    kinds: dict[str, str] = {}
    faults = []
    for read in (_objects_in, _captions_in, _labels_in):
        try:
            kinds |= read(path)
        except BiasPipelineError as error:
            faults.append(str(error))
    return FileKinds(path, kinds, "" if kinds else faults[-1])


def _number_of_photos(folder: Path) -> int:
    from bias_pipeline.data.photos import find_photos

    try:
        return len(find_photos(folder))
    except BiasPipelineError:
        return 0


def _objects_in(path: Path) -> dict[str, str]:
    from bias_pipeline.data.coco_files import objects_by_id

    objects = objects_by_id(path)
    names = frozenset().union(*objects.values())
    return {
        OBJECTS: f"{inflect(len(names), 'names')} of objects in {inflect(len(objects), 'images')}"
    }


def _captions_in(path: Path) -> dict[str, str]:
    """The captions that a file contains.

    If an image has several captions, the file counts as human captions.
    """
    from bias_pipeline.data.coco_files import human_captions, model_captions

    try:
        read = model_captions(path)
    except DataError:
        people, _ = human_captions(path)
        n = sum(map(len, people.values()))
        return {PEOPLE: f"{inflect(n, 'captions')} of {inflect(len(people), 'images')}"}
    kinds = {MODEL: f"{inflect(len(read.captions), 'captions')}, one an image"}
    if read.human:
        kinds[PEOPLE] = f"beside them, of {inflect(len(read.human), 'images')}"
    return kinds


def _labels_in(path: Path) -> dict[str, str]:
    """The attributes whose labels a file has."""
    from bias_pipeline.data.label_files import NoLabelColumnError, read_labels
    from bias_pipeline.run.audit import attribute_names
    from bias_pipeline.run.presets import preset

    read, faults = {}, []
    for name in attribute_names():
        attribute = preset({"attribute": name, "dataset": "coco"}).build("attribute")
        try:
            labels = read_labels(path, "coco", attribute, {})
        except NoLabelColumnError as error:
            columns = f"{path}: has {error.columns}"
        except DataError as error:
            faults.append(str(error))
        else:
            read[name] = f"{name} ({inflect(len(labels.raw), 'images')})"
    if faults and not read:
        raise DataError(faults[0])
    if not read:
        raise DataError(
            f"{columns}: no captions, no objects and no labels of an attribute; "
            "--caption-column, --label-column and --id-column of audit name yours"
        )
    return {LABELS: "; ".join([*read.values(), *faults])}


def _examine(paths: Sequence[Path]) -> None:
    """Print what each file is, then which questions all files together allow."""
    files = [recognise(path) for path in paths]
    for file in files:
        for kind, content in file.kinds.items():
            print_out(f"{file.path}: {kind}: {content}")
        if file.fault:
            print_out(f"not read: {file.fault}")
    print_out()
    chosen = _choose(files)
    if MODEL in chosen and LABELS in chosen:
        _print_audit(chosen, [file.path for file in files if MODEL in file.kinds])
    else:
        print_out(*_before_an_audit(chosen))


def _choose(files: Iterable[FileKinds]) -> dict[str, Path]:
    """A file for each kind of content; files that can only be of one kind are chosen first."""
    ordered = sorted(files, key=lambda file: len(file.kinds))
    chosen: dict[str, Path] = {}
    for file in ordered:
        for kind in file.kinds:
            chosen.setdefault(kind, file.path)
    return chosen


def _before_an_audit(chosen: Mapping[str, Path]) -> Iterator[str]:
    """Lines on what an audit still needs, and the commands that make it."""
    if MODEL not in chosen:
        photos = shlex.quote(str(chosen.get(PHOTOS, "PHOTOS")))
        yield "An audit needs captions of a model; this writes them:"
        yield f"  {PROGRAM} caption {photos} --model MODEL --out captions"
    if LABELS not in chosen:
        photos = shlex.quote(str(chosen.get(PHOTOS, "PHOTOS")))
        yield "An audit needs labels, a table with image_id and gender; this asks people for them:"
        yield f"  {PROGRAM} rate {photos} --attribute gender --out labels"
    if RUNS in chosen:
        yield "These are the answers of finished runs:"
        yield f"  {PROGRAM} report {shlex.quote(str(chosen[RUNS]))}"


def _print_audit(chosen: Mapping[str, Path], models: Sequence[Path]) -> None:
    """Print what the files contain, the questions an audit can answer, and the commands to run."""
    from bias_pipeline.commands.audit import parser as audit_parser
    from bias_pipeline.commands.audit import source_of_file
    from bias_pipeline.commands.data import print_inventory
    from bias_pipeline.run.audit import labelled_corpora

    options = [
        word
        for kind, option in _OPTIONS.items()
        if kind in chosen
        for word in (option, str(chosen[kind]))
    ]
    words = [str(chosen[MODEL]), *options]
    source = source_of_file(audit_parser().parse_args(words), Path("outputs"))
    try:
        corpora = labelled_corpora(source)
    except BiasPipelineError as error:
        print_out(f"An audit cannot read these files together: {error}")
        return
    for attribute, corpus in corpora.items():
        print_inventory({attribute: corpus})
        print_out()
    print_out(*_questions(next(iter(corpora.values()))))
    print_out("", f"{PROGRAM} audit {shlex.join(words)}")
    if len(models) > 1:
        print_out(f"{PROGRAM} compare {shlex.join([*map(str, models[:2]), *options])}")


def _questions(corpus: Corpus) -> Iterator[str]:
    """A line for each question of an audit; it says what an answer still needs."""
    from bias_pipeline.metrics.base import PICTURES, QUESTIONS, WEIGHTS
    from bias_pipeline.metrics.catalogue import has_needs, infos, missing

    for question, text in QUESTIONS.items():
        metrics = [
            info
            for info in infos().values()
            if info.question == question and not {PICTURES, WEIGHTS} & {*info.needs}
        ]
        lacking = {one for info in metrics for one in missing([*info.needs, *info.without], corpus)}
        if not any(has_needs(info, corpus) for info in metrics):
            state = "no"
        else:
            state = "in part" if lacking else "yes"
        if metrics:
            reason = f" (lacks {' and '.join(sorted(lacking))})" if lacking else ""
            yield f"{state:8}{text}{reason}"
