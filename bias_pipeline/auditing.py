"""``audit``: one file of captions, from its labels to a report, within a time that is announced."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bias_pipeline.analysis import baseline
from bias_pipeline.analysis.doubts import COVERAGE, LIMITS, Limits
from bias_pipeline.analysis.verdict import verdict
from bias_pipeline.arguments import Parser
from bias_pipeline.composition import cell, quoted
from bias_pipeline.corpus import SIDES, Corpus
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.extras import REPORT
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.paths import choices_of, conf_dir
from bias_pipeline.report.files import check_places, write_file
from bias_pipeline.report.page import write_page
from bias_pipeline.report.tables import percent
from bias_pipeline.report.verdict import sentences
from bias_pipeline.results import Result, Results, ResultStore
from bias_pipeline.split import SMALLEST_GROUP

if TYPE_CHECKING:
    from pandas import DataFrame

# Attributes that are another one read differently.
_VARIANTS = frozenset({"race_unsure"})
# Processor seconds a caption and seed (attackers) or a caption (counting), and seconds a cell:
# rather more than benchmarks/audit.py measured from 5,000 to 1,200,000 captions, so that a slower
# machine keeps its time too. leakage and lic train the same attackers, once. dbac is from the COCO
# captions (34 s for 60,000 and three seeds) and the embedded ones (52 s for two).
_PER_SEED = {"lic": 3.5e-5, "leakage": 0.0, "dbac": 3e-4, "dpa": 1e-5}
_PER_CAPTION, _PER_CELL = 3e-6, 0.45
_DEARER = {"quality": 6e-5, "multi_directional": 6e-5}  # of the metrics that train nothing
# What the data do not permit ends at once.
_NEED_PEOPLE = frozenset({"dbac", "quality"})
_NEED_OBJECTS = frozenset({"ba_directional", "ba_mals", "dpa", "multi_directional"})
_SEEDS = (5, 3)
_FEW_CAPTIONS = 10_000


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


@dataclass(frozen=True)
class Audit:
    """What an audit came to.

    Attributes:
        corpora: attribute to what was scored.
        plan: what was run.
        results: of every cell that the data permit.
        limits: what a conclusion needs.
        exit_code: of the command; 0 unless a cell failed.
    """

    corpora: Mapping[str, Corpus]
    plan: Plan
    results: Results
    limits: Limits = LIMITS
    exit_code: int = 0

    def __str__(self) -> str:
        """What was looked at and the answers, in sentences."""
        return summary(self.results, self.corpora, self.limits)

    def frame(self) -> DataFrame:
        """All rows as one table, see :meth:`Results.frame`."""
        return self.results.frame()


class Cells(Protocol):
    """What an audit reads and runs: a command line's sweeps, or cells called from Python."""

    def corpus(self, attribute: str) -> Corpus:
        """What is scored under an attribute."""
        ...

    def scored(self, attribute: str, plan: Plan) -> tuple[Sequence[Result], int]:
        """The results that the data permit, and an exit code."""
        ...


def audited(
    cells: Cells,
    minutes: float | None = None,
    limits: Limits = LIMITS,
    announce: Callable[[Mapping[str, Corpus], Plan], None] = lambda corpora, plan: None,
) -> Audit:
    """Every metric that the data permit within a time, under every attribute that they carry.

    Args:
        cells: what is read and run.
        minutes: to stay within; by the number of captions if left out.
        limits: what a conclusion needs.
        announce: is told what was found and what will be run.

    Raises:
        BiasPipelineError: if the data cannot be read or nothing can be scored.
    """
    corpora = _labelled(cells)
    seconds = 60 * (minutes or (1 if _size(corpora) <= _FEW_CAPTIONS else 5))
    plan = plan_for(corpora, seconds)
    announce(corpora, plan)
    done = [cells.scored(name, plan) for name in corpora]
    results = Results(result for own, _ in done for result in own)
    if not results:
        raise DataError("nothing could be scored; no metric is permitted by these data")
    return Audit(corpora, plan, results, limits, max(code for _, code in done))


def command(words: Sequence[str]) -> int:
    """Audit a file of captions; returns the exit code.

    Raises:
        BiasPipelineError: if a file cannot be read or nothing can be scored.
    """
    options = _parser().parse_args(list(words))
    REPORT.require()
    check_places(options.json)
    out = options.out or Path("outputs") / f"audit-{_slug(options.file.stem)}"
    found = audited(
        _Sweeps(_overrides(options, out)),
        options.minutes,
        Limits(coverage=options.least_coverage),
        partial(_announce, options.file),
    )
    write_page(out, out / "report.html")
    print(found)
    if options.json:
        write_file(options.json, baseline.stored(found.results, answers=str(found).splitlines()))
    print(out / "report.html")
    return found.exit_code


@dataclass(frozen=True)
class _Sweeps:
    """Cells as the command line runs them, a sweep an attribute.

    Attributes:
        overrides: what all cells share.
    """

    overrides: Sequence[str]

    def corpus(self, attribute: str) -> Corpus:
        return cell([*self.overrides, f"attribute={attribute}"]).corpus()

    def scored(self, attribute: str, plan: Plan) -> tuple[Sequence[Result], int]:
        from bias_pipeline import launch

        chosen = [f"attribute={attribute}", f"metric={','.join(plan.metrics)}"]
        finished = launch.run([*self.overrides, *chosen, f"seeds={plan.seeds}"], lenient=True)
        print()
        store = ResultStore(finished.outputs)
        drawn = [replace(own, draws=store.draws(own.run_id)) for own in finished.results]
        return drawn, finished.exit_code


def _parser() -> Parser:
    parser = Parser("python -m bias_pipeline audit", description=__doc__)
    parser.add_argument("file", type=Path, help="captions: COCO results JSON, JSONL, CSV, Parquet")
    parser.add_argument("--attributes", type=Path, required=True, help="labels: CSV or Parquet")
    parser.add_argument("--captions", type=Path, help="people's captions: COCO captions JSON")
    parser.add_argument("--objects", type=Path, help="objects: COCO instances JSON")
    parser.add_argument("--out", type=Path, help="folder of runs and report (outputs/audit-NAME)")
    parser.add_argument(
        "--minutes", type=float, help="time to stay within (1; above 10,000 captions 5)"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the answers, and the results as a baseline for compare",
    )
    parser.add_argument(
        "--least-coverage",
        type=float,
        default=COVERAGE,
        metavar="SHARE",
        help=f"of the labelled images that a conclusion must rest on ({COVERAGE})",
    )
    return parser


def _overrides(options: object, out: Path) -> list[str]:
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
    return [*found, f"captioner={quoted(str(getattr(options, 'file')))}"]  # noqa: B009


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "captions"


def _labelled(cells: Cells) -> dict[str, Corpus]:
    """The corpus under every attribute that the label file carries in two groups or more.

    Raises:
        UsageError: if it carries none.
        DataError: if a file is at fault whatever the attribute.
    """
    read = {
        name: _read(cells, name)
        for name in choices_of(conf_dir() / "attribute")
        if name not in _VARIANTS
    }
    found = {
        name: corpus
        for name, corpus in read.items()
        if isinstance(corpus, Corpus) and min(_group_sizes(corpus, name)[-2:]) >= SMALLEST_GROUP
    }
    refused = {name: error for name, error in read.items() if isinstance(error, DataError)}
    faults = {n: e for n, e in refused.items() if not isinstance(e, NotApplicableError)}
    if faults and not found:
        raise next(iter(faults.values()))
    if not found:
        raise UsageError(
            "the label file carries no attribute with two groups of at least "
            f"{SMALLEST_GROUP} images; {'; '.join(map(str, refused.values()))}"
        )
    for name, fault in faults.items():
        print(f"{name} is not audited: {fault}", file=sys.stderr)
    return found


def _read(cells: Cells, attribute: str) -> Corpus | DataError:
    """The corpus, or why there is none."""
    try:
        return cells.corpus(attribute)
    except DataError as error:
        return error


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
    captions = len(corpus.model) + len(corpus.human)
    refused = set() if len(corpus.human) else _NEED_PEOPLE
    refused |= set() if corpus.objects is not None else _NEED_OBJECTS
    permitted = [name for name in metrics if name not in refused]
    attacks = sum(_PER_SEED[name] * seeds * captions for name in permitted if name in _PER_SEED)
    counted = [_DEARER.get(name, _PER_CAPTION) for name in permitted if name not in _PER_SEED]
    counting = captions * sum(counted)
    return attacks + counting + _PER_CELL * len(metrics)


def _announce(file: Path, corpora: Mapping[str, Corpus], plan: Plan) -> None:
    first = next(iter(corpora.values()))
    groups = [f"{name} ({_sizes(corpus, name)})" for name, corpus in corpora.items()]
    people = f"{len(first.human)} human captions" if len(first.human) else "no human captions"
    objects = "objects known" if first.objects is not None else "no objects"
    print(f"{file}: {len(first.model)} captions of labelled images; {people}; {objects}")
    print(f"labels: {'; '.join(groups)}")
    print(f"blank captions: {_blanks(first)}")
    for note in first.notes:
        print(note)
    print(f"{len(plan.metrics)} metrics, {plan.seeds} seeds, about {plan.seconds:.0f} s")
    if plan.left_out:
        print(f"no time for {', '.join(plan.left_out)}; --minutes gives more")
    print()


def _blanks(corpus: Corpus) -> str:
    return ", ".join(f"{corpus.blanks.get(side, 0)} {side}" for side in SIDES)


def _sizes(corpus: Corpus, attribute: str) -> str:
    grouping = corpus.groupings[attribute]
    return ", ".join(
        f"{name} {int((grouping.codes == k).sum())}" for k, name in enumerate(grouping.names)
    )


def summary(
    results: Sequence[Result], corpora: Mapping[str, Corpus], limits: Limits = LIMITS
) -> str:
    """What was looked at, an answer to each question, and what the answers do not say."""
    first = next(iter(corpora.values()))
    metrics = dict.fromkeys(result.rows[0].metric for result in results)
    looked = (
        f"{len(first.model)} captions of {first.captioner} were audited for "
        f"{' and '.join(corpora)} by {len(metrics)} metrics."
    )
    found = sentences(verdict(results, limits))
    return "\n".join([looked, *found, _caution(results, first)])


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
