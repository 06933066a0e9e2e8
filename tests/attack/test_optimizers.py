"""Optimisers, schedules and heads are what the recipe says, alone and stacked."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bias_pipeline.attack.attacker import Attacker
from bias_pipeline.attack.nets import BatchNorm, GivenNet
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam, AdamW, Warmup
from bias_pipeline.attack.trained import LicBert, Mlp
from tests.attack.test_neural import accuracy, flags, probe, small_parts, splits, telling_captions


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(3, 2)
        self.LayerNorm = nn.LayerNorm(2)


def test_biases_and_layer_norms_do_not_decay():
    net = Normed()
    decayed, spared = AdamW(0.1, weight_decay=0.3).build(net).param_groups
    assert [decayed["weight_decay"], spared["weight_decay"]] == [0.3, 0.0]
    assert [id(weight) for weight in decayed["params"]] == [id(net.dense.weight)]


def test_adams_spec_is_what_it_was_before_there_were_others():
    assert probe(lr=0.02).spec["optimizer"] == {"lr": 0.02}


@pytest.mark.parametrize(
    "changed",
    [{"optimizer": AdamW(0.02)}, {"schedule": Warmup()}, {"schedule": Warmup(then="constant")}],
)
def test_optimiser_and_schedule_are_part_of_the_spec(changed):
    assert probe_of(**changed).spec != probe_of().spec


def probe_of(optimizer: Any = Adam(0.02), **options: Any) -> Any:  # noqa: B008 - frozen
    settings = {"batch_size": 32, "trainer": flags(), "processes": 1, **options}
    return NeuralProbe(small_parts("encoder", "lstm"), Mlp(), optimizer, **settings)


@pytest.mark.parametrize(("then", "last"), [("linear", 0.125), ("constant", 1.0)])
def test_a_rate_rises_to_its_full_size_and_then_does_as_told(then, last):
    factors = [Warmup(0.2, then).factor(step, 10) for step in range(10)]
    assert factors[:2] == [0.5, 1.0]
    assert factors[-1] == pytest.approx(last)
    assert Warmup(0.0, then).factor(0, 10) == 1.0  # without steps to rise in


def test_the_rate_changes_with_each_step_and_a_word_is_learnt_all_the_same(monkeypatch):
    rates: list[float] = []
    step = Attacker.training_step

    def watch(self: Attacker, *args: Any) -> Any:
        rates.append(self.optimizers().param_groups[0]["lr"])
        return step(self, *args)

    monkeypatch.setattr(Attacker, "training_step", watch)
    predictions = probe_of(AdamW(0.03), schedule=Warmup()).fit_predict(telling_captions(), splits())
    assert rates[0] < max(rates) > rates[-1]
    assert max(rates) == pytest.approx(0.03)
    assert accuracy(predictions) > 0.95


# LIC's BERT head


def test_its_layers_are_those_of_the_published_one_with_two_logits_of_two_groups():
    head = LicBert().build(768, 2)
    kinds = [type(layer).__name__ for layer in head]
    assert kinds == ["BatchNorm", "Linear", "BatchNorm", "LeakyReLU", "Linear"]
    assert sum(weight.numel() for weight in head.parameters()) == 199_426
    assert (LicBert().n_outputs(2, exclusive=True), Mlp().n_outputs(2, exclusive=True)) == (2, 1)


def test_its_predictions_sum_to_one():
    head = LicBert().build(4, 2)
    attacker = Attacker(GivenNet(4), head, exclusive=True, optimizer=Adam(0.1))
    probabilities = attacker.probabilities(vectors=torch.randn(5, 4))
    np.testing.assert_allclose(probabilities.sum(dim=1), 1, atol=1e-12)


def test_a_batch_of_one_row_is_normalised_by_the_past():
    layer = BatchNorm(3)
    assert torch.isfinite(layer(torch.randn(1, 3))).all()
