"""Attackers' predictions on disk: what was written is what is read."""

import numpy as np
import pandas as pd
import pytest

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.results.parquet import (
    EXCLUSIVE,
    TASKS,
    read_draws,
    read_predictions,
    write_draws,
    write_predictions,
)
from bias_pipeline.stats.bootstrap import Draws

IDS = ("7", "42", "a1", "100", "x y")


def exclusive(name: str = "model", seeds: tuple[int, ...] = (0, 12), k: int = 2) -> Predictions:
    generator = np.random.default_rng(len(name))
    images = tuple(generator.permutation(len(IDS))[: 3 + i] for i in range(len(seeds)))
    return Predictions(
        name,
        seeds,
        images,
        truth=tuple(generator.integers(0, k, len(image)) for image in images),
        probs=tuple(generator.dirichlet(np.ones(k), len(image)) for image in images),
        classes=("male", "female", "unsure")[:k],
    )


def of_tasks(name: str = "t_to_a:model:0") -> Predictions:
    images = (np.array([2, 0]), np.array([1, 4]))
    truth = (np.array([[1, 0], [0, 1]]), np.array([[1, 1], [0, 0]]))
    probs = (np.array([[0.9, 0.2], [0.3, 0.6]]), np.array([[0.8, 0.7], [0.1, 0.4]]))
    return Predictions(name, (0, 12), images, truth, probs, classes=("dog", "hot dog"))


def are_same(one: Predictions, two: Predictions) -> bool:
    blocks = [(one.images, two.images), (one.truth, two.truth), (one.probs, two.probs)]
    facts = (one.name, one.seeds, one.classes) == (two.name, two.seeds, two.classes)
    return facts and all(
        np.array_equal(a, b) for left, right in blocks for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("k", [2, 3])
def test_predictions_on_groups_come_back_exactly(tmp_path, k):
    written = [exclusive("model", k=k), exclusive("human:0", k=k), exclusive("human:1", (7,), k=k)]
    write_predictions(tmp_path, written, IDS)
    predictions = read_predictions((tmp_path / EXCLUSIVE).read_bytes(), IDS)
    assert all(are_same(one, two) for one, two in zip(predictions, written, strict=True))


def test_only_ids_of_guessed_images_are_looked_at(tmp_path):
    images, truth = (np.array([42]),), (np.array([0]),)
    guesses = Predictions("model", (0,), images, truth, (np.full((1, 2), 0.5),), ("a", "b"))
    write_predictions(tmp_path, [guesses], {42: "id"})
    assert pd.read_parquet(tmp_path / EXCLUSIVE)["image_id"].tolist() == ["id"]


def test_predictions_come_back_in_rows_of_another_corpus(tmp_path):
    write_predictions(tmp_path, [exclusive()], IDS)
    (prediction,) = read_predictions((tmp_path / EXCLUSIVE).read_bytes(), IDS[::-1])
    wanted = len(IDS) - 1 - exclusive().images[0]
    np.testing.assert_array_equal(prediction.images[0], wanted)


def test_images_that_are_not_asked_for_are_left_out(tmp_path):
    write_predictions(tmp_path, [exclusive(seeds=(0,))], IDS)
    (prediction,) = read_predictions((tmp_path / EXCLUSIVE).read_bytes(), IDS[:3])
    lines = [IDS[row] for row in exclusive(seeds=(0,)).images[0] if row < 3]
    assert [IDS[row] for row in prediction.images[0]] == lines


def test_a_line_of_groups_holds_origin_image_truth_and_a_probability_each(tmp_path):
    write_predictions(tmp_path, [exclusive()], IDS)
    table = pd.read_parquet(tmp_path / EXCLUSIVE)
    assert [*table] == ["side", "seed", "image_id", "truth", "p_male", "p_female"]
    codes, rows = np.concatenate(exclusive().truth), np.concatenate(exclusive().images)
    assert table["truth"].tolist() == [("male", "female")[code] for code in codes]
    assert table["image_id"].tolist() == [IDS[row] for row in rows]


@pytest.mark.parametrize(
    ("written", "files"),
    [([exclusive()], {EXCLUSIVE}), ([exclusive(), of_tasks()], {EXCLUSIVE, TASKS})],
)
def test_predictions_on_tasks_have_a_file_of_their_own(written, files, tmp_path):
    write_predictions(tmp_path, written, IDS)
    assert {path.name for path in tmp_path.iterdir()} == files
    assert set(pd.read_parquet(tmp_path / EXCLUSIVE)["side"]) == {"model"}


def test_a_line_of_tasks_holds_truth_and_probability_of_each(tmp_path):
    write_predictions(tmp_path, [of_tasks(), of_tasks("t_to_a:human:0")], IDS)
    table = pd.read_parquet(tmp_path / TASKS)
    wanted = {
        "side": "t_to_a:model:0", "seed": 12, "image_id": "42",
        "true_dog": 1, "true_hot dog": 1, "p_dog": 0.8, "p_hot dog": 0.7,
    }  # fmt: skip
    assert table.iloc[2].to_dict() == wanted
    assert table["side"].tolist() == ["t_to_a:model:0"] * 4 + ["t_to_a:human:0"] * 4


@pytest.mark.parametrize("predictions", [[], [of_tasks()]])
def test_without_predictions_on_groups_none_are_read(tmp_path, predictions):
    write_predictions(tmp_path, predictions, IDS)
    assert read_predictions((tmp_path / EXCLUSIVE).read_bytes(), IDS) == []


def test_draws_come_back_as_they_were(tmp_path):
    generator = np.random.default_rng(0)
    written = {
        "a_to_t": Draws(generator.random(3), generator.random((5, 3))),
        "score": Draws(generator.random(1), generator.random((5, 1)), trained=False),
    }
    write_draws(tmp_path / "draws.parquet", written)
    read = read_draws((tmp_path / "draws.parquet").read_bytes())
    assert read.keys() == written.keys()
    for part, draws in written.items():
        np.testing.assert_array_equal(read[part].per_seed, draws.per_seed)
        np.testing.assert_array_equal(read[part].resampled, draws.resampled)
        assert read[part].trained == draws.trained
