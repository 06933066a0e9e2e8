"""FIBER, with an image side and a text side that are separate or fused in their last blocks.

Source: Dou et al., Coarse-to-Fine Vision-Language Pre-training with Fusion in the Backbone (NeurIPS
2022). In the dual mode (contrastive training) each side gives a vector, and the product of the
vectors is the similarity. Each picture and text is encoded once. In the fused mode (trained to
match) the sides attend to each other. The fused mode is more accurate but costs one pass for every
pair. The text side is RoBERTa (Liu et al. 2019), whose last layers can read a picture too. Needs
PyTorch.

Vectors are (B, N, C); ``there`` (B, N) marks which of N tokens are not padding.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from bias_pipeline.models.swin import Stage, Swin
from bias_pipeline.retrieval.fiber.folder import PADDING, TEXT_HEAD, FiberSize


class TextAttention(nn.Module):
    """Attention of vectors to other vectors, or among themselves."""

    def __init__(self, size: int, other: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(other, size)
        self.value = nn.Linear(other, size)
        self.out = nn.Linear(size, size)

    def forward(self, vectors: Tensor, other: Tensor, there: Tensor | None) -> Tensor:
        """Map (B, N, C) to the same shape; ``there`` (B, M) marks what to read of ``other``."""
        q = self._heads(self.query(vectors))
        k, v = self._heads(self.key(other)), self._heads(self.value(other))
        mask = None if there is None else there[:, None, None]
        attended = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        output: Tensor = self.out(attended.transpose(1, 2).flatten(2))
        return output

    def _heads(self, vectors: Tensor) -> Tensor:
        return vectors.reshape(*vectors.shape[:2], self.n_heads, -1).transpose(1, 2)


class Gate(nn.Module):
    """Attention to the other side, with one learned number as its weight.

    The number starts at 0, so the two sides start separate (Dou et al. 2022, section 3.1).
    """

    def __init__(self, size: int, other: int, n_heads: int, *, normed: bool) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.zeros(1))
        self.norm = nn.LayerNorm(size) if normed else nn.Identity()
        self.attention = TextAttention(size, other, n_heads)

    def forward(self, vectors: Tensor, other: Tensor, there: Tensor | None) -> Tensor:
        """(B, N, C) the vectors that are added to a side; shapes as in :class:`TextAttention`."""
        output: Tensor = self.strength * self.attention(self.norm(vectors), other, there)
        return output


class Layer(nn.Module):
    """Attention, then two linear layers; a normalisation follows each of these two steps."""

    def __init__(self, size: int, inner: int, picture: int | None) -> None:
        super().__init__()
        n_heads = size // TEXT_HEAD
        self.attention = TextAttention(size, size, n_heads)
        self.norm1 = nn.LayerNorm(size)
        self.fc1 = nn.Linear(size, inner)
        self.fc2 = nn.Linear(inner, size)
        self.norm2 = nn.LayerNorm(size)
        self.gate = None if picture is None else Gate(size, picture, n_heads, normed=False)

    def forward(
        self, vectors: Tensor, there: Tensor, picture: Tensor | None = None, *, normed: bool = True
    ) -> Tensor:
        """Map (B, N, C) to the same shape; a text may also attend to a picture (B, M, D)."""
        attended = self.attention(vectors, vectors, there)
        if picture is not None:
            assert self.gate is not None
            attended = attended + self.gate(attended, picture, None)
        vectors = self.norm1(vectors + attended)
        output: Tensor = vectors + self.fc2(nn.functional.gelu(self.fc1(vectors)))
        return self.norm2(output) if normed else output


class FiberText(nn.Module):
    """The text side, which turns tokens into vectors."""

    def __init__(self, size: FiberSize) -> None:
        super().__init__()
        width = size.text_size
        self.words = nn.Embedding(size.n_words, width)
        self.places = nn.Embedding(size.n_places, width)
        self.kinds = nn.Embedding(1, width)  # RoBERTa has only one kind of segment
        self.norm = nn.LayerNorm(width)
        plain: list[int | None] = [None] * (size.text_layers - size.n_pairs)
        pictures = [size.size << stage for stage, _ in size.fused_blocks]
        self.layers = nn.ModuleList(
            Layer(width, size.text_inner, picture) for picture in (*plain, *pictures)
        )

    def embed(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Map (B, N) token numbers to (B, N, C) vectors before any layer, and to ``there``."""
        there = tokens != PADDING
        places = torch.cumsum(there, dim=1) * there + PADDING
        vectors = self.words(tokens) + self.places(places) + self.kinds.weight[0]
        return self.norm(vectors), there

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (B, N) token numbers to (B, N, C) vectors, reading the text without a picture."""
        vectors, there = self.embed(tokens)
        for layer in self.layers:
            vectors = layer(vectors, there)
        return vectors


Place = tuple[int, int]


class EncodedTexts(NamedTuple):
    """Texts that are encoded as far as this is possible without a picture."""

    vectors: Tensor  # (B, N, C)
    there: Tensor  # (B, N) which tokens are not padding


class Pooled(nn.Module):
    """Makes one vector from a side's vectors by two linear layers, the second with a tanh."""

    def __init__(self, size: int, joint: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, joint)
        self.pooler = nn.Linear(joint, joint)

    def forward(self, vectors: Tensor) -> Tensor:
        """Map (B, C), the first token or the mean over patches, to (B, D)."""
        pooled: Tensor = torch.tanh(self.pooler(self.transform(vectors)))
        return pooled


class FiberNet(nn.Module):
    """The whole network, with the image side and the text side.

    Example:
        >>> size = FiberSize(8, (1, 1), (1, 2), 4, 64, 8, 2, 9, 12, n_pairs=1, joint=6)
        >>> net = FiberNet(size).eval()
        >>> pixels, tokens = torch.zeros(2, 3, 32, 32), torch.tensor([[0, 5, 2], [0, 2, 1]])
        >>> net.pictures(pixels).shape, net.texts(tokens).shape
        (torch.Size([2, 6]), torch.Size([2, 6]))
        >>> net.match(net.encode_pictures(pixels), net.encode_texts(tokens)).shape
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
        """Map (B, 3, H, W) normalised pictures to (B, D) vectors, which may have any length."""
        grid: Tensor = self.swin_norm(self.swin(pixels)[-1])
        vectors: Tensor = self.dual_image(grid.flatten(1, 2).mean(dim=1))
        return vectors

    def texts(self, tokens: Tensor) -> Tensor:
        """Map (B, N) token numbers to (B, D) vectors, which may have any length."""
        vectors: Tensor = self.dual_text(self.text(tokens)[:, 0])
        return vectors

    def encode_pictures(self, pixels: Tensor) -> Tensor:
        """Encode (B, 3, H, W) as grids (B, H', W', C), as far as this needs no text."""
        grid: Tensor = self.swin.patch_embed(pixels)
        for place in self.size.blocks[: -self.size.n_pairs]:
            grid = self._downsample(place, self._block(place)(grid))
        return grid

    def encode_texts(self, tokens: Tensor) -> EncodedTexts:
        """Encode texts (B, N) as vectors, as far as this needs no picture."""
        vectors, there = self.text.embed(tokens)
        for layer in self.text.layers[: -self.size.n_pairs]:
            vectors = layer(vectors, there)
        return EncodedTexts(vectors, there)

    def match(self, grid: Tensor, texts: EncodedTexts) -> Tensor:
        """(B,) logits that say how well each picture and text match.

        In each fused block, each side attends to the other side's previous state. The score is the
        output for "match", by which the authors rank.
        """
        assert self.matching is not None
        vectors, there = texts
        layers = self.text.layers[-self.size.n_pairs :]
        for place, layer in zip(self.size.fused_blocks, layers, strict=True):
            before, last = grid.flatten(1, 2), place == self.size.blocks[-1]
            grid = self._downsample(place, self._fused_block(place, grid, vectors, there))
            vectors = layer(vectors, there, before, normed=not last)
        sides = [
            self.fused_text(vectors[:, 0]),
            self.fused_image(grid.flatten(1, 2).mean(dim=1)),
        ]
        scores: Tensor = self.matching(torch.cat(sides, dim=1))[:, 1]
        return scores

    def _fused_block(self, place: Place, grid: Tensor, vectors: Tensor, there: Tensor) -> Tensor:
        """The output of a picture block that also attends to the text."""
        gate = self.gates[_name(place)]

        def attend_to_text(states: Tensor) -> Tensor:
            added: Tensor = gate(states.flatten(1, 2), vectors, there)
            return added.reshape(states.shape)

        output: Tensor = self._block(place)(grid, attend_to_text)
        return output

    def _block(self, place: Place) -> nn.Module:
        stage, number = place
        return self._stage(stage).blocks[number]

    def _downsample(self, place: Place, grid: Tensor) -> Tensor:
        """The grid after a block; between stages the grid is halved in width and height."""
        stage, number = place
        ends = number + 1 == self.size.depths[stage]
        output: Tensor = self._stage(stage).downsample(grid) if ends else grid
        return output

    def _stage(self, number: int) -> Stage:
        layer = self.swin.layers[number]
        assert isinstance(layer, Stage)
        return layer


def _name(place: Place) -> str:
    return f"{place[0]}_{place[1]}"
