"""Latents of a generator that move until an encoder sees what is wanted."""

import numpy as np
import pytest

pytest.importorskip("transformers")
import torch

from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.models.clip import KINDS, ClipPhotos
from bias_pipeline.models.pretrained import find_pretrained
from experiments.vl_bias.editing.latents import edited_latents
from tests.tiny_models import write_clip

RANDOM = np.random.default_rng(0)
START = RANDOM.normal(size=(4, 6)).astype(np.float32)
MIXING = torch.from_numpy(RANDOM.normal(size=(6, 8)).astype(np.float32))
WANTED = RANDOM.normal(size=(4, 8))


def generate(latents: torch.Tensor) -> torch.Tensor:
    return torch.tanh(latents @ MIXING)


def same_pictures(pictures: torch.Tensor) -> torch.Tensor:
    return pictures


def cosines(latents: np.ndarray) -> np.ndarray:
    pictures = generate(torch.from_numpy(latents)).double()
    return np.asarray(torch.cosine_similarity(pictures, torch.from_numpy(WANTED), dim=-1))


def test_pictures_come_nearer_to_what_is_wanted():
    edited = edited_latents(generate, same_pictures, START, WANTED, penalty=0)
    assert (cosines(edited) > cosines(START)).all()


def test_a_penalty_keeps_latents_near_where_they_start():
    moves = [
        np.linalg.norm(
            edited_latents(generate, same_pictures, START, WANTED, penalty=penalty) - START
        )
        for penalty in (0.0, 0.1, 10.0)
    ]
    assert moves[0] > moves[1] > moves[2]


def test_a_small_move_solves_the_quadratic_that_the_objective_is_near_its_start():
    """With a large penalty w - w0 is the cosine's gradient over twice the penalty."""
    penalty = 50.0
    latents = torch.from_numpy(START).double().requires_grad_()
    pictures = torch.tanh(latents @ MIXING.double())
    cosine = torch.cosine_similarity(pictures, torch.from_numpy(WANTED), dim=-1)
    expected = torch.autograd.grad(cosine.sum(), latents)[0].numpy() / (2 * penalty)
    edited = edited_latents(
        generate, same_pictures, START, WANTED, penalty=penalty, steps=400, rate=1e-4
    )
    np.testing.assert_allclose(edited - START, expected, atol=2e-4)


def test_a_picture_does_not_depend_on_those_beside_it():
    alone = edited_latents(generate, same_pictures, START[:1], WANTED[:1], penalty=0.1)
    beside = edited_latents(generate, same_pictures, START, WANTED, penalty=0.1)
    np.testing.assert_allclose(alone, beside[:1], atol=1e-5)


def test_what_is_already_there_stays():
    wanted = generate(torch.from_numpy(START)).double().numpy()
    np.testing.assert_array_equal(
        edited_latents(generate, same_pictures, START, wanted, penalty=1), START
    )


def detach(latents: torch.Tensor) -> torch.Tensor:
    return torch.tanh(latents.detach() @ MIXING.clone().requires_grad_())


@pytest.mark.parametrize("generator", [torch.no_grad()(generate), detach])
def test_a_generator_without_gradients_is_refused(generator):
    with pytest.raises(UsageError, match="no gradient passes"):
        edited_latents(generator, same_pictures, START, WANTED, penalty=0)


@pytest.mark.parametrize("wanted", [WANTED[:1], WANTED[:, :5]])
def test_vectors_of_another_shape_are_refused(wanted):
    with pytest.raises(UsageError, match=r"vectors of shape \(4, 8\), and those wanted"):
        edited_latents(generate, same_pictures, START, wanted, penalty=0)


def test_values_that_are_no_numbers_are_refused():
    with pytest.raises(DataError, match="not numbers"):
        edited_latents(lambda w: generate(w) / 0 * 0, same_pictures, START, WANTED, penalty=0)


def test_a_clip_passes_gradients_to_pixels_and_gives_the_vectors_that_it_always_gives(tmp_path):
    model = find_pretrained(str(write_clip(tmp_path)), KINDS)
    net = ClipPhotos(model, torch.device("cpu"), normalize=False)
    pixels = torch.randn(2, 3, 32, 32, requires_grad=True)
    states = net.states(pixels)
    photos = list(pixels.detach().numpy())
    np.testing.assert_allclose(states.detach().numpy(), net.describe(photos), atol=1e-6)
    states.square().sum().backward()
    assert pixels.grad is not None
    assert pixels.grad.abs().sum() > 0
