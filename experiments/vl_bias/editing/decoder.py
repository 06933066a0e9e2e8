"""A small generator of people as `scenes` draws them: a decoder of vectors, and their encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bias_pipeline.array_types import Float32Array

SIDE = 64  # pixels
LATENT = 48  # numbers a picture
_BATCH, _RATE, _EPOCHS = 64, 2e-3, 20
_NOISE = 0.1  # of latents while it is fitted, so that pictures change gradually with them


class PeopleDecoder(nn.Module):
    """Pictures (N, 3, 64, 64) of values in [-1, 1] from latents (N, 48), and back.

    Latents of the pictures that it is fitted to have mean 0 and variance 1 in every dimension.
    """

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(),
            nn.Linear(3 * SIDE * SIDE, 256),
            nn.ReLU(),
            nn.Linear(256, LATENT),
            nn.BatchNorm1d(LATENT, affine=False),
        )
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, 64 * 8 * 8),
            nn.ReLU(),
            nn.Unflatten(1, (64, 8, 8)),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(64, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, padding=1),
            nn.PixelShuffle(4),
            nn.Tanh(),
        )

    def forward(self, latents: Tensor) -> Tensor:
        """The pictures of latents."""
        pictures: Tensor = self.decoder(latents)
        return pictures

    def latents(self, pictures: Float32Array) -> Float32Array:
        """(N, 48) the latents of pictures."""
        with torch.inference_mode():
            latents: Float32Array = self.encoder(torch.from_numpy(pictures)).numpy()
        return latents


def fit_decoder(pictures: Float32Array, file: Path, epochs: int = _EPOCHS) -> PeopleDecoder:
    """The decoder of a file; if it is absent, one is fitted to pictures (mean absolute error).

    Args:
        pictures: (N, 3, 64, 64), values in [-1, 1].
        file: where its weights are kept.
        epochs: passes over the pictures.
    """
    torch.manual_seed(0)
    net = PeopleDecoder()
    if file.exists():
        net.load_state_dict(load_file(file))
        return net.eval()
    steps = epochs * (len(pictures) // _BATCH)
    optimizer = torch.optim.Adam(net.parameters(), _RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
    random = np.random.default_rng(0)
    for _ in range(epochs):
        order = random.permutation(len(pictures))
        for start in range(0, len(order) - _BATCH + 1, _BATCH):
            batch = torch.from_numpy(pictures[order[start : start + _BATCH]])
            latents = net.encoder(batch)
            loss = (net(latents + _NOISE * torch.randn_like(latents)) - batch).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(net.state_dict(), file)
    return net.eval()
