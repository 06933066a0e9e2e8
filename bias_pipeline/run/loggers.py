"""Loggers, which copy the rows of finished results.

The folder of the run is still the source of all numbers. A logger that fails causes one warning,
and the run goes on.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import logging
import math
import os
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, ClassVar

from bias_pipeline.declared import Configurable, Seconds, Text
from bias_pipeline.errors import DataError, UsageError, did_you_mean
from bias_pipeline.io.terminal import redacted_data
from bias_pipeline.metrics.value_names import GOLD, HEADLINES, HUMAN, MACHINE, MODEL
from bias_pipeline.results.manifest import Manifest
from bias_pipeline.results.plain_data import plain_values
from bias_pipeline.results.rows import COLUMNS, Result, Row, mapping_in, rows_csv

log = logging.getLogger(__name__)

SETTINGS = "settings"  # the last column of CSV files that grow
MODES = ("offline", "online", "disabled")
# Symbolic links are not followed.
_APPENDING = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW
_HEADER = 4096  # the first bytes of a file, which include its first line
_LAST = f",{SETTINGS}".encode()
_warned: set[str] = set()


class ResultLogger(Configurable, ABC):
    @abstractmethod
    def log(self, result: Result) -> None:
        """Log a result; a logger may raise any exception."""

    def knows(self, result: Result) -> bool:
        """Whether an earlier process has already logged a result."""
        del result
        return False

    def try_log(self, result: Result, *, resumed: bool = False) -> None:
        """Log a result; an error becomes a warning, which is printed once."""
        try:
            if not (resumed and self.knows(result)):
                self.log(result)
        except Exception as error:
            warn_once(f"{type(self).__name__}: {error}; results are complete without it")


def warn_once(message: str) -> None:
    """Log a warning unless the same message was logged before."""
    if message not in _warned:
        _warned.add(message)
        log.warning(message)


class CsvLogger(ResultLogger):
    """``logger=csv`` writes one file with the rows of all cells, in the order they finished.

    The rows of a cell are appended in a single write, so simultaneous writers do not mix lines. The
    column ``settings`` has the overrides that have no column.
    """

    def __init__(self, path: Annotated[str, Text(r"[^\x00-\x1f]*\.csv", "a .csv file")]) -> None:
        self.path = Path(path)

    def knows(self, result: Result) -> bool:
        if not self.path.is_file():
            return False
        with self.path.open(encoding="utf-8", errors="replace") as lines:
            return any(line.startswith(f"{result.run_id},") for line in lines)

    def log(self, result: Result) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, _APPENDING | os.O_CREAT, 0o666)
        with os.fdopen(handle, "ab", buffering=0) as file:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)  # so that only one process writes the header
            settings = {result.run_id: {SETTINGS: " ".join(_further_overrides(result))}}
            text = rows_csv(result.rows, [SETTINGS], settings)
            if header := os.pread(handle, _HEADER, 0).partition(b"\n")[0]:
                # Files of older versions lack the column of settings.
                whole = text if header.rstrip().endswith(_LAST) else rows_csv(result.rows)
                text = whole.partition("\n")[2]
            file.write(text.encode("utf-8", "replace"))


def _further_overrides(result: Result) -> Iterator[str]:
    for word in result.facts.overrides or ():
        key = word.lstrip("+~").partition("=")[0]
        if key not in COLUMNS and key.partition(".")[0] not in ("paths", "logger", "hydra"):
            yield word.lstrip("+~")


class WandbLogger(ResultLogger):
    """``logger=wandb``: one Weights & Biases run for each cell.

    The id of the run is the cell's identity, so a cell never becomes two runs. Runs are written
    offline for a later ``wandb sync``, and no server is contacted, unless the mode is ``online``
    and a key is set. If the server does not answer, a process waits for ``timeout_s`` once. The
    process then writes this run and all later runs offline.
    """

    reachable: ClassVar[bool] = True  # False after a server has not answered this process

    def __init__(
        self,
        folder: str,
        project: str = "bias_pipeline",
        entity: str | None = None,
        mode: str | None = None,
        timeout_s: Seconds = 7.0,
    ) -> None:
        chosen = mode or os.environ.get("WANDB_MODE") or "offline"
        if chosen not in MODES:
            source = "logger.wandb.mode" if mode else "WANDB_MODE"
            raise UsageError(f"{source}={chosen} is unknown; {did_you_mean(chosen, MODES)}")
        self.folder = Path(folder)
        self.project, self.entity, self.mode = project, entity, chosen
        self.timeout_s = timeout_s

    def log(self, result: Result) -> None:
        if self.mode == "disabled":
            return
        if find_spec("wandb") is None:
            warn_once(
                "W&B: the package wandb is not installed; logger=csv and the run folders have all "
                "results (pip install wandb)"
            )
            return
        content = self.content(result)
        if self.mode == "online" and self._online(content):
            return
        record(content, self.folder, "offline")

    def content(self, result: Result) -> dict[str, Any]:
        """The content of the W&B run, as plain data."""
        first = result.rows[0]
        names = ("metric", "attribute", "dataset", "captioner", "encoder", "head", "scoring")
        tags = [str(getattr(first, name)) for name in names if getattr(first, name)]
        worth = mapping_in(result.facts.audit, GOLD, "worth")  # of numbers that gold labels correct
        before = [f"{part}:{which}" for part in worth for which in (MACHINE, GOLD)]
        # Runs are compared by their headlines, by both sides and by each group
        main = {*HEADLINES, MODEL, HUMAN, *worth, *before}
        compared = [r for r in result.rows if r.part in main or r.part.startswith("group:")]
        description = {
            "group": f"{first.metric}-{first.attribute}-{first.dataset}",
            "job_type": first.metric,
            "tags": tags,
            "config": {
                **{name: getattr(first, name) for name in (*names, "masking", "alignment")},
                "seeds": list(first.seeds),
                "settings": nested_settings(result.facts),
            },
            "summary": {
                **summary_of(compared),
                **{f"{part}/worth": times for part, times in worth.items() if times is not None},
                **_answer_in(result),
            },
            # W&B's table has no lists
            "rows": [
                [*{**plain_values(r), "seeds": " ".join(map(str, r.seeds))}.values()]
                for r in result.rows
            ],
            "history": history_of(result.tables.get("curves", ())),
        }
        named = {"id": result.run_id, "name": result.run_id}
        return {
            **named,
            "project": self.project,
            "entity": self.entity,
            **redacted_data(description),
        }

    def _online(self, content: Mapping[str, Any]) -> bool:
        """Send the run, unless an earlier request got no answer; returns whether it was sent."""
        if not has_key():
            warn_once("W&B: online mode, but no key is set (WANDB_API_KEY or wandb login): offline")
            return False
        if not WandbLogger.reachable:
            return False  # the server did not answer before
        if record_online(content, self.folder, self.timeout_s):
            return True
        warn_once(
            "W&B: the server did not accept the run in time; it is written offline, for wandb sync"
        )
        WandbLogger.reachable = False
        return False


def disable_telemetry() -> None:
    """Stop W&B from reporting errors and counts; call it before importing wandb.

    W&B would send these reports even offline, and would wait for the server when the process ends.
    """
    os.environ["WANDB_ERROR_REPORTING"] = "false"


def ensure_folders() -> None:
    """Give W&B temporary folders for its log and files if it cannot write the user's folders.

    Otherwise W&B would print its log on the screen, for instance in a container without a home.
    """
    for variable, usual in (("XDG_CACHE_HOME", ".cache"), ("XDG_DATA_HOME", ".local/share")):
        folder = Path(os.environ.get(variable) or Path(os.environ.get("HOME", ""), usual))
        with suppress(OSError):
            if folder.is_absolute():
                folder.mkdir(parents=True, exist_ok=True)
                if os.access(folder, os.W_OK):
                    continue
        temporary = tempfile.mkdtemp(prefix="bias_pipeline-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        os.environ[variable] = temporary


def record(content: Mapping[str, Any], folder: Path, mode: str) -> None:
    disable_telemetry()
    ensure_folders()
    import wandb

    folder.mkdir(parents=True, exist_ok=True)
    known = ("id", "name", "project", "entity", "group", "job_type", "tags", "config")
    run = wandb.init(
        **{key: content[key] for key in known},
        dir=str(folder.resolve()),
        mode=mode,  # type: ignore[arg-type]
        reinit="create_new",
        settings=wandb.Settings(
            silent=True,
            console="off",
            x_disable_stats=True,
            x_disable_meta=True,
            x_save_requirements=False,
        ),
    )
    run.define_metric("train_loss/*", step_metric="epoch", summary="none")
    for losses in content["history"]:
        run.log(losses)
    table = wandb.Table(columns=list(COLUMNS), data=content["rows"])
    run.log({"rows": table})
    run.summary.update(content["summary"])
    run.finish()


def record_online(content: Mapping[str, Any], folder: Path, timeout_s: float) -> bool:
    """Send one run to the server in a separate process, which is killed if it hangs."""
    order = {"content": content, "folder": str(folder)}
    try:
        done = run_apart("loggers", "record_from_stdin", order, timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def run_apart(
    module: str, function: str, order: object, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Call one of our functions in another process, which is killed if the server hangs."""
    code = f"from bias_pipeline.run.{module} import {function}; {function}()"
    return subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout_s,
        check=False,
        # Without these, a service that this process started would do the work.
        env={k: v for k, v in os.environ.items() if not k.startswith("WANDB_SERVICE")},
    )


def record_from_stdin() -> None:
    order = json.load(sys.stdin)
    record(order["content"], Path(order["folder"]), "online")


def summary_of(rows: Sequence[Row]) -> dict[str, float]:
    """Rows under flat keys (``score``, ``score/ci_low``, ...), without NaN."""
    numbers = ("ci_low", "ci_high", "seed_std", "p_value", "coverage", "neutral_rate")
    summary = {row.part: row.value for row in rows}
    summary |= {f"{row.part}/{name}": getattr(row, name) for row in rows for name in numbers}
    return {key: value for key, value in summary.items() if not math.isnan(value)}


def _answer_in(result: Result) -> dict[str, str]:
    """The question that a run answers, and the answer that an audit would give."""
    from bias_pipeline.report.verdict import verdict

    question = result.facts.metric.question
    answer = verdict([result]).answer(question, result.rows[0].attribute)
    return {"question": question, "answer": answer} if answer else {}


def nested_settings(facts: Manifest) -> dict[str, Any]:
    """The settings that decided a run, by the keys that set them, without lists of words.

    Example:
        >>> config = {"k": 5, "to": {"delta": 0.4}}
        >>> nested_settings(Manifest(config=config, keys={"to": "alignment"}))
        {'metric': {'k': 5}, 'alignment': {'delta': 0.4}}
    """
    settings = {"metric": _scalars(facts.config)}
    for path, key in facts.keys.items():
        node: Any = facts.config
        for step in path.split("."):
            node = node[int(step)] if isinstance(node, Sequence) else node.get(step)
        if isinstance(node, Mapping) and "." not in key:
            settings[key] = _scalars(node)
    return {key: values for key, values in settings.items() if values}


def _scalars(node: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in node.items()
        if key != "_target_" and isinstance(value, str | int | float) and len(str(value)) < 200
    }


def history_of(curves: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """The training loss of each side for every epoch, as a mean over the side's attackers.

    Example:
        >>> lines = [{"side": "model", "seed": s, "epoch": 1, "train_loss": s / 10} for s in (6, 8)]
        >>> history_of(lines)
        [{'epoch': 1, 'train_loss/model': 0.7}]
    """
    losses_by_epoch: dict[int, dict[str, list[float]]] = {}
    for line in curves:
        try:
            side, epoch, loss = line["side"], int(line["epoch"]), float(line["train_loss"])
        except (KeyError, ValueError) as error:
            raise DataError(
                f"curves.csv: a line is not part of a curve ({error}); run the job again"
            ) from error
        losses_by_epoch.setdefault(epoch, {}).setdefault(f"train_loss/{side}", []).append(loss)
    return [
        {"epoch": epoch, **{side: fmean(losses) for side, losses in losses_by_epoch[epoch].items()}}
        for epoch in sorted(losses_by_epoch)
    ]


def has_key() -> bool:
    """Whether a W&B key is set, by ``WANDB_API_KEY`` or ``wandb login``."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    import netrc

    try:
        hosts = netrc.netrc().hosts
    except (OSError, netrc.NetrcParseError):
        return False
    return any("wandb" in host for host in hosts)
