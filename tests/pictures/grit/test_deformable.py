"""Deformable attention against that of transformers' Deformable DETR, and its limits."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.models.deformable_detr.modeling_deformable_detr import (
    MultiScaleDeformableAttention,
)

from bias_pipeline.pictures.grit.detector import DeformableAttention, Shape, deformable_attention

SHAPES = [(7, 5), (4, 3), (1, 2)]


def draw_inputs(
    seed: int, shapes: list[Shape], heads: int = 2, size: int = 3, queries: int = 4, points: int = 3
) -> tuple[Tensor, Tensor, Tensor]:
    """Random values, places (some outside) and weights."""
    torch.manual_seed(seed)
    n_values = sum(height * width for height, width in shapes)
    places = torch.rand(2, queries, heads, len(shapes), points, 2) * 1.4 - 0.2
    weights = torch.rand(2, queries, heads, len(shapes), points)
    return torch.randn(2, n_values, heads, size), places, weights


def theirs(values: Tensor, shapes: list[Shape], places: Tensor, weights: Tensor) -> Tensor:
    return MultiScaleDeformableAttention()(
        values, torch.tensor(shapes), shapes, None, places, weights, 64
    )


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4),
    st.integers(1, 4),
)
def test_what_is_seen_is_what_transformers_sees(seed, shapes, points):
    values, places, weights = draw_inputs(seed, shapes, points=points)
    result = deformable_attention(values, shapes, places, weights)
    assert (result - theirs(values, shapes, places, weights)).abs().max() < 1e-5


def test_gradients_are_those_of_transformers():
    inputs = [our.requires_grad_() for our in draw_inputs(0, SHAPES)]
    values, places, weights = inputs
    towards = torch.randn(2, 4, 6)
    ours = torch.autograd.grad(
        (deformable_attention(values, SHAPES, places, weights) * towards).sum(), inputs
    )
    wanted = torch.autograd.grad((theirs(values, SHAPES, places, weights) * towards).sum(), inputs)
    for our, other in zip(ours, wanted, strict=True):
        assert (our - other).abs().max() < 1e-4


def test_nothing_is_seen_outside():
    values, places, weights = draw_inputs(0, SHAPES)
    assert not deformable_attention(values, SHAPES, places + 3, weights).any()


def test_at_first_heads_look_in_directions_of_their_own():
    net = DeformableAttention(8, n_heads=4, n_levels=1, n_points=2)
    towards = net.sampling_offsets.bias.reshape(4, 2, 2)
    assert towards[:, 0].tolist() == [
        pytest.approx(item, abs=1e-6) for item in ([1, 0], [0, 1], [-1, 0], [0, -1])
    ]
    assert torch.allclose(towards[:, 1], 2 * towards[:, 0])


def test_a_query_sees_within_its_box():
    """Offsets of at most so many points as there are stay in the box; the rest is not seen."""
    net = DeformableAttention(8, n_heads=4, n_levels=1, n_points=2)
    values = torch.randn(1, 64, 8)
    boxes = torch.tensor([[[0.25, 0.25, 0.2, 0.2]]])
    queries = torch.randn(1, 1, 8)
    other = values.clone().reshape(1, 8, 8, 8)
    other[:, 4:] += 1
    other[:, :, 4:] += 1
    recorded, same = (
        net(queries, boxes, item, [(8, 8)]) for item in (values, other.reshape(1, 64, 8))
    )
    assert torch.equal(recorded, same)
