"""From command line to finished cells; with identity.py and targets.py, all that knows Hydra.

The configuration is composed and checked here before Hydra acts on it. Each job records how it
ended in its own folder, so one that fails neither ends a sweep nor gets lost.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import traceback
import uuid
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline import cluster, stopping
from bias_pipeline.cache import replace_file
from bias_pipeline.errors import (
    BiasPipelineError,
    NotApplicableError,
    ResourceError,
    SweepError,
    UsageError,
    did_you_mean,
)
from bias_pipeline.identity import groups_used, run_id
from bias_pipeline.paths import choices_of, conf_dir
from bias_pipeline.results import Result, ResultStore
from bias_pipeline.targets import build, check_arguments, check_targets, resolve

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from bias_pipeline.corpus import Corpus

log = logging.getLogger(__name__)

INVOCATION = "BIAS_PIPELINE_INVOCATION"
OUTCOME = "outcome.json"
ALL_METRICS = "metric=all"


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


def run(words: Sequence[str]) -> Finished:
    """Check everything, run the job or the sweep, print its table.

    Raises:
        BiasPipelineError: if the configuration is wrong, or the job failed for that reason.
    """
    os.environ[INVOCATION] = _invocation()
    options = _options(words)
    _check_names(options)
    overrides = _expand(options)
    config = _compose(_first_choices(overrides), options)
    launcher = cluster.launcher_of(config)
    multirun = bool(options.multirun) or any(_sweeps(override) for override in overrides)
    multirun = multirun or launcher == cluster.SLURM  # else Hydra would run it here
    flags = [word for word in words if word not in (*options.overrides, "-m", "--multirun")]
    if options.cfg or options.info or options.hydra_help or options.shell_completion:
        _hydra([*flags, *_first_choices(overrides)])
        return Finished(Path(config.paths.outputs))
    cluster.check(config)
    _check_captioners(overrides, config)
    folder = _job_folder(config, multirun)
    _make(folder)
    started = time.monotonic()
    with cluster.waiting(launcher, folder):
        _hydra([*flags, *(["--multirun"] if multirun else []), *overrides])
    seconds = time.monotonic() - started
    lenient = ALL_METRICS in options.overrides
    return _conclude(folder, Path(config.paths.outputs), multirun, seconds, lenient)


@dataclass(frozen=True)
class Cell:
    """A checked configuration of one cell.

    Attributes:
        tree: the whole configuration, resolved plain data.
        used: top-level keys that the metric reaches.
        choices: configuration group to the chosen file.
    """

    tree: Mapping[str, Any]
    used: frozenset[str]
    choices: Mapping[str, str]

    def build(self, key: str) -> Any:
        """The object that a top-level node describes."""
        return _instantiate(self.tree[key], key)

    def corpus(self) -> Corpus:
        """What is scored; read once a process."""
        keys = ("dataset", "attribute", "captioner")
        return _corpus(*(json.dumps(self.tree[key]) for key in keys))

    def choice(self, group: str) -> str:
        """The name of a choice, empty if it plays no part in the metric."""
        return self.choices.get(group, "") if group in self.used else ""


def cell(words: Sequence[str]) -> Cell:
    """The cell that overrides describe, for commands other than ``run``."""
    options = _options(words)
    _check_names(options)
    return _cell(_compose(list(options.overrides), options))


@lru_cache(maxsize=16)
def _corpus(dataset: str, attribute: str, captioner: str) -> Corpus:
    reader = _instantiate(json.loads(dataset), "dataset")
    name = json.loads(captioner) or reader.captioners()[0]
    corpus: Corpus = reader.load(str(name), _instantiate(json.loads(attribute), "attribute"))
    return corpus


def _options(words: Sequence[str]) -> Namespace:
    from hydra._internal.utils import get_args_parser

    options = get_args_parser().parse_intermixed_args(list(words))  # flags may stand anywhere
    for flag in ("experimental_rerun", "config_path", "config_name"):
        if getattr(options, flag):
            raise UsageError(f"--{flag.replace('_', '-')} is not supported; use overrides")
    return options


def _expand(options: Namespace) -> list[str]:
    """Overrides with ``all`` replaced by what it stands for."""
    overrides = list(options.overrides)
    for number, override in enumerate(overrides):
        if override == ALL_METRICS:
            overrides[number] = "metric=" + ",".join(choices_of(conf_dir() / "metric"))
    if "captioner=all" in overrides:
        rest = [override for override in overrides if override != "captioner=all"]
        swept = ",".join(_all_captioners(rest, options))
        overrides[overrides.index("captioner=all")] = f"captioner={swept}"
    return overrides


def _all_captioners(overrides: Sequence[str], options: Namespace) -> Sequence[str]:
    swept = [o for o in overrides if _sweeps(o) and o.split("=")[0] in ("dataset", "attribute")]
    if swept:
        raise UsageError(f"captioner=all cannot be combined with a sweep ({swept[0]}); name them")
    found = _cell(_compose(_first_choices(overrides), options))
    names: Sequence[str] = found.build("dataset").all_captioners(found.build("attribute"))
    if not names:
        raise UsageError(
            f"captioner=all: dataset {found.choices['dataset']!r} has no captioner file for this "
            "attribute, so there is nothing to run"
        )
    return names


def _check_captioners(overrides: Sequence[str], config: DictConfig) -> None:
    """Refuse a sweep that names an unknown captioner before its first job runs."""
    swept = {override.partition("=")[0] for override in overrides if _sweeps(override)}
    names = [override for override in overrides if override.startswith("captioner=")]
    if "captioner" not in swept or any(key.partition(".")[0] == "dataset" for key in swept):
        return
    dataset = _instantiate(_plain(config.dataset, resolve=True), "dataset")
    for name in names[-1].partition("=")[2].split(","):
        if name.replace("_", "").isalnum():  # else an expression, left to Hydra
            dataset.check_captioner(name)


def _sweeps(override: str) -> bool:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    try:
        return bool(OverridesParser.create().parse_override(override).is_sweep_override())
    except Exception:  # the same text is parsed again when composing, with a better message
        return False


def _first_choices(overrides: Sequence[str]) -> list[str]:
    """Overrides of one representative job of a sweep."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    chosen = []
    for text in overrides:
        if not _sweeps(text):
            chosen.append(text)
            continue
        override = OverridesParser.create().parse_override(text)
        if override.is_discrete_sweep():
            first = next(iter(override.sweep_string_iterator()))
            chosen.append(f"{override.get_key_element()}={first}")
    return chosen


def _compose(overrides: Sequence[str], options: Namespace) -> DictConfig:
    """The whole configuration, every target in it allowed.

    Raises:
        UsageError: if it does not compose or names what is not allowed.
    """
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    os.environ.setdefault(INVOCATION, _invocation())
    extra = (
        [f"hydra.searchpath=[{Path(options.config_dir).resolve()}]"] if options.config_dir else []
    )
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
            config = compose("config", [*overrides, *extra], return_hydra_config=True)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise UsageError(_composition_message(error)) from error
    check_targets(_plain(config.hydra, resolve=False), "hydra")
    _cell(config)
    return config


def _check_names(options: Namespace) -> None:
    """Refuse an unknown choice of a configuration group, with the nearest known one."""
    roots = [conf_dir(), *([Path(options.config_dir)] if options.config_dir else [])]
    for override in options.overrides:
        key, equals, values = override.lstrip("+~").partition("=")
        folders = [root / key.partition("@")[0] for root in roots]
        if not key or not equals or key.startswith("hydra") or override == ALL_METRICS:
            continue
        known = [name for folder in folders for name in choices_of(folder)]
        if not known:
            continue
        for value in values.split(","):
            plain = not value or value.replace("_", "").isalnum()  # else left to Hydra
            if plain and value not in known and value != "null":
                raise UsageError(f"{key}={value} is unknown; {did_you_mean(value, known)}")


def _composition_message(error: Exception) -> str:
    first = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
    key = first.partition("Could not override '")[2].partition("'")[0]
    if not key or "@" in key:
        return first
    known = [p.name for p in conf_dir().iterdir() if p.is_dir()]
    return f"{first} {did_you_mean(key, [*known, 'captioner', 'seeds', 'paths'])}"


def _cell(config: DictConfig) -> Cell:
    """The task's part of a configuration, resolved and checked."""
    from omegaconf import open_dict
    from omegaconf.errors import OmegaConfBaseException

    choices = {str(k): str(v) for k, v in config.hydra.runtime.choices.items()}
    task = config.copy()
    with open_dict(task):
        del task["hydra"]
    try:
        tree = _plain(task, resolve=True)
    except OmegaConfBaseException as error:
        raise UsageError(f"{str(error).splitlines()[0]}; {_misfit(str(error))}") from error
    for key, place in tree["paths"].items():
        if not isinstance(place, str) or not place:
            raise UsageError(f"paths.{key}={place!r} must name a folder, a number in quotes")
    check_targets(tree)
    check_arguments(tree)
    return Cell(tree, frozenset(groups_used(_plain(task, resolve=False), "metric")), choices)


def _misfit(message: str) -> str:
    if "'task." in message or "'task'" in message:
        return "this masking needs a list of tasks: add +task=coco_objects"
    return "the chosen attribute, masking and encoder may not fit together"


def _plain(node: DictConfig, *, resolve: bool) -> dict[str, Any]:
    from omegaconf import OmegaConf

    container = OmegaConf.to_container(node, resolve=resolve)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def _instantiate(node: Any, key: str) -> Any:
    """Build what a checked node describes; a refusal by its constructor is the user's to mend."""
    try:
        return build(node)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{key}: {error}") from error


def _invocation() -> str:
    """A folder name that no other invocation has, whatever the clock says."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def _job_folder(config: DictConfig, multirun: bool) -> Path:
    return Path(config.hydra.sweep.dir if multirun else config.hydra.run.dir)


def _make(folder: Path) -> None:
    """Know before any work that results can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(
            f"cannot write to {folder.parent.parent}: {error.strerror}; "
            "choose another folder with paths.outputs=..."
        ) from error


def _hydra(arguments: Sequence[str]) -> None:
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    program = sys.argv
    sys.argv = [program[0], *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # raised here, instead of printed and turned into exit 1
    logging.raiseExceptions = False  # a log that cannot be written is no reason for a traceback
    try:
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(_composition_message(error)) from error
    except OSError as error:
        raise ResourceError(
            f"cannot write {error.filename or 'the files of a job'}: {error.strerror or error}; "
            "choose another folder with paths.outputs=..."
        ) from error
    finally:
        sys.argv = program


def job(config: DictConfig) -> None:
    """One job of Hydra: run a cell and record how it ended.

    Never raises but for a request to stop: a launcher would end the sweep.
    """
    from hydra.core.hydra_config import HydraConfig

    stopping.stop_if_requested()
    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    outcome: dict[str, object] = {"overrides": _overrides(hydra_config)}
    try:
        outcome |= _run_cell(config)
    except BiasPipelineError as error:
        outcome |= {"status": "failed", "exit_code": error.exit_code, "error": str(error)}
        outcome["not_applicable"] = isinstance(error, NotApplicableError)
        log.info("failed", exc_info=True)
    except Exception as error:
        trace = folder / "traceback.txt"
        trace.write_text(traceback.format_exc())
        bug = f"a bug, please report it with {trace}: {type(error).__name__}: {error}"
        message = cluster.ran_out_of_time(error) or bug
        outcome |= {"status": "failed", "exit_code": 1, "error": message}
    stopping.stop_if_requested()
    replace_file(folder / OUTCOME, json.dumps(outcome).encode(), sync=False)
    _close_log()


def _close_log() -> None:
    """Close the job's log file: the next job of this process opens one of its own."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, logging.FileHandler):
            root.removeHandler(handler)
            handler.close()


def _run_cell(config: DictConfig) -> dict[str, object]:
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf, open_dict

    hydra_config = OmegaConf.structured(HydraConfig.get())

    whole = config.copy()
    with open_dict(whole):
        whole.hydra = OmegaConf.create({"runtime": {"choices": dict(hydra_config.runtime.choices)}})
    here = _cell(whole)
    corpus = here.corpus()
    info = resolve(here.tree["metric"]["_target_"]).info
    seeds = _seeds(here.tree["seeds"])
    identity = run_id(
        here.tree["metric"],
        corpus,
        metric=info.name,
        attribute=here.tree["attribute"]["name"],
        metric_version=info.version,
        seeds=seeds,
    )
    store = ResultStore(here.tree["paths"]["outputs"])
    with store.claim(identity):
        if store.load(identity) is not None:
            return {"run_id": identity, "status": "cached", "exit_code": 0}
        metric = here.build("metric")
        result = _compute(here, corpus, metric, seeds, identity, hydra_config)
        store.save(result)
    for logger in (here.build("logger") or {}).values():
        logger.try_log(result)
    return {"run_id": identity, "status": "done", "exit_code": 0}


def _compute(
    here: Cell, corpus: Corpus, metric: Any, seeds: Sequence[int], identity: str, hydra: DictConfig
) -> Result:
    from bias_pipeline.run import Origin, run_cell

    names = ("encoder", "head", "masking", "alignment", "scoring")
    facts = {
        "config": here.tree["metric"],
        "overrides": _overrides(hydra),
        "job": {"launcher": hydra.runtime.choices.get("hydra/launcher"), "id": _job_id(hydra)},
    }
    origin = Origin(**{name: here.choice(name) for name in names})
    return run_cell(corpus, metric, seeds, run_id=identity, origin=origin, facts=facts)


def _overrides(hydra: Any) -> list[str]:
    """The overrides as they were given: a reference in them is the task's, not Hydra's."""
    from omegaconf import OmegaConf

    given = OmegaConf.to_container(OmegaConf.structured(hydra).overrides.task, resolve=False)
    assert isinstance(given, list)
    return [str(override) for override in given]


def _job_id(hydra: DictConfig) -> str | None:
    from omegaconf import OmegaConf

    found = OmegaConf.select(hydra, "job.id", throw_on_missing=False)
    return None if found is None else str(found)


def _seeds(value: object) -> tuple[int, ...]:
    from bias_pipeline.split import seeds_of

    listed = value if isinstance(value, list) else [value]
    if not isinstance(value, int | list) or not all(type(seed) is int for seed in listed):
        raise UsageError(f"seeds={value}: give a positive number or a list of distinct seeds >= 0")
    return seeds_of(value)


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
    from bias_pipeline.report.tables import print_results, write_table

    outcomes = _outcomes(folder, multirun)
    store = ResultStore(outputs)
    for outcome, own in zip(outcomes, _swept(outcomes), strict=True):
        outcome["swept"] = own
    finished = [
        (result, outcome["swept"])
        for outcome in outcomes
        if outcome["status"] != "failed" and (result := store.load(str(outcome["run_id"])))
    ]
    results = [result for result, _ in finished]
    if results:
        print_results(results, [swept for _, swept in finished])
        write_table(outputs, results)
    cached = sum(outcome["status"] == "cached" for outcome in outcomes)
    if cached:
        print(f"not run again, the same cells were there: {cached} of {len(outcomes)}")
    failed = [o for o in outcomes if o["status"] == "failed"]
    skipped = [o for o in failed if o.get("not_applicable")] if lenient and results else []
    for outcome in skipped:
        print(f"skipped: {_labelled(outcome)}{outcome['error']}")
    if results:
        plural = "" if len(outcomes) == 1 else "s"
        told = f"{len(outcomes)} cell{plural} in {seconds:.1f} s; results in {outputs}"
        print(told, file=sys.stderr)
    code = _exit_code([o for o in failed if o not in skipped], len(outcomes), multirun)
    return Finished(outputs, results, code)


def _outcomes(folder: Path, multirun: bool) -> list[dict[str, Any]]:
    """How each job ended, in the order of the sweep; one that left no word has failed."""
    jobs = [folder]
    if multirun:
        jobs = cluster.job_folders(folder)
    if not jobs:
        raise UsageError("the sweep has no jobs")
    return [_outcome(path) for path in jobs]


def _outcome(job_folder: Path) -> dict[str, Any]:
    try:
        outcome: dict[str, Any] = json.loads((job_folder / OUTCOME).read_text())
    except (OSError, ValueError):
        return cluster.last_words(job_folder)
    return outcome


def _swept(outcomes: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """For each job the overrides in which the jobs differ, key to value."""
    told = []
    for outcome in outcomes:
        parts = (override.partition("=") for override in outcome["overrides"])
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
        print(f"error: {_labelled(outcome)}{outcome['error']}", file=sys.stderr)
    if not failed:
        return 0
    if not multirun:
        return int(failed[0]["exit_code"])
    print(f"{len(failed)} of {n_jobs} jobs failed; the others are kept", file=sys.stderr)
    return SweepError.exit_code
