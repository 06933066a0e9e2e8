"""A published language model as a network to train on. Needs PyTorch and transformers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.models.sentences import How, network_of, pool_tokens


class LanguageNet(nn.Module):
    """Tokens to one vector a text, in training mode, with the published weights.

    Args:
        model: the model.
        how: see :class:`~bias_pipeline.models.sentences.Pooling`.
    """

    together = 256  # texts at once when it predicts

    def __init__(self, model: Pretrained, how: How) -> None:
        super().__init__()
        self.network = network_of(model, torch.device("cpu")).train()
        self.how = how
        self.output_dim = int(self.network.config.hidden_size)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(N, D) of tokens (N, L), padded, and lengths (N,)."""
        inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        hidden = self.network(input_ids=tokens, attention_mask=inside.long()).last_hidden_state
        return pool_tokens(hidden, self.how, lengths)
