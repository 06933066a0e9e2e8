"""Long trainings go on where they were killed; the best epoch can be kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.attack import training
from bias_pipeline.attack.attacker import Attacker
from bias_pipeline.attack.lightning_loop import CheckpointSettings
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.attack.trained import Mlp, Recurrent
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import UsageError
from tests.attack.killed import kill_after_a_checkpoint
from tests.attack.test_neural import flags, splits, telling_captions

EPOCHS = 5


def probe(cache: Path | None = None, minutes: float | None = 0.0, **options: Any) -> NeuralProbe:
    """With dropout, whose random numbers must go on too."""
    settings = {key: options.pop(key) for key in list(options) if key in ("select", "ensemble")}
    trainer = flags(precision="32-true", **{"max_epochs": EPOCHS, **options})
    survival = {"cache": None if cache is None else str(cache), "checkpoint_minutes": minutes}
    net: tuple[Any, ...] = (Recurrent("lstm", 16, 16, 1, False, 0.3), Mlp([8], 0.3), Adam(0.02))
    return NeuralProbe(*net, 32, trainer, processes=1, **survival, **settings)


def checkpoint_files(cache: Path) -> list[Path]:
    return list((cache / "checkpoints").glob("*"))


def have_equal_numbers(one: Predictions, other: Predictions) -> bool:
    pairs = zip(one.probs, other.probs, strict=True)
    losses = [[line["train_loss"] for line in trained.training.curves] for trained in (one, other)]
    return all(np.array_equal(*pair) for pair in pairs) and losses[0] == losses[1]


@pytest.fixture
def epochs_that_kill(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Trainings end at the beginning of the epoch whose number is put into the list."""
    epochs: list[int] = []

    def die(self: Attacker) -> None:
        if self.current_epoch in epochs:
            raise ZeroDivisionError

    monkeypatch.setattr(Attacker, "on_train_epoch_start", die, raising=False)
    return epochs


def interrupt(probe: NeuralProbe, epochs_that_kill: list[int], epoch: int, split: Split) -> None:
    """A training that is killed at the beginning of an epoch."""
    epochs_that_kill.append(epoch)
    with pytest.raises(ZeroDivisionError):
        probe.fit_predict(telling_captions(), [split])
    epochs_that_kill.clear()


@pytest.fixture(scope="module")
def whole_training() -> dict[str, Predictions]:
    """What a training that nobody kills ends in, by the epoch that it keeps."""
    return {
        s: probe(select=s).fit_predict(telling_captions(), splits_with_validation(0))
        for s in ("last", "best")
    }


@pytest.mark.parametrize("epoch", [1, EPOCHS - 1])
@pytest.mark.parametrize("select", ["last", "best"])
def test_a_killed_training_ends_in_the_same_numbers(
    epoch, select, tmp_path, epochs_that_kill, whole_training
):
    built_probe = probe(tmp_path, select=select)
    interrupt(built_probe, epochs_that_kill, epoch, *splits_with_validation(0))
    assert len(checkpoint_files(tmp_path)) == 1
    assert have_equal_numbers(
        built_probe.fit_predict(telling_captions(), splits_with_validation(0)),
        whole_training[select],
    )
    assert not checkpoint_files(tmp_path)


@pytest.fixture
def checkpoint(tmp_path: Path, epochs_that_kill: list[int]) -> Path:
    """Of a training that was killed after three epochs."""
    interrupt(probe(tmp_path), epochs_that_kill, 3, *splits_with_validation(0))
    (path,) = checkpoint_files(tmp_path)
    return path


def gone_on(checkpoint: Path) -> Predictions:
    return probe(checkpoint.parent.parent).fit_predict(
        telling_captions(), splits_with_validation(0)
    )


def test_what_is_done_is_not_done_again(checkpoint, monkeypatch):
    begun: list[int] = []
    monkeypatch.setattr(
        Attacker, "on_train_epoch_start", lambda self: begun.append(self.current_epoch)
    )
    gone_on(checkpoint)
    assert begun == [3, 4]


def of_another_network(path: Path) -> None:
    content = torch.load(path, weights_only=True)
    torch.save({**content, "state_dict": {"head.weight": torch.zeros(2, 2)}}, path)


def weights_alone(path: Path) -> None:
    torch.save(torch.load(path, weights_only=True)["state_dict"], path)


@pytest.mark.parametrize(
    ("damage", "warning"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:1000]), ""),
        (of_another_network, "a checkpoint of another network"),
        (weights_alone, "not a checkpoint of a training: it lacks bias_pipeline, epoch"),
    ],
    ids=["cut", "of another network", "weights alone"],
)
def test_what_is_no_checkpoint_of_this_training_counts_as_absent(
    damage, warning, checkpoint, caplog, whole_training
):
    damage(checkpoint)
    assert have_equal_numbers(gone_on(checkpoint), whole_training["last"])
    assert warning in caplog.text


class _Runs:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self.marker,)


def test_a_checkpoint_with_code_is_not_opened(checkpoint, tmp_path):
    marker = tmp_path / "ran"
    torch.save({"state_dict": _Runs(marker)}, checkpoint)
    gone_on(checkpoint)
    assert not marker.exists()


def test_a_short_training_writes_nothing(tmp_path, epochs_that_kill):
    interrupt(probe(tmp_path, minutes=60), epochs_that_kill, 3, *splits(0))
    assert not checkpoint_files(tmp_path)


def test_seeds_and_data_have_checkpoints_of_their_own(tmp_path, epochs_that_kill):
    epochs_that_kill.append(2)
    for data, seed in (
        (telling_captions(), 0),
        (telling_captions(), 12),
        (telling_captions(n_classes=3), 0),
    ):
        with pytest.raises(ZeroDivisionError):
            probe(tmp_path).fit_predict(data, splits(seed))
    assert len(checkpoint_files(tmp_path)) == 3


def test_how_often_is_no_part_of_what_an_attacker_is():
    assert probe(minutes=0).spec == probe(minutes=None).spec
    assert probe(select="best").spec != probe().spec


# The best epoch.


def splits_with_validation(seed: int) -> list[Split]:
    """A split whose last training captions validate."""
    (split,) = splits(seed)
    cut = len(split.train) // 4
    return [Split(seed, split.train[cut:], split.test, split.train[:cut], balanced=False)]


def test_the_best_epoch_is_asked(monkeypatch):
    """By a second reckoning of the loss on the validation part after every epoch."""
    recorded: list[tuple[float, np.ndarray[Any, Any]]] = []
    (split,) = splits_with_validation(0)
    data = telling_captions()
    built_probe = probe(select="best")
    job = built_probe.job(split, data.captions.image_rows, data.labels)

    def look(prepared: training.Prepared, module: Attacker) -> None:
        module.eval()
        lines = [
            training.predict(prepared, data, rows).probs for rows in (job.validation, job.test)
        ]
        module.train()
        truth = data.labels[job.validation]
        loss = -np.log(lines[0][np.arange(len(truth)), truth]).mean()
        recorded.append((float(loss), lines[1]))

    prepare = training.prepare

    def watch(*arguments: Any, **options: Any) -> training.Prepared:
        prepared = prepare(*arguments, **options)
        ended = Attacker.on_train_epoch_end

        def end(self: Attacker) -> None:
            ended(self)
            losses, self.losses = self.losses, []
            look(prepared, self)
            self.losses = losses

        monkeypatch.setattr(Attacker, "on_train_epoch_end", end)
        return prepared

    monkeypatch.setattr(training, "prepare", watch)
    (prob,) = built_probe.fit_predict(data, [split]).probs
    assert len(recorded) == EPOCHS
    assert prob == pytest.approx(min(recorded, key=lambda pair: pair[0])[1], abs=1e-6)


def test_the_best_epoch_needs_images_to_validate_on():
    with pytest.raises(UsageError, match=r"metric\.select=best needs .* split=ic2"):
        probe(select="best").fit_predict(telling_captions(), splits(0))


def test_attackers_trained_at_once_have_no_best_epoch():
    with pytest.raises(UsageError, match=r"probe\.ensemble=1"):
        probe(select="best", ensemble=4)


# A process that is killed.


def fit(cache: Path, devices: int) -> Predictions:
    many = {"devices": devices, "strategy": "ddp"} if devices > 1 else {}
    return probe(cache, **many).fit_predict(telling_captions(), splits(0))


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("devices", [1, 2])
def test_kill_9_costs_no_number(devices, tmp_path):
    function = "tests.attack.test_best_checkpoint.fit"
    kill_after_a_checkpoint(function, (tmp_path / "a", devices), tmp_path / "a" / "checkpoints")
    again, whole = (fit(tmp_path / name, devices) for name in ("a", "b"))
    assert have_equal_numbers(again, whole)


def test_without_a_cache_nothing_is_written():
    assert probe(None).recipe.survival is None
    assert isinstance(probe(Path("x")).recipe.survival, CheckpointSettings)


@pytest.mark.parametrize(
    ("cached", "options"),
    [(True, {"ensemble": 2}), (True, {}), (False, {"select": "best"}), (False, {})],
)
def test_nothing_is_left_in_the_current_folder(cached, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    built_probe = probe(tmp_path / "cache" if cached else None, max_epochs=2, **options)
    built_probe.fit_predict(telling_captions(), splits_with_validation(0))
    assert [path.name for path in tmp_path.iterdir()] == (["cache"] if cached else [])
