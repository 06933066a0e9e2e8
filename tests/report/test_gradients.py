"""Which words a network goes by: integrated gradients, on tiny networks."""

import sys
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bias_pipeline.attack.attacker import Attacker, tensors
from bias_pipeline.attack.encoder import WordEncoder, WordInputs
from bias_pipeline.attack.nets import random_word_vectors
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.probe import TrainingJob
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Record
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.io.hashing import derived_seed
from bias_pipeline.report.explain import gradients
from bias_pipeline.report.explain.gradients import Gradients, NetworkFit, attribute_words, fits
from bias_pipeline.report.explain.words import words
from tests.attack.test_neural import TELLING, N, flags, probe, small_parts, splits, telling_captions
from tests.corpora import leaky_corpus, make_corpus
from tests.report.test_words import lic

HOW = Gradients(steps=20)


def with_class_names(data: LabelledCaptions) -> LabelledCaptions:
    return replace(data, classes=("male", "female", "child")[: data.n_classes])


@cache
def fit(encoder: str = "lstm", n_classes: int = 2, how: Gradients = HOW) -> NetworkFit:
    (split,) = splits()
    data = with_class_names(telling_captions(n_classes))
    return fits(probe(encoder), data, split, np.ones((3, N)), how)


@pytest.fixture(scope="module")
def lstm() -> NetworkFit:
    return fit()


class Sums(nn.Module):
    """The sum of word vectors, whose integrated gradients are known."""

    output_dim = 4

    def __init__(self, n_words: int) -> None:
        super().__init__()
        self.vectors = random_word_vectors(n_words, 4)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        del lengths
        total: Tensor = self.vectors(tokens).sum(dim=1)
        return total


def attacker_of(encoder: nn.Module, n_outputs: int = 1) -> Attacker:
    torch.manual_seed(0)
    head = nn.Linear(encoder.output_dim, n_outputs)
    return Attacker(encoder, head, exclusive=True, optimizer=Adam(0.1))


TEXTS = Captions.from_texts(["a red truck", "a dog", "", "red red truck a truck"])
ROWS = np.arange(len(TEXTS))


@pytest.mark.parametrize(
    ("encoder", "baseline", "n_outputs"),
    [("lstm", "zero", 1), ("lstm", "mean", 3), ("transformer1", "zero", 3), ("birnn", "mean", 1)],
)
def test_what_words_add_is_all_that_sets_a_caption_apart_from_the_baseline(
    encoder, baseline, n_outputs
):
    """Completeness, against the attacker's own predictions."""
    inputs = WordInputs(TEXTS, ROWS)
    attacker = attacker_of(small_parts("encoder", encoder).build(inputs), n_outputs)
    result = attribute_words(attacker, inputs, TEXTS, ROWS, Gradients(baseline, 100))
    p = attacker.probabilities(**tensors(inputs, ROWS)).numpy()
    log_odds = np.log(p) - np.log(p).mean(axis=1, keepdims=True)
    stacked = np.stack([word.sum(axis=0) for word in result.words]) + result.rest
    scale = 2 if n_outputs == 1 else 1  # two groups: against the other, not against the mean
    assert stacked == pytest.approx(scale * log_odds, abs=2e-3)


def test_a_sum_of_words_is_given_to_its_words():
    inputs = WordInputs(TEXTS, ROWS)
    encoder = Sums(inputs.size)
    attacker = attacker_of(encoder)
    result = attribute_words(attacker, inputs, TEXTS, ROWS, Gradients(steps=1))
    tokens = tensors(inputs, ROWS[:1])["tokens"]
    expected = (encoder.vectors(tokens[0]) @ attacker.head.weight[0]).tolist()
    assert result.words[0][:, 1] == pytest.approx(expected, abs=1e-6)


def test_the_zero_baseline_says_what_the_attacker_says_of_no_words():
    inputs = WordInputs(TEXTS, ROWS)
    attacker = attacker_of(Sums(inputs.size))
    result = attribute_words(attacker, inputs, TEXTS, ROWS, HOW)
    assert result.rest[:, 1] == pytest.approx(float(attacker.head.bias[0].detach()), abs=1e-6)


def test_every_word_of_a_caption_has_a_part():
    inputs = WordInputs(TEXTS, ROWS)
    result = attribute_words(attacker_of(Sums(inputs.size)), inputs, TEXTS, ROWS, HOW)
    assert [len(word) for word in result.words] == TEXTS.lengths.tolist()


def test_too_few_steps_are_noticed():
    inputs = WordInputs(TEXTS, ROWS)
    torch.manual_seed(1)
    encoder = small_parts("encoder", "rnn").build(inputs)
    with torch.no_grad():
        encoder.vectors.weight *= 20  # far from linear
    attacker = attacker_of(encoder)
    rough, fine = (
        attribute_words(attacker, inputs, TEXTS, ROWS, Gradients(steps=n)).error for n in (1, 500)
    )
    assert fine < 0.02 < rough


@pytest.mark.parametrize(("encoder", "n_classes"), [("lstm", 2), ("lstm", 3), ("transformer1", 2)])
def test_a_planted_word_comes_first(encoder, n_classes):
    result = fit(encoder, n_classes)
    ranked = [result.grams[f] for f in np.argsort(-result.numbers[:, 0]) if result.grams[f]]
    assert ranked[0] in {(word,) for word in TELLING[:n_classes]}


def test_a_planted_word_points_to_its_group(lstm):
    towards = dict(zip(lstm.grams, lstm.numbers[:, 1], strict=True))
    assert towards[("flower",)] > 0 > towards[("truck",)]


def test_all_gains_are_the_log_odds_of_the_metrics_attacker(lstm):
    (split,) = splits()
    data = telling_captions()
    predictions = probe().fit_predict(data, [split])
    probs, truth = predictions.probs[0], predictions.truth[0]
    rows = np.arange(len(truth))
    expected = np.log(probs[rows, truth] / probs[rows, 1 - truth]).mean()
    assert lstm.numbers[:, 0].sum() == pytest.approx(expected, rel=0.02)


def test_the_words_of_an_example_add_up_to_its_log_odds(lstm):
    (example, *_) = lstm.examples("model", [str(i) for i in range(N)], 1)
    row = int(example.image)
    _, rest = lstm.parts(row)
    sign = 1 if example.group == "female" else -1
    total = sign * (sum(weight for _, weight in example.words) + rest[1])
    assert total == pytest.approx(example.log_odds)


def test_an_image_drawn_once_each_changes_nothing(lstm):
    assert lstm.resampled[0] == pytest.approx(lstm.numbers)


def test_a_word_that_a_resampling_lacks_keeps_its_coefficient():
    (split,) = splits()
    data = with_class_names(telling_captions())
    counts = np.ones((1, N))
    counts[0, data.captions.mentions(["truck"])] = 0
    result = fits(probe(), data, split, counts, HOW)
    at = result.grams.index(("truck",))
    assert result.resampled[0, at, 1] == result.numbers[at, 1]
    assert result.resampled[0, at, 0] == 0


def test_the_captions_of_a_word_are_counted_once_each(lstm):
    captions = dict(zip(lstm.grams, lstm.captions.tolist(), strict=True))
    assert captions[("truck",)] == int(lstm.data.captions.mentions(["truck"]).sum())
    assert captions[()] == 0


def test_an_attacker_that_fails_is_trained_again(monkeypatch):
    from bias_pipeline.attack import neural

    failed = iter([True, False])
    monkeypatch.setattr(neural, "_has_failed", lambda *_: next(failed))
    rows = np.arange(N)
    attacker = probe(trainer=flags(max_epochs=1)).attacker(
        telling_captions(), TrainingJob(5, rows[:60], rows[60:])
    )
    assert attacker.seed == derived_seed("retry", 5, 1)


def test_model_and_human_sides_are_compared():
    corpus = leaky_corpus(n=200, model_leak=1.0, human_leak=0.5)
    result = words(lic(probe=probe(), positions=1), corpus, (0, 12), resamples=3, how=HOW)
    assert result.method == "integrated gradients, zero baseline, 20 steps"
    added = max(
        (w for w in result.words if w.side == "difference" and w.gram),
        key=lambda w: w.gain.value,
    )
    assert added.gram in {("truck",), ("flower",)}


def test_the_same_captions_on_both_sides_differ_in_nothing():
    texts = [f"a {('truck', 'flower')[i % 2]} {i % 3}" for i in range(60)]
    records = [Record(str(i), t, (t,), {"gender": "mf"[i % 2]}) for i, t in enumerate(texts)]
    quick = probe(trainer=flags(max_epochs=2))
    result = words(lic(probe=quick), make_corpus(records), [0], resamples=2, how=HOW)
    assert {abs(w.gain.value) for w in result.words if w.side == "difference"} == {0.0}


@dataclass(frozen=True)
class Counting(WordEncoder):
    """An encoder without word vectors: how long a caption is."""

    def build(self, inputs: WordInputs) -> nn.Module:
        del inputs

        class Net(nn.Module):
            output_dim = 1

            def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
                return lengths[:, None].float()

        return Net()


def test_an_encoder_without_word_vectors_is_refused():
    blind = NeuralProbe(Counting(), small_parts("head", "linear"), {}, 32, flags(), processes=1)
    with pytest.raises(UsageError, match="0 layers of word vectors"):
        fits(blind, with_class_names(telling_captions()), splits()[0], np.ones((2, N)), HOW)


def test_attackers_trained_by_several_processes_are_refused():
    together = probe(trainer=flags(devices=2), processes=1)
    with pytest.raises(UsageError, match="devices=1"):
        fits(together, with_class_names(telling_captions()), splits()[0], np.ones((2, N)), HOW)


def test_without_captum_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(ResourceError, match=r"bias_pipeline\[words\]"):
        fits(probe(), with_class_names(telling_captions()), splits()[0], np.ones((2, N)), HOW)


def test_few_steps_are_warned_of(monkeypatch, caplog):
    monkeypatch.setattr(gradients, "TOLERATED", -1.0)
    rows = np.arange(N)
    split = Split(0, rows[:180], rows[180:], rows[:0], balanced=False)
    quick = probe(trainer=flags(max_epochs=1))
    fits(quick, with_class_names(telling_captions()), split, np.ones((2, N)), HOW)
    assert "raise --steps" in caplog.text
