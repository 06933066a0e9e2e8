"""Runs a cell as a job, and records the outcome of the job in its folder.

So a failed job does not end a sweep, and the folders show the progress of jobs on any machine.
Hydra runs no jobs. Jobs write the same files as with Hydra's launcher, in half of the time.
"""

from __future__ import annotations

import json
import logging
import os
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, partial
from io import StringIO
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

import yaml

from bias_pipeline.errors import (
    NO_MEMORY,
    AbsentModelError,
    BiasPipelineError,
    NotApplicableError,
    ResourceError,
    is_out_of_memory,
    refused_by_system,
    unwritable,
)
from bias_pipeline.io import plugins, signals
from bias_pipeline.io.files import replace_file
from bias_pipeline.io.machine import return_freed_memory
from bias_pipeline.io.paths import places
from bias_pipeline.io.terminal import guard, redact, redact_files, redacted_data, trace_of
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import NAMED, READ_AS, read_as
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import slurm
from bias_pipeline.run.compose import Cell, Sweep, checked_cell, composer
from bias_pipeline.run.overrides import as_hydra_writes, jobs_of
from bias_pipeline.run.references import References
from bias_pipeline.run.yaml_files import as_written, stamp

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus
    from bias_pipeline.run.hydra_composer import Loader

log = logging.getLogger(__name__)

OUTCOME = "outcome.json"
VISIBLE = "CUDA_VISIBLE_DEVICES"  # the devices that a process sees


def run_one(sweep: Sweep, folder: Path) -> Result | None:
    """Run the only job of a command; returns its result, or None if the job failed."""
    from hydra.types import RunMode

    written = as_written(sweep.config)
    written["hydra"]["mode"] = RunMode.RUN
    return _run_job(written, folder, lambda: sweep.first_cell)


def run_sweep(sweep: Sweep, folder: Path) -> list[Result | None]:
    """Run the jobs of a sweep; returns results, or None for a result in another process."""
    from hydra.types import RunMode

    config = sweep.loader.load_configuration("config", [*sweep.overrides], RunMode.MULTIRUN)
    given, launcher = config.hydra.overrides, slurm.launcher_of(config)
    _write_yaml(folder / "multirun.yaml", as_written(config))
    jobs = [[*map(as_hydra_writes, words)] for words in jobs_of(given.task)]
    for words in jobs:
        sweep.loader.task(words)  # a job that does not compose is refused before any runs
    if launcher == slurm.HERE:
        return [
            _run_composed(sweep.loader, [*given.hydra, *words], folder / str(number), number)
            for number, words in enumerate(jobs)
        ]
    job = JobElsewhere(sweep.options, [*given.hydra], folder.absolute(), launcher)
    submitted = slurm.submit(job, [*enumerate(jobs)], config)
    slurm.wait_for(submitted, launcher)
    for (number, words), one in zip(enumerate(jobs), submitted, strict=True):
        place = folder / str(number)
        if outcome_in(place) is None:  # the job was killed, or never started
            make_folder(place)
            lost = (
                f"the job ended without an outcome; it was job {one.job_id}; its log is "
                f"{one.paths.stderr}"
            )
            failed = {"status": "failed", "exit_code": 1, "error": lost}
            record(place, {**failed, "overrides": redacted_data(words)})
    return [None] * len(jobs)


@dataclass(frozen=True)
class JobElsewhere(slurm.Requeued):
    """A job of a sweep that submitit runs in another process."""

    options: Namespace  # Hydra's flags
    hydra: Sequence[str]  # overrides of Hydra's own settings
    folder: Path  # the sweep's folder
    launcher: str

    def __call__(self, numbered: tuple[int, Sequence[str]]) -> None:
        """Run one job; the waiting process reads the result from files."""
        import submitit

        number, words = numbered

        guard()  # this process did not start in commands/main.py
        job_id = submitit.JobEnvironment().job_id
        folder, words = self.folder / str(number), [*self.hydra, *words]
        _run_composed(composer(self.options), words, folder, number, job_id, self.launcher)


def _run_composed(
    loader: Loader,
    words: Sequence[str],
    folder: Path,
    number: int,
    job_id: str = "",
    launcher: str = slurm.HERE,
) -> Result | None:
    """Compose and run the job of a sweep that these overrides describe."""
    written = loader.with_hydra(words)
    written["hydra"]["job"] |= {"id": job_id or str(number), "num": number}
    compose = partial(checked_cell, written, written["hydra"]["runtime"]["choices"])
    return _run_job(written, folder, compose, launcher)


def _run_job(
    written: Mapping[str, Any],
    folder: Path,
    compose: Callable[[], Cell],
    launcher: str = slurm.HERE,
) -> Result | None:
    """Run a job with its log, and write its configuration as Hydra would."""
    from hydra.core.utils import configure_log
    from omegaconf import OmegaConf

    hydra = written["hydra"]
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    hydra["runtime"]["output_dir"] = str(folder)
    logged = References(written).resolved_at("hydra", "job_logging")
    settings: Any = OmegaConf.create({"logging": logged, "verbose": hydra["verbose"]})
    configure_log(settings.logging, settings.verbose)
    overrides = [str(word) for word in hydra["overrides"]["task"]]
    if hydra["output_subdir"] is not None:
        files = folder / hydra["output_subdir"]
        files.mkdir(exist_ok=True)
        _write_yaml(files / "hydra.yaml", {"hydra": hydra})
        task = {key: node for key, node in written.items() if key != "hydra"}
        _write_yaml(files / "config.yaml", task)
        _write_yaml(files / "overrides.yaml", overrides)
        redact_files(files.glob("*.yaml"))
    number = hydra["job"].get("id", "???")
    where = {"launcher": launcher, "id": slurm.own_job() if number == "???" else str(number)}
    result = run_recorded(compose, folder, overrides, where)
    close_log()
    # The draws and tables of a large sweep would fill the memory.
    return result and replace(result, draws={}, tables={})


def _write_yaml(path: Path, data: object) -> None:
    """Write YAML like OmegaConf, but seven times as fast if PyYAML has its writer in C."""
    text = yaml.dump(
        data, Dumper=_YamlWriter, default_flow_style=False, allow_unicode=True, sort_keys=False
    )
    path.write_text(text, encoding="utf-8")


_TEXT_TAG = "tag:yaml.org,2002:str"


class _YamlWriter(getattr(yaml, "CDumper", yaml.Dumper)):  # type: ignore[misc]
    """Quotes text that OmegaConf would read as a number or a truth value."""

    def ignore_aliases(self, data: object) -> bool:
        """True, so that a list in two places is written twice."""
        return True


def _represent(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(_TEXT_TAG, text, style=_style(text))


@lru_cache(maxsize=100_000)
def _style(text: str) -> str | None:
    """The quotes that OmegaConf writes; cached, since cells of a sweep repeat most texts."""
    from omegaconf._utils import OmegaConfDumper

    style: str | None = OmegaConfDumper.str_representer(yaml.Dumper(StringIO()), text).style
    return style


_YamlWriter.add_representer(str, _represent)
_YamlWriter.add_multi_representer(Enum, lambda dumper, member: _represent(dumper, member.name))


def run_recorded(
    compose: Callable[[], Cell],
    folder: Path,
    overrides: Sequence[str],
    where: Mapping[str, object],
) -> Result | None:
    """Run a cell unless a helper has run it, record its outcome, and return its result."""
    signals.stop_if_requested()
    if done_in(folder):
        return None
    result, started = None, time.monotonic()
    outcome: dict[str, object] = {"overrides": redacted_data(overrides)}
    try:
        here = compose()
        here.require()
        facts = {"overrides": overrides, "job": {**where, "device": os.environ.get(VISIBLE)}}
        result, cached = load_or_run(here, here.corpus(), **facts)
        outcome |= outcome_of(result, time.monotonic() - started, cached=cached)
    except (Exception, SystemExit) as error:  # sys.exit in a metric must not end the sweep
        if _is_preemption(error):
            raise
        outcome |= _failure(error, folder)
    signals.stop_if_requested()
    if not done_in(folder):  # otherwise a helper computed the cell while this process waited
        record(folder, outcome)
    result = result and replace(result, predictions=(), ids=())
    return_freed_memory()
    return result


def make_folder(folder: Path) -> None:
    """Create a folder before any work; a folder that cannot be written is refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(f"to {folder.parent.parent}", error) from error


_OUTCOMES: dict[Path, tuple[object, Mapping[str, Any]]] = {}  # stamp and content of each file


def record(folder: Path, outcome: Mapping[str, Any]) -> None:
    path = folder.absolute() / OUTCOME
    replace_file(path, json.dumps(outcome).encode(), sync=False)
    _OUTCOMES[path] = stamp(path), outcome


def outcome_in(folder: Path) -> Mapping[str, Any] | None:
    """The outcome of a job, or None before the job has ended.

    An unchanged file is not read again. Content that is not JSON raises a ValueError.
    """
    path = folder.absolute() / OUTCOME
    now = stamp(path)
    if now is None:
        return None
    if path not in _OUTCOMES or _OUTCOMES[path][0] != now:
        _OUTCOMES[path] = now, json.loads(path.read_bytes())
    return _OUTCOMES[path][1]


def done_in(folder: Path) -> bool:
    """Whether a job's folder records that its cell was computed."""
    outcome = outcome_in(folder)
    return outcome is not None and outcome["status"] == "done"


def _is_preemption(error: Exception | SystemExit) -> bool:
    """Whether submitit ends this process because Slurm will run its job again."""
    names = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    # Every frame counts, not only the last: wandb wraps sys.exit in a function.
    called = any(name.partition(".")[0] == "submitit" for name in names)
    return called and isinstance(error, SystemExit)


def _failure(error: Exception | SystemExit, folder: Path) -> dict[str, object]:
    """The outcome of a failed cell: a sentence on a fault that the user can mend, or on a bug."""
    log.info("failed", exc_info=error)
    if is_out_of_memory(error) and not isinstance(error, BiasPipelineError):
        error = ResourceError(NO_MEMORY)
    if isinstance(error, OSError) and error.filename is not None:
        error = refused_by_system(error)
    if isinstance(error, BiasPipelineError):
        code, message = error.exit_code, redact(str(error))
    else:
        code, message = 1, slurm.ran_out_of_time(error) or _bug(error, folder / "traceback.txt")
    lenient = isinstance(error, NotApplicableError | AbsentModelError)
    return {
        "status": "failed",
        "exit_code": code,
        "error": message,
        "not_applicable": lenient,
    }


def _bug(error: BaseException, trace: Path) -> str:
    """A sentence that says whose package has the bug, and which file has the trace."""
    trace.write_text("\n".join(trace_of(error)) + "\n", encoding="utf-8")
    message = redact(f"{type(error).__name__}: {error}")
    files = [Path(frame.f_code.co_filename) for frame, _ in walk_tb(error.__traceback__)]
    for name, place in places().items():
        if any(path.is_relative_to(place) for path in files):
            return f"an error in your package {name!r}, whose traceback is in {trace}: {message}"
    return f"a bug, please report it with {trace}: {message}"


def close_log() -> None:
    """Close the job's log file; the next job of this process opens another."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, logging.FileHandler):
            root.removeHandler(handler)
            handler.close()


def outcome_of(result: Result, seconds: float, *, cached: bool) -> dict[str, object]:
    """The outcome of a cell that did not fail, with the time that it took."""
    status = "cached" if cached else "done"
    known = {"run_id": result.run_id, "text": result.facts.text, "seconds": round(seconds, 3)}
    return {**known, "status": status, "exit_code": 0, "process": os.getpid()}


def load_or_run(here: Cell, corpus: Corpus, **facts: object) -> tuple[Result, bool]:
    """The result of a cell, and whether it was cached; new results are passed to loggers."""
    identity = here.run_id(corpus)
    store = ResultStore(here.tree["paths"]["outputs"])
    logged = store.load_unchanged(identity) if store.is_logged(identity) else None
    if logged is not None:
        return read_as(logged, _text(here)), True  # even while another process claims it
    with store.claim(identity):
        finished = store.load_unchanged(identity)
        result = finished or _compute(here, corpus, identity, facts)
        stored = finished or store.save(result)
        if not store.is_logged(identity):
            _log(here, result, resumed=finished is not None)
            store.mark_logged(identity)
    return read_as(stored, _text(here)), finished is not None


def _text(here: Cell) -> dict[str, object]:
    """How captions are read, without settings that change no caption and so need no new run."""
    return {key: value for key, value in here.tree["text"].items() if key in READ_AS}


def _log(here: Cell, result: Result, *, resumed: bool) -> None:
    """Pass the result to the loggers under a name that no other captioner has."""
    from bias_pipeline.report.name_collisions import as_given

    named = as_given(result, str(here.tree["captioner"] or ""))
    named = replace(named, manifest=redacted_data(named.manifest))
    for logger in here.loggers():
        logger.try_log(named, resumed=resumed)


def _compute(here: Cell, corpus: Corpus, identity: str, facts: Mapping[str, object]) -> Result:
    from bias_pipeline.run.cell import run_cell

    included = {name: str(place) for name, place in places().items()}
    described = {"config": here.tree["metric"], "keys": here.keys, "included": included}
    if included and (releases := plugins.releases()):
        described["plugins"] = releases
    facts = {**described, "text": _text(here), **facts}
    metric = here.build("metric")
    return run_cell(
        corpus,
        metric,
        here.seeds,
        run_id=identity,
        choices={name: here.choice(name) for name in NAMED},
        facts=facts,
        label_noise=here.label_noise,
        gold=here.gold,
    )
