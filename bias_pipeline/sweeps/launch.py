"""Jobs and sweeps: checks them, runs them by Hydra's launcher, collects the results."""

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

from bias_pipeline.analysis.name_collisions import SWEPT, resolve_file_collisions, swept_names
from bias_pipeline.config.compose import INVOCATION, cell_of, composer, new_invocation
from bias_pipeline.config.expansion import ALL_CAPTIONERS, check_captioners, expand
from bias_pipeline.config.hydra_composer import Loader, composition_message
from bias_pipeline.config.overrides import (
    ALL_METRICS,
    check_names,
    check_size,
    expand_intersections,
    options_of,
    other_overrides,
    override_values,
    representative_overrides,
    sweeps,
    unused_overrides,
)
from bias_pipeline.config.targets import PACKAGE
from bias_pipeline.errors import ResourceError, SweepError, UsageError
from bias_pipeline.io.progress import showing
from bias_pipeline.io.terminal import print_out, redact_files, warn
from bias_pipeline.results.settings import ANNOTATOR, CHOICES, with_settings
from bias_pipeline.results.store import Result, ResultStore
from bias_pipeline.sweeps import slurm
from bias_pipeline.sweeps.job import OUTCOME, VISIBLE, job, sweep_bar
from bias_pipeline.sweeps.worker_processes import check_devices, helped

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra
    from omegaconf import DictConfig


@dataclass(frozen=True)
class SweepOutcome:
    """The result of a job or sweep.

    Attributes:
        outputs: the folder of results.
        results: of the cells that succeeded, in the order of the sweep.
        exit_code: of the command.
    """

    outputs: Path
    results: Sequence[Result] = ()
    exit_code: int = 0

    def with_draws(self) -> list[Result]:
        """The results with their headlines under every resampling, which comparisons need."""
        store = ResultStore(self.outputs)
        return [replace(result, draws=store.draws(result.run_id)) for result in self.results]


def run(words: Sequence[str], *, lenient: bool = False) -> SweepOutcome:
    """Check everything, run the job or the sweep, print its table.

    Args:
        words: Hydra's flags and overrides.
        lenient: whether to skip cells that the data do not permit. ``metric=all`` and
            ``captioner=all`` skip them too, unless none is left.

    Raises:
        BiasPipelineError: if the configuration is wrong, or the job failed for that reason.
    """
    sweep = parse_sweep(words)
    overrides, config, loader = sweep.overrides, sweep.config, sweep.loader
    launcher = slurm.launcher_of(config)
    multirun = bool(sweep.options.multirun) or any(sweeps(override) for override in overrides)
    multirun = multirun or launcher == slurm.SLURM  # a single run would not use the launcher
    if sweep.shows:
        _show(sweep)
        return SweepOutcome(Path(config.paths.outputs))
    for override in sweep.unused:
        warn(f"note: {override} has no effect: nothing that runs here uses it")
    slurm.check_slurm(config)
    check_captioners(overrides, config)
    if sweep.devices:
        os.environ[VISIBLE] = sweep.devices[0]  # helpers have the others
    check_devices(overrides, loader, config)
    os.environ[SWEPT] = json.dumps(swept_names(_captioners(overrides)))
    folder = _job_folder(config, multirun)
    make_folder(folder)
    started = time.monotonic()
    progress = showing(sweep_bar(folder, overrides, config.seeds)) if multirun else nullcontext()
    more = multirun and launcher == slurm.HERE and sweep.processes != 1
    shared = (sweep.options, overrides, sweep.processes, folder, sweep.devices)
    helpers = helped(*shared) if more else nullcontext()
    with progress, helpers, slurm.waiting(launcher, folder):
        _hydra(loader, overrides, multirun)
    redact_files(folder.glob("*.yaml"))
    seconds = time.monotonic() - started
    outputs = Path(config.paths.outputs)
    return _conclude(folder, outputs, multirun, seconds, lenient, sweep.of_all)


def _captioners(overrides: Sequence[str]) -> list[str]:
    """The captioners of all jobs, as given."""
    chosen = [override for override in overrides if override.startswith("captioner=")]
    return [value for override in chosen for value in override_values(override)]


@dataclass(frozen=True)
class SweepRequest:
    """A checked command line.

    Attributes:
        words: the command line.
        options: Hydra's flags.
        overrides: with ``all`` replaced by its values.
        config: of its first job.
        loader: composes its jobs, each once.
        networks: whether networks run, which use several cores by themselves.
        unused: overrides without effect.
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
        """How many processes it may use, ``auto`` for one a core."""
        if self.devices:
            return len(self.devices)
        return 1 if self.networks and self.config.processes == "auto" else self.config.processes

    @property
    def devices(self) -> list[str]:
        """The GPUs that its processes share out, one each; empty if none are named."""
        return [str(device) for device in self.config.devices or ()]

    @property
    def shows(self) -> bool:
        """Whether one of Hydra's flags only prints something; then nothing runs."""
        return bool(self.options.cfg or self.options.info or self.options.hydra_help)

    @property
    def of_all(self) -> bool:
        """Whether the command has ``metric=all`` or ``captioner=all``."""
        return any(word in self.options.overrides for word in (ALL_METRICS, ALL_CAPTIONERS))


def parse_sweep(words: Sequence[str]) -> SweepRequest:
    """Check a command line and every value of its sweep; nothing runs.

    The data set checks the names of captioners.

    Raises:
        UsageError: if it does not compose.
    """
    os.environ[INVOCATION] = new_invocation()
    words = expand_intersections(words)
    options = options_of(words)
    check_names(options)
    overrides = expand(options)
    check_size(overrides)
    loader = composer(options)
    config = loader.job(representative_overrides(overrides))
    first = cell_of(config)
    first.loggers()  # so that a wrong WANDB_MODE is reported before the work
    named = [
        representative_overrides([o])[0] if o.startswith("captioner=") else o for o in overrides
    ]
    cells = [first, *(cell_of(loader.job(chosen)) for chosen in other_overrides(named))]
    networks = any(cell.runs_networks for cell in cells)
    unused = unused_overrides(
        options.overrides, frozenset[str]().union(*(cell.used for cell in cells))
    )
    return SweepRequest(words, options, overrides, config, loader, networks, unused)


def _job_folder(config: DictConfig, multirun: bool) -> Path:
    return Path(config.hydra.sweep.dir if multirun else config.hydra.run.dir)


def make_folder(folder: Path) -> None:
    """Create the folder, before any work."""
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

    logging.raiseExceptions = False  # no traceback for a log that cannot be written
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
    """Hydra with our loader, so that it uses only checked configurations."""
    from hydra._internal.hydra import Hydra
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    try:
        hydra = Hydra(task_name=PACKAGE, config_loader=loader)
        GlobalHydra.instance().initialize(hydra)
        yield hydra
    finally:
        GlobalHydra.instance().clear()


def _show(sweep: SweepRequest) -> None:
    """Print what Hydra's flags request.

    Raises:
        UsageError: if there is no such package, or it cannot be resolved alone.
    """
    from hydra._internal.utils import get_args_parser
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    options, overrides = sweep.options, representative_overrides(sweep.overrides)
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
                print_out(*hydra.format_args_help(get_args_parser()).splitlines())
    except OmegaConfBaseException as error:
        raise UsageError(composition_message(error)) from error


def _conclude(
    folder: Path, outputs: Path, multirun: bool, seconds: float, lenient: bool, of_all: bool
) -> SweepOutcome:
    """Print the results.

    Args:
        folder: of the job or the sweep.
        outputs: the folder of results.
        multirun: whether it was a sweep.
        seconds: how long it took.
        lenient: whether to skip cells that the data do not permit.
        of_all: whether to skip them unless none is left.
    """
    outcomes = _outcomes(folder, multirun)
    store = ResultStore(outputs)
    differences = differing([outcome["overrides"] for outcome in outcomes])
    for outcome, values in zip(outcomes, differences, strict=True):
        outcome["swept"] = values
    finished = [
        (result, outcome["swept"])
        for outcome in outcomes
        if outcome["status"] != "failed" and (result := store.load(str(outcome["run_id"])))
    ]
    results = _print_finished(finished, outputs) if finished else ()
    cached = sum(outcome["status"] == "cached" for outcome in outcomes)
    if cached:
        print_out(f"cached, not run again: {cached} of {len(outcomes)} cells")
    failed = [o for o in outcomes if o["status"] == "failed"]
    skipped = [o for o in failed if o.get("not_applicable") and (lenient or (of_all and results))]
    for outcome in skipped:
        print_out(f"skipped: {_labelled(outcome)}{outcome['error']}")
    _print_work(results, outcomes)
    if results:
        plural = "" if len(outcomes) == 1 else "s"
        n_processes = len({o["process"] for o in outcomes if "process" in o})
        by = f" by {n_processes} processes" if n_processes > 1 else ""
        summary = f"{len(outcomes)} cell{plural} in {seconds:.1f} s{by}; results in {outputs}"
        warn(summary)
    code = _exit_code([o for o in failed if o not in skipped], len(outcomes), multirun)
    return SweepOutcome(outputs, results, code)


def _print_finished(
    finished: Sequence[tuple[Result, Mapping[str, str]]], outputs: Path
) -> Sequence[Result]:
    """Print and write the table of finished cells.

    Args:
        finished: results, each with the overrides in which it differs from the others.
        outputs: the folder of results.

    Returns:
        The results with these settings, under names that no two captioners share.
    """
    from bias_pipeline.report.tables import print_results, write_table

    apart, namesakes = resolve_file_collisions([result for result, _ in finished])
    swept = [values for _, values in finished]
    results = with_settings(map(_swept, apart, swept))
    print_results(results)
    for sentence in namesakes:
        print_out(sentence)
    if any(ANNOTATOR in values for values in swept):
        from bias_pipeline.report.sections import bounds

        for bound in bounds(results, swept):
            print_out(bound.sentence())
    write_table(outputs, results)
    return results


def _swept(result: Result, swept: Mapping[str, str]) -> Result:
    """A result with the swept settings that its rows have no column for."""
    settings = {key: value for key, value in swept.items() if key not in CHOICES}
    return replace(result, settings=settings)


def _print_work(results: Sequence[Result], outcomes: Sequence[Mapping[str, Any]]) -> None:
    """Print what the cells that ran took from caches, and how many captions were cut."""
    ran = {str(outcome.get("run_id")) for outcome in outcomes if outcome["status"] == "done"}
    accounts: list[Any] = [
        result.manifest.get("training") for result in results if result.run_id in ran
    ]
    trained, cached, fresh, embedded_before, cut = (
        sum(account.get(key, 0) for account in accounts if account)
        for key in ("trained", "cached", "embedded", "embedded_before", "cut")
    )
    if cached and not trained:
        print_out(
            f"nothing was embedded or trained: all {cached} attackers' predictions were cached"
        )
    if fresh or embedded_before:
        print_out(f"embedded: {fresh:,} captions; {embedded_before:,} were embedded before")
    if cut:
        print_out(f"{cut:,} captions were cut, being longer than the encoder reads")


def _outcomes(folder: Path, multirun: bool) -> list[dict[str, Any]]:
    """The outcome of each job, in the order of the sweep; a job without one has failed."""
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
    """For each job the overrides in which the jobs differ, key to value.

    Example:
        >>> differing([["metric=lic", "seeds=1"], ["metric=dpa", "seeds=1"]])
        [{'metric': 'lic'}, {'metric': 'dpa'}]
    """
    all_overrides = []
    for overrides in jobs:
        parts = (override.partition("=") for override in overrides)
        all_overrides.append({key: value for key, _, value in parts})
    keys = dict.fromkeys(key for job_overrides in all_overrides for key in job_overrides)
    differing = [
        key for key in keys if len({job_overrides.get(key) for job_overrides in all_overrides}) > 1
    ]
    return [
        {key: job_overrides[key] for key in differing if key in job_overrides}
        for job_overrides in all_overrides
    ]


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
    warn(f"{len(failed)} of {n_jobs} jobs failed; the results of the others are saved")
    return SweepError.exit_code
