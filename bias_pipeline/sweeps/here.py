"""Jobs of this process, with the files of Hydra's launcher, in half of its time.

Hydra copies the configuration of each job six times and writes it with PyYAML's writer in Python.
Where a command sets nothing that only Hydra reads, its jobs run from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bias_pipeline.config.compose import CellConfig, cell_of
from bias_pipeline.config.yaml_files import as_written
from bias_pipeline.io.terminal import redact_files
from bias_pipeline.results.store import Result
from bias_pipeline.sweeps import slurm
from bias_pipeline.sweeps.job import close_log, run_recorded

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from bias_pipeline.config.hydra_composer import Loader


def suffices(config: DictConfig) -> bool:
    """Whether jobs run here alone: Hydra would log nothing itself, and its sweeper adds nothing."""
    hydra: Any = config.hydra
    alone = hydra.hydra_logging is not None and hydra.hydra_logging.get("root") is None
    added = hydra.sweeper.params or hydra.sweeper.max_batch_size
    return slurm.launcher_of(config) == slurm.HERE and alone and not added


def run_one(config: DictConfig, cell: CellConfig) -> Result | None:
    """Run a job that is no sweep; returns what this process has of it.

    Args:
        config: of the job.
        cell: what it describes.
    """
    from hydra.types import RunMode

    config.hydra.mode = RunMode.RUN
    return _run(config, Path(config.hydra.run.dir), lambda: cell)


def run_sweep(loader: Loader, overrides: Sequence[str]) -> list[Result | None]:
    """Run the jobs of a sweep in their order; returns what this process has of each.

    Args:
        loader: composes the jobs, each once.
        overrides: of the sweep.

    Raises:
        UsageError: if a job does not compose; then none runs.
    """
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.types import RunMode

    config = loader.load_configuration("config", [*overrides], RunMode.MULTIRUN)
    folder, given = Path(config.hydra.sweep.dir), config.hydra.overrides
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "multirun.yaml", as_written(config))
    parsed = OverridesParser.create().parse_overrides([*given.task])
    (jobs,) = BasicSweeper.split_arguments(parsed, None)
    for job in jobs:
        loader.job([*given.hydra, *job])
    results = []
    for number, job in enumerate(jobs):
        composed = loader.job([*given.hydra, *job])
        composed.hydra.job.id = composed.hydra.job.num = number
        results.append(_run(composed, folder / str(number), partial(cell_of, composed)))
    return results


def _run(config: DictConfig, folder: Path, compose: Callable[[], CellConfig]) -> Result | None:
    from hydra.core.utils import configure_log

    hydra: Any = config.hydra
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    hydra.runtime.output_dir = str(folder)
    configure_log(hydra.job_logging, hydra.verbose)
    written = as_written(config)
    overrides = [str(word) for word in written["hydra"]["overrides"]["task"]]
    if hydra.output_subdir is not None:
        files = folder / hydra.output_subdir
        files.mkdir(exist_ok=True)
        _write(files / "hydra.yaml", {"hydra": written.pop("hydra")})
        _write(files / "config.yaml", written)
        _write(files / "overrides.yaml", overrides)
        redact_files(files.glob("*.yaml"))
    number = hydra.job.get("id")
    where = {"launcher": slurm.HERE, "id": slurm.own_job() if number is None else str(number)}
    result = run_recorded(compose, folder, overrides, where)
    close_log()
    return result and replace(result, draws={})  # those of a large sweep would fill the memory


def _write(path: Path, data: object) -> None:
    """Write YAML as OmegaConf does, seven times as fast where PyYAML has its writer in C."""
    text = yaml.dump(
        data, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False
    )
    path.write_text(text, encoding="utf-8")


class _Dumper(getattr(yaml, "CDumper", yaml.Dumper)):  # type: ignore[misc]
    """Quotes text that OmegaConf would read as a number or a truth value."""


def _text(dumper: Any, text: str) -> Any:
    from omegaconf._utils import OmegaConfDumper

    return OmegaConfDumper.str_representer(dumper, text)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(Enum, lambda dumper, member: _text(dumper, member.name))
