"""GRIT's visual features: a grid, and regions found by queries. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bias_pipeline.models.deformable import DeformableAttention, Shape
from bias_pipeline.models.grit.sizes import GritSize
from bias_pipeline.models.swin import Swin

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's channels
GROUPS = 32  # groups of group normalisation, as in Deformable DETR


class Visual(NamedTuple):
    """The features of B pictures."""

    grid: Tensor  # (B, G, D) vectors of the coarsest grid
    regions: Tensor  # (B, R, C) vectors of regions


class GritDetector(nn.Module):
    """A Swin transformer, and a region decoder on its coarsest grids.

    Args:
        size: of all parts.

    Attributes:
        grid_dim: D.
    """

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
        """(B, 3, S, S) uint8 pictures to features."""
        mean, std = (pixels.new_tensor(channels, dtype=torch.float32) for channels in (MEAN, STD))
        normal = (pixels.float() / 255 - mean[:, None, None]) / std[:, None, None]
        levels = self.backbone(normal)[-self.regions.n_levels :]
        return Visual(levels[-1].flatten(1, 2), self.regions(levels))


class PassedFeatures(nn.Module):
    """Passes on stored features of a frozen detector.

    Args:
        size: of all parts.

    Attributes:
        grid_dim: D.
    """

    def __init__(self, size: GritSize) -> None:
        super().__init__()
        self.grid_dim = size.grid_dim

    def forward(self, grid: Tensor, regions: Tensor) -> Visual:
        """(B, G, D) and (B, R, C) in any precision to themselves."""
        return Visual(grid.float(), regions.float())


class RegionDecoder(nn.Module):
    """Deformable DETR's decoder without its encoder: queries to regions.

    Boxes are refined by each layer (Zhu et al. 2021, section 4.2), the first time before any.
    There, gradients stop between layers' boxes, as every layer has a loss on boxes. Here they pass,
    since only the caption is learnt; the outputs are the same.

    Args:
        sizes: of the vectors of each level.
        size: of all parts.
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
        # The last one computes the final boxes, which are not used; released weights have it.
        self.bbox_embed[-1].requires_grad_(False)

    def forward(self, levels: Sequence[Tensor]) -> Tensor:
        """(B, H, W, D) levels, the finest first, to regions (B, R, C)."""
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
            boxes = refined(boxes, box_net(content))
            content = layer(content, place, boxes, values, shapes)
        return content


def refined(boxes: Tensor, change: Tensor) -> Tensor:
    """(B, Q, 4) boxes in [0, 1], moved by a change of their logits."""
    return torch.sigmoid(torch.logit(boxes.float(), eps=1e-5) + change.float())


class RegionLayer(nn.Module):
    """Queries attend to each other, then to the picture near their boxes.

    Args:
        size: of all parts.
        n_levels: of the picture.
    """

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
        """(B, Q, C) queries to the same; the others as :class:`RegionDecoder` has them."""
        asking = content + place
        attended, _ = self.self_attn(asking, asking, content, need_weights=False)
        content = self.norm2(content + self.dropout(attended))
        attended = self.cross_attn(content + place, boxes, values, shapes)
        content = self.norm1(content + self.dropout(attended))
        inner = self.dropout(torch.relu(self.linear1(content)))
        output: Tensor = self.norm3(content + self.dropout(self.linear2(inner)))
        return output


class BoxNet(nn.Module):
    """Three linear layers from a query to the change of its box, initially zero.

    Args:
        size: of a query.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, 4)]
        )
        for parameter in self.layers[2].parameters():
            nn.init.zeros_(parameter)

    def forward(self, queries: Tensor) -> Tensor:
        """(B, Q, C) to (B, Q, 4)."""
        first, second, last = self.layers
        change: Tensor = last(torch.relu(second(torch.relu(first(queries)))))
        return change
