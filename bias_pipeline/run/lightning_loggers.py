"""Loggers that write each cell as one run to TensorBoard or MLflow, through Lightning."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.machine import MLFLOW, TENSORBOARD
from bias_pipeline.io.terminal import redacted_data
from bias_pipeline.models.torchvision import make_importable
from bias_pipeline.results.rows import Result
from bias_pipeline.run.loggers import ResultLogger, history_of, summary_of
from bias_pipeline.run.push import server_fault

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger

_NAMED = (
    "metric",
    "attribute",
    "dataset",
    "captioner",
    "encoder",
    "head",
    "masking",
    "alignment",
    "scoring",
)
REQUEST_S = 3  # time limit of a request to MLflow's server; each request is tried twice
_OTHER = re.compile(r"[^\w./ -]")  # characters that MLflow does not allow in names


class TensorBoardLogger(ResultLogger):
    """``logger=tensorboard``: a folder of events for each cell, for ``tensorboard --logdir``."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def knows(self, result: Result) -> bool:
        return any((self.folder / result.run_id).glob("events.*"))

    def log(self, result: Result) -> None:
        TENSORBOARD.require()
        make_importable()
        from pytorch_lightning.loggers import TensorBoardLogger as Lightnings

        logger = Lightnings(self.folder, name="", version=result.run_id, default_hp_metric=False)
        logger.log_hyperparams(_settings(result), metrics=_numbers(result))
        _tell(logger, result)


class MlflowLogger(ResultLogger):
    """``logger=mlflow``: one MLflow run for each cell."""

    faults: ClassVar[dict[str, str]] = {}  # by server, why it does not answer, or empty

    def __init__(
        self, folder: str, experiment: str = "bias_pipeline", uri: str | None = None
    ) -> None:
        self.folder = Path(folder)
        self.experiment, self.uri = experiment, uri

    def knows(self, result: Result) -> bool:
        logger = self._logger(result)
        runs = logger.experiment.search_runs(
            [str(logger.experiment_id)], f"tags.run = '{result.run_id}' and status = 'FINISHED'"
        )
        return bool(runs)

    def log(self, result: Result) -> None:
        logger = self._logger(result)
        logger.log_hyperparams(_settings(result))
        logger.log_metrics(_numbers(result))
        _tell(logger, result)

    def _logger(self, result: Result) -> Any:
        MLFLOW.require()
        make_importable()
        from pytorch_lightning.loggers import MLFlowLogger

        address = self.uri or os.environ.get("MLFLOW_TRACKING_URI")
        if not address:
            self.folder.mkdir(parents=True, exist_ok=True)
            address = f"sqlite:///{self.folder.resolve() / 'mlflow.db'}"
        elif address.startswith(("http://", "https://")):
            self._require_server(address)
        return MLFlowLogger(
            self.experiment,
            run_name=result.run_id,
            tracking_uri=address,
            tags={"run": result.run_id},
        )

    def _require_server(self, address: str) -> None:
        """Refuse a server that does not answer; MLflow itself would try for four minutes."""
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(REQUEST_S))
        if address not in MlflowLogger.faults:
            MlflowLogger.faults[address] = server_fault(address)
        if MlflowLogger.faults[address]:
            raise ResourceError(
                f"the MLflow server at {address} does not answer ({MlflowLogger.faults[address]}); "
                "logger.mlflow.uri=null stores runs in a file"
            )


def _tell(logger: Logger, result: Result) -> None:
    """Log the losses of every epoch, and then close the run."""
    for losses in history_of(result.tables.get("curves", ())):
        epoch = int(losses.pop("epoch"))
        logger.log_metrics(_tracker_names(losses), step=epoch)
    logger.finalize("success")


def _settings(result: Result) -> dict[str, Any]:
    first = result.rows[0]
    choices = {name: getattr(first, name) for name in _NAMED if getattr(first, name)}
    return {
        **redacted_data(choices),
        "seeds": " ".join(map(str, first.seeds)),
        "run_id": result.run_id,
    }


def _numbers(result: Result) -> dict[str, float]:
    return _tracker_names(summary_of(result.rows))


def _tracker_names(numbers: Mapping[str, float]) -> dict[str, float]:
    """Numbers under names that every tracker accepts, as ``group.female`` for ``group:female``."""
    return {_OTHER.sub(".", name): value for name, value in numbers.items()}
