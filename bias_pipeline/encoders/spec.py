"""What every encoder and every head is: a description from which the real thing is built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from bias_pipeline.declared import Configurable

if TYPE_CHECKING:
    from torch import nn


class Encoder(Configurable, ABC):
    """What attackers see of captions."""


class NetSpec(Encoder):
    """A description of an encoder that is a network."""

    @abstractmethod
    def build(self, n_words: int) -> nn.Module:
        """A network with ``output_dim``, for a vocabulary of ``n_words``."""


class HeadSpec(Configurable, ABC):
    """A description of a head."""

    @abstractmethod
    def build(self, n_inputs: int, n_outputs: int) -> nn.Module:
        """A network, (N, n_inputs) to (N, n_outputs)."""
