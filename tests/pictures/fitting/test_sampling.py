"""``fit --weights``: the table, and how often captions are drawn."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from bias_pipeline.attack.attacker import LengthBatches
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.data.image_weights import caption_shares, read_weights, write_weights
from bias_pipeline.errors import DataError
from tests.corpora import leaky_corpus

CORPUS = leaky_corpus(4)  # images 0 to 3


def test_an_image_that_is_not_listed_has_weight_1(tmp_path):
    write_weights(tmp_path / "w.parquet", {"1": 0.5, "3": 2.0})
    assert read_weights(tmp_path / "w.parquet", CORPUS).tolist() == [1.0, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"image": ["1", "9"], "weight": [1.0, 2.0]}, "row 1: image 9 is not in dataset 'toy'"),
        ({"image": ["1"], "weight": [-0.5]}, "weight of image 1 is -0.5; give a number from 0 on"),
        ({"image": ["1"], "weight": [float("nan")]}, "weight of image 1 is nan"),
        ({"image": ["1"], "weight": [float("inf")]}, "weight of image 1 is inf"),
        ({"image": ["1"], "weight": [None]}, "weight of image 1 is absent"),
        ({"image": ["1"], "weight": ["much"]}, "weight of image 1 is much"),
        ({"image": ["1"], "weigth": [1.0]}, "column 'weight' is absent"),
        ({"id": ["1"], "weight": [1.0]}, "column 'image' is absent"),
        ({"image": ["1", "1"], "weight": [1.0, 2.0]}, "image 1 has two weights"),
    ],
)
def test_bad_tables_are_refused(table, message, tmp_path):
    parquet.write_table(pa.table(table), tmp_path / "w.parquet")
    with pytest.raises(DataError, match=message):
        read_weights(tmp_path / "w.parquet", CORPUS)


def test_weights_that_are_all_0_are_refused():
    with pytest.raises(DataError, match="every image with a caption has weight 0"):
        caption_shares(np.array([0.0, 0.0, 1.0]), Captions.from_texts(["a dog", "a cat"]))


def count_draws(shares: list[float], epochs: int) -> np.ndarray:
    """How often each of some captions is drawn, of one word each."""

    class Numbered:
        lengths = np.ones(len(shares), np.int64)

        def batch(self, rows: np.ndarray) -> dict[str, np.ndarray]:
            return {"number": rows}

    rows = np.arange(len(shares))
    inputs: Any = Numbered()
    batches = LengthBatches(
        inputs, rows, torch.zeros(len(rows)), 3, seed=0, shares=np.array(shares)
    )
    numbers = [batch.inputs["number"] for _ in range(epochs) for batch in batches]
    return np.bincount(torch.cat(numbers).numpy(), minlength=len(shares))


def test_captions_are_drawn_in_proportion_as_many_as_without_weights():
    counts = count_draws(
        [0.5, 0.3, 0.2, 0.0], epochs=2500
    )  # 10,000 draws: three deviations are 0.015
    assert counts / counts.sum() == pytest.approx([0.5, 0.3, 0.2, 0.0], abs=0.015)
    assert count_draws([0.7, 0.1, 0.1, 0.1], epochs=1).sum() == 4
