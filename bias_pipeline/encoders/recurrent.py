"""``encoder=lstm|bilstm|rnn|birnn``: recurrent networks trained from scratch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bias_pipeline.declared import Count, Dropout
from bias_pipeline.encoders.words import WordEncoder, WordInputs
from bias_pipeline.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from bias_pipeline.encoders.nets import RecurrentNet

CELLS = ("lstm", "rnn")


@dataclass(frozen=True)
class Recurrent(WordEncoder):
    """A description of a recurrent encoder; :meth:`build` makes the network, with PyTorch.

    Attributes:
        cell: ``lstm`` or ``rnn`` (Elman).
        embedding_dim: size of a word's vector.
        hidden_dim: size of the state, in each direction.
        n_layers: stacked layers.
        bidirectional: read both ways; the output joins both final states.
        dropout: on embeddings, between layers and on the output, in [0, 1).
    """

    cell: str = "lstm"
    embedding_dim: Count = 100
    hidden_dim: Count = 256
    n_layers: Count = 1
    bidirectional: bool = False
    dropout: Dropout = 0.5

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
