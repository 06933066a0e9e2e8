"""``report wandb``: writes each finished result of a folder as a Weights & Biases run."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bias_pipeline.errors import DataError, ResourceError, cannot_write, inflect
from bias_pipeline.io.progress import track
from bias_pipeline.report.name_collisions import resolve_name_collisions
from bias_pipeline.report.page import finished_results
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import loggers
from bias_pipeline.run.loggers import WandbLogger

log = logging.getLogger(__name__)

PROBE_S = 3.0  # how long a server may take to answer at all
RUN_S = 7.0  # how long a server may take for one run; so a wrong address is reported within 10 s
LEDGER = ".wandb_pushed"
_FOLDER = re.compile(r"offline-run-\d{8}_\d{6}-(.+)")


@dataclass(frozen=True)
class PushResult:
    mode: str  # `offline`, `online` or `disabled`
    place: str  # where the runs are: W&B's folder, or the server
    new: Sequence[str]  # ids of the runs that were written
    present: int  # how many had been written before

    def sentence(self) -> str:
        if self.mode == "disabled":
            return "W&B is disabled; nothing was written"
        before = f"; {inflect(self.present, 'runs were written before')}" if self.present else ""
        text = f"{inflect(len(self.new), 'runs')} written to {self.place}{before}"
        if self.mode == "online" or not self.new:
            return text
        return f"{text}; `wandb sync {self.place}/offline-run-*` sends them"


def push(
    folder: Path,
    *,
    project: str = "bias_pipeline",
    entity: str | None = None,
    mode: str = "",
    timeout_s: float = RUN_S,
) -> PushResult:
    """Write a W&B run for every finished result in a folder, if the result has no W&B run yet.

    The id of a run is the cell's identity, so a run that is sent twice is one run on the server.
    ``.wandb_pushed`` records which runs were sent where.
    """
    mode = mode or os.environ.get("WANDB_MODE") or ("online" if loggers.has_key() else "offline")
    logger = WandbLogger(str(folder), project, entity, mode, timeout_s)
    results, namesakes = resolve_name_collisions(finished_results(folder))
    for sentence in namesakes:
        log.warning("%s", sentence)
    if logger.mode == "disabled":
        return PushResult("disabled", "", [], 0)
    server = reachable_server() if logger.mode == "online" else ""
    ledger = _Ledger(folder, server, project, entity)
    store = ResultStore(folder)
    new: list[str] = []
    for result in track(results, len(results)):
        if ledger.has(result.run_id):
            continue
        with store.claim(f"wandb-{result.run_id}"):  # another push may be sending it
            if ledger.has(result.run_id):
                continue
            _write(logger, _with_curves(store, result), len(new))
            ledger.note(result.run_id)
            new.append(result.run_id)
    place = server or str(folder / "wandb")
    return PushResult(logger.mode, place, new, len(results) - len(new))


def _with_curves(store: ResultStore, result: Result) -> Result:
    try:
        curves = store.table(result, "curves")
        loggers.history_of(curves)
    except DataError as error:
        log.warning("%s; the run is written without them", error)
        curves = []
    return replace(result, tables={"curves": curves} if curves else {})


def _write(logger: WandbLogger, result: Result, written: int) -> None:
    content = logger.content(result)
    if logger.mode == "offline":
        try:
            loggers.record(content, logger.folder, "offline")
        except ImportError as error:
            raise ResourceError(f"W&B is not installed ({error}); pip install wandb") from error
        except OSError as error:
            raise cannot_write(logger.folder, error) from error
    elif not loggers.record_online(content, logger.folder, logger.timeout_s):
        raise ResourceError(
            f"W&B refused run {result.run_id} or did not accept it within {logger.timeout_s:g} s "
            f"(runs sent: {written}); the same command sends the rest, --timeout gives a slow "
            "server more time"
        )


def reachable_server() -> str:
    """The address of the W&B server, which must answer; a key must be set, too."""
    loggers.disable_telemetry()
    try:
        import wandb
    except ImportError as error:
        raise ResourceError(f"W&B is not installed ({error}); pip install wandb") from error

    if not loggers.has_key():
        raise ResourceError(
            "no W&B key is set (WANDB_API_KEY or `wandb login`); with --mode offline runs are "
            "written for `wandb sync`"
        )
    url = str(wandb.setup().settings.base_url)
    fault = server_fault(url)
    if fault:
        raise ResourceError(
            f"the W&B server at {url} does not answer ({fault}); with --mode offline runs are "
            "written for `wandb sync`"
        )
    return url


def server_fault(url: str, timeout_s: float = PROBE_S) -> str:
    """Why a server does not answer; empty if it answers.

    A refusal is an answer too. A thread makes the request, since name resolution has no time limit.

    Example:
        >>> server_fault("ftp://x")
        'its address is not an http address'
    """
    if not url.startswith(("http://", "https://")):
        return "its address is not an http address"
    fault = [f"no answer within {timeout_s:g} s"]
    bare = re.sub(r"//[^/]*@", "//", url, count=1)  # without user and password

    def ask() -> None:
        try:
            urllib.request.urlopen(bare, timeout=timeout_s).close()  # noqa: S310 - http, see above
            fault[0] = ""
        except urllib.error.HTTPError:
            fault[0] = ""
        except (OSError, ValueError) as error:
            fault[0] = str(getattr(error, "reason", error))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(timeout_s)
    return fault[0]


class _Ledger:
    """The runs that a destination has, from W&B's folders (offline) or our notes (online)."""

    def __init__(self, folder: Path, server: str, project: str, entity: str | None) -> None:
        self._online = bool(server)
        place = hashlib.sha256(f"{server}\n{entity}\n{project}".encode()).hexdigest()[:12]
        self._notes = folder / LEDGER / place
        runs = (folder / "wandb").glob("offline-run-*")
        self._known = {match[1] for path in runs if (match := _FOLDER.fullmatch(path.name))}

    def has(self, run_id: str) -> bool:
        return (self._notes / run_id).exists() if self._online else run_id in self._known

    def note(self, run_id: str) -> None:
        if not self._online:
            return
        try:
            self._notes.mkdir(parents=True, exist_ok=True)
            (self._notes / run_id).touch()
        except OSError as error:
            raise cannot_write(self._notes, error) from error
