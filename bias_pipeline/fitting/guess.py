"""The head by which a grounded captioner guesses a picture's group (Img2Emo). Needs PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bias_pipeline.array_types import IntArray
from bias_pipeline.captioners.backbones import BackboneInputs

_TOGETHER = 256  # pictures
_DECAY = 1e-3  # of the squared weights of standardised features
_STEPS = 100


def fit_guess(network: Any, visual: BackboneInputs, images: IntArray, groups: IntArray) -> float:
    """Fit the head to the mean regions of pictures, by logistic regression; nothing else changes.

    ImageCaptioner2 takes "a pre-trained image-to-emotion classifier" and does not say which; this
    head on the captioner's own vision network, then frozen, is ours.

    Args:
        network: a grounded :class:`~bias_pipeline.captioners.sat_net.SatNet`, already trained.
        visual: the pictures.
        images: (N,) the picture of each caption.
        groups: (N,) the group of each caption; captions of a picture may differ.

    Returns:
        The share of captions whose group is guessed right, of those it was fitted to.
    """
    network.eval()
    rows = np.arange(int(images.max()) + 1)
    device = next(network.parameters()).device
    with torch.no_grad():
        blocks = [
            network.means(**_batch(visual, rows[start : start + _TOGETHER], device)).float()
            for start in range(0, len(rows), _TOGETHER)
        ]
    features = torch.cat(blocks)[torch.from_numpy(images).to(device)]  # (N, D)
    labels = torch.from_numpy(groups).to(device)
    mean, spread = features.mean(dim=0), features.std(dim=0).clamp(min=1e-6)
    head = nn.Linear(features.shape[1], network.guess.out_features).to(device)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    standard = (features - mean) / spread
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=_STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        penalty = _DECAY * (head.weight**2).sum()
        value: Tensor = nn.functional.cross_entropy(head(standard), labels) + penalty
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        network.guess.weight.copy_(head.weight / spread)
        network.guess.bias.copy_(head.bias - (head.weight / spread) @ mean)
        right: Tensor = (network.guess(features).argmax(dim=1) == labels).float()
    return float(right.mean())


def _batch(visual: BackboneInputs, rows: IntArray, device: torch.device) -> dict[str, Tensor]:
    arrays = visual.batch(rows)
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
