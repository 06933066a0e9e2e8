"""A Swin transformer (Liu et al. 2021) whose weights have Microsoft's names.

The module needs PyTorch. Grids are (B, H, W, C). If windows do not fill a grid, zeros are added
below and to the right, without a mask, as in detectors and GRIT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from bias_pipeline.array_types import BoolArray, IntArray


class Swin(nn.Module):
    """Stages of window attention; the grid of each stage is half as wide as the grid before.

    A patch is ``patch`` pixels wide and high. With ``shrinks``, a grid that is no larger than a
    window becomes one window of the grid's size without shifts (as in the paper's classifier).
    Otherwise such a grid is padded to a whole window (as in detectors).

    Example:
        >>> net = Swin(8, (1, 1), (1, 2), window=4, patch=4, merges_last=True)
        >>> [tuple(level.shape) for level in net(torch.zeros(1, 3, 32, 32))]
        [(1, 8, 8, 8), (1, 4, 4, 16), (1, 2, 2, 16)]
    """

    def __init__(
        self,
        size: int,
        depths: Sequence[int],
        n_heads: Sequence[int],
        *,
        window: int,
        patch: int = 4,
        shrinks: bool = False,
        merges_last: bool = False,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.patch_embed = Patches(patch, size)
        rates = np.linspace(0, drop_path, sum(depths)).tolist()
        self.sizes = [size << number for number in range(len(depths))]
        if merges_last:
            self.sizes.append(self.sizes[-1])
        stages = []
        for number, depth in enumerate(depths):
            stage_rates, rates = rates[:depth], rates[depth:]
            merged = self.sizes[number + 1] if number + 1 < len(self.sizes) else None
            shape = (self.sizes[number], n_heads[number], window)
            stages.append(Stage(*shape, stage_rates, shrinks=shrinks, merged=merged))
        self.layers = nn.ModuleList(stages)

    def forward(self, pixels: Tensor) -> list[Tensor]:
        """Map normalised (B, 3, H, W) to a grid (B, H', W', C) per level, finest level first."""
        grid, levels = self.patch_embed(pixels), []
        for stage in self.layers:
            level, grid = stage(grid)
            levels.append(level)
        return levels if len(levels) == len(self.sizes) else [*levels, grid]


class Patches(nn.Module):
    """Embeds patches of pixels, ``side`` pixels wide and high (section 3.1 of the paper)."""

    def __init__(self, side: int, size: int) -> None:
        super().__init__()
        self.side = side
        self.proj = nn.Conv2d(3, size, side, stride=side)
        self.norm = nn.LayerNorm(size)

    def forward(self, pixels: Tensor) -> Tensor:
        """Map (B, 3, H, W) to (B, H / side, W / side, C), rounded up."""
        filled = nn.functional.pad(
            pixels, (0, -pixels.shape[3] % self.side, 0, -pixels.shape[2] % self.side)
        )
        grid: Tensor = self.norm(self.proj(filled).permute(0, 2, 3, 1))
        return grid


class Stage(nn.Module):
    """Blocks on one grid; in every second block, windows are shifted by half their width."""

    def __init__(
        self,
        size: int,
        n_heads: int,
        window: int,
        drop_paths: Sequence[float],
        *,
        shrinks: bool,
        merged: int | None,
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            SwinBlock(size, n_heads, window, rate, shifted=number % 2 == 1, shrinks=shrinks)
            for number, rate in enumerate(drop_paths)
        )
        self.downsample = nn.Identity() if merged is None else Merging(size, merged)

    def forward(self, grid: Tensor) -> tuple[Tensor, Tensor]:
        """Map (B, H, W, C) to the same shape, and to a grid of half the width and height."""
        for block in self.blocks:
            grid = block(grid)
        return grid, self.downsample(grid)


class Merging(nn.Module):
    """Merges four neighbouring patches into one patch with a vector twice as long (section 3.1)."""

    def __init__(self, size: int, merged: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * size)
        self.reduction = nn.Linear(4 * size, merged, bias=False)

    def forward(self, grid: Tensor) -> Tensor:
        filled = _pad_grid(grid, 2)
        four = [filled[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        merged: Tensor = self.reduction(self.norm(torch.cat(four, dim=3)))
        return merged


class SwinBlock(nn.Module):
    """Attention within windows, then two linear layers (the paper's equation 3)."""

    def __init__(
        self,
        size: int,
        n_heads: int,
        window: int,
        drop_path: float,
        *,
        shifted: bool,
        shrinks: bool,
    ) -> None:
        super().__init__()
        self.window, self.shifted, self.shrinks = window, shifted, shrinks
        self.drop_path = drop_path
        self.norm1 = nn.LayerNorm(size)
        self.attn = WindowAttention(size, n_heads, window)
        self.norm2 = nn.LayerNorm(size)
        self.mlp = SwinMlp(size, 4 * size)

    def forward(self, grid: Tensor, more: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        attended = self._attend(self.norm1(grid))
        grid = grid + self._drop_rows(attended if more is None else attended + more(attended))
        return grid + self._drop_rows(self.mlp(self.norm2(grid)))

    def _attend(self, grid: Tensor) -> Tensor:
        height, width = grid.shape[1:3]
        window = self.window
        if self.shrinks and min(height, width) <= window:
            window, shift = min(height, width), 0
        else:
            shift = window // 2 if self.shifted else 0
        filled = _pad_grid(grid, window)
        if not shift:
            return self.attn(filled, window, None)[:, :height, :width]
        apart = torch.from_numpy(_separate_regions(*filled.shape[1:3], window, shift)).to(
            grid.device
        )
        rolled = self.attn(filled.roll((-shift, -shift), (1, 2)), window, apart)
        return rolled.roll((shift, shift), (1, 2))[:, :height, :width]

    def _drop_rows(self, branch: Tensor) -> Tensor:
        """A branch that contributes nothing to random rows in training (Huang et al. 2016)."""
        if not self.training or not self.drop_path:
            return branch
        shape = (len(branch), *[1] * (branch.ndim - 1))
        keep = 1 - self.drop_path
        return branch * (torch.rand(shape, device=branch.device) < keep) / keep


class WindowAttention(nn.Module):
    """Attention of each patch to the patches of its window, by content and place (eq. 4)."""

    def __init__(self, size: int, n_heads: int, window: int) -> None:
        super().__init__()
        self.n_heads, self.window = n_heads, window
        n_places = (2 * window - 1) ** 2
        self.relative_position_bias_table = nn.Parameter(torch.empty(n_places, n_heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        self.qkv = nn.Linear(size, 3 * size)
        self.proj = nn.Linear(size, size)

    def forward(self, grid: Tensor, window: int, apart: Tensor | None) -> Tensor:
        """Map (B, H, W, C) to the same shape, if windows fill the grid."""
        n_rows, height, width, size = grid.shape
        down, across, area = height // window, width // window, window * window
        parts = self.qkv(grid).reshape(n_rows, down, window, across, window, 3, self.n_heads, -1)
        # (3, B, windows * heads, N, C / heads)
        q, k, v = parts.permute(5, 0, 1, 3, 6, 2, 4, 7).reshape(
            3, n_rows, down * across * self.n_heads, area, size // self.n_heads
        )
        table = self.relative_position_bias_table
        places = torch.from_numpy(_relative_places(window, self.window)).to(table.device)
        bias = table[places].permute(2, 0, 1).to(q.dtype)  # (heads, N, N)
        bias = bias.expand(down * across, -1, -1, -1)
        if apart is not None:
            bias = bias.masked_fill(apart[:, None], -torch.inf)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias.flatten(0, 1))
        attended = attended.reshape(n_rows, down, across, self.n_heads, window, window, -1)
        output: Tensor = self.proj(attended.permute(0, 1, 4, 2, 5, 3, 6).reshape(grid.shape))
        return output


class SwinMlp(nn.Module):
    def __init__(self, size: int, inner: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(size, inner)
        self.fc2 = nn.Linear(inner, size)

    def forward(self, vectors: Tensor) -> Tensor:
        output: Tensor = self.fc2(nn.functional.gelu(self.fc1(vectors)))
        return output


def _pad_grid(grid: Tensor, side: int) -> Tensor:
    """A grid with zeros added below and to the right, so that squares of a given side fill it."""
    down, across = -grid.shape[1] % side, -grid.shape[2] % side
    return nn.functional.pad(grid, (0, 0, 0, across, 0, down)) if down or across else grid


@lru_cache(maxsize=64)
def _relative_places(window: int, largest: int) -> IntArray:
    """(N, N) the row of the bias table for the relative position of two patches of a window."""
    places = np.indices((window, window)).reshape(2, -1)
    down, across = places[:, :, None] - places[:, None] + largest - 1
    rows: IntArray = down * (2 * largest - 1) + across
    return rows


@lru_cache(maxsize=64)
def _separate_regions(height: int, width: int, window: int, shift: int) -> BoolArray:
    """(windows, N, N) whether two patches are neighbours only in the rolled grid (figure 4)."""
    rows, columns = (  # the strip of a rolled edge that each patch lies in
        (np.arange(length) >= length - window).astype(np.int64)
        + (np.arange(length) >= length - shift)
        for length in (height, width)
    )
    strip = rows[:, None] * 3 + columns
    cut = strip.reshape(height // window, window, width // window, window)
    strips = cut.swapaxes(1, 2).reshape(-1, window * window)
    apart: BoolArray = strips[:, :, None] != strips[:, None]
    return apart
