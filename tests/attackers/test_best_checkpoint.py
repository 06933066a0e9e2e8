"""Long trainings go on where they were killed; the best epoch can be kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.attackers import neural, training
from bias_pipeline.attackers.attacker import Attacker
from bias_pipeline.attackers.neural import NeuralProbe
from bias_pipeline.attackers.recipe import Adam
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.corpus.split import Split
from bias_pipeline.encoders.trained import Mlp, Recurrent
from bias_pipeline.errors import UsageError
from bias_pipeline.learning.loop import Survival
from tests.attackers.killed import kill_after_a_checkpoint
from tests.attackers.test_neural import flags, labelled, splits

EPOCHS = 5


def probe(cache: Path | None = None, minutes: float | None = 0.0, **options: Any) -> NeuralProbe:
    """With dropout, whose random numbers must go on too."""
    encoder = Recurrent(
        cell="lstm", embedding_dim=16, hidden_dim=16, n_layers=1, bidirectional=False, dropout=0.3
    )
    settings = {key: options.pop(key) for key in list(options) if key in ("select", "ensemble")}
    trainer = flags(precision="32-true", **{"max_epochs": EPOCHS, **options})
    return NeuralProbe(
        encoder,
        Mlp([8], 0.3),
        Adam(0.02),
        32,
        trainer,
        processes=1,
        cache=None if cache is None else str(cache),
        checkpoint_minutes=minutes,
        **settings,
    )


def checkpoint_files(cache: Path) -> list[Path]:
    return list((cache / "checkpoints").glob("*"))


def same(one: Predictions, other: Predictions) -> bool:
    pairs = zip(one.probs, other.probs, strict=True)
    losses = [[line["train_loss"] for line in trained.training.curves] for trained in (one, other)]
    return all(np.array_equal(*pair) for pair in pairs) and losses[0] == losses[1]


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Trainings end at the beginning of the epoch whose number is put into the list."""
    epochs: list[int] = []

    def die(self: Attacker) -> None:
        if self.current_epoch in epochs:
            raise ZeroDivisionError

    monkeypatch.setattr(Attacker, "on_train_epoch_start", die, raising=False)
    return epochs


def interrupt(probe: NeuralProbe, killed: list[int], epoch: int, split: Split) -> None:
    """A training that is killed at the beginning of an epoch."""
    killed.append(epoch)
    with pytest.raises(ZeroDivisionError):
        probe.fit_predict(labelled(), [split])
    killed.clear()


@pytest.mark.parametrize("epoch", [1, EPOCHS - 1])
@pytest.mark.parametrize("select", ["last", "best"])
def test_a_killed_training_ends_in_the_same_numbers(epoch, select, tmp_path, killed):
    whole = probe(select=select).fit_predict(labelled(), validated(0))
    built_probe = probe(tmp_path, select=select)
    interrupt(built_probe, killed, epoch, *validated(0))
    assert len(checkpoint_files(tmp_path)) == 1
    assert same(built_probe.fit_predict(labelled(), validated(0)), whole)
    assert not checkpoint_files(tmp_path)


def test_what_is_done_is_not_done_again(tmp_path, killed, monkeypatch):
    built_probe = probe(tmp_path)
    interrupt(built_probe, killed, 3, *splits(0))
    begun: list[int] = []
    monkeypatch.setattr(
        Attacker, "on_train_epoch_start", lambda self: begun.append(self.current_epoch)
    )
    built_probe.fit_predict(labelled(), splits(0))
    assert begun == [3, 4]


def test_a_damaged_checkpoint_counts_as_absent(tmp_path, killed):
    built_probe = probe(tmp_path)
    interrupt(built_probe, killed, 3, *splits(0))
    (path,) = checkpoint_files(tmp_path)
    path.write_bytes(path.read_bytes()[:1000])
    assert same(
        built_probe.fit_predict(labelled(), splits(0)), probe().fit_predict(labelled(), splits(0))
    )


def test_a_checkpoint_with_code_is_not_opened(tmp_path, killed):
    built_probe = probe(tmp_path)
    interrupt(built_probe, killed, 3, *splits(0))
    (path,) = checkpoint_files(tmp_path)
    marker = tmp_path / "ran"
    torch.save({"state_dict": _Runs(marker)}, path)
    built_probe.fit_predict(labelled(), splits(0))
    assert not marker.exists()


def test_a_checkpoint_of_another_network_counts_as_absent(tmp_path, killed, caplog):
    built_probe = probe(tmp_path)
    interrupt(built_probe, killed, 3, *splits(0))
    (path,) = checkpoint_files(tmp_path)
    other = torch.load(path, weights_only=True)
    other["state_dict"] = {"head.weight": torch.zeros(2, 2)}
    torch.save(other, path)
    assert same(
        built_probe.fit_predict(labelled(), splits(0)), probe().fit_predict(labelled(), splits(0))
    )
    assert "a checkpoint of another network" in caplog.text


def test_weights_alone_are_no_checkpoint(tmp_path, killed, caplog):
    built_probe = probe(tmp_path)
    interrupt(built_probe, killed, 3, *splits(0))
    (path,) = checkpoint_files(tmp_path)
    torch.save(torch.load(path, weights_only=True)["state_dict"], path)
    built_probe.fit_predict(labelled(), splits(0))
    assert "not a checkpoint of a training: it lacks bias_pipeline, epoch" in caplog.text


class _Runs:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self.marker,)


def test_a_short_training_writes_nothing(tmp_path, killed, monkeypatch):
    built_probe = probe(tmp_path, minutes=60)
    interrupt(built_probe, killed, 3, *splits(0))
    assert not checkpoint_files(tmp_path)


def test_seeds_and_data_have_checkpoints_of_their_own(tmp_path, killed):
    killed.append(2)
    for data, seed in ((labelled(), 0), (labelled(), 12), (labelled(n_classes=3), 0)):
        with pytest.raises(ZeroDivisionError):
            probe(tmp_path).fit_predict(data, splits(seed))
    assert len(checkpoint_files(tmp_path)) == 3


def test_how_often_is_no_part_of_what_an_attacker_is():
    assert probe(minutes=0).spec == probe(minutes=None).spec
    assert probe(select="best").spec != probe().spec


# The best epoch.


def validated(seed: int) -> list[Split]:
    """A split whose last training captions validate."""
    (split,) = splits(seed)
    cut = len(split.train) // 4
    return [Split(seed, split.train[cut:], split.test, split.train[:cut], balanced=False)]


def test_the_best_epoch_is_asked(monkeypatch):
    """By a second reckoning of the loss on the validation part after every epoch."""
    recorded: list[tuple[float, np.ndarray[Any, Any]]] = []
    (split,) = validated(0)
    data = labelled()
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

    def watched(*arguments: Any, **options: Any) -> training.Prepared:
        prepared = prepare(*arguments, **options)
        ended = Attacker.on_train_epoch_end

        def end(self: Attacker) -> None:
            ended(self)
            losses, self.losses = self.losses, []
            look(prepared, self)
            self.losses = losses

        monkeypatch.setattr(Attacker, "on_train_epoch_end", end)
        return prepared

    monkeypatch.setattr(training, "prepare", watched)
    (prob,) = built_probe.fit_predict(data, [split]).probs
    assert len(recorded) == EPOCHS
    assert prob == pytest.approx(min(recorded, key=lambda pair: pair[0])[1], abs=1e-6)


def test_the_last_epoch_needs_no_validation():
    one, other = (probe().fit_predict(labelled(), item) for item in (splits(0), splits(0)))
    assert same(one, other)


def test_the_best_epoch_needs_images_to_validate_on():
    with pytest.raises(UsageError, match=r"metric\.select=best needs .* split=ic2"):
        probe(select="best").fit_predict(labelled(), splits(0))


def test_attackers_trained_at_once_have_no_best_epoch():
    with pytest.raises(UsageError, match=r"probe\.ensemble=1"):
        probe(select="best", ensemble=4)


# A process that is killed.


@pytest.fixture(scope="module")
def _processes() -> Iterator[None]:
    yield
    neural._stop_workers()


def fit(cache: Path, devices: int) -> Predictions:
    many = {"devices": devices, "strategy": "ddp"} if devices > 1 else {}
    return probe(cache, **many).fit_predict(labelled(), splits(0))


@pytest.mark.slow
@pytest.mark.usefixtures("_processes")
@pytest.mark.parametrize("devices", [1, 2])
def test_kill_9_costs_no_number(devices, tmp_path):
    function = "tests.attackers.test_best_checkpoint.fit"
    kill_after_a_checkpoint(function, (tmp_path / "a", devices), tmp_path / "a" / "checkpoints")
    again, whole = (fit(tmp_path / name, devices) for name in ("a", "b"))
    assert same(again, whole)


def test_without_a_cache_nothing_is_written():
    assert probe(None).recipe.survival is None
    assert isinstance(probe(Path("x")).recipe.survival, Survival)


@pytest.mark.parametrize(
    ("cached", "options"),
    [(True, {"ensemble": 2}), (True, {}), (False, {"select": "best"}), (False, {})],
)
def test_nothing_is_left_in_the_current_folder(cached, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    built_probe = probe(tmp_path / "cache" if cached else None, max_epochs=2, **options)
    built_probe.fit_predict(labelled(), validated(0))
    assert [path.name for path in tmp_path.iterdir()] == (["cache"] if cached else [])
