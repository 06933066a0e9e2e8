"""``audit``: one file of captions, from its labels to a report, within a time that is announced."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bias_pipeline import costs, launch, planning, shorthand
from bias_pipeline.analysis.doubts import COVERAGE, LIMITS, Limits
from bias_pipeline.analysis.verdict import verdict
from bias_pipeline.arguments import Parser
from bias_pipeline.composition import cell, quoted
from bias_pipeline.corpus import SIDES, Corpus
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.paths import choices_of, conf_dir
from bias_pipeline.report.page import write_page
from bias_pipeline.report.tables import percent
from bias_pipeline.report.verdict import sentences
from bias_pipeline.results import Result
from bias_pipeline.split import SMALLEST_GROUP

# Attributes that are another one read differently.
_VARIANTS = frozenset({"race_unsure"})
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


def command(words: Sequence[str]) -> int:
    """Audit a file of captions; returns the exit code.

    Raises:
        BiasPipelineError: if a file cannot be read or nothing can be scored.
    """
    options = _parser().parse_args(list(words))
    limit = shorthand.QUICK_IMAGES if options.quick and options.limit is None else options.limit
    out = options.out or Path("outputs") / f"audit-{_slug(options.file.stem)}"
    overrides = [*_overrides(options, out), *([f"limit={limit}"] if limit is not None else [])]
    corpora = _labelled(overrides)
    seconds = 60 * (options.minutes or (1 if _size(corpora) <= _FEW_CAPTIONS else 5))
    plan = plan_for(corpora, seconds)
    _announce(options.file, corpora, plan)
    results: list[Result] = []
    code = 0
    for name in corpora:
        chosen = [f"attribute={name}", f"metric={','.join(plan.metrics)}", f"seeds={plan.seeds}"]
        if options.dry_run:
            code = max(code, planning.foretell([*overrides, *chosen], lenient=True))
            continue
        finished = launch.run([*overrides, *chosen], lenient=True)
        results += finished.results
        code = max(code, finished.exit_code)
        print()
    if options.dry_run:
        return code
    if not results:
        raise DataError(f"{options.file}: nothing could be scored; see above")
    write_page(out, out / "report.html")
    print(summary(results, corpora, Limits(coverage=options.least_coverage)))
    print(out / "report.html")
    return code


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


def _labelled(overrides: Sequence[str]) -> dict[str, Corpus]:
    """The corpus under every attribute that the label file carries in two groups or more.

    Raises:
        UsageError: if it carries none.
        DataError: if a file is at fault whatever the attribute.
    """
    read = {
        name: _read([*overrides, f"attribute={name}"])
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


def _read(overrides: Sequence[str]) -> Corpus | DataError:
    """The corpus, or why there is none."""
    try:
        return cell(overrides).corpus()
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
    return sum(costs.seconds_of(name, corpus, seeds) for name in metrics)


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
