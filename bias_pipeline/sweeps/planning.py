"""``--dry-run``: which cells a command would run, which are there, and how long the rest takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bias_pipeline.catalogue import costs
from bias_pipeline.config.compose import Cell, cell_of
from bias_pipeline.config.expansion import check_captioners
from bias_pipeline.config.overrides import jobs_of
from bias_pipeline.errors import AbsentModelError, BiasPipelineError, NotApplicableError, SweepError
from bias_pipeline.io.grid import print_table
from bias_pipeline.io.progress import duration
from bias_pipeline.io.terminal import say
from bias_pipeline.results.store import Result, ResultStore
from bias_pipeline.sweeps.launch import Sweep, differing, prepare

_PASSED_OVER = (NotApplicableError, AbsentModelError)
_COUNTED = ("images", "model_captions", "human_captions")
_MEASURED = ("ngram", "")  # the encoders whose costs are known beforehand


@dataclass(frozen=True)
class Planned:
    """A cell that a command asks for.

    Attributes:
        run_id: its name, empty where its data cannot be read.
        overrides: what it is, as given.
        state: ``to run``, ``cached``, or ``fails`` where its data cannot be read.
        seconds: expected, 0 if it is not run, NaN if nothing is known of its like.
        error: why it would fail.
    """

    run_id: str
    overrides: Sequence[str]
    state: str
    seconds: float = 0.0
    error: BiasPipelineError | None = None


def foretell(words: Sequence[str], *, lenient: bool = False) -> int:
    """Print what a command would run; nothing is written, but data are read: they decide.

    Args:
        words: as of ``run``.
        lenient: see :func:`bias_pipeline.sweeps.launch.run`.

    Returns:
        The exit code that reading alone would lead to.

    Raises:
        BiasPipelineError: if the configuration is wrong, or no cell's data can be read.
    """
    sweep = prepare(words)
    check_captioners(sweep.overrides, sweep.config)
    planned = plan(sweep)
    _print(planned)
    failed = [own.error for own in planned if own.error is not None]
    if len(failed) == len(planned):
        raise failed[0]
    if lenient or sweep.of_all:
        failed = [error for error in failed if not isinstance(error, _PASSED_OVER)]
    return SweepError.exit_code if failed else 0


def plan(sweep: Sweep) -> list[Planned]:
    """The cells of a sweep, in the order in which they run."""
    store = ResultStore(Path(sweep.config.paths.outputs))
    seen = set[str]()
    return [
        _planned(overrides, cell_of(sweep.loader.job(overrides)), store, seen)
        for overrides in jobs_of(sweep.overrides)
    ]


def _planned(overrides: Sequence[str], cell: Cell, store: ResultStore, seen: set[str]) -> Planned:
    try:
        cell.require()
        name = cell.run_id(cell.corpus())
    except BiasPipelineError as error:
        return Planned("", overrides, "fails", error=error)
    if name in seen or store.load(name) is not None:
        return Planned(name, overrides, "cached")
    seen.add(name)
    return Planned(name, overrides, "to run", _seconds(cell, store))


def _seconds(cell: Cell, store: ResultStore) -> float:
    """By measured rates; networks, for which there are none, by a finished cell of the kind."""
    corpus, seeds, settings = cell.corpus(), len(cell.seeds), cell.tree["metric"]
    if cell.choice("encoder") in _MEASURED:
        return costs.seconds_of(cell.metric.name, corpus, seeds, settings)
    captions = costs.captions(len(corpus), len(corpus.model), len(corpus.human), settings)
    known = [own for result in _alike(cell, store) if (own := _taken(result)) is not None]
    if not known:
        return math.nan
    size, taken = max(known)  # what starting takes says nothing of a larger one
    return captions * seeds * taken / size


def _alike(cell: Cell, store: ResultStore) -> list[Result]:
    """Finished cells of the same metric and encoder."""
    paths = store.root.glob(f"{cell.metric.name}-*")
    found = [result for path in paths if (result := store.load(path.name))]
    return [own for own in found if own.rows and own.rows[0].encoder == cell.choice("encoder")]


def _taken(result: Result) -> tuple[int, float] | None:
    """Captions times seeds and the seconds they took, None where attackers were there already."""
    told = result.manifest
    corpus, training, taken = (told.get(key) for key in ("corpus", "training", "seconds"))
    if not isinstance(corpus, dict) or not isinstance(training, dict) or training.get("cached"):
        return None
    images, model, human = (corpus.get(f"n_{kind}", 0) for kind in _COUNTED)
    size = costs.captions(images, model, human, _settings(result)) * result.rows[0].n_seeds
    return (size, float(taken)) if size and isinstance(taken, int | float) else None


def _settings(result: Result) -> Mapping[str, object]:
    """Those of its metric."""
    config = result.manifest.get("config")
    return config if isinstance(config, Mapping) else {}


def _print(planned: Sequence[Planned]) -> None:
    told = differing([own.overrides for own in planned])
    keys = list(dict.fromkeys(key for own in told for key in own)) or ["run"]
    lines = [
        [*(own.get(key, cell.run_id) for key in keys), cell.state, _time(cell)]
        for own, cell in zip(told, planned, strict=True)
    ]
    print_table([*keys, "state", "about"], lines, keys=len(keys))
    for own, cell in zip(told, planned, strict=True):
        if cell.error is not None:
            label = " ".join(f"{key}={value}" for key, value in own.items())
            say(f"{label}: {cell.error}" if label else cell.error)
    say(summary(planned))


def _time(cell: Planned) -> str:
    if cell.state != "to run":
        return ""
    return "not known" if math.isnan(cell.seconds) else duration(cell.seconds)


def summary(planned: Sequence[Planned]) -> str:
    """How many cells of each kind, and the time of those to run, one after another.

    Example:
        >>> summary([Planned("a", [], "to run", 70.0), Planned("b", [], "cached")])
        '2 cells: 1 to run, 1 cached; about 70 s, one after another'
    """
    counts = {
        state: sum(own.state == state for own in planned) for state in ("to run", "cached", "fails")
    }
    told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    seconds = [own.seconds for own in planned if own.state == "to run"]
    known = sum(own for own in seconds if not math.isnan(own))
    times = f"; about {duration(known)}, one after another" if known else ""
    unknown = sum(math.isnan(own) for own in seconds)
    times += f"; {unknown} of unknown time: no cell of the kind has run yet" if unknown else ""
    plural = "" if len(planned) == 1 else "s"
    return f"{len(planned)} cell{plural}: {told}{times}"
