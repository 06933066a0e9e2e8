"""TensorBoard and MLflow hold what the rows do, read back by their own readers."""

from dataclasses import replace

import pytest

from bias_pipeline.errors import ResourceError
from bias_pipeline.io import machine
from bias_pipeline.results.rows import Result
from bias_pipeline.run.lightning_loggers import MlflowLogger, TensorBoardLogger
from tests.results.test_store import row

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # theirs, of each other
CURVES = [{"side": "model", "seed": 0, "epoch": n, "train_loss": 1 / n} for n in (1, 2)]


def result() -> Result:
    rows = [row("run", part=part, value=0.25) for part in ("score", "group:female")]
    return Result("run", rows, {}, tables={"curves": CURVES})


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> TensorBoardLogger:
    pytest.importorskip("tensorboard")
    logger = TensorBoardLogger(str(tmp_path_factory.mktemp("board")))
    logger.log(result())
    return logger


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> MlflowLogger:
    pytest.importorskip("mlflow")
    pytest.importorskip("alembic")
    logger = MlflowLogger(str(tmp_path_factory.mktemp("flow") / "runs"))
    logger.log(result())
    return logger


def test_tensorboard_has_numbers_and_losses(board):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(board.folder / "run"))
    events.Reload()
    (score,) = events.Scalars("score")
    losses = [(e.step, e.value) for e in events.Scalars("train_loss/model")]
    assert score.value == 0.25
    assert losses == [(1, 1.0), (2, 0.5)]


def test_mlflow_has_numbers_losses_and_settings(flow):
    client = flow._logger(result()).experiment
    (experiment,) = [e for e in client.search_experiments() if e.name == "bias_pipeline"]
    (run,) = client.search_runs([experiment.experiment_id], "status = 'FINISHED'")
    losses = client.get_metric_history(run.info.run_id, "train_loss/model")
    assert run.data.metrics["group.female"] == 0.25
    assert run.data.params["metric"] == result().rows[0].metric
    assert [(m.step, m.value) for m in losses] == [(1, 1.0), (2, 0.5)]


def test_tensorboard_knows_what_it_has(board, tmp_path):
    assert board.knows(result())
    assert not TensorBoardLogger(str(tmp_path)).knows(result())


def test_mlflow_knows_what_it_has(flow):
    assert flow.knows(result())
    assert not flow.knows(replace(result(), run_id="another"))


@pytest.mark.parametrize(
    ("logger", "package"), [(TensorBoardLogger, "tensorboard"), (MlflowLogger, "mlflow")]
)
def test_an_absent_package_is_named_with_its_extra(monkeypatch, tmp_path, logger, package):
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    message = (
        rf"logger={package} needs the package {package}, .*pip install 'bias_pipeline\[track\]'"
    )
    with pytest.raises(ResourceError, match=message):
        logger(str(tmp_path / "runs")).log(result())
