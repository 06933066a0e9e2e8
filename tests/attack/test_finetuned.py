"""``encoder=bert``: published weights that are trained on, on a tiny BERT of random ones."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.attack.language_models import FineTuned
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.probe import TrainingJob
from bias_pipeline.attack.recipe import AdamW, Warmup
from bias_pipeline.attack.trained import LicBert
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from tests.attack.test_frozen import captions
from tests.attack.test_neural import N_TRAIN, N, accuracy, flags, splits
from tests.tiny_models import write_bert


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> FineTuned:
    folder = write_bert(tmp_path_factory.mktemp("bert"), initializer_range=0.1)
    return FineTuned(str(folder), pooling="cls")


def probe(encoder: FineTuned, **options: Any) -> NeuralProbe:
    settings: dict[str, Any] = {"batch_size": 32, "trainer": flags(max_epochs=6), "processes": 1}
    steps = {"schedule": Warmup(), **settings, **options}
    return NeuralProbe(encoder, LicBert(16), AdamW(0.005), **steps)


def job(seed: int = 0) -> TrainingJob:
    rows = np.arange(N)
    return TrainingJob(seed, rows[:N_TRAIN], rows[N_TRAIN:])


def test_a_planted_word_is_learnt(encoder):
    assert accuracy(probe(encoder).fit_predict(captions(), splits(0))) > 0.95


def test_the_models_own_weights_are_trained(encoder):
    from safetensors.torch import load_file

    attacker = probe(encoder).attacker(captions(), job())
    state = attacker.attacker.encoder.network.state_dict()
    name = "encoder.layer.0.attention.self.query.weight"
    published = load_file(Path(encoder.model) / "model.safetensors")[name]
    assert not torch.allclose(state[name], published)


def test_each_attacker_begins_with_the_published_weights(encoder):
    alone = probe(encoder).fit_predict(captions(), splits(12)).probs[0]
    second = probe(encoder).fit_predict(captions(), splits(0, 12)).probs[1]
    np.testing.assert_array_equal(alone, second)


def test_dropout_is_on_while_it_learns(encoder):
    net = encoder.build(encoder.read(captions()))
    assert all(module.training for module in net.modules())


def test_padding_changes_nothing(encoder):
    from bias_pipeline.attack.attacker import tensors

    texts = Captions.from_texts(["a dog", "a small red dog rides on the beach"])
    inputs = encoder.read(LabelledCaptions("model", texts, np.zeros(2, np.int64), 2))
    net = encoder.build(inputs).eval()
    with torch.inference_mode():
        alone = net(**tensors(inputs, np.array([0])))
        padded = net(**tensors(inputs, np.array([0, 1])))
    np.testing.assert_allclose(alone[0], padded[0], rtol=0, atol=1e-5)


def test_long_captions_are_cut_and_counted(encoder):
    short = replace(encoder, longest=5)
    assert probe(short).fit_predict(captions(), splits(0)).training.cut == N
    assert short.read(captions()).lengths.max() == 5


@pytest.mark.parametrize("changed", [{"pooling": "mean"}, {"longest": 7}])
def test_what_decides_a_prediction_is_part_of_the_spec(changed, encoder):
    assert replace(encoder, **changed).spec != encoder.spec


def test_a_spec_is_plain_data(encoder):
    assert json.loads(json.dumps(encoder.spec)) == encoder.spec


def test_many_test_captions_are_predicted_in_parts(encoder, monkeypatch):
    whole = probe(encoder).fit_predict(captions(), splits(0)).probs[0]
    monkeypatch.setattr("bias_pipeline.attack.nets.LanguageNet.together", 7)
    parts = probe(encoder).fit_predict(captions(), splits(0)).probs[0]
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-5)
