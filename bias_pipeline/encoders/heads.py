"""``head=linear|mlp3|lic_bert``: from an encoder's vector to one number per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from bias_pipeline.declared import Count, Dropout
from bias_pipeline.encoders.base import Head

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Mlp(Head):
    """Linear layers with ReLU between them; without hidden ones, a single linear layer."""

    hidden_dims: Sequence[Count] = ()  # sizes of the hidden layers
    dropout: Dropout = 0.0  # on the output of each hidden layer, in [0, 1)

    def build(self, n_inputs: int, n_outputs: int) -> nn.Sequential:
        """A network with fresh weights, (N, n_inputs) to (N, n_outputs)."""
        from torch import nn

        sizes = [n_inputs, *self.hidden_dims]
        layers: list[nn.Module] = []
        for wide, narrow in pairwise(sizes):
            layers += [nn.Linear(wide, narrow), nn.ReLU(), nn.Dropout(self.dropout)]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], n_outputs))


@dataclass(frozen=True)
class LicBert(Head):
    """The head of LIC's BERT attacker: batch normalisation, a hidden layer, one logit a group."""

    hidden_dim: Count = 256  # size of the hidden layer

    def n_outputs(self, n_classes: int, *, exclusive: bool) -> int:
        """One number a group, two groups included."""
        del exclusive
        return n_classes

    def build(self, n_inputs: int, n_outputs: int) -> nn.Sequential:
        """A network with fresh weights, (N, n_inputs) to (N, n_outputs)."""
        from torch import nn

        from bias_pipeline.encoders.nets import BatchNorm

        return nn.Sequential(
            BatchNorm(n_inputs),
            nn.Linear(n_inputs, self.hidden_dim),
            BatchNorm(self.hidden_dim),
            nn.LeakyReLU(),
            nn.Linear(self.hidden_dim, n_outputs),
        )
