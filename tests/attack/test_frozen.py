"""Frozen encoders: vectors that are computed once, and attackers of one head all at once."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.attack.encoder import Head
from bias_pipeline.attack.language_models import Frozen, Vectors, distinct_texts
from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.attack.trained import LicBert, Mlp
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.models.sentences import Sentences
from bias_pipeline.retrieval.debias.base import Debias, template_sentences
from bias_pipeline.retrieval.debias.methods import (
    ClipClip,
    Erasure,
    MeanDifference,
    Subspace,
    Untouched,
    ZeroNeuron,
)
from tests.attack.test_neural import N_TRAIN, N, accuracy, flags, splits
from tests.tiny_models import write_bert

TELLING = ("man", "woman")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"), initializer_range=0.1)


@pytest.fixture
def encoder(bert: Path, tmp_path: Path) -> Frozen:
    return Frozen(str(bert), cache=str(tmp_path / "vectors"))


@pytest.fixture
def embedded_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that any model embeds."""
    recorded: list[str] = []
    embed = Sentences.embed

    def watch(self: Sentences, texts: Any) -> Any:
        recorded.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(Sentences, "embed", watch)
    return recorded


def captions() -> LabelledCaptions:
    """The last word tells the class."""
    generator = np.random.default_rng(0)
    fillers = generator.choice(["red", "small", "dog", "horse"], (N, 3))
    labels = np.arange(N) % 2
    texts = [
        f"a {' '.join(filler)} {TELLING[k]}" for filler, k in zip(fillers, labels, strict=True)
    ]
    return LabelledCaptions("model", Captions.from_texts(texts), labels, 2)


LINEAR = Mlp()


def neural(encoder: Frozen, head: Head = LINEAR, **options: Any) -> NeuralProbe:
    settings: dict[str, Any] = {"batch_size": 32, "trainer": flags(max_epochs=10), **options}
    return NeuralProbe(encoder, head, Adam(0.02), **settings)


def test_each_distinct_caption_is_embedded_once(encoder, embedded_texts):
    neural(encoder).fit_predict(captions(), splits(0, 12))
    neural(encoder, Mlp([8])).fit_predict(captions(), splits(0, 456))
    ConvexProbe(encoder).fit_predict(captions(), splits(0))
    assert (
        len(embedded_texts)
        == len(set(embedded_texts))
        == len(distinct_texts(captions().captions)[0])
    )


def trained_long(encoder: Frozen) -> NeuralProbe:
    return neural(encoder, trainer=flags(max_epochs=40))


@pytest.mark.parametrize("kind", [trained_long, ConvexProbe])
def test_a_planted_word_is_learnt(kind, encoder):
    assert accuracy(kind(encoder).fit_predict(captions(), splits(0))) > 0.9


def test_without_a_cache_the_same_is_learnt(encoder):
    cached, fresh = (
        neural(item).fit_predict(captions(), splits(0)).probs[0]
        for item in (encoder, replace(encoder, cache=None))
    )
    np.testing.assert_allclose(fresh, cached, rtol=0, atol=1e-5)


def test_what_was_embedded_is_put_down(encoder):
    n_distinct = len(distinct_texts(captions().captions)[0])
    lines = []
    for head in (Mlp(), Mlp([8])):
        training = neural(encoder, head).fit_predict(captions(), splits(0)).training
        lines.append((training.embedded, training.embedded_before))
    assert lines == [(n_distinct, 0), (0, n_distinct)]


@pytest.mark.parametrize("head", [Mlp(), Mlp([8, 4], 0.2), LicBert(8)])
def test_heads_of_all_seeds_are_trained_at_once_and_predict_what_they_do_alone(head, encoder):
    probe = neural(encoder, head)
    assert probe.ensemble > 100
    together = probe.fit_predict(captions(), splits(0, 12, 456))
    attackers = neural(encoder, head, ensemble=1, processes=1)
    alone = attackers.fit_predict(captions(), splits(0, 12, 456))
    for one, other in zip(together.probs, alone.probs, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-3)


def test_vectors_are_standardised_by_the_captions_learnt_from():
    vectors = np.random.default_rng(0).normal(3, 2, (N, 4)).astype(np.float32)
    train = np.arange(N_TRAIN)
    vectors[:, 3] = 1.0  # a number that never changes
    scaled = Vectors(vectors, np.arange(N), standardize=True).fit(train).batch(train)["vectors"]
    np.testing.assert_allclose(scaled.mean(axis=0), [0] * 4, atol=1e-4)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 1, 0], atol=1e-4)


# Identity


def test_the_same_model_elsewhere_is_the_same(bert, tmp_path):
    copy = shutil.copytree(bert, tmp_path / "copy")
    assert Frozen(str(copy)).spec == Frozen(str(bert)).spec


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"pooling": "cls"}, False),
        ({"normalize": True}, False),
        ({"standardize": False}, False),
        ({"dtype": "bfloat16"}, False),
        ({"device": "cpu"}, True),
        ({"cache": "elsewhere"}, True),
    ],
)
def test_what_decides_a_vector_is_part_of_the_spec_and_where_it_is_computed_is_not(
    changed, same, encoder
):
    assert (replace(encoder, **changed).spec == encoder.spec) is same


def test_float32_is_not_named_so_that_stored_vectors_stay_valid(encoder):
    assert "dtype" not in encoder.spec


def test_a_spec_is_plain_data(encoder):
    assert json.loads(json.dumps(encoder.spec)) == encoder.spec


def test_heads_are_part_of_the_spec(encoder):
    assert neural(encoder, Mlp([8])).spec != neural(encoder).spec


# Without what tells groups apart.

GENDER = Attribute("gender", ("male", "female"), {}, {})
DEBIASED: list[Debias] = [MeanDifference(), Subspace(k=1), ZeroNeuron(k=2), Erasure()]


def with_debiasing(encoder: Frozen, debias: Debias) -> Frozen:
    return replace(encoder, debias=debias, attribute=GENDER)


@pytest.mark.parametrize("debias", DEBIASED, ids=repr)
def test_debiased_vectors_of_the_groups_words_lie_nearer(encoder, debias):
    texts = Captions.from_texts(["a man", "a woman"])
    data = LabelledCaptions("model", texts, np.array([0, 1]), 2)
    apart = [
        np.linalg.norm(np.subtract(*item.read(data).vectors))
        for item in (encoder, with_debiasing(encoder, debias))
    ]
    assert apart[1] < apart[0]


def test_after_erasure_no_linear_attacker_tells_the_sentences_it_was_fitted_to(encoder):
    texts = [text for content in template_sentences(GENDER, GENDER.groups) for text in content]
    labels = np.tile([0, 1], len(texts) // 2)
    data = LabelledCaptions("model", Captions.from_texts(texts), labels, 2)
    content = with_debiasing(encoder, Erasure(renormalise=False)).read(data)
    vector = content.vectors[content.rows].astype(np.float64)
    assert abs(vector[labels == 0].mean(0) - vector[labels == 1].mean(0)).max() < 1e-4


def test_nothing_taken_out_leaves_vectors_and_their_name(encoder):
    projected = with_debiasing(encoder, Untouched())
    assert projected.spec == encoder.spec
    assert np.array_equal(projected.read(captions()).vectors, encoder.read(captions()).vectors)


def test_what_is_taken_out_is_part_of_the_name(encoder):
    specs = [json.dumps(with_debiasing(encoder, item).spec, sort_keys=True) for item in DEBIASED]
    assert len({*specs, json.dumps(encoder.spec, sort_keys=True)}) == len(DEBIASED) + 1


def test_captions_are_embedded_once_whatever_is_taken_out(encoder, embedded_texts):
    for item in DEBIASED:
        with_debiasing(encoder, item).read(captions())
    assert len(embedded_texts) == len(set(embedded_texts))


@pytest.mark.parametrize(
    ("debias", "attribute", "error", "message"),
    [
        (ClipClip(k=2), "gender", UsageError, "has only texts"),
        (MeanDifference(side="image"), "gender", UsageError, "has only texts"),
        (MeanDifference(), "mood", NotApplicableError, "its groups have no words"),
    ],
)
def test_debiasings_of_pictures_and_groups_without_words_are_refused(
    debias, attribute, error, message, encoder
):
    groups = GENDER if attribute == "gender" else Attribute("mood", ("low", "high"), {}, {})
    with pytest.raises(error, match=message):
        replace(encoder, debias=debias, attribute=groups).require()
