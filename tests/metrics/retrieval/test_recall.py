"""Recall at k: captions that find their pictures, and pictures that find their captions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.inference.embedders import DualEncoder
from bias_pipeline.metrics.retrieval.side_effects import Recall, first_captions
from tests.metrics.retrieval.test_fairness import FEW, cell, compute

SOME = (*FEW, "metric.concepts=[zoo,nurse]")
DEFAULT = "metric.recall=[1,5,10]"  # the tests of fairness measure none

N = 40
DEPTHS = (1, 5)


@dataclass(frozen=True)
class Numbered:
    """The text "7" is the seventh unit vector."""

    spec: Any = None

    def embed(self, items: Sequence[str]) -> np.ndarray:
        return np.eye(N, dtype=np.float32)[[int(item) for item in items]]


def recall(pictures: np.ndarray) -> Recall:
    numbered = Numbered()
    captions = [str(number) for number in range(N)]
    return Recall.of(DualEncoder(numbered, numbered), captions, pictures, np.arange(N), DEPTHS)


def shares(recall: Recall) -> dict[str, float]:
    values = recall.shares(np.ones((1, N)), np.arange(N))[0]
    return dict(zip(map(str, recall.names), values.tolist(), strict=True))


def test_who_finds_all_has_recall_1():
    assert set(shares(recall(np.eye(N, dtype=np.float32))).values()) == {1.0}


def test_pictures_that_all_look_alike_are_found_by_their_order():
    result = shares(recall(np.ones((N, N), np.float32)))
    assert result == {
        "recall:image@1": 1 / N,
        "recall:image@5": 5 / N,
        "recall:text@1": 1 / N,
        "recall:text@5": 5 / N,
    }


def test_an_image_that_counts_twice_weighs_twice():
    result = recall(np.ones((N, N), np.float32))
    weights = np.ones((1, N))
    weights[0, 0] = 2  # the one that is found first
    assert result.shares(weights, np.arange(N))[0, 0] == pytest.approx(2 / (N + 1))


def test_images_without_a_caption_are_left_out():
    captions = Captions.from_texts(["a dog", "a cat"], [1, 3])
    rows, texts = first_captions(captions, np.array([3, 2, 1, 4, 0]))
    assert (rows.tolist(), texts) == ([3, 1], ["a cat", "a dog"])


def test_recall_stands_beside_fairness_where_people_wrote_captions():
    parts = compute(*SOME, "metric.recall=[1,10]").parts
    names = [name for name in parts if name.startswith("recall")]
    assert names == ["recall:image@1", "recall:image@10", "recall:text@1", "recall:text@10"]


def test_deeper_recall_is_not_less():
    parts = compute(*SOME, DEFAULT).parts
    values = [parts[f"recall:image@{k}"].estimate.value for k in (1, 5, 10)]
    assert values == sorted(values)


def test_without_captions_there_is_no_recall():
    silent = replace(cell(*SOME).corpus(), human=Captions.from_texts([]))
    parts = compute(*SOME, DEFAULT, corpus=silent).parts
    assert not [name for name in parts if name.startswith("recall")]


def test_recall_can_be_left_out():
    assert not [
        name for name in compute(*SOME, "metric.recall=[]").parts if name.startswith("recall")
    ]
