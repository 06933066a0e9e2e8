"""From the log-probabilities of answers to an attacker's outputs. Needs PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AnswersNet(nn.Module):
    """Returns the answers so that a softmax gives their probabilities.

    Args:
        renormalise: see :class:`~bias_pipeline.captioners.prompted.Answers`.
    """

    def __init__(self, *, renormalise: bool) -> None:
        super().__init__()
        self.renormalise = renormalise

    def forward(self, likely: Tensor) -> Tensor:
        """(B, K) logarithms of probabilities to (B, K), or (B, K + 1) with all other words."""
        if self.renormalise:
            return likely
        named = likely.float()
        rest = -torch.expm1(torch.logsumexp(named, dim=1, keepdim=True).clamp(max=-1e-6))
        return torch.cat([named, rest.log()], dim=1)
