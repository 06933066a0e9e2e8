"""A captioner that is fitted: what it learns from, that it learns, and in how many processes."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.attack.lightning_loop import CheckpointSettings
from bias_pipeline.attack.recipe import Adam, Recipe
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError, NotApplicableError, ResourceError
from bias_pipeline.pictures.captioners.backbones import PixelInputs
from bias_pipeline.pictures.captioners.fitted import KINDS
from bias_pipeline.pictures.captioners.grit import Grit
from bias_pipeline.pictures.captioners.prompt import Answers, Prompt
from bias_pipeline.pictures.captioners.sat import Sat
from bias_pipeline.pictures.fitting.captioner import (
    CaptionInputs,
    Lesson,
    fit_captioner,
    vocabulary_of,
)
from bias_pipeline.pictures.fitting.learning import CaptionLearner
from bias_pipeline.run import compose
from tests.attack.killed import kill_after_a_checkpoint
from tests.attack.test_neural import flags

N = 60
ENCODERS: dict[str, Any] = {
    "sat": Sat(Prompt("gender"), side=32, width=4, dropout=0.0),
    "grit": Grit(Prompt("gender")),
}


@cache
def corpus() -> Corpus:
    return compose.cell([f"dataset.n_images={N}", "captioner=faithful"]).corpus()


def lesson(kind: str = "sat", epochs: int = 2, side: str = "model", **settings: Any) -> Lesson:
    trainer = {**flags(), "max_epochs": epochs, **settings}
    recipe = Recipe(ENCODERS[kind], Answers(), Adam(0.005), 16, trainer)
    return Lesson.of_corpus(kind, recipe, corpus(), side, 0)


def test_words_that_stand_in_one_caption_are_not_learnt():
    assert vocabulary_of([["b", "a"], ["a", "b", "c"], ["d", "d"], ["a"]]) == ("a", "b")


def test_captions_are_learnt_from_the_start_to_the_end():
    pixels = PixelInputs(np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 2, 2, 3))
    captions = [["a", "dog"], ["a"], ["cat"]]
    inputs = CaptionInputs.of_words(captions, np.array([0, 0, 1]), {"a": 4, "dog": 5}, pixels)
    batch = inputs.batch(np.array([2, 0]))
    assert batch["tokens"].tolist() == [[2, 0, 3, 1], [2, 4, 5, 3]]
    assert np.array_equal(batch["pixels"][1].transpose(1, 2, 0), pixels.table[0])
    assert np.array_equal(batch["pixels"][0].transpose(1, 2, 0), pixels.table[1])


class Even:
    """Every word is as likely as every other, of V."""

    def __init__(self, n_words: int) -> None:
        self.n_words = n_words

    def next_word_log_probs(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.full((*tokens.shape, self.n_words), 1 / self.n_words).log()


def test_guessing_costs_the_logarithm_of_the_words_whatever_the_lengths():
    tokens = torch.tensor([[2, 4, 5, 3], [2, 4, 3, 1], [2, 3, 1, 1]])
    loss = CaptionLearner(Even(9), Adam(0.1), None).loss(tokens)
    assert float(loss) == pytest.approx(np.log(9))


def test_padding_costs_nothing():
    torch.manual_seed(0)
    likely = torch.randn(1, 3, 9).log_softmax(2)

    class Given:
        def next_word_log_probs(self, tokens: torch.Tensor) -> torch.Tensor:
            return likely[:, : tokens.shape[1]]

    learner = CaptionLearner(Given(), Adam(0.1), None)
    short, padded = torch.tensor([[2, 4, 3]]), torch.tensor([[2, 4, 3, 1]])
    assert float(learner.loss(short)) == pytest.approx(float(learner.loss(padded)))


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind, tmp_path):
    losses = fit_captioner(lesson(kind, epochs=6), tmp_path / "mine", {})
    assert losses[-1] < 0.7 * losses[0]


def test_the_seed_decides_the_weights_and_the_card_says_what_they_were_fitted_to(tmp_path):
    once = lesson(epochs=1)
    for name, training in (("one", once), ("again", once), ("other", replace(once, seed=1))):
        fit_captioner(training, tmp_path / name, {"data": "scenes"})
    one, again, other = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "again", "other")
    )
    assert one == again != other
    assert '"data": "scenes"' in (tmp_path / "one" / "README.md").read_text()


def test_it_learns_from_all_captions_of_images_with_a_picture():
    training = lesson(side="human", epochs=1)
    assert (len(training.captions), len(training.images.captions)) == (5 * N, N)
    shorter = Lesson.of_corpus("sat", lesson().recipe, with_pictures(3), "model", 0)
    assert shorter.images.pictures is not None
    assert len(shorter.captions) == N // 3 == int(shorter.images.pictures.present.sum())


def with_pictures(every: int) -> Corpus:
    """Of every few images alone; of none for 0."""
    whole = corpus()
    assert whole.pictures is not None
    files = enumerate(whole.pictures.files)
    kept_files = tuple(file if every and row % every == 0 else None for row, file in files)
    return replace(whole, pictures=replace(whole.pictures, files=kept_files))


@pytest.mark.parametrize(
    ("taught", "error", "message"),
    [
        (lambda: replace(corpus(), pictures=None), NotApplicableError, "has no pictures"),
        (lambda: with_pictures(0), DataError, "no caption has both"),
    ],
)
def test_without_pictures_it_is_refused(taught, error, message):
    with pytest.raises(error, match=message):
        Lesson.of_corpus("sat", lesson().recipe, taught(), "model", 0)


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ResourceError, match="already exists"):
        fit_captioner(lesson(), tmp_path, {})


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_learn_as_one(kind, tmp_path):
    """But for what each draws or normalises by itself: GRIT's dropout, SAT's pictures."""
    many = {"devices": 2, "strategy": "ddp", "precision": "32-true"}
    curves = [
        fit_captioner(lesson(kind, **settings), tmp_path / name, {})
        for name, settings in (("one", {"precision": "32-true"}), ("two", many))
    ]
    assert curves[0] == pytest.approx(curves[1], rel=0.05)


def fit(cache: Path, folder: Path, devices: int) -> None:
    many = {"devices": devices, "strategy": "ddp"} if devices > 1 else {}
    five_epochs = lesson(epochs=5, **many)
    recipe = replace(five_epochs.recipe, survival=CheckpointSettings(str(cache), 1, 0))
    fit_captioner(replace(five_epochs, recipe=recipe), folder, {})


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2])
def test_kill_9_costs_no_weight(devices, tmp_path):
    arguments = (tmp_path / "a", tmp_path / "killed", devices)
    kill_after_a_checkpoint("tests.pictures.fitting.test_captioner.fit", arguments, tmp_path / "a")
    assert not (tmp_path / "killed").exists()
    for place, name in (("a", "again"), ("b", "whole")):
        fit(tmp_path / place, tmp_path / name, devices)
    again, whole = ((tmp_path / n / "model.safetensors").read_bytes() for n in ("again", "whole"))
    assert again == whole


def test_what_decides_the_weights_names_the_checkpoint():
    training = lesson()
    others = [
        replace(training, seed=1),
        lesson(epochs=3),
        lesson(side="human"),
        lesson("grit"),
        replace(training, recipe=replace(training.recipe, batch_size=17)),
        replace(training, shares=np.full(N, 1 / N)),
    ]
    assert len({training.key, *(other.key for other in others)}) == 7
    survival = CheckpointSettings("elsewhere", 1, 5)
    assert replace(training, recipe=replace(training.recipe, survival=survival)).key == training.key
