"""Where memory is short, batches are cut into parts and the attacker stays the same."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.attack.attacker import Attacker
from bias_pipeline.attack.recipe import Recipe, with_less_memory
from bias_pipeline.commands.main import main
from bias_pipeline.errors import ResourceError
from tests.attack.test_ddp import probe
from tests.attack.test_neural import TINY, flags, splits, tasks, telling_captions
from tests.cli.commands import results

FULL = "CUDA out of memory. Tried to allocate 2.00 GiB."
Limit = Callable[[int], list[int]]


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Room for so many captions at a time; returns the sizes of all that were tried."""

    def prepare(room: int) -> list[int]:
        sizes: list[int] = []
        step = Attacker.training_step

        def limit(self: Attacker, batch: Any, batch_idx: int) -> Any:
            sizes.append(len(batch[1]))
            if len(batch[1]) > room:
                raise torch.OutOfMemoryError(FULL)
            return step(self, batch, batch_idx)

        monkeypatch.setattr(Attacker, "training_step", limit)
        return sizes

    return prepare


@pytest.mark.parametrize(
    ("data", "steps"),
    [(telling_captions(), 1), (telling_captions(), 3), (telling_captions(3), 1), (tasks(), 3)],
    ids=["two", "two, three steps", "three", "tasks, three steps"],
)
def test_the_same_attacker_comes_out(memory, data, steps):
    """Within what the order of float32 sums moves; 180 rows in batches of 32 leave a rest."""
    built_probe = probe(accumulate_grad_batches=steps)
    whole = built_probe.fit_predict(data, splits(0))
    sizes = memory(10)
    cut = built_probe.fit_predict(data, splits(0))
    assert max(sizes[2:]) <= 10
    np.testing.assert_allclose(cut.probs[0], whole.probs[0], rtol=0, atol=1e-3)
    # Each shortage is put down.
    first, second = cut.training.out_of_memory
    assert (first["seed"], first["error"]) == (0, FULL)
    assert (first["then_parts"], second["then_parts"]) == (2, 4)


def test_other_errors_are_not_taken_for_a_shortage(monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(Attacker, "training_step", fail)
    with pytest.raises(RuntimeError, match="shapes differ"):
        probe().fit_predict(telling_captions(), splits(0))


def test_no_memory_for_one_caption_is_a_want_of_resources(memory):
    memory(0)
    with pytest.raises(ResourceError, match="one caption at a time"):
        probe().fit_predict(telling_captions(), splits(0))


def recipe(**changed: Any) -> Recipe:
    return replace(probe().recipe, **changed)


def test_the_processor_comes_after_the_smallest_batches_of_a_gpu_where_it_may_be_left():
    gpu = flags(accelerator="gpu", devices=[0, 3], precision="16-mixed")
    last = with_less_memory(recipe(trainer=gpu, parts=32))
    assert last is not None
    assert last.parts == 1
    chosen = {key: last.trainer[key] for key in ("accelerator", "devices", "precision")}
    assert chosen == {"accelerator": "cpu", "devices": 2, "precision": None}
    assert with_less_memory(recipe(trainer=gpu, parts=32, may_leave_gpu=False)) is None


def test_parts_double_up_to_single_captions():
    parts = [1]
    while less := with_less_memory(recipe(batch_size=6, parts=parts[-1])):
        parts.append(less.parts)
    assert parts == [1, 2, 4, 6]


def test_the_manifest_tells(memory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory(70)
    assert main([*TINY]) == 0
    (path,) = results(tmp_path)
    training = json.loads(path.read_text())["manifest"]["training"]
    assert {event["then_parts"] for event in training["out_of_memory"]} == {2}
    assert len(training["out_of_memory"]) == training["trained"]
    # Beside it, the one epoch of each attacker.
    lines = (path.parent / "curves.csv").read_text().splitlines()
    assert lines[0] == "side,seed,epoch,train_loss"
    assert len(lines) == 1 + training["trained"]
