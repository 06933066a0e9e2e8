"""TensorBoard and MLflow by Lightning's own loggers: one run a cell, a view of its rows."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.redaction import redacted_data
from bias_pipeline.loggers.loggers import ResultLogger, history_of, summary_of
from bias_pipeline.loggers.push import unanswered
from bias_pipeline.results.store import Result
from bias_pipeline.vision.torchvision import make_importable

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
REQUEST_S = 3  # how long MLflow's server may take for one request, which is made twice
_OTHER = re.compile(r"[^\w./ -]")  # signs that MLflow takes in no name


class TensorBoardLogger(ResultLogger):
    """``logger=tensorboard``: one folder of events a cell, for ``tensorboard --logdir FOLDER``.

    Args:
        folder: where events are written.
    """

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def knows(self, result: Result) -> bool:
        """Whether there are events of the run."""
        return any((self.folder / result.run_id).glob("events.*"))

    def log(self, result: Result) -> None:
        """Write the run.

        Raises:
            ImportError: if tensorboard is not installed.
        """
        make_importable()
        from pytorch_lightning.loggers import TensorBoardLogger as Lightnings

        logger = Lightnings(self.folder, name="", version=result.run_id, default_hp_metric=False)
        logger.log_hyperparams(_settings(result), metrics=_numbers(result))
        _tell(logger, result)


class MlflowLogger(ResultLogger):
    """``logger=mlflow``: one MLflow run a cell.

    Args:
        folder: of the database ``mlflow.db``, where runs are kept when no server is named.
        experiment: its name.
        uri: of the tracking server; ``MLFLOW_TRACKING_URI`` if left out, else the database.
    """

    faults: ClassVar[dict[str, str]] = {}  # why each server that was asked does not answer

    def __init__(
        self, folder: str, experiment: str = "bias_pipeline", uri: str | None = None
    ) -> None:
        self.folder = Path(folder)
        self.experiment, self.uri = experiment, uri

    def knows(self, result: Result) -> bool:
        """Whether the server has a finished run of that name."""
        logger = self._logger(result)
        found = logger.experiment.search_runs(
            [str(logger.experiment_id)], f"tags.run = '{result.run_id}' and status = 'FINISHED'"
        )
        return bool(found)

    def log(self, result: Result) -> None:
        """Write the run.

        Raises:
            ImportError: if mlflow is not installed.
        """
        logger = self._logger(result)
        logger.log_hyperparams(_settings(result))
        logger.log_metrics(_numbers(result))
        _tell(logger, result)

    def _logger(self, result: Result) -> Any:
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
        """Ask a server once whether it is there; MLflow itself would try for four minutes.

        Raises:
            ResourceError: if it did not answer this process.
        """
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(REQUEST_S))
        if address not in MlflowLogger.faults:
            MlflowLogger.faults[address] = unanswered(address)
        if MlflowLogger.faults[address]:
            raise ResourceError(
                f"the MLflow server at {address} does not answer ({MlflowLogger.faults[address]}); "
                "logger.mlflow.uri=null keeps runs in a file"
            )


def _tell(logger: Logger, result: Result) -> None:
    """The losses of every epoch; then the run is finished."""
    for losses in history_of(result.tables.get("curves", ())):
        epoch = int(losses.pop("epoch"))
        logger.log_metrics(_named(losses), step=epoch)
    logger.finalize("success")


def _settings(result: Result) -> dict[str, Any]:
    """What decided the numbers."""
    first = result.rows[0]
    own = {name: getattr(first, name) for name in _NAMED if getattr(first, name)}
    return {
        **redacted_data(own),
        "seeds": " ".join(map(str, first.seeds)),
        "run_id": result.run_id,
    }


def _numbers(result: Result) -> dict[str, float]:
    return _named(summary_of(result.rows))


def _named(numbers: Mapping[str, float]) -> dict[str, float]:
    """Under names that every tracker takes: ``group:female`` becomes ``group.female``."""
    return {_OTHER.sub(".", name): value for name, value in numbers.items()}
