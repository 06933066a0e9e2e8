"""The text side of FIBER: RoBERTa (Liu et al. 2019), whose last layers can read a picture too.

Needs PyTorch. Vectors are (B, N, C); ``there`` (B, N) says which of N tokens are none of padding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bias_pipeline.models.fiber.sizes import PADDING, TEXT_HEAD, FiberSize


class Attention(nn.Module):
    """Attention of some vectors to others, or to themselves.

    Args:
        size: of the vectors that look.
        other: of those that are looked at.
        n_heads: attention heads.
    """

    def __init__(self, size: int, other: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(other, size)
        self.value = nn.Linear(other, size)
        self.out = nn.Linear(size, size)

    def forward(self, own: Tensor, other: Tensor, there: Tensor | None) -> Tensor:
        """(B, N, C) to the same.

        Args:
            own: who looks.
            other: (B, M, D) what is looked at.
            there: (B, M) what of it can be seen; None: all.
        """
        q = self._heads(self.query(own))
        k, v = self._heads(self.key(other)), self._heads(self.value(other))
        mask = None if there is None else there[:, None, None]
        seen = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        found: Tensor = self.out(seen.transpose(1, 2).flatten(2))
        return found

    def _heads(self, vectors: Tensor) -> Tensor:
        """(B, N, C) to (B, heads, N, C / heads)."""
        return vectors.reshape(*vectors.shape[:2], self.n_heads, -1).transpose(1, 2)


class Gate(nn.Module):
    """What one side adds to its own vectors of the other, weighed by one learned number.

    It begins with 0, so that both sides begin as they are alone (Dou et al. 2022, section 3.1).

    Args:
        size: of the vectors that look.
        other: of those that are looked at.
        n_heads: attention heads.
        normed: whether the former are normalised first, as those of pictures are.
    """

    def __init__(self, size: int, other: int, n_heads: int, *, normed: bool) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.zeros(1))
        self.norm = nn.LayerNorm(size) if normed else nn.Identity()
        self.attention = Attention(size, other, n_heads)

    def forward(self, own: Tensor, other: Tensor, there: Tensor | None) -> Tensor:
        """(B, N, C) what is added; see :class:`Attention`."""
        found: Tensor = self.strength * self.attention(self.norm(own), other, there)
        return found


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
        self.attention = Attention(size, size, n_heads)
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
            picture: (B, M, D) that is read beside the text, None to read the text alone.
            normed: whether what comes out is normalised, as all is but what is judged together
                with a picture.
        """
        seen = self.attention(vectors, vectors, there)
        if picture is not None:
            assert self.gate is not None
            seen = seen + self.gate(seen, picture, None)
        vectors = self.norm1(vectors + seen)
        found: Tensor = vectors + self.fc2(nn.functional.gelu(self.fc1(vectors)))
        return self.norm2(found) if normed else found


class Text(nn.Module):
    """Tokens as vectors.

    Args:
        size: of all parts.
    """

    def __init__(self, size: FiberSize) -> None:
        super().__init__()
        own = size.text_size
        self.words = nn.Embedding(size.n_words, own)
        self.places = nn.Embedding(size.n_places, own)
        self.kinds = nn.Embedding(1, own)  # of segments, of which there is one
        self.norm = nn.LayerNorm(own)
        plain: list[int | None] = [None] * (size.text_layers - size.n_pairs)
        pictures = [size.size << stage for stage, _ in size.fused_blocks]
        self.layers = nn.ModuleList(
            Layer(own, size.text_inner, picture) for picture in (*plain, *pictures)
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
