"""The Swin transformer against timm's, whose names of weights differ."""

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor

from bias_pipeline.models.swin import Swin, SwinBlock
from bias_pipeline.models.torchvision import make_importable

DEPTHS, HEADS = (2, 1, 2), (2, 4, 4)


def rename_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """timm halves a grid where a stage begins, Microsoft where the one before ends."""
    renamed_weights = {}
    for name, value in weights.items():
        new_name = re.sub(
            r"layers\.(\d+)\.downsample",
            lambda match: f"layers.{int(match[1]) - 1}.downsample",
            name,
        )
        if not new_name.startswith(("norm.", "head.")):
            renamed_weights[new_name] = value
    return renamed_weights


def both_nets(side: int, window: int, **flags: bool) -> tuple[Any, Swin]:
    """timm's and ours with the same random weights."""
    make_importable()
    pytest.importorskip("timm", reason="timm is absent")
    from timm.models.swin_transformer import SwinTransformer

    torch.manual_seed(0)
    theirs = SwinTransformer(
        img_size=side, embed_dim=8, depths=DEPTHS, num_heads=HEADS, window_size=window, **flags
    ).eval()
    for weight in theirs.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    ours = Swin(8, DEPTHS, HEADS, window=window, shrinks=not flags.get("always_partition")).eval()
    ours.load_state_dict(rename_weights(theirs.state_dict()), strict=True)
    return theirs, ours


def compare(theirs: Any, ours: Swin, pixels: Tensor) -> None:
    with torch.inference_mode():
        levels, grid = ours(pixels), theirs.patch_embed(pixels)
        for level, stage in zip(levels, theirs.layers, strict=True):
            grid = stage(grid)
            assert level.shape == grid.shape
            assert (level - grid).abs().max() < 1e-5 * grid.abs().max()


def test_levels_are_those_of_timm_also_as_detectors_have_them():
    """The coarsest grid is one window, which is not shifted."""
    compare(*both_nets(64, 4), torch.randn(2, 3, 64, 64))
    # The coarsest grid is one window, which is shifted all the same.
    theirs, ours = both_nets(64, 4, always_partition=True, strict_img_size=False)
    compare(theirs, ours, torch.randn(2, 3, 64, 64))


def plainly(block: SwinBlock, grid: Tensor, shift: int) -> Tensor:
    """The block's equations place by place, in windows that begin ``shift`` places later."""
    height, width, size = grid.shape
    side, attn = block.window, block.attn
    down, across = (-(-length // side) * side for length in (height, width))
    filled = torch.zeros(down, across, size)
    filled[:height, :width] = block.norm1(grid)
    q, k, v = attn.qkv(filled).reshape(down, across, 3, attn.n_heads, -1).unbind(2)
    offset = (side - shift) % side
    attended = torch.zeros(height, width, size)
    for row in range(height):
        for column in range(width):
            window = [
                (r, c)
                for r in range(down)
                for c in range(across)
                if (r + offset) // side == (row + offset) // side
                and (c + offset) // side == (column + offset) // side
            ]
            heads = []
            for head in range(attn.n_heads):
                scores = [
                    q[row, column, head] @ k[r, c, head] / math.sqrt(size / attn.n_heads)
                    + attn.relative_position_bias_table[
                        (row - r + side - 1) * (2 * side - 1) + column - c + side - 1, head
                    ]
                    for r, c in window
                ]
                weights = torch.stack(scores).softmax(dim=0)
                heads.append(
                    sum(w * v[r, c, head] for w, (r, c) in zip(weights, window, strict=True))
                )
            attended[row, column] = torch.cat(heads)
    middle = grid + attn.proj(attended)
    return middle + block.mlp(block.norm2(middle))


@pytest.mark.parametrize("shifted", [False, True])
def test_grids_that_windows_do_not_fill_are_filled_up_before_windows_are_shifted(
    shifted,
):
    torch.manual_seed(0)
    block = SwinBlock(4, 2, 4, 0.0, shifted=shifted, shrinks=False).eval()
    for weight in block.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    grid = torch.randn(2, 5, 7, 4)
    with torch.inference_mode():
        wanted = torch.stack([plainly(block, item, 2 if shifted else 0) for item in grid])
        assert (block(grid) - wanted).abs().max() < 1e-5


def test_the_last_grid_is_halved_on_request():
    net = Swin(8, (1, 1), (1, 2), window=4, merges_last=True)
    shapes = [tuple(item.shape) for item in net(torch.zeros(1, 3, 40, 40))]
    assert shapes == [(1, 10, 10, 8), (1, 5, 5, 16), (1, 3, 3, 16)]


def test_blocks_are_left_out_in_training_alone():
    torch.manual_seed(0)
    block = SwinBlock(4, 1, 2, drop_path=0.9, shifted=False, shrinks=False)
    grid = torch.randn(50, 2, 2, 4)
    changed = (block.train()(grid) != grid).flatten(1).any(dim=1)
    assert 0 < changed.sum() < 50
    assert (block.eval()(grid) != grid).flatten(1).any(dim=1).all()
