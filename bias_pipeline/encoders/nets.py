"""The networks behind the encoders trained from scratch. Needs PyTorch.

All take ``tokens`` (N, L) int64, padded with :data:`PAD`, and ``lengths`` (N,) at least 1, and
return vectors (N, ``output_dim``).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bias_pipeline.encoders.recurrent import Recurrent
from bias_pipeline.encoders.transformer import Transformer

UNKNOWN, PAD = 0, 1
N_SPECIAL = 2


def word_vectors(n_words: int, size: int) -> nn.Embedding:
    """Random normal vectors; an unknown word is the zero vector, as is padding.

    Unknown words never stand in training captions, so their vector stays zero.
    """
    table = nn.Embedding(n_words, size, padding_idx=PAD)
    with torch.no_grad():
        table.weight[UNKNOWN] = 0
    return table


class RecurrentNet(nn.Module):
    """The final state of a recurrent network; see :class:`Recurrent`."""

    def __init__(self, spec: Recurrent, n_words: int) -> None:
        super().__init__()
        kind = {"lstm": nn.LSTM, "rnn": nn.RNN}[spec.cell]
        self.vectors = word_vectors(n_words, spec.embedding_dim)
        self.dropout = nn.Dropout(spec.dropout)
        self.rnn = kind(
            spec.embedding_dim,
            spec.hidden_dim,
            spec.n_layers,
            bidirectional=spec.bidirectional,
            dropout=spec.dropout if spec.n_layers > 1 else 0.0,
            batch_first=True,
        )
        self.n_ends = 2 if spec.bidirectional else 1
        self.output_dim = spec.hidden_dim * self.n_ends

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """See the module."""
        embedded = self.dropout(self.vectors(tokens))
        packed = nn.utils.rnn.pack_padded_sequence(
            embedded, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        _, state = self.rnn(packed)
        final = state[0] if isinstance(state, tuple) else state  # (layers * ends, N, hidden)
        last_layer = final[-self.n_ends :].transpose(0, 1).flatten(1)
        return self.dropout(last_layer)


class TransformerNet(nn.Module):
    """The mean over words of a transformer encoder; see :class:`Transformer`."""

    def __init__(self, spec: Transformer, n_words: int) -> None:
        super().__init__()
        self.vectors = word_vectors(n_words, spec.embedding_dim)
        self.dropout = nn.Dropout(spec.dropout)
        layer = nn.TransformerEncoderLayer(
            spec.embedding_dim,
            spec.n_heads,
            spec.feedforward_dim,
            dropout=spec.dropout,
            batch_first=True,
        )
        self.layers = nn.TransformerEncoder(layer, spec.n_layers, enable_nested_tensor=False)
        self.output_dim = spec.embedding_dim

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """See the module."""
        absent = torch.arange(tokens.shape[1], device=tokens.device) >= lengths[:, None]
        placed = self.vectors(tokens) + positions(tokens.shape[1], self.output_dim).to(
            self.vectors.weight
        )
        encoded = self.layers(self.dropout(placed), src_key_padding_mask=absent)
        present = (~absent)[..., None].to(encoded.dtype)
        mean = (encoded * present).sum(dim=1) / present.sum(dim=1)
        return self.dropout(mean)


def positions(length: int, size: int) -> Tensor:
    """(length, size) sines and cosines of the position (Vaswani et al. 2017, section 3.5)."""
    place = torch.arange(length)[:, None]
    rate = torch.exp(torch.arange(0, size, 2) * (-math.log(10_000.0) / size))
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], dim=2).flatten(1)
