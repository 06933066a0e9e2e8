"""Jobs and sweeps: checked, handed to Hydra's launcher, and put together again."""

from __future__ import annotations

import json
import logging
import os
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.config.command_line import ALL_METRICS, check_names, options_of
from bias_pipeline.config.compose import INVOCATION, cell_of, composer, new_invocation
from bias_pipeline.config.expansion import ALL_CAPTIONERS, check_captioners, expand
from bias_pipeline.config.hydra_composer import Loader, composition_message
from bias_pipeline.config.overrides import check_size, first_choices, further_choices, idle, sweeps
from bias_pipeline.config.spelling import spelled_out
from bias_pipeline.config.targets import PACKAGE
from bias_pipeline.errors import ResourceError, SweepError, UsageError
from bias_pipeline.io.progress import showing
from bias_pipeline.io.redaction import redact_files
from bias_pipeline.io.terminal import say, warn
from bias_pipeline.results.settings import CHOICES, with_settings
from bias_pipeline.results.store import Result, ResultStore
from bias_pipeline.sweeps import slurm
from bias_pipeline.sweeps.devices import check_devices
from bias_pipeline.sweeps.helpers import helped
from bias_pipeline.sweeps.job import OUTCOME, job
from bias_pipeline.sweeps.sweep_bar import sweep_bar

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra
    from omegaconf import DictConfig


@dataclass(frozen=True)
class Finished:
    """What a job or sweep came to.

    Attributes:
        outputs: the folder of results.
        results: of the cells that are there, in the order of the sweep.
        exit_code: of the whole.
    """

    outputs: Path
    results: Sequence[Result] = ()
    exit_code: int = 0


def run(words: Sequence[str], *, lenient: bool = False) -> Finished:
    """Check everything, run the job or the sweep, print its table.

    Args:
        words: Hydra's flags and overrides.
        lenient: whether cells that the data do not permit are passed over, as by ``metric=all`` and
            ``captioner=all``: who asks for all asks for what there is.

    Raises:
        BiasPipelineError: if the configuration is wrong, or the job failed for that reason.
    """
    sweep = prepare(words)
    overrides, config, loader = sweep.overrides, sweep.config, sweep.loader
    launcher = slurm.launcher_of(config)
    multirun = bool(sweep.options.multirun) or any(sweeps(override) for override in overrides)
    multirun = multirun or launcher == slurm.SLURM  # else Hydra would run it here
    if sweep.shows:
        _show(sweep)
        return Finished(Path(config.paths.outputs))
    for override in sweep.unused:
        warn(f"note: {override} plays no part: nothing that is run here uses it")
    slurm.check(config)
    check_captioners(overrides, config)
    check_devices(overrides, loader, config)
    folder = _job_folder(config, multirun)
    make_folder(folder)
    started = time.monotonic()
    told = showing(sweep_bar(folder, overrides, config.seeds)) if multirun else nullcontext()
    more = multirun and launcher == slurm.HERE and sweep.processes != 1
    shared = (sweep.options, overrides, sweep.processes, folder)
    helpers = helped(*shared) if more else nullcontext()
    with told, helpers, slurm.waiting(launcher, folder):
        _hydra(loader, overrides, multirun)
    redact_files(folder.glob("*.yaml"))
    seconds = time.monotonic() - started
    outputs = Path(config.paths.outputs)
    return _conclude(folder, outputs, multirun, seconds, lenient or sweep.of_all)


@dataclass(frozen=True)
class Sweep:
    """What a command line asks for, checked.

    Attributes:
        words: the command line.
        options: Hydra's flags.
        overrides: with ``all`` replaced by what it stands for.
        config: of its first job.
        loader: composes its jobs, each once.
        networks: whether networks run, which use several cores by themselves.
        unused: overrides that decide nothing.
    """

    words: Sequence[str]
    options: Namespace
    overrides: Sequence[str]
    config: DictConfig
    loader: Loader
    networks: bool = False
    unused: Sequence[str] = ()

    @property
    def processes(self) -> int | str:
        """How many it may use, ``auto`` for as many as there are cores."""
        return 1 if self.networks else self.config.processes

    @property
    def shows(self) -> bool:
        """Whether one of Hydra's own flags asks to be shown something; then nothing runs."""
        return bool(self.options.cfg or self.options.info or self.options.hydra_help)

    @property
    def of_all(self) -> bool:
        """Whether all metrics or captioners are asked for: all means what the data permit."""
        return any(word in self.options.overrides for word in (ALL_METRICS, ALL_CAPTIONERS))


def prepare(words: Sequence[str]) -> Sweep:
    """Check what a command line asks for, every value of a sweep; nothing runs.

    Captioners are names, which the data set checks.

    Raises:
        UsageError: if it does not compose.
    """
    os.environ[INVOCATION] = new_invocation()
    words = spelled_out(words)
    options = options_of(words)
    check_names(options)
    overrides = expand(options)
    check_size(overrides)
    loader = composer(options)
    config = loader.job(first_choices(overrides))
    first = cell_of(config)
    first.loggers()  # a wrong WANDB_MODE is told before the work, not after it
    named = [first_choices([o])[0] if o.startswith("captioner=") else o for o in overrides]
    cells = [first, *(cell_of(loader.job(chosen)) for chosen in further_choices(named))]
    networks = any(cell.runs_networks for cell in cells)
    unused = idle(options.overrides, frozenset[str]().union(*(cell.used for cell in cells)))
    return Sweep(words, options, overrides, config, loader, networks, unused)


def _job_folder(config: DictConfig, multirun: bool) -> Path:
    return Path(config.hydra.sweep.dir if multirun else config.hydra.run.dir)


def make_folder(folder: Path) -> None:
    """Know before any work that results can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(
            f"cannot write to {folder.parent.parent}: {error.strerror}; "
            "choose another folder with paths.outputs=..."
        ) from error


def _hydra(loader: Loader, overrides: Sequence[str], multirun: bool) -> None:
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    logging.raiseExceptions = False  # a log that cannot be written is no reason for a traceback
    try:
        with _initialized(loader) as hydra:
            (hydra.multirun if multirun else hydra.run)("config", job, [*overrides])
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(composition_message(error)) from error
    except OSError as error:
        raise ResourceError(
            f"cannot write {error.filename or 'the files of a job'}: {error.strerror or error}; "
            "choose another folder with paths.outputs=..."
        ) from error


@contextmanager
def _initialized(loader: Loader) -> Iterator[Hydra]:
    """Hydra with our loader, so that it comes by no configuration that is not checked."""
    from hydra._internal.hydra import Hydra
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    try:
        hydra = Hydra(task_name=PACKAGE, config_loader=loader)
        GlobalHydra.instance().initialize(hydra)
        yield hydra
    finally:
        GlobalHydra.instance().clear()


def _show(sweep: Sweep) -> None:
    """What Hydra's own flags ask for.

    Raises:
        UsageError: if there is no such package, or it cannot be resolved alone.
    """
    from hydra._internal.utils import get_args_parser
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    options, overrides = sweep.options, first_choices(sweep.overrides)
    package = options.package
    if package not in (None, "_global_") and OmegaConf.select(sweep.config, package) is None:
        raise UsageError(f"--package={package}: there is no such key")
    try:
        with _initialized(sweep.loader) as hydra:
            if options.cfg:
                hydra.show_cfg("config", [*overrides], options.cfg, package, options.resolve)
            elif options.info:
                hydra.show_info(options.info, config_name="config", overrides=[*overrides])
            else:
                say(*hydra.format_args_help(get_args_parser()).splitlines())
    except OmegaConfBaseException as error:
        raise UsageError(composition_message(error)) from error


def _conclude(
    folder: Path, outputs: Path, multirun: bool, seconds: float, lenient: bool = False
) -> Finished:
    """Print what came out.

    Args:
        folder: of the job or the sweep.
        outputs: where results are.
        multirun: whether it was a sweep.
        seconds: it took.
        lenient: whether cells that the data do not permit are passed over, unless all are.
    """
    from bias_pipeline.analysis.namesakes import files_apart
    from bias_pipeline.report.annotators import bounds
    from bias_pipeline.report.tables import print_results, write_table

    outcomes = _outcomes(folder, multirun)
    store = ResultStore(outputs)
    told_apart = differing([outcome["overrides"] for outcome in outcomes])
    for outcome, own in zip(outcomes, told_apart, strict=True):
        outcome["swept"] = own
    finished = [
        (result, outcome["swept"])
        for outcome in outcomes
        if outcome["status"] != "failed" and (result := store.load(str(outcome["run_id"])))
    ]
    results, namesakes = files_apart([result for result, _ in finished])
    if results:
        swept = [own for _, own in finished]
        results = with_settings(map(_swept, results, swept))
        print_results(results)
        for told in namesakes:
            say(told)
        for found in bounds(results, swept):
            say(found.sentence())
        write_table(outputs, results)
    cached = sum(outcome["status"] == "cached" for outcome in outcomes)
    if cached:
        say(f"not run again, the same cells were there: {cached} of {len(outcomes)}")
    failed = [o for o in outcomes if o["status"] == "failed"]
    skipped = [o for o in failed if o.get("not_applicable")] if lenient and results else []
    for outcome in skipped:
        say(f"skipped: {_labelled(outcome)}{outcome['error']}")
    _tell_work(results, outcomes)
    if results:
        plural = "" if len(outcomes) == 1 else "s"
        n_processes = len({o["process"] for o in outcomes if "process" in o})
        by = f" by {n_processes} processes" if n_processes > 1 else ""
        told = f"{len(outcomes)} cell{plural} in {seconds:.1f} s{by}; results in {outputs}"
        warn(told)
    code = _exit_code([o for o in failed if o not in skipped], len(outcomes), multirun)
    return Finished(outputs, results, code)


def _swept(result: Result, swept: Mapping[str, str]) -> Result:
    """A result with what its sweep spreads and its rows do not tell."""
    told = {key: value for key, value in swept.items() if key not in CHOICES}
    return replace(result, settings=told)


def _tell_work(results: Sequence[Result], outcomes: Sequence[Mapping[str, Any]]) -> None:
    """What the attackers of the cells that ran had to do, where that was less than one thinks."""
    ran = {str(outcome.get("run_id")) for outcome in outcomes if outcome["status"] == "done"}
    accounts: list[Any] = [own.manifest.get("training") for own in results if own.run_id in ran]
    trained, cached, fresh, kept, cut = (
        sum(account.get(key, 0) for account in accounts if account)
        for key in ("trained", "cached", "embedded", "embedded_before", "cut")
    )
    if cached and not trained:
        say(f"nothing was embedded or trained: the predictions of all {cached} attackers were kept")
    if fresh or kept:
        say(f"embedded: {fresh:,} captions; {kept:,} had been embedded before")
    if cut:
        say(f"{cut:,} captions were longer than the encoder reads and were cut")


def _outcomes(folder: Path, multirun: bool) -> list[dict[str, Any]]:
    """How each job ended, in the order of the sweep; one that left no word has failed."""
    jobs = [folder]
    if multirun:
        jobs = slurm.job_folders(folder)
    if not jobs:
        raise UsageError("the sweep has no jobs")
    return [_outcome(path) for path in jobs]


def _outcome(job_folder: Path) -> dict[str, Any]:
    try:
        outcome: dict[str, Any] = json.loads((job_folder / OUTCOME).read_text())
    except (OSError, ValueError):
        return slurm.last_words(job_folder)
    return outcome


def differing(jobs: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """For each job's overrides those in which the jobs differ, key to value.

    Example:
        >>> differing([["metric=lic", "seeds=1"], ["metric=dpa", "seeds=1"]])
        [{'metric': 'lic'}, {'metric': 'dpa'}]
    """
    told = []
    for overrides in jobs:
        parts = (override.partition("=") for override in overrides)
        told.append({key: value for key, _, value in parts})
    keys = dict.fromkeys(key for own in told for key in own)
    differing = [key for key in keys if len({own.get(key) for own in told}) > 1]
    return [{key: own[key] for key in differing if key in own} for own in told]


def _labelled(outcome: Mapping[str, Any]) -> str:
    """The settings in which a job differs from the others of its sweep, as a prefix."""
    label = " ".join(f"{key}={value}" for key, value in outcome["swept"].items())
    return f"{label}: " if label else ""


def _exit_code(failed: Sequence[Mapping[str, Any]], n_jobs: int, multirun: bool) -> int:
    for outcome in failed:
        warn(f"error: {_labelled(outcome)}{outcome['error']}")
    if not failed:
        return 0
    if not multirun:
        return int(failed[0]["exit_code"])
    warn(f"{len(failed)} of {n_jobs} jobs failed; the others are kept")
    return SweepError.exit_code
