"""The text side of FIBER: RoBERTa (Liu et al. 2019), whose last layers can read a picture too.

Needs PyTorch. Vectors are (B, N, C); ``there`` (B, N) marks which of N tokens are not padding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bias_pipeline.models.fiber.sizes import PADDING, TEXT_HEAD, FiberSize


class TextAttention(nn.Module):
    """Attention of some vectors to others, or to themselves.

    Args:
        size: of the querying vectors.
        other: of the attended vectors.
        n_heads: attention heads.
    """

    def __init__(self, size: int, other: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(other, size)
        self.value = nn.Linear(other, size)
        self.out = nn.Linear(size, size)

    def forward(self, vectors: Tensor, other: Tensor, there: Tensor | None) -> Tensor:
        """(B, N, C) to the same.

        Args:
            vectors: the queries.
            other: (B, M, D) the attended vectors.
            there: (B, M) which of them are visible; None: all.
        """
        q = self._heads(self.query(vectors))
        k, v = self._heads(self.key(other)), self._heads(self.value(other))
        mask = None if there is None else there[:, None, None]
        attended = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        output: Tensor = self.out(attended.transpose(1, 2).flatten(2))
        return output

    def _heads(self, vectors: Tensor) -> Tensor:
        """(B, N, C) to (B, heads, N, C / heads)."""
        return vectors.reshape(*vectors.shape[:2], self.n_heads, -1).transpose(1, 2)


class Gate(nn.Module):
    """Attention to the other side, weighted by one learned number.

    The number starts at 0, so that both sides start unfused (Dou et al. 2022, section 3.1).

    Args:
        size: of the querying vectors.
        other: of the attended vectors.
        n_heads: attention heads.
        normed: whether the querying vectors are normalised first, as pictures' are.
    """

    def __init__(self, size: int, other: int, n_heads: int, *, normed: bool) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.zeros(1))
        self.norm = nn.LayerNorm(size) if normed else nn.Identity()
        self.attention = TextAttention(size, other, n_heads)

    def forward(self, vectors: Tensor, other: Tensor, there: Tensor | None) -> Tensor:
        """(B, N, C) what is added; see :class:`TextAttention`."""
        output: Tensor = self.strength * self.attention(self.norm(vectors), other, there)
        return output


class Layer(nn.Module):
    """Attention, then two linear layers, each normalised after it.

    Args:
        size: of a vector.
        inner: of the vectors between the linear layers.
        picture: size of the vectors of pictures that it can read; None: it cannot.
    """

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
        """(B, N, C) to the same.

        Args:
            vectors: of tokens.
            there: (B, N).
            picture: (B, M, D) that the text attends to, None for the text alone.
            normed: whether the output is normalised; not when judged together with a picture.
        """
        attended = self.attention(vectors, vectors, there)
        if picture is not None:
            assert self.gate is not None
            attended = attended + self.gate(attended, picture, None)
        vectors = self.norm1(vectors + attended)
        output: Tensor = vectors + self.fc2(nn.functional.gelu(self.fc1(vectors)))
        return self.norm2(output) if normed else output


class FiberText(nn.Module):
    """Tokens as vectors.

    Args:
        size: of all parts.
    """

    def __init__(self, size: FiberSize) -> None:
        super().__init__()
        width = size.text_size
        self.words = nn.Embedding(size.n_words, width)
        self.places = nn.Embedding(size.n_places, width)
        self.kinds = nn.Embedding(1, width)  # of segments; there is one
        self.norm = nn.LayerNorm(width)
        plain: list[int | None] = [None] * (size.text_layers - size.n_pairs)
        pictures = [size.size << stage for stage, _ in size.fused_blocks]
        self.layers = nn.ModuleList(
            Layer(width, size.text_inner, picture) for picture in (*plain, *pictures)
        )

    def embed(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N) numbers of tokens to (B, N, C) vectors before any layer, and ``there``."""
        there = tokens != PADDING
        places = torch.cumsum(there, dim=1) * there + PADDING
        vectors = self.words(tokens) + self.places(places) + self.kinds.weight[0]
        return self.norm(vectors), there

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, N) to (B, N, C), the text read alone."""
        vectors, there = self.embed(tokens)
        for layer in self.layers:
            vectors = layer(vectors, there)
        return vectors
