"""Recall at k: captions that find their pictures, and pictures that find their captions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.retrieval.dual_encoders import DualEncoder
from bias_pipeline.retrieval.side_effects import Recall, first_captions
from tests.retrieval.test_fairness import FEW, cell, compute

SOME = (*FEW, "metric.concepts=[zoo,nurse]")
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
    return Recall.measure(DualEncoder(numbered, numbered), captions, pictures, np.arange(N), DEPTHS)


def shares(recall: Recall) -> dict[str, float]:
    values = recall.shares(np.ones((1, N)), np.arange(N))[0]
    return dict(zip(map(str, recall.names), values.tolist(), strict=True))


def test_who_finds_all_has_recall_1():
    assert set(shares(recall(np.eye(N, dtype=np.float32))).values()) == {1.0}


def test_pictures_that_all_look_alike_are_found_by_their_order():
    result = shares(recall(np.ones((N, N), np.float32)))
    assert result == {f"recall:{what}@{k}": k / N for what in ("image", "text") for k in DEPTHS}


def test_an_image_that_counts_twice_weighs_twice():
    result = recall(np.ones((N, N), np.float32))
    weights = np.ones((1, N))
    weights[0, 0] = 2  # the one that is found first
    assert result.shares(weights, np.arange(N))[0, 0] == pytest.approx(2 / (N + 1))


def test_images_without_a_caption_are_left_out():
    captions = Captions.from_texts(["a dog", "a cat"], [1, 3])
    rows, texts = first_captions(captions, np.array([3, 2, 1, 4, 0]))
    assert (rows.tolist(), texts) == ([3, 1], ["a cat", "a dog"])


def of_pictures(recall: str, corpus: Corpus | None = None) -> dict[str, float]:
    parts = compute(*SOME, f"metric.recall={recall}", corpus=corpus).parts
    return {n: part.value for n, part in parts.items() if n.startswith("recall")}


def test_recall_stands_beside_fairness_where_people_wrote_captions_and_deeper_is_not_less():
    result = of_pictures("[1,5,10]")
    names = [f"recall:{what}@{k}" for what in ("image", "text") for k in (1, 5, 10)]
    assert list(result) == names
    images = [result[name] for name in names[:3]]
    assert images == sorted(images)


def test_without_captions_there_is_no_recall_and_it_can_be_left_out():
    silent = replace(cell(*SOME).corpus(), human=Captions.from_texts([]))
    assert of_pictures("[1,5,10]", silent) == of_pictures("[]") == {}


def test_ranks_of_folds_count_by_their_images():
    folds = [
        Recall(np.arange(start, end), {"image": np.full(end - start, place)}, (1,))
        for start, end, place in ((0, 30, 0), (30, 40, 1))
    ]
    assert Recall.join_folds(folds).shares(np.ones((1, 40)), np.arange(40))[0, 0] == 30 / 40
