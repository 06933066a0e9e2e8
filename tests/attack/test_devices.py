"""A GPU predicts as a processor does, within what float32 sums in another order may move."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.attack.attacker import Attacker
from bias_pipeline.attack.lightning_loop import require_devices
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.attack.trained import Mlp, Recurrent, Transformer
from bias_pipeline.attack.training import Prepared, predict, train_locally
from bias_pipeline.models.pretrained import device_of
from tests.attack.test_neural import flags, splits, tasks, telling_captions

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
TOLERANCE = 1e-5  # of a probability, after three epochs
ENCODERS: dict[str, Any] = {
    "lstm": Recurrent("lstm", 16, 16, 1, False, 0.0),
    "bilstm": Recurrent("lstm", 16, 16, 2, True, 0.0),
    "rnn": Recurrent("rnn", 16, 16, 1, False, 0.0),
    "transformer": Transformer(2, 16, 32, 1, 0.0),
}
WIDE = Recurrent("lstm", 2048, 16, 1, False, 0.0)  # a caption of 60 words needs half a MiB a time


def engine(
    encoder: Any = ENCODERS["lstm"], accelerator: str = "gpu", ensemble: int = 1, size: int = 32
) -> NeuralProbe:
    """Attackers without dropout, in float32."""
    trainer = flags(precision="32-true", accelerator=accelerator)
    head, optimizer = Mlp([8], 0.0), Adam(0.02)
    return NeuralProbe(encoder, head, optimizer, size, trainer, processes=1, ensemble=ensemble)


def long_captions() -> Any:
    """Captions of 60 words."""
    return telling_captions(2, lambda i, text: " ".join(["red"] * 56) + " " + text)


@pytest.fixture
def memory() -> Iterator[Callable[[float], None]]:
    """Sets how many MiB this process may take of the GPU."""
    total = torch.cuda.get_device_properties(0).total_memory

    def limit(mebibytes: float) -> None:
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(mebibytes * 2**20 / total)

    yield limit
    torch.cuda.set_per_process_memory_fraction(1.0)


@on_gpu
@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
@pytest.mark.parametrize(
    "data", [telling_captions(), telling_captions(3), tasks()], ids=["two", "three", "tasks"]
)
def test_a_gpu_predicts_as_a_processor_does(encoder, data):
    here, there = (
        engine(encoder, kind).fit_predict(data, splits(0)).probs[0] for kind in ("cpu", "gpu")
    )
    np.testing.assert_allclose(there, here, rtol=0, atol=TOLERANCE)


@on_gpu
@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
def test_stacked_attackers_of_a_gpu_predict_as_each_alone(encoder):
    three = splits(0, 12, 456)
    alone, stacked = (
        engine(encoder, ensemble=size).fit_predict(telling_captions(), three).probs
        for size in (1, 3)
    )
    np.testing.assert_allclose(stacked, alone, rtol=0, atol=TOLERANCE)


def train_one(encoder: Any, data: Any) -> tuple[Prepared, Any]:
    """A trained attacker and its test captions."""
    probe = engine(encoder)
    (split,) = splits(0)
    job = probe.job(split, data.captions.image_rows, data.labels)
    return train_locally(probe.recipe, data, job), job.test


@on_gpu
def test_predictions_are_made_where_the_attacker_was_trained(monkeypatch):
    devices = []
    probabilities = Attacker.probabilities

    def note(self: Attacker, **inputs: Any) -> Any:
        devices.append(self.device.type)
        return probabilities(self, **inputs)

    monkeypatch.setattr(Attacker, "probabilities", note)
    engine().fit_predict(telling_captions(), splits(0))
    assert devices == ["cuda"]


@on_gpu
def test_predictions_for_which_a_gpu_has_no_memory_are_made_on_the_processor(memory):
    data = long_captions()
    trained, rows = train_one(WIDE, data)
    expected = predict(trained, data, rows).probs
    trained.attacker.cuda()
    memory(16)
    np.testing.assert_allclose(predict(trained, data, rows).probs, expected, rtol=0, atol=TOLERANCE)


@on_gpu
def test_if_a_gpu_has_too_little_memory_batches_are_cut_and_the_attacker_is_the_same(memory):
    data = long_captions()
    whole = engine(WIDE, size=180).fit_predict(data, splits(0))
    memory(160)
    cut = engine(WIDE, size=180).fit_predict(data, splits(0))
    assert {step["then_accelerator"] for step in cut.training.out_of_memory} == {"gpu"}
    np.testing.assert_allclose(cut.probs[0], whole.probs[0], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    "use", [lambda: device_of("cpu"), lambda: require_devices({"accelerator": "cpu", "devices": 1})]
)
def test_whoever_chooses_a_device_switches_rounding_to_ten_bits_off(use, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    use()
    assert not torch.backends.cudnn.allow_tf32
