"""Batches, weights and dropout of several networks in one pass. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

Net = TypeVar("Net", bound=nn.Module)
Words = tuple[Tensor, Tensor]  # tokens (N, L) and lengths (N,) of one network's batch


def drop(
    values: Tensor,
    rate: float,
    shapes: Sequence[Sequence[int]],
    generators: Sequence[torch.Generator],
) -> Tensor:
    """Dropout in which each network draws its own part, in the shape that it would draw alone.

    Args:
        values: (S, ...).
        rate: share of values that become zero, in [0, 1).
        shapes: of each network's part, which begins at the first place of every axis.
        generators: a random generator each.

    Returns:
        (S, ...); zero outside the networks' parts.

    Example:
        >>> generators = [torch.Generator().manual_seed(seed) for seed in (0, 12)]
        >>> drop(torch.ones(2, 3), 0.0, [(3,), (2,)], generators).tolist()
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
        >>> drop(torch.ones(2, 3), 0.5, [(0,), (0,)], generators).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if rate == 0:
        return values
    factors = torch.zeros_like(values)
    for place, shape, generator in zip(factors, shapes, generators, strict=True):
        inside = tuple(slice(size) for size in shape)
        place[inside] = dropout_factors(values, shape, rate, generator)
    return values * factors


def dropout_factors(
    values: Tensor, shape: Sequence[int], rate: float, generator: torch.Generator
) -> Tensor:
    """The factors of dropout, drawn as ``nn.Dropout`` draws them on the processor."""
    drawn = torch.empty(tuple(shape), dtype=values.dtype, device=values.device)
    return drawn.bernoulli_(1 - rate, generator=generator).div_(1 - rate)


def side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """(S, N, L, D) from parts (N_s, L_s, D), zero outside the parts."""
    n_rows, n_words = (max(part.shape[axis] for part in parts) for axis in (0, 1))
    padded = [
        nn.functional.pad(part, (0, 0, 0, n_words - part.shape[1], 0, n_rows - part.shape[0]))
        for part in parts
    ]
    return torch.stack(padded)


def stacked(nets: Sequence[Net], weight: Callable[[Net], Tensor]) -> Tensor:
    """(S, ...) one weight of every network.

    Example:
        >>> stacked([nn.Linear(2, 3), nn.Linear(2, 3)], lambda net: net.weight).shape
        torch.Size([2, 3, 2])
    """
    return torch.stack([weight(net) for net in nets])
