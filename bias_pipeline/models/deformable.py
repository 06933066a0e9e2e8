"""Multi-scale deformable attention (Zhu et al. 2021) in plain PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

Shape = tuple[int, int]


def deformable_attention(
    values: Tensor, shapes: Sequence[Shape], places: Tensor, weights: Tensor
) -> Tensor:
    """Attention of queries to places of several grids (the paper's equation 3).

    Args:
        values: (B, S, M, D) the patches of all L grids one after the other, for each of M heads.
        shapes: L heights and widths, whose products add up to S.
        places: (B, Q, M, L, P, 2) the x and y at which each head samples, in [0, 1] within the
            picture; zero outside.
        weights: (B, Q, M, L, P) the weight of each sample.

    Returns:
        (B, Q, M * D).

    Example:
        >>> values = torch.arange(4.0).reshape(1, 4, 1, 1)  # one grid of two by two
        >>> middle = torch.full((1, 1, 1, 1, 1, 2), 0.5)
        >>> deformable_attention(values, [(2, 2)], middle, torch.ones(1, 1, 1, 1, 1)).item()
        1.5
    """
    n_rows, _, n_heads, size = values.shape
    # One of each a level; cut at once, so that gradients are put together once.
    levels = torch.split(values, [height * width for height, width in shapes], dim=1)
    points = (2 * places - 1).permute(3, 0, 2, 1, 4, 5).flatten(1, 2).unbind()  # (B * M, Q, P, 2)
    shares = weights.permute(3, 0, 2, 1, 4).flatten(1, 2).unbind()  # (B * M, Q, P)
    attended = values.new_zeros(n_rows * n_heads, size, places.shape[1])
    for level, shape, level_points, share in zip(levels, shapes, points, shares, strict=True):
        grid = level.permute(0, 2, 3, 1).reshape(n_rows * n_heads, size, *shape)
        sampled = nn.functional.grid_sample(
            grid, level_points, align_corners=False
        )  # bilinear, zero outside
        attended = attended + (sampled * share[:, None]).sum(dim=3)
    return attended.reshape(n_rows, n_heads * size, -1).transpose(1, 2)


class DeformableAttention(nn.Module):
    """Queries attend to a few places of each grid, near their own box (equation 3).

    Args:
        size: C of queries and values.
        n_heads: attention heads.
        n_levels: grids.
        n_points: places that a head samples in each grid.
    """

    def __init__(self, size: int, n_heads: int, n_levels: int, n_points: int) -> None:
        super().__init__()
        self.shape = (n_heads, n_levels, n_points)
        self.sampling_offsets = nn.Linear(size, 2 * math.prod(self.shape))
        self.attention_weights = nn.Linear(size, math.prod(self.shape))
        self.value_proj = nn.Linear(size, size)
        self.output_proj = nn.Linear(size, size)
        self._begin()

    def _begin(self) -> None:
        """Each head starts with its own direction, all places with equal weight (appendix A.4)."""
        n_heads, n_levels, n_points = self.shape
        angle = torch.arange(n_heads) * (2 * math.pi / n_heads)
        towards = torch.stack([angle.cos(), angle.sin()], dim=1)
        towards = towards / towards.abs().max(dim=1, keepdim=True).values
        away = torch.arange(1, n_points + 1)
        start = towards[:, None, None] * away[:, None]  # (M, 1, P, 2)
        with torch.no_grad():
            self.sampling_offsets.bias.copy_(start.expand(-1, n_levels, -1, -1).flatten())
            for layer in (self.sampling_offsets, self.attention_weights):
                layer.weight.zero_()
            self.attention_weights.bias.zero_()

    def forward(
        self, queries: Tensor, boxes: Tensor, values: Tensor, shapes: Sequence[Shape]
    ) -> Tensor:
        """(B, Q, C) the attended values.

        Args:
            queries: (B, Q, C).
            boxes: (B, Q, 4) middle, width and height of each query's box, in [0, 1].
            values: (B, S, C) see :func:`deformable_attention`.
            shapes: of the grids.
        """
        n_heads, n_levels, n_points = self.shape
        projected = self.value_proj(values).unflatten(2, (n_heads, -1))
        offsets = self.sampling_offsets(queries).unflatten(2, (*self.shape, 2))
        weights = self.attention_weights(queries).unflatten(2, (n_heads, n_levels * n_points))
        weights = weights.softmax(dim=3).unflatten(3, (n_levels, n_points))
        own_box = boxes[:, :, None, None, None]  # (B, Q, 1, 1, 1, 4)
        places = own_box[..., :2] + offsets / n_points * own_box[..., 2:] / 2
        attended: Tensor = self.output_proj(
            deformable_attention(
                projected, shapes, places.to(projected.dtype), weights.to(projected.dtype)
            )
        )
        return attended
