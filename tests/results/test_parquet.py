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
    return Predictions(
        name,
        (0, 12),
        images,
        truth=(np.array([[1, 0], [0, 1]]), np.array([[1, 1], [0, 0]])),
        probs=(np.array([[0.9, 0.2], [0.3, 0.6]]), np.array([[0.8, 0.7], [0.1, 0.4]])),
        classes=("dog", "hot dog"),
    )


def same(one: Predictions, two: Predictions) -> bool:
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
    assert all(same(one, two) for one, two in zip(predictions, written, strict=True))


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


def test_a_line_of_groups_holds_origin_truth_and_a_probability_each(tmp_path):
    write_predictions(tmp_path, [exclusive()], IDS)
    columns = pd.read_parquet(tmp_path / EXCLUSIVE).columns
    assert [*columns] == ["side", "seed", "image_id", "truth", "p_male", "p_female"]


def test_truth_is_written_as_the_groups_name(tmp_path):
    write_predictions(tmp_path, [exclusive()], IDS)
    truth = pd.read_parquet(tmp_path / EXCLUSIVE)["truth"]
    codes = np.concatenate(exclusive().truth)
    assert truth.tolist() == [("male", "female")[code] for code in codes]


def test_image_ids_are_text_even_where_they_are_numbers(tmp_path):
    write_predictions(tmp_path, [exclusive()], IDS)
    image_id = pd.read_parquet(tmp_path / EXCLUSIVE)["image_id"]
    assert image_id.tolist() == [IDS[row] for images in exclusive().images for row in images]


def test_predictions_on_tasks_have_a_file_of_their_own(tmp_path):
    write_predictions(tmp_path, [exclusive(), of_tasks()], IDS)
    assert {path.name for path in tmp_path.iterdir()} == {EXCLUSIVE, TASKS}


def test_without_tasks_there_is_no_such_file(tmp_path):
    write_predictions(tmp_path, [exclusive()], IDS)
    assert {path.name for path in tmp_path.iterdir()} == {EXCLUSIVE}


def test_predictions_on_tasks_do_not_enter_the_other_file(tmp_path):
    write_predictions(tmp_path, [exclusive(), of_tasks()], IDS)
    assert set(pd.read_parquet(tmp_path / EXCLUSIVE)["side"]) == {"model"}


def test_a_line_of_tasks_holds_truth_and_probability_of_each(tmp_path):
    write_predictions(tmp_path, [of_tasks()], IDS)
    table = pd.read_parquet(tmp_path / TASKS)
    wanted = {
        "side": "t_to_a:model:0",
        "seed": 12,
        "image_id": "42",
        "true_dog": 1,
        "true_hot dog": 1,
        "p_dog": 0.8,
        "p_hot dog": 0.7,
    }
    assert table.iloc[2].to_dict() == wanted


def test_tasks_of_both_sides_share_their_file(tmp_path):
    names = ["t_to_a:model:0", "t_to_a:human:0"]
    write_predictions(tmp_path, [of_tasks(name) for name in names], IDS)
    assert pd.read_parquet(tmp_path / TASKS)["side"].tolist() == [
        n for n in names for _ in range(4)
    ]


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
    message, retained = (
        {
            part: (item.per_seed.tolist(), item.resampled.tolist(), item.trained)
            for part, item in all_of
        }
        for all_of in (read.items(), written.items())
    )
    assert message == retained
