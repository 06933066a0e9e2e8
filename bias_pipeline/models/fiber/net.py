"""FIBER: two sides that stand beside each other, or read each other in their last blocks.

Dou et al., Coarse-to-Fine Vision-Language Pre-training with Fusion in the Backbone (NeurIPS 2022).
Beside each other (the dual mode, trained by contrast), each side gives a vector, and their product
is how near they are: any number of pictures and texts are compared at the price of reading each
once. Reading each other (the fused mode, trained to match), a picture and a text are judged
together, which is better and costs a reading of every pair. Needs PyTorch.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from bias_pipeline.models.fiber.sizes import FiberSize
from bias_pipeline.models.fiber.text import Gate, Text
from bias_pipeline.models.swin import Stage, Swin

Place = tuple[int, int]


class Begun(NamedTuple):
    """Texts that were read as far as they are read alone.

    Attributes:
        vectors: (B, N, C).
        there: (B, N) which tokens are none of padding.
    """

    vectors: Tensor
    there: Tensor


class Pooled(nn.Module):
    """A side's vectors as one: two linear layers, the second with a tanh.

    Args:
        size: of a vector.
        joint: of what comes out.
    """

    def __init__(self, size: int, joint: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, joint)
        self.pooler = nn.Linear(joint, joint)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, C), the first token or the mean of all patches, to (B, D)."""
        found: Tensor = torch.tanh(self.pooler(self.transform(vectors)))
        return found


class Fiber(nn.Module):
    """Both sides.

    Args:
        size: of all parts.

    Example:
        >>> own = FiberSize(8, (1, 1), (1, 2), 4, 64, 8, 2, 9, 12, n_pairs=1, joint=6)
        >>> net = Fiber(own).eval()
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
        self.text = Text(size)
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
        found: Tensor = self.dual_image(grid.flatten(1, 2).mean(dim=1))
        return found

    def texts(self, tokens: Tensor) -> Tensor:
        """(B, N) numbers of tokens to (B, D) vectors of any length."""
        found: Tensor = self.dual_text(self.text(tokens)[:, 0])
        return found

    def begin_pictures(self, pixels: Tensor) -> Tensor:
        """(B, 3, H, W) to grids (B, H', W', C), as far as pictures are seen alone."""
        grid: Tensor = self.swin.patch_embed(pixels)
        for place in self.size.blocks[: -self.size.n_pairs]:
            grid = self._left(place, self._block(place)(grid))
        return grid

    def begin_texts(self, tokens: Tensor) -> Begun:
        """(B, N) to vectors, as far as texts are read alone."""
        vectors, there = self.text.embed(tokens)
        for layer in self.text.layers[: -self.size.n_pairs]:
            vectors = layer(vectors, there)
        return Begun(vectors, there)

    def match(self, grid: Tensor, texts: Begun) -> Tensor:
        """(B,) how well each picture and each text match, on a scale of logits.

        In each pair of a block and a layer either side reads the other as it was before the pair.
        The number is the output for "they match", by which the authors rank; the other is left.

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
        found: Tensor = self.matching(torch.cat(sides, dim=1))[:, 1]
        return found

    def _read(self, place: Place, grid: Tensor, vectors: Tensor, there: Tensor) -> Tensor:
        """A block, the text read beside the picture."""
        gate = self.gates[_name(place)]

        def more(seen: Tensor) -> Tensor:
            added: Tensor = gate(seen.flatten(1, 2), vectors, there)
            return added.reshape(seen.shape)

        found: Tensor = self._block(place)(grid, more)
        return found

    def _block(self, place: Place) -> nn.Module:
        stage, number = place
        return self._stage(stage).blocks[number]

    def _left(self, place: Place, grid: Tensor) -> Tensor:
        """What comes after a block: halved where a stage ends and another follows."""
        stage, number = place
        ends = number + 1 == self.size.depths[stage]
        found: Tensor = self._stage(stage).downsample(grid) if ends else grid
        return found

    def _stage(self, number: int) -> Stage:
        own = self.swin.layers[number]
        assert isinstance(own, Stage)
        return own


def _name(place: Place) -> str:
    """Of a block's gate."""
    return f"{place[0]}_{place[1]}"
