"""``--dry-run``: which cells a command would run, which are cached, and how long it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bias_pipeline.errors import (
    AbsentModelError,
    BiasPipelineError,
    NotApplicableError,
    SweepError,
    counted,
)
from bias_pipeline.io.progress import duration
from bias_pipeline.io.terminal import print_out, warn
from bias_pipeline.metrics import catalogue
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Table
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run.compose import Cell, Sweep
from bias_pipeline.run.launch import check_captioners, of_all, parse_sweep
from bias_pipeline.run.outcomes import differing

_PASSED_OVER = (NotApplicableError, AbsentModelError)
_MEASURED = ("ngram", "")  # the encoders with known costs


@dataclass(frozen=True)
class PlannedCell:
    """A cell of a command."""

    run_id: str  # its name, empty where its data cannot be read
    overrides: Sequence[str]  # its overrides, as given
    # `to run`, `cached`, `fails` where its data cannot be read, `skipped` where they rule it out
    state: str
    seconds: float = 0.0  # expected, 0 if it does not run, NaN if unknown
    error: BiasPipelineError | None = None  # why it would fail


_SHORT_S = 10.0  # shorter work is not announced


def announce(sweep: Sweep) -> None:
    """Say what will run and for how long, if that is long or unknown."""
    first, jobs = sweep.first, sweep.jobs
    chosen = [word.removeprefix("metric=") for job in jobs for word in job if word[:7] == "metric="]
    metrics = chosen or [first.metric.name] * len(jobs)
    try:
        first.require()
        store = ResultStore(Path(first.tree["paths"]["outputs"]))
        seconds = _expected(sweep, metrics, store)
        if len(jobs) == 1 and store.load(first.run_id(first.corpus())) is not None:
            return
    except BiasPipelineError:
        return  # the job says what is wrong
    if seconds < _SHORT_S:
        return
    if math.isnan(seconds):
        network = first.choice("encoder") or "these networks"
        time = f"no job with {network} has run here yet, so its time is unknown"
    else:
        time = f"about {duration(seconds)}" + (", one after another" if len(jobs) > 1 else "")
    names = ", ".join(dict.fromkeys(metrics))
    warn(f"{counted(len(jobs), 'jobs')} of {names}, {counted(len(first.seeds), 'seeds')}: {time}")


def _expected(sweep: Sweep, metrics: Sequence[str], store: ResultStore) -> float:
    """Seconds of all jobs, as if each scored the captions of the first; NaN if unknown."""
    first = sweep.first
    if any(cell.runs_networks for cell in sweep.sample):
        return len(metrics) * _seconds(first, store)
    corpus, seeds = first.corpus(), len(first.seeds)
    return sum(catalogue.seconds_of(metric, corpus, seeds) for metric in metrics)


def dry_run(words: Sequence[str]) -> int:
    """Print what a command would run; see :func:`print_plan`."""
    sweep = parse_sweep(words)
    check_captioners(sweep)
    return print_plan([*sweep], lenient=of_all(sweep))


def print_plan(cells: Sequence[Cell], *, lenient: bool) -> int:
    """Print what cells would run; reads the data, which decide that, and writes nothing."""
    planned = plan(cells)
    if lenient:
        planned = [
            replace(cell, state="skipped") if isinstance(cell.error, _PASSED_OVER) else cell
            for cell in planned
        ]
    _print(planned)
    refused = [cell.error for cell in planned if cell.error is not None]
    if len(refused) == len(planned):
        raise refused[0]
    return SweepError.exit_code if any(cell.state == "fails" for cell in planned) else 0


def plan(cells: Sequence[Cell]) -> list[PlannedCell]:
    """Which of the cells of one folder of results run, in their order."""
    store = ResultStore(Path(cells[0].tree["paths"]["outputs"]))
    names = set[str]()
    return [_planned(cell, store, names) for cell in cells]


def _planned(cell: Cell, store: ResultStore, names: set[str]) -> PlannedCell:
    overrides = cell.overrides
    try:
        cell.require()
        name = cell.run_id(cell.corpus())
    except BiasPipelineError as error:
        return PlannedCell("", overrides, "fails", error=error)
    if name in names or store.load(name) is not None:
        return PlannedCell(name, overrides, "cached")
    names.add(name)
    return PlannedCell(name, overrides, "to run", _seconds(cell, store))


def _seconds(cell: Cell, store: ResultStore) -> float:
    """Expected seconds, by measured rates; for networks by a finished cell of the same kind."""
    if cell.choice("encoder") in _MEASURED:
        return cell.expected_seconds()
    corpus, seeds, settings = cell.corpus(), len(cell.seeds), cell.tree["metric"]
    captions = catalogue.captions(len(corpus), len(corpus.model), len(corpus.human), settings)
    samples = [sample for result in _alike(cell, store) if (sample := _taken(result)) is not None]
    if not samples:
        return math.nan
    size, taken = max(samples)  # the largest, in which starting matters least
    return captions * seeds * taken / size


def _alike(cell: Cell, store: ResultStore) -> list[Result]:
    """Finished cells of the same metric and encoder."""
    paths = store.root.glob(f"{cell.metric.name}-*")
    results = [result for path in paths if (result := store.load(path.name))]
    return [r for r in results if r.rows and r.rows[0].encoder == cell.choice("encoder")]


def _taken(result: Result) -> tuple[int, float] | None:
    """Captions times seeds, and the seconds for them; None if attackers were cached."""
    corpus, training = result.facts.corpus, result.facts.training
    if training is None or training.cached:
        return None
    sizes = (corpus.n_images, corpus.n_model_captions, corpus.n_human_captions)
    size = catalogue.captions(*sizes, result.facts.config) * result.rows[0].n_seeds
    seconds = result.facts.seconds
    return (size, seconds) if size and not math.isnan(seconds) else None


def _print(planned: Sequence[PlannedCell]) -> None:
    differences = differing([cell.overrides for cell in planned])
    keys = list(dict.fromkeys(key for values in differences for key in values))
    lines = [
        [*([values.get(key, "") for key in keys] or [cell.run_id]), cell.state, _time(cell)]
        for values, cell in zip(differences, planned, strict=True)
    ]
    columns = keys or ["run"]
    print_table(Table("", [*columns, "state", "about"], lines, keys=len(columns)))
    for values, cell in zip(differences, planned, strict=True):
        if cell.error is not None:
            label = " ".join(f"{key}={value}" for key, value in values.items())
            print_out(f"{label}: {cell.error}" if label else cell.error)
    print_out(plan_summary(planned))


def _time(cell: PlannedCell) -> str:
    if cell.state != "to run":
        return ""
    return "unknown" if math.isnan(cell.seconds) else duration(cell.seconds)


def plan_summary(planned: Sequence[PlannedCell]) -> str:
    """A sentence: how many cells of each state, and the time of the cells to run.

    Example:
        >>> plan_summary([PlannedCell("a", [], "to run", 70.0), PlannedCell("b", [], "cached")])
        '2 jobs: 1 to run, 1 cached; about 70 s, one after another'
    """
    counts = {
        state: sum(cell.state == state for cell in planned)
        for state in ("to run", "cached", "skipped", "fails")
    }
    kinds = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    seconds = [cell.seconds for cell in planned if cell.state == "to run"]
    known = sum(s for s in seconds if not math.isnan(s))
    times = f"; about {duration(known)}, one after another" if known else ""
    unknown = sum(map(math.isnan, seconds))
    times += f"; {unknown} of unknown time: no job of that kind has run yet" if unknown else ""
    return f"{counted(len(planned), 'jobs')}: {kinds}{times}"
