"""Attackers trained at once over stacked weights: each as it would be alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.attack import neural, training
from bias_pipeline.attack.attacker import Ensemble
from bias_pipeline.attack.encoder import WordEncoder, WordInputs
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.probe import ProbeResult
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.attack.trained import Mlp, Recurrent, Transformer
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.io.hashing import derived_seed
from tests.attack.test_neural import N_TRAIN, flags, splits, tasks, telling_captions

SEEDS = (0, 12, 456, 789)
# Sums run in another order; nothing else may differ. In float64, so that training does not magnify
# the difference; losses are float32.
TOLERANCE = 1e-6
ENCODERS = {
    "lstm": Recurrent("lstm", 12, 10, 1, False, 0.5),
    "bilstm": Recurrent("lstm", 12, 10, 2, True, 0.5),
    "rnn": Recurrent("rnn", 12, 10, 2, False, 0.5),
    "birnn": Recurrent("rnn", 12, 10, 1, True, 0.5),
    "transformer": Transformer(2, 8, 12, 2, 0.3),
}
HEADS = {"linear": Mlp(), "mlp3": Mlp([8, 6], 0.2)}


def probe(
    ensemble: int | None = 1, encoder: Any = ENCODERS["bilstm"], head: str = "mlp3", **trainer: Any
) -> NeuralProbe:
    settings = flags(**{"precision": "64-true", "max_epochs": 2, **trainer})
    return NeuralProbe(
        encoder, HEADS[head], Adam(0.02), 32, settings, processes=1, ensemble=ensemble
    )


def uneven(*seeds: int) -> list[Split]:
    """Splits with one to three batches fewer than the first has, and words of their own."""
    lines = enumerate(splits(*seeds))
    return [replace(split, train=split.train[: N_TRAIN - 40 * k]) for k, split in lines]


def assert_alike(one: Sequence[Any], two: Sequence[Any]) -> None:
    assert len(one) == len(two)
    for ours, theirs in zip(one, two, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_member_of_four_is_the_attacker_of_its_seed_alone(encoder):
    """Dropout included: every member draws its own, in the order in which it draws alone."""
    head = "linear" if encoder in ("lstm", "birnn") else "mlp3"
    four = probe(4, ENCODERS[encoder], head).fit_predict(telling_captions(), splits(*SEEDS))
    alone = probe(1, ENCODERS[encoder], head).fit_predict(telling_captions(), splits(12))
    assert_alike([four.probs[1]], alone.probs)
    assert np.abs(four.probs[0] - four.probs[1]).max() > 100 * TOLERANCE


@pytest.mark.parametrize("data", [telling_captions(3), tasks()], ids=["three groups", "tasks"])
def test_every_kind_of_question_is_asked_together_with_the_losses_of_each_alone(data):
    together, alone = (probe(n).fit_predict(data, splits(0, 12)) for n in (2, 1))
    assert_alike(together.probs, alone.probs)
    curves = ([line["train_loss"] for line in p.training.curves] for p in (together, alone))
    assert_alike(*curves)


@pytest.mark.parametrize(("encoder", "steps"), [("bilstm", 3), ("transformer", 1)])
def test_members_may_have_fewer_batches_and_other_words(encoder, steps):
    """A member whose epoch is over waits, its weights as they are."""
    data = telling_captions(
        change=lambda i, text: f"{text} w{i % 90}" if i % 3 else f"a red {text}"
    )
    one, three = (probe(n, ENCODERS[encoder], accumulate_grad_batches=steps) for n in (1, 3))
    alone, together = (item.fit_predict(data, uneven(0, 12, 456)) for item in (one, three))
    assert_alike(together.probs, alone.probs)


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    reason="oneDNN has no bfloat16 LSTM for this processor (it needs AVX-512)",
)
def test_bfloat16_products_move_predictions_by_their_rounding_alone():
    together, alone = (
        probe(n, precision="bf16-mixed").fit_predict(telling_captions(), splits(0, 12))
        for n in (2, 1)
    )
    np.testing.assert_allclose(together.probs, alone.probs, rtol=0, atol=0.03)


def test_gradients_are_clipped_member_by_member():
    settings = {"gradient_clip_val": 0.05, "max_epochs": 1}
    together, alone = (
        probe(n, **settings).fit_predict(telling_captions(), splits(0, 12)) for n in (2, 1)
    )
    assert_alike(together.probs, alone.probs)
    free = probe(1, max_epochs=1).fit_predict(telling_captions(), splits())
    assert np.abs(alone.probs[0] - free.probs[0]).max() > 100 * TOLERANCE


@pytest.fixture
def ensembles(monkeypatch: pytest.MonkeyPatch) -> list[list[dict[str, torch.Tensor]]]:
    """First weights of the members of every ensemble that is trained."""
    recorded: list[list[dict[str, torch.Tensor]]] = []
    fit = training.fit

    def spy(module: Any, *rest: Any) -> None:
        if isinstance(module, Ensemble):
            members = [member.state_dict().items() for member in module.attackers()]
            recorded.append([{name: member.clone() for name, member in items} for items in members])
        fit(module, *rest)

    monkeypatch.setattr(training, "fit", spy)
    return recorded


@pytest.mark.parametrize(("size", "groups"), [(2, [2, 1]), (neural.EVERYONE, [3])])
def test_attackers_are_put_together_as_told_each_with_weights_of_its_own(size, groups, ensembles):
    probe(size, max_epochs=1).fit_predict(telling_captions(), splits(0, 12, 456))
    assert [len(members) for members in ensembles] == groups
    for name in ("encoder.rnn.weight_hh_l0", "encoder.vectors.weight", "head.0.weight"):
        values = [member[name] for members in ensembles for member in members]
        assert not any(torch.allclose(values[0], other) for other in values[1:])


@pytest.mark.parametrize(
    ("trainer", "size"),
    [({"accelerator": "gpu"}, neural.EVERYONE), ({}, 1), ({"accelerator": "gpu", "devices": 2}, 1)],
)
def test_a_gpu_trains_all_at_once_and_a_processor_or_several_gpus_each_alone(trainer, size):
    assert probe(None, **trainer).ensemble == size


@pytest.mark.parametrize("trainer", [{"precision": "16-mixed"}, {"devices": 2}])
def test_what_would_tie_members_to_each_other_is_refused(trainer):
    settings = {**flags(), "accelerator": "gpu", **trainer}
    with pytest.raises(ValueError, match=r"probe\.ensemble=2"):
        NeuralProbe(ENCODERS["lstm"], Mlp(), Adam(0.1), 32, settings, ensemble=2)


def test_the_size_of_an_ensemble_is_no_part_of_the_spec_but_stacking_is():
    assert probe(2).spec == probe(3).spec != probe(1).spec


@dataclass(frozen=True)
class Bag(WordEncoder):
    """An encoder that nobody taught to stack: the mean of word vectors."""

    size: int = 8

    def build(self, inputs: WordInputs) -> torch.nn.Module:
        net: Any = torch.nn.EmbeddingBag(inputs.size, self.size)
        net.forward = lambda tokens, lengths: type(net).forward(net, tokens)
        net.output_dim = self.size
        return net


def test_encoders_that_cannot_be_stacked_are_trained_one_by_one(ensembles):
    together, alone = (
        probe(n, Bag(), max_epochs=1).fit_predict(telling_captions(), splits(0, 12)) for n in (2, 1)
    )
    np.testing.assert_array_equal(together.probs, alone.probs)
    assert ensembles == []


def test_a_member_that_fails_is_trained_again_and_the_others_stay(monkeypatch):
    requested: list[list[int]] = []
    train = neural.train_ensemble

    def spoil(recipe: Any, data: LabelledCaptions, jobs: Sequence[Any]) -> list[ProbeResult]:
        requested.append([job.seed for job in jobs])
        predictions = train(recipe, data, jobs)
        if len(requested) == 1:
            predictions[1] = ProbeResult(np.full_like(predictions[1].probs, np.nan))
        return predictions

    monkeypatch.setattr(neural, "train_ensemble", spoil)
    result = probe(3, max_epochs=1).fit_predict(telling_captions(), splits(0, 12, 456))
    assert requested == [[0, 12, 456], [derived_seed("retry", 12, 1)]]
    assert result.training.failed == 1
    assert np.isfinite(result.probs).all()


def test_where_memory_is_short_fewer_are_trained_at_once(monkeypatch):
    """First halves, then parts of batches; without dropout, the attackers stay the same."""
    built_probe = probe(2, Recurrent("lstm", 12, 10, dropout=0.0), "linear", max_epochs=1)
    whole = built_probe.fit_predict(telling_captions(), splits(0, 12))
    step = Ensemble.training_step

    def limit(self: Ensemble, batch: Any, batch_idx: int) -> Any:
        if sum(len(part[1]) for _, part in batch) > 20:
            raise torch.OutOfMemoryError("out of memory")
        return step(self, batch, batch_idx)

    monkeypatch.setattr(Ensemble, "training_step", limit)
    cut = built_probe.fit_predict(telling_captions(), splits(0, 12))
    assert_alike(cut.probs, whole.probs)
    events = [
        (e["seed"], e.get("then_ensemble"), e.get("then_parts")) for e in cut.training.out_of_memory
    ]
    assert events == [(0, 1, None), (0, None, 2), (12, None, 2)]
