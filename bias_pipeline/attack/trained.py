"""Encoders trained from scratch (``encoder=lstm|bilstm|rnn|birnn|transformer1|transformer5``).

Heads (``head=linear|mlp3|lic_bert``) turn the vector of an encoder into one number per class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from bias_pipeline.attack.encoder import Head, WordEncoder, WordInputs
from bias_pipeline.declared import Count, Dropout
from bias_pipeline.errors import UsageError

if TYPE_CHECKING:
    from torch import nn

    from bias_pipeline.attack.nets import RecurrentNet, TransformerNet


@dataclass(frozen=True)
class Recurrent(WordEncoder):
    """A description of a recurrent encoder. :meth:`build` makes the network with PyTorch."""

    cell: Literal["lstm", "rnn"] = "lstm"  # `rnn`: Elman's
    embedding_dim: Count = 100  # size of a word's vector
    hidden_dim: Count = 256  # size of the state, in each direction
    n_layers: Count = 1  # stacked layers
    bidirectional: bool = False  # read both ways; the output joins both final states
    dropout: Dropout = 0.5  # on embeddings, between layers and on the output, in [0, 1)

    def build(self, inputs: WordInputs) -> RecurrentNet:
        """A network with new weights for the words of ``inputs``."""
        from bias_pipeline.attack.nets import RecurrentNet

        return RecurrentNet(inputs.size, **asdict(self))


@dataclass(frozen=True)
class Transformer(WordEncoder):
    """A description of a transformer encoder. :meth:`build` makes the network with PyTorch.

    The output is the mean over words.
    """

    n_heads: Count = 1  # attention heads; divides `embedding_dim`
    embedding_dim: Count = 100  # size of a word's vector, even
    feedforward_dim: Count = 256  # size of the inner layer
    n_layers: Count = 1  # stacked layers
    dropout: Dropout = 0.5  # in [0, 1)

    def __post_init__(self) -> None:
        if self.embedding_dim % self.n_heads or self.embedding_dim % 2:
            raise UsageError(
                f"encoder: embedding_dim={self.embedding_dim} must be even and a multiple of "
                f"n_heads={self.n_heads}"
            )

    def build(self, inputs: WordInputs) -> TransformerNet:
        """A network with new weights for the words of ``inputs``."""
        from bias_pipeline.attack.nets import TransformerNet

        return TransformerNet(inputs.size, **asdict(self))


@dataclass(frozen=True)
class Mlp(Head):
    """Linear layers with ReLU between them. Without hidden layers there is one linear layer."""

    hidden_dims: Sequence[Count] = ()  # sizes of the hidden layers
    dropout: Dropout = 0.0  # on the output of each hidden layer, in [0, 1)

    def build(self, n_inputs: int, n_outputs: int) -> nn.Sequential:
        from torch import nn

        sizes = [n_inputs, *self.hidden_dims]
        layers: list[nn.Module] = []
        for wide, narrow in pairwise(sizes):
            layers += [nn.Linear(wide, narrow), nn.ReLU(), nn.Dropout(self.dropout)]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], n_outputs))


@dataclass(frozen=True)
class LicBert(Head):
    """The head of LIC's BERT attacker: batch normalisation, a hidden layer, one logit per group."""

    hidden_dim: Count = 256  # size of the hidden layer

    def n_outputs(self, n_classes: int, *, exclusive: bool) -> int:
        """One output per group, even for two groups."""
        del exclusive
        return n_classes

    def build(self, n_inputs: int, n_outputs: int) -> nn.Sequential:
        from torch import nn

        from bias_pipeline.attack.nets import BatchNorm

        return nn.Sequential(
            BatchNorm(n_inputs),
            nn.Linear(n_inputs, self.hidden_dim),
            BatchNorm(self.hidden_dim),
            nn.LeakyReLU(),
            nn.Linear(self.hidden_dim, n_outputs),
        )
