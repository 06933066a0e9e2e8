"""Defines the networks of encoders. Needs PyTorch, and transformers for published models.

Networks that are trained from scratch take ``tokens`` (N, L) int64, padded with :data:`PAD`, and
``lengths`` (N,), which are at least 1. All networks return vectors (N, ``output_dim``).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bias_pipeline.attack.encoder import PAD, UNKNOWN
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.models.sentences import How, network_of, pool_tokens, vector_size


def random_word_vectors(n_words: int, size: int) -> nn.Embedding:
    """Random normal vectors for words. Unknown words and padding have the zero vector.

    Unknown words never occur in training captions, so their vector stays zero.
    """
    table = nn.Embedding(n_words, size, padding_idx=PAD)
    with torch.no_grad():
        table.weight[UNKNOWN] = 0
    return table


class RecurrentNet(nn.Module):
    """The final state of a recurrent network."""

    def __init__(
        self,
        n_words: int,
        *,
        cell: str,
        embedding_dim: int,
        hidden_dim: int,
        n_layers: int,
        bidirectional: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        kind = {"lstm": nn.LSTM, "rnn": nn.RNN}[cell]
        self.vectors = random_word_vectors(n_words, embedding_dim)
        self.dropout = nn.Dropout(dropout)
        self.rnn = kind(
            embedding_dim,
            hidden_dim,
            n_layers,
            bidirectional=bidirectional,
            dropout=dropout if n_layers > 1 else 0.0,
            batch_first=True,
        )
        self.n_ends = 2 if bidirectional else 1
        self.output_dim = hidden_dim * self.n_ends

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        embedded = self.dropout(self.vectors(tokens))
        if self.rnn.num_layers == self.n_ends == 1:  # no later word reaches a word's state
            states, _ = self.rnn(embedded)  # (N, L, hidden)
            rows = torch.arange(len(lengths), device=lengths.device)
            return self.dropout(states[rows, lengths - 1])
        packed = nn.utils.rnn.pack_padded_sequence(
            embedded, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        _, state = self.rnn(packed)
        final = state[0] if isinstance(state, tuple) else state  # (layers * ends, N, hidden)
        last_layer = final[-self.n_ends :].transpose(0, 1).flatten(1)
        return self.dropout(last_layer)


class GivenNet(nn.Module):
    """Returns (N, D) vectors unchanged, for heads on a frozen encoder."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.output_dim = size

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation. A batch of one row has no spread, so it uses running statistics."""

    def forward(self, input: Tensor) -> Tensor:
        if self.training and len(input) == 1:
            return nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(input)


class TransformerNet(nn.Module):
    """A transformer encoder whose output is the mean over words."""

    def __init__(
        self,
        n_words: int,
        *,
        n_heads: int,
        embedding_dim: int,
        feedforward_dim: int,
        n_layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.vectors = random_word_vectors(n_words, embedding_dim)
        self.dropout = nn.Dropout(dropout)
        layer = nn.TransformerEncoderLayer(
            embedding_dim, n_heads, feedforward_dim, dropout=dropout, batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.output_dim = embedding_dim

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        absent = torch.arange(tokens.shape[1], device=tokens.device) >= lengths[:, None]
        placed = self.vectors(tokens) + positions(tokens.shape[1], self.output_dim).to(
            self.vectors.weight
        )
        encoded = self.layers(self.dropout(placed), src_key_padding_mask=absent)
        present = (~absent)[..., None].to(encoded.dtype)
        mean = (encoded * present).sum(dim=1) / present.sum(dim=1)
        return self.dropout(mean)


def positions(length: int, size: int) -> Tensor:
    """(length, size): sines and cosines of the position (Vaswani et al. 2017, section 3.5)."""
    place = torch.arange(length)[:, None]
    rate = torch.exp(torch.arange(0, size, 2) * (-math.log(10_000.0) / size))
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], dim=2).flatten(1)


class LanguageNet(nn.Module):
    """A network with published weights, in training mode, which reads the tokens of texts."""

    together = 256  # texts at once when it predicts

    def __init__(self, model: Pretrained, how: How) -> None:
        super().__init__()
        self.network = network_of(model, torch.device("cpu")).train()
        self.how = how
        self.output_dim = vector_size(self.network.config)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(N, D): the vectors of texts, computed from padded (N, L) tokens and (N,) lengths."""
        inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        hidden = self.network(input_ids=tokens, attention_mask=inside.long()).last_hidden_state
        return pool_tokens(hidden, self.how, lengths)
