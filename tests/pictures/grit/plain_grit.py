"""GRIT's grid network and captions, written plainly from the weights of a file by its names.

Loops over heads and words; nothing of ``bias_pipeline`` is used.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

Weights = Mapping[str, Tensor]


def grid_net(weights: Weights, grid: Tensor, n_heads: int) -> Tensor:
    """(G, C) of one picture's (G, D) grid."""
    vectors = _norm(weights, "grid_net.layer_norm", _linear(weights, "grid_net.fc", grid).relu())
    number = 0
    while f"grid_net.layers.{number}.pwff.fc1.weight" in weights:
        layer = f"grid_net.layers.{number}"
        vectors = _attention(weights, f"{layer}.mhatt", vectors, vectors, n_heads)
        vectors = _feed(weights, f"{layer}.pwff", vectors)
        number += 1
    return vectors


def log_probabilities(
    weights: Weights, words: Sequence[int], grid: Tensor, regions: Tensor, n_heads: int
) -> Tensor:
    """(L, V) logarithms of how likely each word is to follow each of L words of one caption.

    Args:
        weights: of the file.
        words: their numbers.
        grid: (G, C) of :func:`grid_net`.
        regions: (R, C).
        n_heads: attention heads.
    """
    table = weights["cap_generator.word_emb.weight"]
    positions = weights["cap_generator.pos_emb.weight"]
    states = torch.stack([table[word] + positions[n] for n, word in enumerate(words, start=1)])
    number = 0
    while f"cap_generator.layers.{number}.pwff.fc1.weight" in weights:
        layer = f"cap_generator.layers.{number}"
        read = torch.cat(
            [
                _attention(
                    weights, f"{layer}.self_att", states[n : n + 1], states[: n + 1], n_heads
                )
                for n in range(len(words))
            ]
        )
        let_in = torch.zeros_like(read)
        for part, visual in (("vis_att1", grid), ("vis_att2", regions)):
            looked = _attention(weights, f"{layer}.{part}", read, visual, n_heads)
            gate = _linear(weights, f"{layer}.fc_alpha1", torch.cat([read, looked], dim=1))
            let_in = let_in + looked * torch.sigmoid(gate)
        states = _feed(weights, f"{layer}.pwff", let_in / 2**0.5)
        number += 1
    return torch.log_softmax(states @ weights["cap_generator.fc.weight"].T, dim=1)


def _linear(weights: Weights, name: str, vectors: Tensor) -> Tensor:
    return vectors @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(weights: Weights, name: str, vectors: Tensor) -> Tensor:
    spread = (vectors.var(dim=1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    centred = (vectors - vectors.mean(dim=1, keepdim=True)) / spread
    return centred * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _feed(weights: Weights, name: str, vectors: Tensor) -> Tensor:
    inner = _linear(weights, f"{name}.fc1", vectors).relu()
    return _norm(weights, f"{name}.layer_norm", vectors + _linear(weights, f"{name}.fc2", inner))


def _attention(
    weights: Weights, name: str, queries: Tensor, memory: Tensor, n_heads: int
) -> Tensor:
    part = f"{name}.attention"
    q, k, v = (
        _linear(weights, f"{part}.fc_{letter}", vectors)
        for letter, vectors in (("q", queries), ("k", memory), ("v", memory))
    )
    head = q.shape[1] // n_heads
    if f"{part}.m_k" in weights:
        slots, values = weights[f"{part}.m_k"][0], weights[f"{part}.m_v"][0]
        k = torch.cat([k, slots * head**0.5])
        v = torch.cat([v, values * len(values) ** 0.5])
    heads = []
    for start in range(0, q.shape[1], head):
        columns = slice(start, start + head)
        likeness = torch.exp(q[:, columns] @ k[:, columns].T / math.sqrt(head))
        heads.append(likeness / likeness.sum(dim=1, keepdim=True) @ v[:, columns])
    looked = _linear(weights, f"{part}.fc_o", torch.cat(heads, dim=1))
    return _norm(weights, f"{name}.layer_norm", queries + looked)
