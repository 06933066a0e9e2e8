"""An audit: every metric that the data permit, under every attribute, within a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bias_pipeline.analysis.doubts import LIMITS, Limits
from bias_pipeline.analysis.verdict import verdict
from bias_pipeline.catalogue import costs
from bias_pipeline.catalogue.registry import infos
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import SMALLEST_GROUP
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.io.included import group_choices
from bias_pipeline.io.terminal import warn
from bias_pipeline.metrics.base import HEADLINES, PICTURES, WEIGHTS
from bias_pipeline.report.tables import percent
from bias_pipeline.report.verdict import sentences
from bias_pipeline.results.settings import Results
from bias_pipeline.results.store import Result
from bias_pipeline.text.declines import declines_note

if TYPE_CHECKING:
    from pandas import DataFrame

# Attributes that are another one read differently, or whose groups no captions name.
_LEFT = frozenset({"race_unsure", "ethnicity"})
FIRST = "gender"  # whose fault is told where none can be read
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
        return "\n".join(summary(self.results, self.corpora, self.limits))

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


def planned(
    cells: Cells,
    minutes: float | None = None,
    announce: Callable[[Mapping[str, Corpus], Plan], None] = lambda corpora, plan: None,
) -> tuple[Mapping[str, Corpus], Plan]:
    """What is audited, and by what.

    Args:
        cells: what is read and run.
        minutes: to stay within; by the number of captions if left out.
        announce: is told what was found and what will be run.

    Raises:
        BiasPipelineError: if the data cannot be read.
    """
    corpora = _labelled(cells)
    seconds = 60 * (minutes or (1 if _size(corpora) <= _FEW_CAPTIONS else 5))
    plan = plan_for(corpora, seconds)
    announce(corpora, plan)
    return corpora, plan


def audited(
    cells: Cells,
    minutes: float | None = None,
    limits: Limits = LIMITS,
    announce: Callable[[Mapping[str, Corpus], Plan], None] = lambda corpora, plan: None,
) -> Audit:
    """Every metric that the data permit within a time, under every attribute that they carry.

    Args:
        cells: see :func:`planned`.
        minutes: see there.
        limits: what a conclusion needs.
        announce: see :func:`planned`.

    Raises:
        BiasPipelineError: if the data cannot be read or nothing can be scored.
    """
    corpora, plan = planned(cells, minutes, announce)
    done = [cells.scored(name, plan) for name in corpora]
    results = Results(result for own, _ in done for result in own)
    if not results:
        raise DataError("nothing could be scored; no metric is permitted by these data")
    return Audit(corpora, plan, results, limits, max(code for _, code in done))


def attribute_names() -> list[str]:
    """The attributes that are looked for."""
    return [name for name in group_choices("attribute") if name not in _LEFT]


def _labelled(cells: Cells) -> dict[str, Corpus]:
    """The corpus under every attribute that the label file carries in two groups or more.

    Raises:
        UsageError: if it carries none.
        DataError: if a file is at fault whatever the attribute.
    """
    read = {name: read_or_refused(cells, name) for name in attribute_names()}
    found = {
        name: corpus
        for name, corpus in read.items()
        if isinstance(corpus, Corpus) and _in_two_groups(corpus, name)
    }
    refused = {name: error for name, error in read.items() if isinstance(error, DataError)}
    small = [
        f"{name}: {_group_sizes(corpus, name)}"
        for name, corpus in read.items()
        if isinstance(corpus, Corpus) and name not in found
    ]
    _check_found(found, refused, small)
    return found


def _group_sizes(corpus: Corpus, attribute: str) -> str:
    sizes = corpus.groupings[attribute].sizes
    return ", ".join(f"{size} {name}" for name, size in sizes.items())


def _check_found(
    found: Mapping[str, Corpus], refused: Mapping[str, DataError], small: Sequence[str]
) -> None:
    """Raise if there is no attribute to audit, else tell which are not audited, and why."""
    faults = {n: e for n, e in refused.items() if not isinstance(e, NotApplicableError)}
    if faults and not found:
        raise faults.get(FIRST, next(iter(faults.values())))
    if small and not found:
        raise UsageError(
            f"an audit compares two groups of at least {SMALLEST_GROUP} images; the label file has "
            f"{'; '.join(small)}"
        )
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


def read_or_refused(cells: Cells, attribute: str) -> Corpus | DataError:
    """The corpus, or why there is none."""
    try:
        return cells.corpus(attribute)
    except DataError as error:
        return error


def _in_two_groups(corpus: Corpus, attribute: str) -> bool:
    """Whether two groups are large enough to be split."""
    sizes = corpus.groupings[attribute].sizes.values()
    return sum(size >= SMALLEST_GROUP for size in sizes) >= 2


def _size(corpora: Mapping[str, Corpus]) -> int:
    return max(len(corpus.model) for corpus in corpora.values())


def plan_for(corpora: Mapping[str, Corpus], seconds: float) -> Plan:
    """All metrics but those of published weights and of pictures, with the seeds there is time for.

    Where there is too little, the costly ones are left out.

    Args:
        corpora: attribute to corpus.
        seconds: to stay within.
    """
    # An audit must come out alike on every machine, soon; who has the weights, or pictures, can ask
    # for these metrics by name.
    left = {PICTURES, WEIGHTS}
    known = {name: own for name, own in infos().items() if not left & set(own.needs)}
    spared = costs.spared(known.values())
    for left_out in (spared[:n] for n in range(len(spared) + 1)):
        metrics = [name for name in known if name not in left_out]
        for seeds in _SEEDS:
            expected = sum(_cost(c, metrics, seeds) for c in corpora.values())
            if expected <= seconds:
                return Plan(metrics, left_out, seeds, expected)
    return Plan(metrics, left_out, _SEEDS[-1], expected)


def _cost(corpus: Corpus, metrics: Sequence[str], seeds: int) -> float:
    """Expected seconds of an attribute's cells."""
    return sum(costs.seconds_of(name, corpus, seeds) for name in metrics)


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
    declined = [note for name, corpus in corpora.items() if (note := declines_note(corpus, name))]
    answers = sentences(verdict(results, limits))
    return [looked, *(f"{note}." for note in declined[:1]), *answers, _caution(results, first)]


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
