"""The study of edited pictures: its decoder draws people, and latents of it change their group."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")
import torch
from sklearn.linear_model import LogisticRegression

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.data.regions import crop_person
from bias_pipeline.scenes.pixels import SceneDrawing
from bias_pipeline.scenes.world import generate
from experiments.study import read_rows
from experiments.vl_bias.editing.decoder import SIDE, PeopleDecoder, fit_decoder
from experiments.vl_bias.editing.latents import edited_latents
from experiments.vl_bias.editing.study import PAGE, ROWS, pixels, write

TRAINS = pytest.mark.slow
FITTED, SHOWN = 600, 100  # pictures


@cache
def people() -> tuple[Float32Array, IntArray]:
    """Pictures of people, and 1 for women, 0 for men."""
    images = generate(FITTED + SHOWN, 3).images
    pictures = Pictures(tuple(SceneDrawing(image, "gender") for image in images))
    crops = [crop_person(pictures, row, "person") for row in range(len(images))]
    small = [np.asarray(crop.resize((SIDE, SIDE)), np.float32) for crop in crops]
    women = [int(image.groups["gender"] == "Female") for image in images]
    return np.stack(small).transpose(0, 3, 1, 2) / 127.5 - 1, np.array(women)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fitted") / "decoder.safetensors"


@pytest.fixture(scope="module")
def decoder(file: Path) -> PeopleDecoder:
    return fit_decoder(people()[0][:FITTED], file, epochs=60)


def draw(decoder: PeopleDecoder, latents: Float32Array) -> Float32Array:
    with torch.inference_mode():
        return np.asarray(decoder(torch.from_numpy(latents)))


def chest(pictures: torch.Tensor) -> torch.Tensor:
    """An encoder that sees the middle of a figure, where the mark of its group is."""
    return pictures[:, :, 20:34, 26:38].flatten(1)


@TRAINS
def test_a_redrawn_picture_is_most_like_itself(decoder):
    """Of 100 pictures that the decoder was not fitted to."""
    shown = people()[0][FITTED:]
    redrawn = draw(decoder, decoder.latents(shown))
    nearest = [np.abs(shown - picture).mean(axis=(1, 2, 3)).argmin() for picture in redrawn]
    assert np.mean(nearest == np.arange(SHOWN)) > 0.5


@TRAINS
def test_latents_have_mean_0_and_variance_1(decoder):
    latents = decoder.latents(people()[0][:FITTED])
    assert np.abs(latents.mean(axis=0)).max() < 0.2
    assert latents.std(axis=0) == pytest.approx(np.ones(latents.shape[1]), abs=0.2)


@TRAINS
def test_a_decoder_is_fitted_once(decoder, file):
    before = file.stat().st_mtime_ns
    again = fit_decoder(people()[0][:FITTED], file)
    assert file.stat().st_mtime_ns == before
    latents = decoder.latents(people()[0][FITTED:])
    np.testing.assert_array_equal(draw(again, latents), draw(decoder, latents))


@TRAINS
def test_people_become_the_other_group_where_an_encoder_is_to_see_it(decoder):
    pictures, groups = people()
    real, women = pictures[:FITTED], groups[:FITTED]
    judge = LogisticRegression(C=0.01, max_iter=200).fit(pixels(real), women)
    start = decoder.latents(pictures[FITTED:])
    before = judge.predict(pixels(draw(decoder, start)))
    assert np.mean(before == groups[FITTED:]) > 0.9
    chests = chest(torch.from_numpy(real)).double().numpy()
    means = np.stack([chests[women == k].mean(axis=0) for k in (0, 1)])
    edited = edited_latents(decoder, chest, start, means[1 - groups[FITTED:]], penalty=0.003)
    assert np.mean(judge.predict(pixels(draw(decoder, edited))) != before) > 0.9


def test_the_page_is_that_of_the_committed_rows():
    page = PAGE.read_text()
    write(read_rows(ROWS))
    assert PAGE.read_text() == page
