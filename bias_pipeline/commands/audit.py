"""``audit``: one file of captions, from its labels to a report, within a time that is announced."""

from __future__ import annotations

import hashlib
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bias_pipeline.analysis import baseline
from bias_pipeline.analysis.doubts import COVERAGE, Limits
from bias_pipeline.commands import own_columns, shorthand
from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.commands.auditing import (
    FIRST,
    Plan,
    attribute_names,
    audited,
    planned,
    read_or_refused,
)
from bias_pipeline.config.compose import cell
from bias_pipeline.config.overrides import quoted
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.datasets.tables import check_file
from bias_pipeline.declared import Count, Positive, Share
from bias_pipeline.errors import DataError, UsageError, did_you_mean
from bias_pipeline.io.extras import REPORT
from bias_pipeline.io.terminal import say
from bias_pipeline.report.files import check_places, write_file
from bias_pipeline.report.page import write_page
from bias_pipeline.results.store import Result, ResultStore

_ABOUT = "Audit one file of captions, from its labels to a report, within a time that is announced"
_LONGEST = 60  # signs of a file's name in that of its folder


def command(words: Sequence[str]) -> int:
    """Audit a file of captions; returns the exit code.

    Raises:
        BiasPipelineError: if a file cannot be read or nothing can be scored.
    """
    options = parser().parse_args(list(words))
    REPORT.require()
    check_places(options.json)
    attributes = {
        name: cell([f"attribute={name}"]).build("attribute") for name in attribute_names()
    }
    _check_map(options.map, attributes)
    for path in (options.file, options.attributes, options.captions, options.objects):
        if path is not None:
            check_file(path)
    out = options.out or Path("outputs") / f"audit-{_slug(options.file.stem)}"
    overrides = _overrides(options, out)
    cells = _Sweeps(overrides, _labels_of(overrides, options, attributes))
    announce = partial(_announce, options.file)
    if options.dry_run:
        corpora, plan = planned(cells, options.minutes, announce)
        return max(cells.foretold(name, plan) for name in corpora)
    found = audited(cells, options.minutes, Limits(coverage=options.least_coverage), announce)
    write_page(out, out / "report.html")
    say(*str(found).splitlines())
    if options.json:
        write_file(options.json, baseline.stored(found.results, answers=str(found).splitlines()))
    say(out / "report.html")
    return found.exit_code


@dataclass(frozen=True)
class _Sweeps:
    """Cells as the command line runs them, a sweep an attribute.

    Attributes:
        overrides: what all cells share.
        labels: attribute to what the user says of its labels.
    """

    overrides: Sequence[str]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def corpus(self, attribute: str) -> Corpus:
        return cell(self._of(attribute)).corpus()

    def scored(self, attribute: str, plan: Plan) -> tuple[Sequence[Result], int]:
        from bias_pipeline.sweeps import launch

        finished = launch.run(self._cells(attribute, plan), lenient=True)
        say()
        store = ResultStore(finished.outputs)
        drawn = [replace(own, draws=store.draws(own.run_id)) for own in finished.results]
        return drawn, finished.exit_code

    def foretold(self, attribute: str, plan: Plan) -> int:
        from bias_pipeline.sweeps import planning

        return planning.foretell(self._cells(attribute, plan), lenient=True)

    def _of(self, attribute: str) -> list[str]:
        return [*self.overrides, f"attribute={attribute}", *self.labels.get(attribute, ())]

    def _cells(self, attribute: str, plan: Plan) -> list[str]:
        chosen = [f"metric={','.join(plan.metrics)}", f"seeds={plan.seeds}"]
        return [*self._of(attribute), *chosen]


def parser() -> Parser:
    """What it takes."""
    own = Parser(f"{PROGRAM} audit", description=_ABOUT)
    own.add_argument("file", type=Path, help="captions: COCO results JSON, JSONL, CSV, Parquet")
    own.add_argument("--attributes", type=Path, required=True, help="labels: CSV or Parquet")
    own.add_argument("--captions", type=Path, help="people's captions: COCO captions JSON")
    own.add_argument("--objects", type=Path, help="objects: COCO instances JSON")
    own.add_argument("--out", type=Path, help="folder of runs and report (outputs/audit-NAME)")
    own.add_argument(
        "--minutes", type=number(Positive), help="time to stay within (1; above 10,000 captions 5)"
    )
    own.add_argument(
        shorthand.LIMIT,
        type=number(Count),
        metavar="N",
        help="a first look at N labelled images",
    )
    own.add_argument(
        shorthand.QUICK, action="store_true", help=f"the same as --limit {shorthand.QUICK_IMAGES}"
    )
    own.add_argument(
        shorthand.DRY_RUN,
        action="store_true",
        help="tell what would run, what is there already and how long it takes; run nothing",
    )
    own.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the answers, and the results as a baseline for compare",
    )
    own.add_argument(
        "--least-coverage",
        type=number(Share),
        default=COVERAGE,
        metavar="SHARE",
        help=f"of the labelled images that a conclusion must rest on ({COVERAGE})",
    )
    own_columns.add_options(own)
    return own


def _overrides(options: Namespace, out: Path) -> list[str]:
    """The run's overrides; labels need not fit in every image, and what does not is told."""
    found = [
        "dataset=coco",
        "dataset.strict=False",  # as Hydra writes it: its jobs are those that we have checked
        "logger=csv",
        f"paths.outputs={quoted(str(out))}",
    ]
    keys = {"attributes": "attributes", "captions": "captions", "objects": "instances"}
    for option, key in keys.items():
        path = getattr(options, option)
        if path is not None:
            found.append(f"dataset.{key}={quoted(str(path))}")
    columns = Namespace(**{**vars(options), "label_column": None, "map": []})
    found += own_columns.overrides_of(columns)  # labels differ from attribute to attribute
    limit = shorthand.QUICK_IMAGES if options.quick and options.limit is None else options.limit
    if limit is not None:
        found.append(f"limit={limit}")
    return [*found, f"captioner={quoted(str(options.file))}"]


def _slug(name: str) -> str:
    """A name as part of a folder's; of a long one the beginning and its hash.

    Example:
        >>> _slug("../my captions"), _slug(100 * "long")[50:]
        ('my_captions', 'nglonglong_0184fa9c')
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "captions"
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[:_LONGEST]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _labels_of(
    overrides: Sequence[str], options: Namespace, attributes: Mapping[str, Attribute]
) -> dict[str, list[str]]:
    """What the options say of each attribute's labels; nothing where it does not fit.

    Raises:
        DataError: if it fits no attribute.
    """
    own = {name: _own_labels(options, attribute) for name, attribute in attributes.items()}
    said = _Sweeps(overrides, own)
    read = {name: read_or_refused(said, name) for name in own if own[name]}
    misfits = {name: error for name, error in read.items() if isinstance(error, DataError)}
    if misfits and len(misfits) == len(read):
        raise misfits.get(FIRST, next(iter(misfits.values())))
    return {name: [] if name in misfits else told for name, told in own.items()}


def _own_labels(options: Namespace, attribute: Attribute) -> list[str]:
    """What the options say of an attribute's labels; a map is of those that know its meaning."""
    groups, strata = _meanings(attribute)
    maps = [text for text in options.map if _meant(text) in groups | strata]
    if options.map and not maps:
        return []
    return own_columns.overrides_of(Namespace(label_column=options.label_column, map=maps))


def _check_map(texts: Sequence[str], attributes: Mapping[str, Attribute]) -> None:
    known = {name for own in attributes.values() for part in _meanings(own) for name in part}
    for text in texts:
        if "=" not in text or _meant(text) not in known:
            raise UsageError(
                f"--map {text}: write LABEL=GROUP; {did_you_mean(_meant(text), known - {''})}"
            )


def _meant(text: str) -> str:
    return text.rpartition("=")[2].strip()


def _meanings(attribute: Attribute) -> tuple[set[str], set[str]]:
    """Names of groups, as the attribute and its labels have them, and labels of no group."""
    labels = attribute.labels.get("coco")
    written = set(labels.groups) if labels else set()
    return {*attribute.groups, *written}, set(labels.strata if labels else ())


def _announce(file: Path, corpora: Mapping[str, Corpus], plan: Plan) -> None:
    first = next(iter(corpora.values()))
    groups = [f"{name} ({_sizes(corpus, name)})" for name, corpus in corpora.items()]
    people = f"{len(first.human)} human captions" if len(first.human) else "no human captions"
    objects = "objects known" if first.objects is not None else "no objects"
    say(f"{file}: {len(first.model)} captions of labelled images; {people}; {objects}")
    say(f"labels: {'; '.join(groups)}")
    say(f"blank captions: {_blanks(first)}")
    for note in _notes(corpora):
        say(note)
    say(f"{len(plan.metrics)} metrics, {plan.seeds} seeds, about {plan.seconds:.0f} s")
    if plan.left_out:
        say(f"no time for {', '.join(plan.left_out)}; --minutes gives more")
    say()


def _notes(corpora: Mapping[str, Corpus]) -> list[str]:
    """What was noted while reading; with the attribute where it is not so for all."""
    said: dict[str, list[str]] = {}
    for name, corpus in corpora.items():
        for note in corpus.notes:
            said.setdefault(note, []).append(name)
    return [
        note if len(names) == len(corpora) else f"{', '.join(names)}: {note}"
        for note, names in said.items()
    ]


def _blanks(corpus: Corpus) -> str:
    return ", ".join(f"{corpus.blanks.get(side, 0)} {side}" for side in SIDES)


def _sizes(corpus: Corpus, attribute: str) -> str:
    return ", ".join(f"{name} {n}" for name, n in corpus.groupings[attribute].sizes.items())
