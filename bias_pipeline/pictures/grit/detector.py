"""GRIT's visual features: a grid, and regions that queries find. Needs PyTorch.

Queries use multi-scale deformable attention (Zhu et al. 2021), here in plain PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bias_pipeline.models.swin import Swin
from bias_pipeline.pictures.grit.sizes import GritSize

Shape = tuple[int, int]


def deformable_attention(
    values: Tensor, shapes: Sequence[Shape], places: Tensor, weights: Tensor
) -> Tensor:
    """(B, Q, M * D) what queries read at places of several grids (equation 3 of the paper).

    ``values`` (B, S, M, D) are the patches of all L grids in succession, for each of M heads;
    ``places`` (B, Q, M, L, P, 2) are the x and y at which each head samples, in [0, 1] within the
    picture, zero outside; ``weights`` (B, Q, M, L, P) are the weights of the samples.

    Example:
        >>> values = torch.arange(4.0).reshape(1, 4, 1, 1)  # one grid of two by two
        >>> middle = torch.full((1, 1, 1, 1, 1, 2), 0.5)
        >>> deformable_attention(values, [(2, 2)], middle, torch.ones(1, 1, 1, 1, 1)).item()
        1.5
    """
    n_rows, _, n_heads, size = values.shape
    # One tensor of each per level; all are cut at once, so that gradients are joined only once.
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
    """Queries attend to a few places of each grid, near their box (equation 3)."""

    def __init__(self, size: int, n_heads: int, n_levels: int, n_points: int) -> None:
        super().__init__()
        self.shape = (n_heads, n_levels, n_points)
        self.sampling_offsets = nn.Linear(size, 2 * math.prod(self.shape))
        self.attention_weights = nn.Linear(size, math.prod(self.shape))
        self.value_proj = nn.Linear(size, size)
        self.output_proj = nn.Linear(size, size)
        self._begin()

    def _begin(self) -> None:
        """Start each head in another direction, all places with equal weight (appendix A.4)."""
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
        """(B, Q, C) what queries read of (B, S, C); boxes (B, Q, 4): middle, width, height."""
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


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's channels
GROUPS = 32  # groups of group normalisation, as in Deformable DETR


class Visual(NamedTuple):
    grid: Tensor  # (B, G, D) vectors of the coarsest grid
    regions: Tensor  # (B, R, C) vectors of regions


class GritDetector(nn.Module):
    """A Swin transformer with a region decoder on its coarsest grids."""

    def __init__(self, size: GritSize) -> None:
        super().__init__()
        self.backbone = Swin(
            size.embed,
            size.depths,
            size.backbone_heads,
            window=size.window,
            patch=size.patch,
            merges_last=True,
            drop_path=size.drop_path,
        )
        self.regions = RegionDecoder(self.backbone.sizes[-size.n_levels :], size)
        self.grid_dim = size.grid_dim

    def forward(self, pixels: Tensor) -> Visual:
        """Map (B, 3, S, S) uint8 pictures to features."""
        mean, std = (pixels.new_tensor(channels, dtype=torch.float32) for channels in (MEAN, STD))
        normal = (pixels.float() / 255 - mean[:, None, None]) / std[:, None, None]
        levels = self.backbone(normal)[-self.regions.n_levels :]
        return Visual(levels[-1].flatten(1, 2), self.regions(levels))


class PrecomputedFeatures(nn.Module):
    """Passes on the stored features of a frozen detector."""

    def __init__(self, size: GritSize) -> None:
        super().__init__()
        self.grid_dim = size.grid_dim

    def forward(self, grid: Tensor, regions: Tensor) -> Visual:
        """Map a grid (B, G, D) and regions (B, R, C) in any precision to float32 features."""
        return Visual(grid.float(), regions.float())


class PublishedDetector(nn.Module):
    """The last grid of a published vision network, with a region decoder on it."""

    def __init__(self, seeing: nn.Module, size: GritSize) -> None:
        super().__init__()
        self.seeing = seeing
        self.grid_dim = int(seeing.output_dim)  # type: ignore[arg-type]
        self.regions = RegionDecoder([self.grid_dim], size)

    def forward(self, **picture: Tensor) -> Visual:
        grid, _ = self.seeing(**picture)
        side = math.isqrt(grid.shape[1])
        return Visual(grid, self.regions([grid.unflatten(1, (side, side))]))


class RegionDecoder(nn.Module):
    """The decoder of Deformable DETR without its encoder, which turns queries into regions.

    Boxes are refined once before the first layer and then by each layer (Zhu et al. 2021, section
    4.2). In the paper, gradients stop between layers' boxes, since every layer has a loss on boxes.
    Here gradients pass, since only the caption is learnt; the outputs are the same.
    """

    def __init__(self, sizes: Sequence[int], size: GritSize) -> None:
        super().__init__()
        self.n_levels, width = len(sizes), size.size
        self.input_proj = nn.ModuleList(
            nn.Sequential(nn.Conv2d(channels, width, 1), nn.GroupNorm(GROUPS, width))
            for channels in sizes
        )
        self.query_embed = nn.Embedding(size.n_regions, 2 * width)  # position and content
        self.reference_points = nn.Linear(width, 2)
        self.layers = nn.ModuleList(
            RegionLayer(size, self.n_levels) for _ in range(size.region_layers)
        )
        self.bbox_embed = nn.ModuleList(BoxNet(width) for _ in range(size.region_layers + 1))
        # The last network computes the final boxes, which are not used; released files have it.
        self.bbox_embed[-1].requires_grad_(False)

    def forward(self, levels: Sequence[Tensor]) -> Tensor:
        """Map levels (B, H, W, D), the finest first, to regions (B, R, C)."""
        projected = [
            layer(level.permute(0, 3, 1, 2))
            for layer, level in zip(self.input_proj, levels, strict=True)
        ]
        shapes = [(grid.shape[2], grid.shape[3]) for grid in projected]
        values = torch.cat([grid.flatten(2).transpose(1, 2) for grid in projected], dim=1)
        place, content = self.query_embed.weight.expand(len(values), -1, -1).chunk(2, dim=2)
        middle = self.reference_points(place).sigmoid()
        boxes = nn.functional.pad(middle, (0, 2), value=0.5)
        for layer, box_net in zip(self.layers, self.bbox_embed, strict=False):
            boxes = refine_boxes(boxes, box_net(content))
            content = layer(content, place, boxes, values, shapes)
        return content


def refine_boxes(boxes: Tensor, change: Tensor) -> Tensor:
    """(B, Q, 4) boxes in [0, 1] after a change of their logits."""
    return torch.sigmoid(torch.logit(boxes.float(), eps=1e-5) + change.float())


class RegionLayer(nn.Module):
    """Queries attend to each other, and then to the picture near their boxes."""

    def __init__(self, size: GritSize, n_levels: int) -> None:
        super().__init__()
        width, dropout = size.size, size.region_dropout
        self.self_attn = nn.MultiheadAttention(width, size.n_heads, dropout, batch_first=True)
        self.cross_attn = DeformableAttention(width, size.n_heads, n_levels, size.n_points)
        self.linear1 = nn.Linear(width, size.region_inner)
        self.linear2 = nn.Linear(size.region_inner, width)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        content: Tensor,
        place: Tensor,
        boxes: Tensor,
        values: Tensor,
        shapes: Sequence[Shape],
    ) -> Tensor:
        """Map queries (B, Q, C) to the same shape; for the arguments see :class:`RegionDecoder`."""
        asking = content + place
        attended, _ = self.self_attn(asking, asking, content, need_weights=False)
        content = self.norm2(content + self.dropout(attended))
        attended = self.cross_attn(content + place, boxes, values, shapes)
        content = self.norm1(content + self.dropout(attended))
        inner = self.dropout(torch.relu(self.linear1(content)))
        output: Tensor = self.norm3(content + self.dropout(self.linear2(inner)))
        return output


class BoxNet(nn.Module):
    """Three linear layers from a query to the change of its box, which is zero at first."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, 4)]
        )
        for parameter in self.layers[2].parameters():
            nn.init.zeros_(parameter)

    def forward(self, queries: Tensor) -> Tensor:
        first, second, last = self.layers
        change: Tensor = last(torch.relu(second(torch.relu(first(queries)))))
        return change
