"""``encoder=lstm|bilstm|rnn|birnn|transformer1|transformer5``: networks trained from scratch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bias_pipeline.declared import Count, Dropout
from bias_pipeline.encoders.words import WordEncoder, WordInputs
from bias_pipeline.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from bias_pipeline.encoders.nets import RecurrentNet, TransformerNet

CELLS = ("lstm", "rnn")


@dataclass(frozen=True)
class Recurrent(WordEncoder):
    """A description of a recurrent encoder; :meth:`build` makes the network, with PyTorch."""

    cell: str = "lstm"  # `lstm` or `rnn` (Elman)
    embedding_dim: Count = 100  # size of a word's vector
    hidden_dim: Count = 256  # size of the state, in each direction
    n_layers: Count = 1  # stacked layers
    bidirectional: bool = False  # read both ways; the output joins both final states
    dropout: Dropout = 0.5  # on embeddings, between layers and on the output, in [0, 1)

    def __post_init__(self) -> None:
        """Check the cell.

        Raises:
            UsageError: if it is unknown.
        """
        if self.cell not in CELLS:
            raise UsageError(f"encoder.cell: {self.cell!r}; {did_you_mean(self.cell, CELLS)}")

    def build(self, inputs: WordInputs) -> RecurrentNet:
        """A network with fresh weights for the words of ``inputs``."""
        from bias_pipeline.encoders.nets import RecurrentNet

        return RecurrentNet(inputs.size, **asdict(self))


@dataclass(frozen=True)
class Transformer(WordEncoder):
    """A description of a transformer encoder; :meth:`build` makes the network, with PyTorch.

    The output is the mean over words.
    """

    n_heads: Count = 1  # attention heads; divides `embedding_dim`
    embedding_dim: Count = 100  # size of a word's vector, even
    feedforward_dim: Count = 256  # size of the inner layer
    n_layers: Count = 1  # stacked layers
    dropout: Dropout = 0.5  # in [0, 1)

    def __post_init__(self) -> None:
        """Check the sizes.

        Raises:
            UsageError: if the heads do not divide the vectors or these cannot hold positions.
        """
        if self.embedding_dim % self.n_heads or self.embedding_dim % 2:
            raise UsageError(
                f"encoder: embedding_dim={self.embedding_dim} must be even and a multiple of "
                f"n_heads={self.n_heads}"
            )

    def build(self, inputs: WordInputs) -> TransformerNet:
        """A network with fresh weights for the words of ``inputs``."""
        from bias_pipeline.encoders.nets import TransformerNet

        return TransformerNet(inputs.size, **asdict(self))
