"""FIBER: an image and a text side, separate or fused in their last blocks.

Dou et al., Coarse-to-Fine Vision-Language Pre-training with Fusion in the Backbone (NeurIPS 2022).
In the dual mode (contrastive training) each side gives a vector, and the product is the similarity:
each picture and text is encoded once. In the fused mode (trained to match) the sides attend to each
other, which is better and costs one pass for every pair. Needs PyTorch.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from bias_pipeline.models.fiber.sizes import FiberSize
from bias_pipeline.models.fiber.text import FiberText, Gate
from bias_pipeline.models.swin import Stage, Swin

Place = tuple[int, int]


class Begun(NamedTuple):
    """Texts, encoded as far as possible without a picture.

    Attributes:
        vectors: (B, N, C).
        there: (B, N) which tokens are not padding.
    """

    vectors: Tensor
    there: Tensor


class Pooled(nn.Module):
    """A side's vectors as one: two linear layers, the second with a tanh.

    Args:
        size: of a vector.
        joint: size of the output.
    """

    def __init__(self, size: int, joint: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, joint)
        self.pooler = nn.Linear(joint, joint)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, C), the first token or the mean of all patches, to (B, D)."""
        pooled: Tensor = torch.tanh(self.pooler(self.transform(vectors)))
        return pooled


class FiberNet(nn.Module):
    """Both sides.

    Args:
        size: of all parts.

    Example:
        >>> size = FiberSize(8, (1, 1), (1, 2), 4, 64, 8, 2, 9, 12, n_pairs=1, joint=6)
        >>> net = FiberNet(size).eval()
        >>> pixels, tokens = torch.zeros(2, 3, 32, 32), torch.tensor([[0, 5, 2], [0, 2, 1]])
        >>> net.pictures(pixels).shape, net.texts(tokens).shape
        (torch.Size([2, 6]), torch.Size([2, 6]))
        >>> net.match(net.begin_pictures(pixels), net.begin_texts(tokens)).shape
        torch.Size([2])
    """

    def __init__(self, size: FiberSize) -> None:
        super().__init__()
        self.size = size
        self.swin = Swin(size.size, size.depths, size.n_heads, window=size.window, shrinks=True)
        last = self.swin.sizes[-1]
        self.swin_norm = nn.LayerNorm(last)
        self.text = FiberText(size)
        self.gates = nn.ModuleDict(
            {
                _name((stage, number)): Gate(
                    self.swin.sizes[stage], size.text_size, size.n_heads[stage], normed=True
                )
                for stage, number in size.fused_blocks
            }
        )
        self.dual_image = Pooled(last, size.joint)
        self.dual_text = Pooled(size.text_size, size.joint)
        self.fused_image = Pooled(last, size.joint)
        self.fused_text = Pooled(size.text_size, size.joint)
        self.matching = nn.Linear(2 * size.joint, 2) if size.matches else None

    def pictures(self, pixels: Tensor) -> Tensor:
        """(B, 3, H, W) normalised pictures to (B, D) vectors of any length."""
        grid: Tensor = self.swin_norm(self.swin(pixels)[-1])
        vectors: Tensor = self.dual_image(grid.flatten(1, 2).mean(dim=1))
        return vectors

    def texts(self, tokens: Tensor) -> Tensor:
        """(B, N) numbers of tokens to (B, D) vectors of any length."""
        vectors: Tensor = self.dual_text(self.text(tokens)[:, 0])
        return vectors

    def begin_pictures(self, pixels: Tensor) -> Tensor:
        """(B, 3, H, W) to grids (B, H', W', C), encoded as far as possible without a text."""
        grid: Tensor = self.swin.patch_embed(pixels)
        for place in self.size.blocks[: -self.size.n_pairs]:
            grid = self._left(place, self._block(place)(grid))
        return grid

    def begin_texts(self, tokens: Tensor) -> Begun:
        """(B, N) to vectors, encoded as far as possible without a picture."""
        vectors, there = self.text.embed(tokens)
        for layer in self.text.layers[: -self.size.n_pairs]:
            vectors = layer(vectors, there)
        return Begun(vectors, there)

    def match(self, grid: Tensor, texts: Begun) -> Tensor:
        """(B,) how well each picture and each text match, on a scale of logits.

        In each fused block both sides attend to the other's previous state. The score is the output
        for "match", by which the authors rank.

        Args:
            grid: of :meth:`begin_pictures`.
            texts: of :meth:`begin_texts`.
        """
        assert self.matching is not None
        vectors, there = texts
        layers = self.text.layers[-self.size.n_pairs :]
        for place, layer in zip(self.size.fused_blocks, layers, strict=True):
            before, last = grid.flatten(1, 2), place == self.size.blocks[-1]
            grid = self._left(place, self._read(place, grid, vectors, there))
            vectors = layer(vectors, there, before, normed=not last)
        sides = [
            self.fused_text(vectors[:, 0]),
            self.fused_image(grid.flatten(1, 2).mean(dim=1)),
        ]
        scores: Tensor = self.matching(torch.cat(sides, dim=1))[:, 1]
        return scores

    def _read(self, place: Place, grid: Tensor, vectors: Tensor, there: Tensor) -> Tensor:
        """The output of a block that also attends to the text."""
        gate = self.gates[_name(place)]

        def more(states: Tensor) -> Tensor:
            added: Tensor = gate(states.flatten(1, 2), vectors, there)
            return added.reshape(states.shape)

        output: Tensor = self._block(place)(grid, more)
        return output

    def _block(self, place: Place) -> nn.Module:
        stage, number = place
        return self._stage(stage).blocks[number]

    def _left(self, place: Place, grid: Tensor) -> Tensor:
        """The grid after a block: halved between stages."""
        stage, number = place
        ends = number + 1 == self.size.depths[stage]
        output: Tensor = self._stage(stage).downsample(grid) if ends else grid
        return output

    def _stage(self, number: int) -> Stage:
        layer = self.swin.layers[number]
        assert isinstance(layer, Stage)
        return layer


def _name(place: Place) -> str:
    """The name of a block's gate."""
    return f"{place[0]}_{place[1]}"
