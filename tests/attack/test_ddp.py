"""Several processes train one attacker: as one would, and one prediction for every test caption."""

import os
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.attack import training
from bias_pipeline.attack.attacker import LengthBatches, SharedBatches
from bias_pipeline.attack.encoder import WordInputs
from bias_pipeline.attack.lightning_loop import Share, ranks, world_size
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.attack.trained import Mlp, Recurrent
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.errors import ResourceError
from bias_pipeline.io.machine import n_cores
from tests.attack.test_neural import flags, splits, tasks, telling_captions

TWO = {"devices": 2, "strategy": "ddp"}


def probe(**options: Any) -> NeuralProbe:
    """Without dropout, of which each process draws its own."""
    trainer = flags(precision="32-true", **options)
    net: tuple[Any, ...] = (Recurrent("lstm", 16, 16, 1, False, 0.0), Mlp([8], 0.0), Adam(0.02))
    return NeuralProbe(*net, 32, trainer, processes=1)


# What each process sees.


@given(st.integers(0, 50), st.integers(1, 5))
def test_shares_hold_each_row_once(n_rows, world):
    rows = np.arange(n_rows)
    shares = [Share(rank, world).take(rows) for rank in range(world)]
    assert sorted(np.concatenate(shares)) == rows.tolist()


def batches(n_rows: int, batch_size: int) -> LengthBatches:
    rows = np.arange(n_rows)
    inputs = WordInputs(Captions.from_texts(["a"] * n_rows), rows)
    return LengthBatches(inputs, rows, torch.arange(n_rows).float(), batch_size, seed=0)


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 4), st.integers(1, 3))
def test_the_weighted_means_average_to_that_of_the_whole_batch(n_rows, batch_size, world, parts):
    """Even of a last batch with fewer rows than there are processes."""
    wholes = list(batches(n_rows, batch_size))
    averaged = np.zeros(len(wholes))
    for rank in range(world):
        items = list(SharedBatches(batches(n_rows, batch_size), Share(rank, world), parts))
        assert len(items) == len(wholes) * parts
        for number, part in enumerate(items):
            averaged[number // parts] += float(part.targets.mean()) * part.weight / (world * parts)
    means = [float(whole.targets.mean()) for whole in wholes]
    np.testing.assert_allclose(averaged, means, rtol=1e-5)


# Training.


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(
    "data", [telling_captions(), telling_captions(3), tasks()], ids=["two", "three", "tasks"]
)
def test_two_processes_predict_as_one(data):
    """Within what the order of float32 sums moves over three epochs: batches are the same."""
    one = probe().fit_predict(data, splits(0))
    two = probe(**TWO).fit_predict(data, splits(0))
    assert two.probs[0].shape == one.probs[0].shape
    np.testing.assert_allclose(two.probs[0], one.probs[0], rtol=0, atol=1e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_the_account_holds_the_number_of_processes_that_pytorch_counted():
    training = probe(**TWO).fit_predict(telling_captions(), splits(0)).training
    assert (training.world_size, training.trained) == (2, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_process_that_dies_ends_the_training_of_all():
    """Otherwise the other one would wait for its gradients for ever."""
    ranks(2).run(_die_when_rank_one_trains)
    with pytest.raises(ResourceError, match="killed from outside"):
        probe(**TWO).fit_predict(telling_captions(), splits(0))


def _die_when_rank_one_trains(share: Share) -> None:
    """Within one of several processes: its next training is its last."""

    def die(*_: object) -> None:
        os._exit(1)

    if share.rank == 1:
        training.fit = die


# Flags.


@pytest.mark.parametrize(
    ("trainer", "message"),
    [
        *(({"devices": n}, r"trainer\.devices=") for n in (0, -1, "auto", 1.5, True, [])),
        ({"devices": 2, "num_nodes": 2}, "spread seeds over jobs instead"),
    ],
)
def test_a_number_of_devices_of_one_machine_is_asked_for(trainer, message):
    with pytest.raises(ValueError, match=message):
        world_size(trainer)


def test_processes_for_seeds_and_for_devices_exclude_each_other():
    with pytest.raises(ValueError, match="exclude each other"):
        NeuralProbe(Recurrent("lstm", 4, 4, 1, False, 0.0), Mlp([4], 0.0), {}, 1, flags(**TWO), 2)


@pytest.mark.parametrize(
    ("variables", "cores"),
    [
        ({"SLURM_CPUS_PER_TASK": "3", "SLURM_CPUS_ON_NODE": "8"}, 3),
        ({"SLURM_CPUS_ON_NODE": "8"}, 8),
        ({"SLURM_CPUS_PER_TASK": "0"}, 1),
        ({"SLURM_CPUS_PER_TASK": "²"}, len(os.sched_getaffinity(0))),
        ({}, len(os.sched_getaffinity(0))),
    ],
)
def test_slurm_says_how_many_cores_there_are(monkeypatch, variables, cores):
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert n_cores() == cores
