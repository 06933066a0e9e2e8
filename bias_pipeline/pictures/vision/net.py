"""A published vision network as a part of a captioner. Needs PyTorch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Self

import torch
from torch import Tensor, nn

from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.models.pretrained import first_line

Regions = tuple[Tensor, Tensor]


class VisionNet(nn.Module, ABC):
    """Turns pixels into regions.

    While a captioner is fitted, the network's statistics and dropout stay in evaluation mode.
    Otherwise the few pictures of a batch would spoil what a million pictures taught the network.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        name: str,
        side: int,
        mean: Sequence[float],
        std: Sequence[float],
    ) -> None:
        super().__init__()
        self.network = network.requires_grad_(False).eval()
        self.name, self.side = name, side
        for part, channels in (("mean", mean), ("std", std)):
            self.register_buffer(part, torch.tensor(channels)[:, None, None], persistent=False)
        try:
            with torch.no_grad():
                regions = self(self._blank)
        except Exception as error:  # whatever the library raises on sizes that do not fit
            raise DataError(f"{self.name}: cannot see a picture ({first_line(error)})") from error
        self.size = int(regions.shape[2])  # size of a region's vector

    @property
    def _blank(self) -> Tensor:
        return torch.zeros((1, 3, self.side, self.side), dtype=torch.uint8)

    @abstractmethod
    def regions_of(self, pictures: Tensor) -> Tensor:
        """Map standardised (B, 3, S, S) to (B, R, D), without tokens that have no place."""

    def forward(self, pixels: Tensor) -> Tensor:
        return self.regions_of((pixels.float() / 255 - self.mean) / self.std)

    def train(self, mode: bool = True) -> Self:
        del mode
        return super().train(False)

    def tune(self, n_blocks: int) -> None:
        if not n_blocks:
            return
        firsts = [w for block in blocks_of(self.network) for w in islice(block.parameters(), 1)]
        if n_blocks > len(firsts):
            raise UsageError(
                f"fit.tune_backbone={n_blocks}: {self.name} has {len(firsts)} blocks; give at "
                "most this number"
            )
        weights = list(self.network.parameters())
        begin = next(n for n, weight in enumerate(weights) if weight is firsts[-n_blocks])
        for weight in weights[begin:]:
            weight.requires_grad_(weight.is_floating_point())
        self(self._blank).sum().backward()
        for weight in weights[begin:]:  # weights of a classifying head play no part
            weight.requires_grad_(weight.grad is not None)
            weight.grad = None


class TimmNet(VisionNet):
    """A network of timm; its regions are its last grid, in either layout, or its tokens."""

    def regions_of(self, pictures: Tensor) -> Tensor:
        features: Tensor = self.network.forward_features(pictures)  # type: ignore[operator]
        if features.ndim == 3:
            return features[:, int(getattr(self.network, "num_prefix_tokens", 0) or 0) :]
        if getattr(self.network, "output_fmt", "NCHW") == "NHWC":
            return features.flatten(1, 2)
        return features.flatten(2).transpose(1, 2)


class HfNet(VisionNet):
    """A network of transformers; its regions are its last states, without tokens of no place.

    Tokens of no place come first. The places are the last states, and their number is the largest
    possible square.
    """

    def regions_of(self, pictures: Tensor) -> Tensor:
        states: Tensor = self.network(pixel_values=pictures).last_hidden_state
        if states.ndim == 4:
            return states.flatten(2).transpose(1, 2)
        return states[:, states.shape[1] - math.isqrt(states.shape[1]) ** 2 :]


def blocks_of(network: nn.Module) -> Iterator[nn.Module]:
    """The members of a network's outermost lists of layers, in their order."""
    for child in network.children():
        if isinstance(child, nn.ModuleList | nn.Sequential):
            yield from child
        else:
            yield from blocks_of(child)


class Sight(nn.Module):
    """Regions of a published network: stored regions, or pixels that the network sees."""

    network: VisionNet | None

    def __init__(self, size: int) -> None:
        super().__init__()
        self.output_dim = size
        self.register_module("network", None)

    def forward(self, regions: Tensor | None = None, pixels: Tensor | None = None) -> Regions:
        """Map stored regions (B, R, D) of any precision, or pixels (B, 3, S, S), to regions."""
        if regions is None:
            assert self.network is not None
            assert pixels is not None
            regions = self.network(pixels)
        present = torch.ones(regions.shape[:2], dtype=torch.bool, device=regions.device)
        return regions.float(), present


def attach(captioner: nn.Module, network: VisionNet) -> None:
    """Attach a published network to a captioner, so that the captioner sees pixels with it."""
    next(part for part in captioner.modules() if isinstance(part, Sight)).network = network


def learnt_weights(captioner: nn.Module) -> Mapping[str, Tensor]:
    """A captioner's weights, without weights of a published network that did not learn."""
    weights = dict(captioner.state_dict())
    for place, part in captioner.named_modules():
        if isinstance(part, VisionNet):
            learn = {name for name, weight in part.named_parameters() if weight.requires_grad}
            for name in set(part.state_dict()) - learn:
                del weights[f"{place}.{name}"]
    return weights
