"""Small networks of captioners: backbones, networks for answers, low-rank tuning. Needs PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bias_pipeline.models.picture_text import PictureText, Question

Regions = tuple[Tensor, Tensor]


class Convolutions(nn.Module):
    """Layers of 3 x 3 convolutions; each layer halves the picture, down to the grid's size."""

    def __init__(self, side: int, width: int, grid: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        n_inputs, n_outputs = 3, width
        while side > grid:
            layers += [
                nn.Conv2d(n_inputs, n_outputs, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(n_outputs),
                nn.ReLU(),
            ]
            n_inputs, n_outputs = n_outputs, min(2 * n_outputs, 4 * width)
            side = -(-side // 2)
        self.layers = nn.Sequential(*layers)
        self.output_dim = n_inputs

    def forward(self, pixels: Tensor) -> Regions:
        features = self.layers(pixels.float() / 127.5 - 1)
        regions = features.flatten(2).transpose(1, 2)
        return regions, torch.ones(regions.shape[:2], dtype=torch.bool, device=regions.device)


class ListedObjects(nn.Module):
    """A vector for each kind of object, and a vector for pictures without objects."""

    def __init__(self, n_kinds: int, size: int, nothing: int) -> None:
        super().__init__()
        self.nothing = nothing
        self.vectors = nn.Embedding(n_kinds, size)
        self.output_dim = size

    def forward(self, objects: Tensor) -> Regions:
        present = objects != self.nothing
        present[:, 0] = True  # an empty list's "nothing" counts as present
        return self.vectors(objects), present


class PlacedObjects(nn.Module):
    """The vector of an object's kind plus the vector of its place, for each object."""

    def __init__(self, n_kinds: int, n_numbers: int, size: int, nothing: int) -> None:
        super().__init__()
        self.listed = ListedObjects(n_kinds, size, nothing)
        self.placed = nn.Sequential(nn.Linear(n_numbers, size), nn.ReLU(), nn.Linear(size, size))
        self.output_dim = size

    def forward(self, objects: Tensor, places: Tensor) -> Regions:
        vectors, present = self.listed(objects)
        return vectors + self.placed(places), present


class AnswersNet(nn.Module):
    """Returns scores of answers that a softmax turns into the answers' probabilities."""

    def __init__(self, *, renormalise: bool) -> None:
        super().__init__()
        self.renormalise = renormalise

    def forward(self, log_probs: Tensor) -> Tensor:
        """Map (B, K) log-probabilities to (B, K), or to (B, K + 1) with all other words last."""
        if self.renormalise:
            return log_probs
        named = log_probs.float()
        rest = -torch.expm1(torch.logsumexp(named, dim=1, keepdim=True).clamp(max=-1e-6))
        return torch.cat([named, rest.log()], dim=1)


class TunedNet(nn.Module):
    """A model of transformers with low-rank matrices added to its linear layers."""

    def __init__(
        self,
        model: PictureText,
        questions: Sequence[Question],
        rank: int,
        alpha: int,
        dropout: float,
    ) -> None:
        import peft

        super().__init__()
        config = peft.LoraConfig(
            r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules="all-linear"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # between peft and transformers
            self.network = model.network = peft.get_peft_model(model.network, config)
        self.output_dim = len(questions[0].follows)
        self._model, self._questions = model, questions

    def forward(self, rows: Tensor) -> Tensor:
        requests = [self._model.read(self._questions[row]) for row in rows.tolist()]
        return self._model.answer_log_probs(requests)


def init_he(network: nn.Module) -> None:
    """Draw weights by the method of He et al. (2015) for layers with ReLU, and set biases to 0.

    Layers that start at zero on purpose are not changed.
    """
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d) and module.weight.any():
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
