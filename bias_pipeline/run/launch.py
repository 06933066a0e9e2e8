"""Runs a job or a sweep: expands ``all``, checks everything, runs the jobs, collects results."""

from __future__ import annotations

import json
import logging
import os
import time
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from functools import partial
from io import StringIO
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from bias_pipeline.errors import (
    BiasPipelineError,
    DataError,
    ResourceError,
    UsageError,
    unwritable,
)
from bias_pipeline.io.paths import choices_of, conf_dir, group_choices
from bias_pipeline.io.progress import showing
from bias_pipeline.io.terminal import print_out, redact_files, warn, whole_configurations
from bias_pipeline.report.name_collisions import SWEPT, swept_names
from bias_pipeline.results.settings import ANNOTATOR
from bias_pipeline.run import slurm
from bias_pipeline.run.compose import (
    INVOCATION,
    Cell,
    Sweep,
    composed_cell,
    new_invocation,
)
from bias_pipeline.run.hydra_composer import Loader, composition_message, further_folders
from bias_pipeline.run.job import (
    VISIBLE,
    make_folder,
    run_one,
    run_recorded,
    run_sweep,
)
from bias_pipeline.run.outcomes import SweepOutcome, conclude
from bias_pipeline.run.overrides import (
    ALL_METRICS,
    check_folders,
    check_names,
    check_size,
    choices_in,
    each_value_once,
    expand_intersections,
    jobs_of,
    options_of,
    override_values,
    quote_value,
    representative_overrides,
    sweeps,
    unused_overrides,
)
from bias_pipeline.run.sweep_bar import SweepBar, costs_of_cells, costs_of_sweep
from bias_pipeline.run.targets import PACKAGE
from bias_pipeline.run.worker_processes import check_devices, worker_pool
from bias_pipeline.run.yaml_files import check_yaml, yaml_fault

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra

    from bias_pipeline.corpus.corpus import Corpus
    from bias_pipeline.results.rows import Result

NOT_PERMITTED = (DataError.exit_code, ResourceError.exit_code)  # unfit data, or no model
JOBS = ".hydra_jobs"  # the folder of jobs inside the folder of results, as in conf/config.yaml


def run(
    words: Sequence[str],
    *,
    skips: Collection[int] = (),
    announce: Callable[[Sweep], None] = lambda sweep: None,
) -> SweepOutcome:
    """Check a command, run its job or its sweep, and print its table.

    The function calls ``announce`` before anything runs on this machine.
    """
    sweep = parse_sweep(words)
    config, options, outputs = sweep.config, sweep.options, Path(sweep.config.paths.outputs)
    if options.cfg or options.info or options.hydra_help:
        _show(sweep)
        return SweepOutcome(outputs)
    used = frozenset[str]().union(*(cell.used for cell in sweep.sample))
    for override in (*unused_overrides(options.overrides, used), *_added_in_vain(sweep)):
        warn(f"note: {override} has no effect: nothing that runs here uses it")
    slurm.check_slurm(config)
    check_captioners(sweep)
    if sweep.devices:
        os.environ[VISIBLE] = sweep.devices[0]  # helpers have the others
    check_devices(sweep)
    chosen = [override for override in sweep.overrides if override.startswith("captioner=")]
    captioners = [value for override in chosen for value in override_values(override)]
    os.environ[SWEPT] = json.dumps(swept_names(captioners))
    here = slurm.launcher_of(config) == slurm.HERE
    multirun = bool(options.multirun) or any(map(sweeps, sweep.overrides)) or not here
    folder = Path(config.hydra.sweep.dir if multirun else config.hydra.run.dir)
    make_folder(folder)
    if here:
        announce(sweep)
    started = time.monotonic()
    size: Corpus | None = None
    if multirun and here:
        with suppress(BiasPipelineError):  # the job will say what is wrong with the data
            size = sweep.first_cell.corpus()
    progress = showing(SweepBar(folder, costs_of_sweep(sweep, size))) if multirun else nullcontext()
    pooled = multirun and here and sweep.processes != 1
    helpers = (
        worker_pool(sweep, sweep.processes, folder, sweep.devices) if pooled else nullcontext()
    )
    with progress, helpers:
        results = _run_jobs(sweep, folder, multirun=multirun)
    redact_files(folder.glob("*.yaml"))
    seconds = time.monotonic() - started
    jobs = [folder / str(number) for number in range(len(results))] if multirun else [folder]
    return conclude(
        jobs, results, outputs, seconds, multirun=multirun, skips=skips, of_all=of_all(sweep)
    )


def run_cells(cells: Sequence[Cell]) -> SweepOutcome:
    """Run cells in this process and its helpers, except cells that the data do not permit."""
    from bias_pipeline.metrics.attack.attacked_captions import forget_attackers

    first = cells[0]
    outputs = Path(first.tree["paths"]["outputs"])
    folder = outputs / JOBS / new_invocation()
    make_folder(folder)
    os.environ.pop(SWEPT, None)  # every cell keeps its captioner's name
    started = time.monotonic()
    costs, processes = costs_of_cells(cells), processes_of(cells)
    folders = [folder / str(number) for number in range(len(cells))]
    where = {"launcher": slurm.HERE, "id": slurm.own_job()}
    results = []
    with showing(SweepBar(folder, costs)), worker_pool(cells, processes, folder):
        for number, cell in enumerate(cells):
            make_folder(folders[number])
            get = partial(cells.__getitem__, number)
            results.append(run_recorded(get, folders[number], cell.overrides, where))
            shared = [later.attackers for later in cells[number + 1 :]]
            if cell.attackers and cell.attackers not in shared:
                forget_attackers()
    seconds = time.monotonic() - started
    return conclude(
        folders, results, outputs, seconds, skips=NOT_PERMITTED, say=warn, show=lambda _: None
    )


def processes_of(cells: Sequence[Cell]) -> int | str:
    """The requested number of processes, or 1 if networks run, which use several cores."""
    requested: int | str = cells[0].tree["processes"]
    return 1 if any(cell.runs_networks for cell in cells) else requested


def parse_sweep(words: Sequence[str]) -> Sweep:
    """Check a command line and every value of its sweep; nothing runs."""
    os.environ[INVOCATION] = new_invocation()
    words = expand_intersections(words)
    options = options_of(words)
    check_names(options)
    overrides = expand(options)
    check_folders(overrides)
    check_size(overrides)
    sweep = Sweep(jobs_of(overrides), options, overrides, words)
    sweep.first_cell.loggers()  # so that a wrong WANDB_MODE is reported before the work
    assert sweep.sample  # composes it
    return sweep


def of_all(sweep: Sweep) -> bool:
    """Whether a command has ``metric=all`` or ``captioner=all``."""
    return any(word in sweep.options.overrides for word in (ALL_METRICS, ALL_CAPTIONERS))


def _added_in_vain(sweep: Sweep) -> list[str]:
    """The overrides that add a key (such as ``+seed=5``) that nothing reads."""
    from omegaconf import OmegaConf

    given = sweep.options.overrides
    tops = {word: word.lstrip("+").partition("=")[0].partition(".")[0] for word in given}
    added = {word: top for word, top in tops.items() if word[0] == "+" and "@" not in top}
    if not added:
        return []
    known, text = set(sweep.loader.job([])), OmegaConf.to_yaml(sweep.config)
    return [
        word
        for word, top in added.items()
        if not (top in known or group_choices(top) or f"${{{top}" in text)
    ]


def _run_jobs(sweep: Sweep, folder: Path, *, multirun: bool) -> Sequence[Result | None]:
    """Run the jobs of a command; returns the results that this process has in memory."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    logging.raiseExceptions = False  # no traceback for a log that cannot be written
    try:
        return run_sweep(sweep, folder) if multirun else [run_one(sweep, folder)]
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(composition_message(error)) from error
    except OSError as error:
        raise unwritable(error.filename or f"to {sweep.config.paths.outputs}", error) from error


@contextmanager
def _hydra_instance(loader: Loader) -> Iterator[Hydra]:
    """Hydra with our loader, so that Hydra uses only checked configurations."""
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
    from hydra._internal.utils import get_args_parser
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    options, overrides = sweep.options, representative_overrides(sweep.overrides)
    package = options.package
    if package not in (None, "_global_") and OmegaConf.select(sweep.config, package) is None:
        raise UsageError(f"--package={package}: there is no such key")
    try:
        with _hydra_instance(sweep.loader) as hydra:
            if options.cfg:
                with redirect_stdout(StringIO()) as shown:  # Hydra's own printing
                    hydra.show_cfg("config", [*overrides], options.cfg, package, options.resolve)
                print_out(*shown.getvalue().splitlines())
            elif options.info:
                with whole_configurations():
                    hydra.show_info(options.info, config_name="config", overrides=[*overrides])
            else:
                print_out(*hydra.format_args_help(get_args_parser()).splitlines())
    except OmegaConfBaseException as error:
        raise UsageError(composition_message(error)) from error


ALL_CAPTIONERS = "captioner=all"
ALL_ANNOTATORS = f"{ANNOTATOR}=all"


def expand(options: Namespace) -> list[str]:
    """The overrides, with an experiment's ``sweep:``, and with values in place of ``all``."""
    overrides = [*options.overrides, *_sweep_of_experiment(options)]
    for override in overrides:
        key, _, values = override.partition("=")
        if key == "captioner" and values != "all" and "all" in values.split(","):
            raise UsageError(
                f"{override}: all cannot stand beside other values; write {ALL_CAPTIONERS}"
            )
    for number, override in enumerate(overrides):
        if override == ALL_METRICS:
            folders = further_folders(options.config_dir)
            further = [name for folder in folders for name in choices_of(folder / "metric")]
            overrides[number] = "metric=" + ",".join(sorted({*group_choices("metric"), *further}))
    for word, names_of in ((ALL_ANNOTATORS, _all_annotators), (ALL_CAPTIONERS, _all_captioners)):
        if word in overrides:
            rest = [override for override in overrides if override != word]
            swept = ",".join(quote_value(name) for name in names_of(rest, options))
            overrides[overrides.index(word)] = f"{word.removesuffix('all')}{swept}"
    return [each_value_once(override) for override in overrides]


def _sweep_of_experiment(options: Namespace) -> list[str]:
    """The overrides in an experiment's ``sweep:`` for keys that the command does not set."""
    named = dict(word.lstrip("+").partition("=")[::2] for word in options.overrides)
    folders = [conf_dir(), *further_folders(options.config_dir)]
    files = [folder / "experiment" / f"{named.get('experiment', '')}.yaml" for folder in folders]
    path = next(filter(Path.is_file, files), None)
    if path is None:  # no experiment, several, or an experiment that composing will refuse
        return []
    check_yaml(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise UsageError(yaml_fault(path, error)) from error
    swept = content.get("sweep", {}) if isinstance(content, dict) else {}
    if not isinstance(swept, dict):
        raise UsageError(f"{path}: sweep={swept!r} must map keys to values, as in metric: lic,dbac")
    return [f"{key}={values}" for key, values in swept.items() if key not in named]


def _all_annotators(overrides: Sequence[str], options: Namespace) -> Sequence[str]:
    from bias_pipeline.data.label_files import MAJORITY

    rest = [override for override in overrides if override != ALL_CAPTIONERS]
    cell = composed_cell(representative_overrides(rest), options)
    dataset, attribute = cell.build("dataset"), cell.build("attribute")
    names: Sequence[str] = dataset.annotators(attribute)
    if not names:
        raise UsageError(
            f"{ALL_ANNOTATORS}: dataset {cell.choices['dataset']!r} has no labels by annotator"
        )
    return [MAJORITY, *names]


def _all_captioners(overrides: Sequence[str], options: Namespace) -> Sequence[str]:
    """The captioners of a sweep's data sets and attributes, which must be the same for all."""
    keys = ("dataset", "attribute")
    swept = [o for o in overrides if sweeps(o) and o.partition("=")[0] in keys]
    rest = [o for o in overrides if o not in swept]
    captioners_by_choice = {
        " ".join(chosen): _captioners_of([*rest, *chosen], options)
        for chosen in product(*(choices_in(override) for override in swept))
    }
    names = next(iter(captioners_by_choice.values()))
    odd = next(
        (label for label, captioners in captioners_by_choice.items() if captioners != names), None
    )
    if odd:
        raise UsageError(
            f"captioner=all: {odd} has the captioners {', '.join(captioners_by_choice[odd])}, "
            f"{next(iter(captioners_by_choice))} has {', '.join(names)}; name the captioners to run"
        )
    return names


def _captioners_of(overrides: Sequence[str], options: Namespace) -> Sequence[str]:
    cell = composed_cell(representative_overrides(overrides), options)
    names = cell.build("dataset").everyone(cell.build("attribute"))
    if not names:
        raise UsageError(
            f"captioner=all: dataset {cell.choices['dataset']!r} has no captioner file for this "
            "attribute, so there is nothing to run"
        )
    return names


def check_captioners(sweep: Sweep) -> None:
    """Refuse a sweep with an unknown captioner before its first job runs."""
    swept = {override.partition("=")[0] for override in sweep.overrides if sweeps(override)}
    if not swept or any(key.partition(".")[0] == "dataset" for key in swept):
        return
    words = [f"captioner={sweep.first_cell.tree['captioner'] or ''}", *sweep.overrides]
    named = [word.partition("=")[2] for word in words if word.startswith("captioner=")]
    dataset = sweep.first_cell.build("dataset")
    for name in named[-1].split(","):
        if name.replace("_", "").isalnum():  # else an expression, which Hydra checks
            dataset.check_captioner(name)
