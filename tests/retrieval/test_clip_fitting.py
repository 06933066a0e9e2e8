"""A CLIP that is fitted: what its folder holds, and that it learns."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.attack.lightning_loop import CheckpointSettings
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.data.regions import crop_person
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.models.clip import KINDS
from bias_pipeline.models.pretrained import Preprocessing, find_pretrained
from bias_pipeline.retrieval.clip_fitting import ClipRecipe, Pairs, fit_clip
from bias_pipeline.retrieval.clip_learning import Contrast
from bias_pipeline.retrieval.dual_encoders import ClipTowers, dual_of
from bias_pipeline.scenes.pixels import SceneDrawing
from bias_pipeline.scenes.world import generate

RECIPE = ClipRecipe(side=32, width=32, epochs=2, batch_size=20)
N = 80


@cache
def pictures() -> Pictures:
    return Pictures(tuple(SceneDrawing(image, "gender") for image in generate(N, 7).images))


@cache
def pairs() -> Pairs:
    texts = list(generate(N, 7).human.values())
    return Pairs.read(pictures(), texts, "person", RECIPE.side)


@pytest.fixture(scope="module")
def fitted_clip(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """A CLIP's folder, and its losses."""
    path = tmp_path_factory.mktemp("fitted") / "clip"
    return path, fit_clip(pairs(), RECIPE, path, {"data": "scenes"})


@pytest.fixture(scope="module")
def folder(fitted_clip: tuple[Path, list[float]]) -> Path:
    return fitted_clip[0]


def test_a_folder_holds_all_that_is_needed_and_no_pickle(folder):
    assert '"data": "scenes"' in (folder / "README.md").read_text()
    older = {"special_tokens_map.json"}  # which transformers 4 writes too
    assert {path.name for path in folder.iterdir()} - older == {
        "README.md",
        "config.json",
        "model.safetensors",
        "preprocessor_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_it_was_fitted_to_what_its_preprocessing_makes(folder):
    prepared = Preprocessing(find_pretrained(str(folder), KINDS))(
        crop_person(pictures(), 3, "person")
    )
    learnt = pairs().pixels[3].transpose(2, 0, 1) / 127.5 - 1
    assert prepared == pytest.approx(learnt, abs=1e-5)


def test_both_halves_give_vectors_of_length_1(folder):
    dual = dual_of(ClipTowers(find_pretrained(str(folder), KINDS), "cpu"), "person", None)
    lines = [dual.images.embed(pictures().take(np.arange(3))), dual.texts.embed(["a man", "a dog"])]
    assert [item.shape for item in lines] == [(3, 32), (2, 32)]
    for item in lines:
        assert np.linalg.norm(item, axis=1) == pytest.approx(1, abs=1e-5)


def test_vectors_are_the_same_from_a_cache(folder, tmp_path):
    model = find_pretrained(str(folder), KINDS)
    retained, fresh = (
        dual_of(ClipTowers(model, "cpu"), "person", item) for item in (str(tmp_path), None)
    )
    retained.images.embed(pictures().take(np.array([5, 1])))
    rows = np.array([1, 2, 5])
    vectors = retained.images.embed(pictures().take(rows))
    assert vectors == pytest.approx(fresh.images.embed(pictures().take(rows)), abs=1e-5)


def test_words_that_stand_once_are_unknown(folder):
    dual = dual_of(ClipTowers(find_pretrained(str(folder), KINDS), "cpu"), "person", None)
    one, other = dual.texts.embed(["a zyzzyva", "a quokka"])
    assert one == pytest.approx(other, abs=1e-6)


def test_the_same_seed_gives_the_same_losses(fitted_clip, tmp_path):
    assert fit_clip(pairs(), RECIPE, tmp_path / "again", {}) == pytest.approx(fitted_clip[1])


def test_it_learns(tmp_path):
    losses = fit_clip(pairs(), replace(RECIPE, epochs=12), tmp_path, {})
    assert losses[-1] < 0.8 * losses[0]


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ResourceError, match="already exists"):
        fit_clip(pairs(), RECIPE, tmp_path, {})


def test_images_without_captions_are_left_out_and_nothing_else_is_refused():
    texts = [["a man"], [], ["a dog"]]
    assert len(Pairs.read(pictures().take(np.arange(3)), texts, "none", 32).texts) == 2
    with pytest.raises(DataError, match="no image has both"):
        Pairs.read(pictures().take(np.arange(2)), [[], []], "none", 32)


TWO = {"accelerator": "cpu", "devices": 2, "strategy": "ddp"}


@pytest.mark.slow
def test_two_processes_learn_as_one(tmp_path):
    one = fit_clip(pairs(), RECIPE, tmp_path / "one", {}, {"accelerator": "cpu", "devices": 1})
    two = fit_clip(pairs(), RECIPE, tmp_path / "two", {}, TWO)
    assert two == pytest.approx(one, rel=1e-4)


def test_a_batch_that_does_not_divide_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be divided"):
        fit_clip(pairs(), replace(RECIPE, batch_size=25), tmp_path / "two", {}, TWO)


@pytest.mark.slow
def test_it_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    survival = CheckpointSettings(str(tmp_path / "kept"), 1, 0)
    recipe = replace(RECIPE, epochs=4)
    whole = fit_clip(pairs(), recipe, tmp_path / "whole", {})
    end = Contrast.on_train_epoch_end

    def stop(contrast: Contrast) -> None:
        end(contrast)
        if len(contrast.losses) == 3:
            raise RuntimeError("stopped")

    monkeypatch.setattr(Contrast, "on_train_epoch_end", stop)
    with pytest.raises(RuntimeError, match="stopped"):
        fit_clip(pairs(), recipe, tmp_path / "mine", {}, survival=survival)
    assert len(list((tmp_path / "kept").iterdir())) == 1
    monkeypatch.setattr(Contrast, "on_train_epoch_end", end)
    assert fit_clip(pairs(), recipe, tmp_path / "mine", {}, survival=survival) == whole
    one, other = ((tmp_path / n / "model.safetensors").read_bytes() for n in ("whole", "mine"))
    assert one == other
