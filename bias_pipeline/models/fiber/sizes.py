"""The sizes of a FIBER, read from its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PATCH = 4  # pixels a side
TEXT_HEAD = 64  # numbers of an attention head, in RoBERTas of every size
PADDING = 1  # its number among tokens, in RoBERTa

Head = Literal["rank_output", "itm_score"]  # of a file, that says whether a pair matches


@dataclass(frozen=True)
class FiberSize:
    """Sizes of all parts; the defaults are those of the published network.

    Attributes:
        size: of a patch's vector in the first stage; it doubles with each stage.
        depths: blocks of each stage.
        n_heads: attention heads of each stage.
        window: side of a window in patches, which is that of the last stage's grid too.
        text_size: of a token's vector.
        text_inner: of the vectors between a layer's two linear ones.
        text_layers: of the text side.
        n_words: of its vocabulary.
        n_places: positions of a text, plus the number of the padding.
        n_pairs: number of fused blocks.
        joint: of a vector of the space of pictures and texts.
        matches: whether it judges a picture and a text together.

    Example:
        >>> FiberSize().side, FiberSize().blocks[-3:], FiberSize().fused_blocks[0]
        (384, ((2, 17), (3, 0), (3, 1)), (2, 14))
    """

    size: int = 128
    depths: tuple[int, ...] = (2, 2, 18, 2)
    n_heads: tuple[int, ...] = (4, 8, 16, 32)
    window: int = 12
    text_size: int = 768
    text_inner: int = 3072
    text_layers: int = 12
    n_words: int = 50265
    n_places: int = 514
    n_pairs: int = 6
    joint: int = 768
    matches: bool = True

    @property
    def step(self) -> int:
        """Pixels a side of a patch of the last stage."""
        return PATCH << (len(self.depths) - 1)

    @property
    def side(self) -> int:
        """Of a picture in pixels."""
        return self.window * self.step

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Stage and number of each block, in their order."""
        return tuple((stage, block) for stage, n in enumerate(self.depths) for block in range(n))

    @property
    def fused_blocks(self) -> tuple[tuple[int, int], ...]:
        """Those that read a text."""
        return self.blocks[len(self.blocks) - self.n_pairs :]
