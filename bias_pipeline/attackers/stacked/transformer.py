"""Transformer encoders in one pass: weights stacked, one product for all. Needs PyTorch.

``torch.func.vmap`` could compute the products, but draws dropout for all networks from one
generator; here each has its own. S networks, N captions and L words at most, D sizes of vectors, A
heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from bias_pipeline.attackers.stacked.dropout import Words, drop, side_by_side, stacked
from bias_pipeline.encoders.nets import TransformerNet, positions

Layer = nn.TransformerEncoderLayer
Generators = Sequence[torch.Generator]
Sizes = Sequence[tuple[int, int]]  # captions and words of each network's batch


def encode(
    nets: Sequence[TransformerNet], batches: Sequence[Words], generators: Generators
) -> Tensor:
    """The vectors of each network for its own batch in training.

    Args:
        nets: S networks of one description; their vocabularies may differ.
        batches: a batch each, of N_s captions of at most L_s words.
        generators: a random generator each, on the networks' device.

    Returns:
        (S, N, D) means over words; rows beyond N_s are meaningless.
    """
    sizes = [(tokens.shape[0], tokens.shape[1]) for tokens, _ in batches]
    vectors = [net.vectors(tokens) for net, (tokens, _) in zip(nets, batches, strict=True)]
    states = side_by_side(vectors)
    n_words, size = states.shape[2:]
    states = states + positions(n_words, size).to(states)
    rate = nets[0].dropout.p
    states = drop(states, rate, [(*shape, size) for shape in sizes], generators)  # (S, N, L, D)
    lengths = nn.utils.rnn.pad_sequence(
        [caption_lengths for _, caption_lengths in batches], batch_first=True
    )
    # A row beyond a network's batch would attend to nothing, which gives NaN.
    lengths = lengths.clamp(min=1)
    present = torch.arange(n_words, device=lengths.device) < lengths[..., None]  # (S, N, L)
    for layers in zip(*(net.layers.layers for net in nets), strict=True):
        states = _layer(layers, states, present, sizes, generators)
    inside = present[..., None].to(states.dtype)
    mean = (states * inside).sum(dim=2) / inside.sum(dim=2)
    return drop(mean, rate, [(n, size) for n, _ in sizes], generators)


def _layer(
    layers: Sequence[Layer],
    states: Tensor,
    present: Tensor,
    sizes: Sizes,
    generators: Generators,
) -> Tensor:
    """(S, N, L, D) to the same: attention, then two linear layers, each added and normalised."""
    first = layers[0]
    attended = _attention(layers, states, present, sizes, generators)
    # A single network has words before captions in attention, and draws dropout in that order.
    turned = attended.transpose(1, 2)  # (S, L, N, D)
    shapes = [(n_words, n, states.shape[3]) for n, n_words in sizes]
    attended = drop(turned, first.dropout1.p, shapes, generators).transpose(1, 2)
    states = _normalised(layers, lambda layer: layer.norm1, states + attended)
    inner = _linear(layers, lambda layer: layer.linear1, states).relu()
    inner = drop(inner, first.dropout.p, [(*shape, inner.shape[3]) for shape in sizes], generators)
    outer = _linear(layers, lambda layer: layer.linear2, inner)
    outer = drop(outer, first.dropout2.p, [(*shape, outer.shape[3]) for shape in sizes], generators)
    return _normalised(layers, lambda layer: layer.norm2, states + outer)


def _attention(
    layers: Sequence[Layer],
    states: Tensor,
    present: Tensor,
    sizes: Sizes,
    generators: Generators,
) -> Tensor:
    """(S, N, L, D) attention output of every word (Vaswani et al. 2017, section 3.2)."""
    first = layers[0].self_attn
    n_heads, size = first.num_heads, first.head_dim
    weight = stacked(layers, lambda layer: layer.self_attn.in_proj_weight)
    bias = stacked(layers, lambda layer: layer.self_attn.in_proj_bias)
    split = _affine(states, weight, bias).unflatten(3, (3, n_heads, size))  # type: ignore[no-untyped-call]
    query, key, value = split.permute(3, 0, 1, 4, 2, 5)  # (S, N, A, L, D / A) each
    fit = query @ key.mT / math.sqrt(size)  # (S, N, A, L, L)
    share = fit.masked_fill(~present[:, :, None, None], -math.inf).softmax(dim=-1)
    shapes = [(n, n_heads, n_words, n_words) for n, n_words in sizes]
    mean = drop(share, first.dropout, shapes, generators) @ value
    return _linear(layers, lambda layer: layer.self_attn.out_proj, mean.transpose(2, 3).flatten(3))


def _linear(layers: Sequence[Layer], of: Callable[[Layer], nn.Linear], states: Tensor) -> Tensor:
    """(S, N, L, D) to (S, N, L, D'), each network by its own layer."""
    weight = stacked(layers, lambda layer: of(layer).weight)
    return _affine(states, weight, stacked(layers, lambda layer: of(layer).bias))


def _affine(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    flat = torch.baddbmm(bias[:, None], states.flatten(1, 2), weight.mT)
    return flat.view(*states.shape[:3], -1)


def _normalised(
    layers: Sequence[Layer], of: Callable[[Layer], nn.LayerNorm], states: Tensor
) -> Tensor:
    """(S, N, L, D) with every word's vector normalised by its network's layer."""
    weight = stacked(layers, lambda layer: of(layer).weight)[:, None, None]
    bias = stacked(layers, lambda layer: of(layer).bias)[:, None, None]
    eps = of(layers[0]).eps
    return nn.functional.layer_norm(states, states.shape[-1:], eps=eps) * weight + bias
