"""An encoder that attack/ has never heard of trains through the same probes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import sparse
from torch import nn

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.attack.encoder import (
    FeatureEncoder,
    Features,
    Items,
    NetEncoder,
    SharedFeatures,
)
from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.attack.trained import Mlp
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split_rules import HoldOut
from bias_pipeline.metrics.attack.lic import LIC
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Lic
from tests.attack.test_neural import accuracy, flags, splits, telling_captions
from tests.corpora import GENDER, leaky_corpus

WORDS = ("truck", "flower", "red", "big")


def vectors_of(data: LabelledCaptions) -> Float32Array:
    """(N, 4) precomputed vectors: which of four words stand in a caption."""
    texts = [set(data.captions.words(row)) for row in range(len(data.captions))]
    return np.array([[word in text for word in WORDS] for text in texts], np.float32)


@dataclass(frozen=True, eq=False)
class Vectors(Items):
    """Vectors that are there; nothing is fitted."""

    vectors: Float32Array

    def fit(self, train: IntArray) -> Vectors:
        del train
        return self

    @property
    def lengths(self) -> IntArray:
        return np.ones(len(self.vectors), np.int64)

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        return {"vectors": self.vectors[rows]}

    def matrix(self, rows: IntArray) -> sparse.csr_array:
        return sparse.csr_array(self.vectors[rows].astype(np.float64))


class Given(nn.Module):
    output_dim = len(WORDS)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors


@dataclass(frozen=True)
class Precomputed(NetEncoder, FeatureEncoder):
    """Vectors as they are, for a head or for a linear attacker."""

    def read(self, data: LabelledCaptions) -> Vectors:
        return Vectors(vectors_of(data))

    def build(self, inputs: Vectors) -> nn.Module:
        del inputs
        return Given()


def neural(encoder: NetEncoder = Precomputed(), **options: Any) -> NeuralProbe:
    settings = {"batch_size": 32, "trainer": flags(max_epochs=10), "processes": 1, **options}
    return NeuralProbe(encoder, Mlp(), Adam(0.1), **settings)


@pytest.mark.parametrize("probe", [neural(), neural(ensemble=2), ConvexProbe(Precomputed())])
def test_vectors_are_learnt_from(probe):
    assert accuracy(probe.fit_predict(telling_captions(), splits(0, 12))) == 1.0


@pytest.mark.parametrize("probe", [neural(), ConvexProbe(Precomputed())])
def test_a_metric_takes_them(probe):
    metric = LIC(GENDER, (), probe, HoldOut(0.25, balanced=True), Lic(), Bootstrap(50))
    corpus = leaky_corpus(200)
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, [0]))
    assert score.parts["score"].value > 0.05


@dataclass(frozen=True)
class Reversed(Precomputed):
    """Other vectors by the same settings, none."""


@pytest.mark.parametrize("probe", [ConvexProbe, lambda item: neural(encoder=item)])
def test_encoders_of_the_same_settings_share_no_predictions(probe):
    assert probe(Precomputed()).spec != probe(Reversed()).spec


def test_features_are_those_of_the_rows():
    inputs: Features = Precomputed().read(telling_captions()).fit(np.arange(3))
    assert inputs.matrix(np.array([1])).toarray().tolist() == [
        vectors_of(telling_captions())[1].tolist()
    ]


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 1, 1), (4, 2), (0, 2)])
def test_numbers_of_items_are_summed_by_distinct_item(shape):
    shared = SharedFeatures(sparse.csr_array((3, 5)), np.array([2, 0, 2, 1]), np.ones((5, 1), bool))
    numbers = np.random.default_rng(0).random(shape)
    expected = np.zeros((3, *shape[1:]))
    for row, number in zip([2, 0, 2, 1], numbers, strict=False):
        expected[row] += number
    np.testing.assert_array_equal(shared.tally(numbers, np.arange(shape[0])), expected)
