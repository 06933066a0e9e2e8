"""One job of Hydra: a cell is run and how it ended recorded in the job's own folder.

So a job that fails neither ends a sweep nor gets lost.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.config.compose import Cell, cell_of
from bias_pipeline.errors import (
    NO_MEMORY,
    AbsentModelError,
    BiasPipelineError,
    NotApplicableError,
    ResourceError,
    is_out_of_memory,
    refused_by_system,
)
from bias_pipeline.io import stopping
from bias_pipeline.io.atomic import replace_file
from bias_pipeline.io.included import places
from bias_pipeline.io.redaction import redact_files, redacted, redacted_data
from bias_pipeline.io.terminal import guard, trace_of
from bias_pipeline.results.store import Result, ResultStore
from bias_pipeline.sweeps import slurm

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from bias_pipeline.corpus.corpus import Corpus

log = logging.getLogger(__name__)

OUTCOME = "outcome.json"


def job(config: DictConfig) -> None:
    """One job of Hydra: run a cell and record how it ended.

    Never raises but for a request to stop: a launcher would end the sweep.
    """
    from hydra.core.hydra_config import HydraConfig

    guard()  # a launcher's process came by no door
    stopping.stop_if_requested()
    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    if done_in(folder):  # by a helper
        _close_log()
        return
    redact_files((folder / ".hydra").glob("*.yaml"))
    outcome: dict[str, object] = {"overrides": redacted_data(_overrides(hydra_config))}
    try:
        outcome |= _run_cell(config)
    except Exception as error:
        outcome |= _failure(error, folder)
    stopping.stop_if_requested()
    if not done_in(folder):  # else a helper held the cell, and this process waited for it
        replace_file(folder / OUTCOME, json.dumps(outcome).encode(), sync=False)
    _close_log()


def done_in(folder: Path) -> bool:
    """Whether a job's folder says that its cell was computed."""
    try:
        return bool(json.loads((folder / OUTCOME).read_bytes())["status"] == "done")
    except FileNotFoundError:
        return False


def _failure(error: Exception, folder: Path) -> dict[str, object]:
    """How a cell failed: in a sentence if its user can mend that, else as a bug."""
    log.info("failed", exc_info=error)
    if is_out_of_memory(error) and not isinstance(error, BiasPipelineError):
        error = ResourceError(NO_MEMORY)
    if isinstance(error, OSError) and error.filename is not None:
        error = refused_by_system(error)
    if isinstance(error, BiasPipelineError):
        code, told = error.exit_code, redacted(str(error))
    else:
        code, told = 1, slurm.ran_out_of_time(error) or _bug(error, folder / "traceback.txt")
    lenient = isinstance(error, NotApplicableError | AbsentModelError)
    return {
        "status": "failed",
        "exit_code": code,
        "error": told,
        "not_applicable": lenient,
    }


def _bug(error: Exception, trace: Path) -> str:
    trace.write_text("\n".join(trace_of(error)) + "\n", encoding="utf-8")
    told = redacted(f"{type(error).__name__}: {error}")
    return f"a bug, please report it with {trace}: {told}"


def _close_log() -> None:
    """Close the job's log file: the next job of this process opens one of its own."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, logging.FileHandler):
            root.removeHandler(handler)
            handler.close()


def _run_cell(config: DictConfig) -> dict[str, object]:
    from hydra.core.hydra_config import HydraConfig

    hydra_config = HydraConfig.get()
    here = cell_of(config, hydra_config.runtime.choices)
    job = {
        "launcher": hydra_config.runtime.choices.get("hydra/launcher"),
        "id": _job_id(hydra_config),
        "device": os.environ.get("CUDA_VISIBLE_DEVICES"),
    }
    here.require()
    result, cached = finish(here, here.corpus(), overrides=_overrides(hydra_config), job=job)
    return outcome_of(result, cached=cached)


def outcome_of(result: Result, *, cached: bool) -> dict[str, object]:
    """How a cell ended that did not fail."""
    status = "cached" if cached else "done"
    return {"run_id": result.run_id, "status": status, "exit_code": 0, "process": os.getpid()}


def finish(here: Cell, corpus: Corpus, **facts: object) -> tuple[Result, bool]:
    """The result of a cell, computed unless it is there already, and told to the loggers.

    Args:
        here: what is computed and where results are kept.
        corpus: what is scored.
        facts: further entries of the manifest.

    Returns:
        The result, and whether it was there.

    Raises:
        BiasPipelineError: if the corpus cannot be scored or nothing can be written.
    """
    identity = here.run_id(corpus)
    store = ResultStore(here.tree["paths"]["outputs"])
    there = store.finished(identity) if store.is_logged(identity) else None
    if there is not None:
        return there, True  # whoever claims it
    with store.claim(identity):
        found = store.finished(identity)
        result = found or _compute(here, corpus, identity, facts)
        if found is None:
            store.save(result)
        if not store.is_logged(identity):
            _log(here, result, resumed=found is not None)
            store.mark_logged(identity)
    return result, found is not None


def _log(here: Cell, result: Result, *, resumed: bool) -> None:
    """Tell the loggers, who cannot know what other captioners bear the same name."""
    from bias_pipeline.analysis.namesakes import as_given

    named = as_given(result, str(here.tree["captioner"] or ""))
    named = replace(named, manifest=redacted_data(named.manifest))
    for logger in here.loggers():
        logger.try_log(named, resumed=resumed)


def _compute(here: Cell, corpus: Corpus, identity: str, facts: Mapping[str, object]) -> Result:
    from bias_pipeline.cell import Origin, run_cell

    names = ("encoder", "head", "masking", "alignment", "scoring")
    origin = Origin(**{name: here.choice(name) for name in names})
    own = {name: str(place) for name, place in places().items()}
    facts = {"config": here.tree["metric"], "keys": here.keys, "included": own, **facts}
    metric = here.build("metric")
    return run_cell(corpus, metric, here.seeds, run_id=identity, origin=origin, facts=facts)


def _overrides(hydra: Any) -> list[str]:
    """The overrides as they were given: a reference in them is the task's, not Hydra's."""
    from omegaconf import OmegaConf

    given = OmegaConf.to_container(hydra.overrides.task, resolve=False)
    assert isinstance(given, list)
    return [str(override) for override in given]


def _job_id(hydra: Any) -> str | None:
    from omegaconf import OmegaConf

    found = OmegaConf.select(hydra, "job.id", throw_on_missing=False)
    return slurm.own_job() if found is None else str(found)
