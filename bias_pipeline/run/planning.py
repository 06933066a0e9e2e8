"""``--dry-run``: says which cells a command would run, which are cached, and the expected time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from bias_pipeline.errors import (
    AbsentModelError,
    BiasPipelineError,
    NotApplicableError,
    SweepError,
    inflect,
)
from bias_pipeline.io.progress import duration
from bias_pipeline.io.terminal import print_out, warn
from bias_pipeline.metrics import catalogue
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Table
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run.compose import Cell, Sweep
from bias_pipeline.run.launch import check_captioners, of_all, parse_sweep
from bias_pipeline.run.outcomes import differing
from bias_pipeline.run.sweep_bar import costs_of_sweep

_MEASURED = ("ngram", "")  # encoders whose cost is known
_SHORT_S = 10.0  # shorter work is not announced
TO_RUN, CACHED, SKIPPED, FAILS = "to run", "cached", "skipped", "fails"


def announce(sweep: Sweep) -> None:
    """Print what will run and, if the time is long or unknown, how long it will take."""
    first, jobs = sweep.first_cell, sweep.jobs
    chosen = [word.removeprefix("metric=") for job in jobs for word in job if word[:7] == "metric="]
    try:
        first.require()
        store, corpus = ResultStore(first.tree["paths"]["outputs"]), first.corpus()
        if any(cell.runs_networks for cell in sweep.sample):
            seconds = len(jobs) * _seconds(first, store)
        else:
            seconds = sum(cost for cost, _ in costs_of_sweep(sweep, corpus))
        if len(jobs) == 1 and store.load(first.run_id(corpus)) is not None:
            return
    except BiasPipelineError:
        return  # the job will say what is wrong
    if seconds < _SHORT_S:
        return
    if math.isnan(seconds):
        network = first.choice("encoder") or "these networks"
        time = f"no job with {network} has run here yet, so its time is unknown"
    else:
        time = f"about {duration(seconds)}" + (", one after another" if len(jobs) > 1 else "")
    names = ", ".join(dict.fromkeys(chosen or [first.metric.name]))
    warn(f"{inflect(len(jobs), 'jobs')} of {names}, {inflect(len(first.seeds), 'seeds')}: {time}")


def dry_run(words: Sequence[str]) -> int:
    sweep = parse_sweep(words)
    check_captioners(sweep)
    return print_plan([*sweep], lenient=of_all(sweep))


def print_plan(cells: Sequence[Cell], *, lenient: bool) -> int:
    """Print which cells of a folder would run; the function reads the data and writes nothing.

    With ``lenient``, a cell is shown as skipped instead of failing if its data do not permit it or
    if its model is absent.
    """
    store = ResultStore(cells[0].tree["paths"]["outputs"])
    differences = differing([cell.overrides for cell in cells])
    columns = list(dict.fromkeys(key for values in differences for key in values))
    names, trained = set[str](), set[str]()
    states, seconds, lines = [], [], []
    refused: list[tuple[str, BiasPipelineError]] = []
    for cell, values in zip(cells, differences, strict=True):
        name, time = "", ""
        try:
            cell.require()
            name = cell.run_id(cell.corpus())
            state = CACHED if name in names or store.load(name) is not None else TO_RUN
        except BiasPipelineError as error:
            skips = lenient and isinstance(error, NotApplicableError | AbsentModelError)
            state = SKIPPED if skips else FAILS
            refused.append((" ".join(f"{key}={value}" for key, value in values.items()), error))
        names.add(name)
        if state == TO_RUN:
            seconds.append(_seconds(cell, store, trained=cell.attackers in trained))
            trained |= {cell.attackers} - {""}
            time = "unknown" if math.isnan(seconds[-1]) else duration(seconds[-1])
        states.append(state)
        lines.append([*([values.get(key, "") for key in columns] or [name]), state, time])
    keys = columns or ["run"]
    print_table(Table("", [*keys, "state", "about"], lines, keys=len(keys)))
    for label, refusal in refused:
        print_out(f"{label}: {refusal}" if label else refusal)
    print_out(plan_summary(states, seconds))
    if len(refused) == len(cells):
        raise refused[0][1]
    return SweepError.exit_code if FAILS in states else 0


def plan_summary(states: Sequence[str], seconds: Sequence[float]) -> str:
    """A sentence on the number of cells in each state, and the time that the cells will take.

    Example:
        >>> plan_summary([TO_RUN, CACHED], [70.0])
        '2 jobs: 1 to run, 1 cached; about 70 s, one after another'
    """
    counts = Counter(states)
    kinds = [f"{counts[s]} {s}" for s in (TO_RUN, CACHED, SKIPPED, FAILS) if counts[s]]
    known = sum(s for s in seconds if not math.isnan(s))
    times = f"; about {duration(known)}, one after another" if known else ""
    unknown = sum(map(math.isnan, seconds))
    times += f"; {unknown} of unknown time: no job of that kind has run yet" if unknown else ""
    return f"{inflect(len(states), 'jobs')}: {', '.join(kinds)}{times}"


def _seconds(cell: Cell, store: ResultStore, *, trained: bool = False) -> float:
    """Expected seconds, from measured rates or, for networks, from finished cells of the kind."""
    if cell.choice("encoder") in _MEASURED:
        return cell.expected_seconds(trained=trained)
    corpus, settings = cell.corpus(), cell.tree["metric"]
    captions = catalogue.captions(len(corpus), len(corpus.model), len(corpus.human), settings)
    samples = [*_costs_of_alike(cell, store)]
    if not samples:
        return math.nan
    size, taken = max(samples)  # the largest cell, in which the time to start matters least
    return captions * len(cell.seeds) * taken / size


def _costs_of_alike(cell: Cell, store: ResultStore) -> Iterator[tuple[int, float]]:
    """Captions times seeds, and seconds, of each finished cell of the same metric and encoder.

    Cells with cached attackers are left out.
    """
    for path in store.root.glob(f"{cell.metric.name}-*"):
        result = store.load(path.name)
        if not result or not result.rows or result.rows[0].encoder != cell.choice("encoder"):
            continue
        facts = result.facts
        if facts.training is None or facts.training.cached or math.isnan(facts.seconds):
            continue
        sizes = facts.corpus.n_images, facts.corpus.n_model_captions, facts.corpus.n_human_captions
        if size := catalogue.captions(*sizes, facts.config) * result.rows[0].n_seeds:
            yield size, facts.seconds
