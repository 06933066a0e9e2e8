"""Initial weights of networks. Needs PyTorch."""

from __future__ import annotations

from torch import nn


def begin_as_he(network: nn.Module) -> None:
    """Weights as He et al. (2015) draw them for layers with ReLU; biases zero.

    Layers that start at zero on purpose stay as they are.
    """
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d) and module.weight.any():
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
