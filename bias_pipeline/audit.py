"""``audit``: one file of captions, from its labels to a report, within a time that is announced."""

from __future__ import annotations

import hashlib
import math
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bias_pipeline import costs, launch, own_columns, planning, shorthand
from bias_pipeline.analysis.doubts import COVERAGE, LIMITS, Limits
from bias_pipeline.analysis.verdict import verdict
from bias_pipeline.arguments import Parser, number
from bias_pipeline.attribute import Attribute
from bias_pipeline.composition import cell, quoted
from bias_pipeline.corpus import SIDES, Corpus
from bias_pipeline.errors import DataError, NotApplicableError, UsageError, did_you_mean
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.paths import choices_of, conf_dir
from bias_pipeline.report.page import write_page
from bias_pipeline.report.tables import percent
from bias_pipeline.report.verdict import sentences
from bias_pipeline.results import Result
from bias_pipeline.split import SMALLEST_GROUP
from bias_pipeline.terminal import say, warn

# Attributes that are another one read differently.
_VARIANTS = frozenset({"race_unsure"})
_FIRST = "gender"  # whose fault is told where none can be read
_SEEDS = (5, 3)
_FEW_CAPTIONS = 10_000
_LONGEST = 60  # signs of a file's name in that of its folder


@dataclass(frozen=True)
class Plan:
    """What is run in the time.

    Attributes:
        metrics: by name.
        left_out: metrics for which there is no time.
        seeds: how many.
        seconds: expected, for all attributes.
    """

    metrics: Sequence[str]
    left_out: Sequence[str]
    seeds: int
    seconds: float


def command(words: Sequence[str]) -> int:
    """Audit a file of captions; returns the exit code.

    Raises:
        BiasPipelineError: if a file cannot be read or nothing can be scored.
    """
    options = _parser().parse_args(list(words))
    limit = shorthand.QUICK_IMAGES if options.quick and options.limit is None else options.limit
    out = options.out or Path("outputs") / f"audit-{_slug(options.file.stem)}"
    overrides = [*_overrides(options, out), *([f"limit={limit}"] if limit is not None else [])]
    subjects = _labelled(overrides, options)
    corpora = {name: subject.corpus for name, subject in subjects.items()}
    seconds = 60 * (options.minutes or (1 if _size(corpora) <= _FEW_CAPTIONS else 5))
    plan = plan_for(corpora, seconds)
    _announce(options.file, corpora, plan)
    results: list[Result] = []
    code = 0
    for subject in subjects.values():
        chosen = [f"metric={','.join(plan.metrics)}", f"seeds={plan.seeds}"]
        if options.dry_run:
            code = max(code, planning.foretell([*subject.overrides, *chosen], lenient=True))
            continue
        finished = launch.run([*subject.overrides, *chosen], lenient=True)
        results += finished.results
        code = max(code, finished.exit_code)
        say()
    if options.dry_run:
        return code
    if not results:
        raise DataError(f"{options.file}: nothing could be scored; see above")
    write_page(out, out / "report.html")
    say(*summary(results, corpora, Limits(coverage=options.least_coverage)))
    say(out / "report.html")
    return code


def _parser() -> Parser:
    parser = Parser("python -m bias_pipeline audit", description=__doc__)
    parser.add_argument("file", type=Path, help="captions: COCO results JSON, JSONL, CSV, Parquet")
    parser.add_argument("--attributes", type=Path, required=True, help="labels: CSV or Parquet")
    parser.add_argument("--captions", type=Path, help="people's captions: COCO captions JSON")
    parser.add_argument("--objects", type=Path, help="objects: COCO instances JSON")
    parser.add_argument("--out", type=Path, help="folder of runs and report (outputs/audit-NAME)")
    parser.add_argument(
        "--minutes", type=number(0), help="time to stay within (1; above 10,000 captions 5)"
    )
    parser.add_argument(
        shorthand.LIMIT, type=int, metavar="N", help="a first look at N labelled images"
    )
    parser.add_argument(
        shorthand.QUICK, action="store_true", help=f"the same as --limit {shorthand.QUICK_IMAGES}"
    )
    parser.add_argument(
        shorthand.DRY_RUN,
        action="store_true",
        help="tell what would run, what is there already and how long it takes; run nothing",
    )
    parser.add_argument(
        "--least-coverage",
        type=number(0, 1),
        default=COVERAGE,
        metavar="SHARE",
        help=f"of the labelled images that a conclusion must rest on ({COVERAGE})",
    )
    own_columns.add_options(parser)
    return parser


def _overrides(options: Namespace, out: Path) -> list[str]:
    """The run's overrides; labels need not fit in every image, and what does not is told."""
    found = [
        "dataset=coco",
        "dataset.strict=false",
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
    return [*found, f"captioner={quoted(str(options.file))}"]


def _slug(name: str) -> str:
    """A name as part of a folder's; of a long one the beginning and its hash.

    Example:
        >>> _slug("../my captions"), _slug(100 * "long")[50:]
        ('my_captions', 'nglonglong_6a4ca1b1')
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "captions"
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[:_LONGEST]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class _Subject:
    """What is audited for one attribute.

    Attributes:
        corpus: read with these overrides.
        overrides: the attribute's among them.
    """

    corpus: Corpus
    overrides: Sequence[str]


def _labelled(overrides: Sequence[str], options: Namespace) -> dict[str, _Subject]:
    """The corpus under every attribute that the label file carries in two groups or more.

    Raises:
        UsageError: if it carries none.
        DataError: if a file is at fault whatever the attribute, or what is said of the labels fits
            no attribute.
    """
    names = [name for name in choices_of(conf_dir() / "attribute") if name not in _VARIANTS]
    attributes = {name: cell([f"attribute={name}"]).build("attribute") for name in names}
    _check_map(options.map, attributes)
    own = {name: _own_labels(options, attribute) for name, attribute in attributes.items()}
    read = {name: _read([*overrides, f"attribute={name}", *own[name]]) for name in names}
    misfits = {n: e for n, e in read.items() if own[n] and isinstance(e, DataError)}
    if misfits and not any(own[n] and isinstance(s, _Subject) for n, s in read.items()):
        raise misfits.get(_FIRST, next(iter(misfits.values())))
    read |= {name: _read([*overrides, f"attribute={name}"]) for name in misfits}
    found = {
        name: subject
        for name, subject in read.items()
        if isinstance(subject, _Subject)
        and min(_group_sizes(subject.corpus, name)[-2:]) >= SMALLEST_GROUP
    }
    refused = {name: error for name, error in read.items() if isinstance(error, DataError)}
    _check_found(found, refused)
    return found


def _check_found(found: Mapping[str, _Subject], refused: Mapping[str, DataError]) -> None:
    """Raise if there is no attribute to audit, else tell which are not audited, and why."""
    faults = {n: e for n, e in refused.items() if not isinstance(e, NotApplicableError)}
    if faults and not found:
        raise faults.get(_FIRST, next(iter(faults.values())))
    if not found:
        raise UsageError(
            "the label file carries no attribute with two groups of at least "
            f"{SMALLEST_GROUP} images; {'; '.join(map(str, refused.values()))}"
        )
    for name, fault in faults.items():
        warn(f"{name} is not audited: {fault}")
    absent = [name for name in refused if name not in faults]
    if absent:
        warn(f"without labels, so not audited: {', '.join(absent)} (--label-column names a column)")


def _read(overrides: Sequence[str]) -> _Subject | DataError:
    """The corpus, or why there is none."""
    try:
        return _Subject(cell(overrides).corpus(), overrides)
    except DataError as error:
        return error


def _own_labels(options: Namespace, attribute: Attribute) -> list[str]:
    """What the options say of an attribute's labels; a map is of those whose groups it names."""
    groups, strata = _meanings(attribute)
    mapped = [text for text in options.map if _meant(text) in groups]
    if options.map and not mapped:
        return []
    also = [text for text in options.map if _meant(text) in strata - groups]
    own = Namespace(label_column=options.label_column, map=[*mapped, *also])
    return own_columns.overrides_of(own)


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


def _group_sizes(corpus: Corpus, attribute: str) -> list[int]:
    grouping = corpus.groupings[attribute]
    return sorted(int((grouping.codes == k).sum()) for k in range(len(grouping.names)))


def _size(corpora: Mapping[str, Corpus]) -> int:
    return max(len(corpus.model) for corpus in corpora.values())


def plan_for(corpora: Mapping[str, Corpus], seconds: float) -> Plan:
    """All metrics, with as many seeds as there is time for; else the costly ones are left out.

    Args:
        corpora: attribute to corpus.
        seconds: to stay within.
    """
    known = choices_of(conf_dir() / "metric")
    costly = [name for name in ("dbac", "dpa") if name in known]
    for left_out in ((), costly[:1], costly):
        metrics = [name for name in known if name not in left_out]
        for seeds in _SEEDS:
            expected = sum(_cost(c, metrics, seeds) for c in corpora.values())
            if expected <= seconds:
                return Plan(metrics, left_out, seeds, expected)
    return Plan(metrics, left_out, _SEEDS[-1], expected)


def _cost(corpus: Corpus, metrics: Sequence[str], seeds: int) -> float:
    """Expected seconds of an attribute's cells."""
    return sum(costs.seconds_of(name, corpus, seeds) for name in metrics)


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
    grouping = corpus.groupings[attribute]
    return ", ".join(
        f"{name} {int((grouping.codes == k).sum())}" for k, name in enumerate(grouping.names)
    )


def summary(
    results: Sequence[Result], corpora: Mapping[str, Corpus], limits: Limits = LIMITS
) -> list[str]:
    """What was looked at, an answer to each question, and what the answers do not say."""
    first = next(iter(corpora.values()))
    metrics = dict.fromkeys(result.rows[0].metric for result in results)
    looked = (
        f"{len(first.model)} captions of {first.captioner} were audited for "
        f"{' and '.join(corpora)} by {len(metrics)} metrics."
    )
    found = sentences(verdict(results, limits))
    return [looked, *found, _caution(results, first)]


def _caution(results: Sequence[Result], corpus: Corpus) -> str:
    if not len(corpus.human):
        return (
            "Without human captions of the same images nothing can be said of amplification: "
            "what the captions give away may be no more than people's would."
        )
    rates: dict[str, float] = {}
    for row in (row for result in results for row in result.rows if row.part in HEADLINES):
        if not math.isnan(row.neutral_rate):
            rates.setdefault(row.attribute, row.neutral_rate)
    shares = ", ".join(f"{percent(rate, 0)} % ({name})" for name, rate in rates.items())
    silent = f"of its captions {shares} name no group" if rates else ""
    trained = (
        "the captioner was trained on captions of this data set"
        if corpus.trained_on_reference
        else "whether the captioner was trained on captions like these is not known, so read "
        "differences and not amplification"
    )
    return f"{silent}; {trained}.".lstrip("; ").capitalize()
