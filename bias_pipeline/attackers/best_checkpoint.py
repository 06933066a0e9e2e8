"""Names of attackers' checkpoints, and the best epoch. Needs PyTorch and Lightning."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning import Callback
from torch import Tensor

from bias_pipeline.attackers.attacker import Attacker, tensors
from bias_pipeline.attackers.probe import TrainingJob
from bias_pipeline.attackers.recipe import Recipe
from bias_pipeline.encoders.base import Inputs


def name_of(version: int, recipe: Recipe, data: str, job: TrainingJob) -> str:
    """A name (hex digest) from all settings that change an attacker's weights.

    Args:
        version: of attackers.
        recipe: of this one.
        data: digest of its inputs.
        job: of the attacker.
    """
    spec = json.dumps(recipe.spec, sort_keys=True)
    sha = hashlib.sha256(f"{version} {spec} {data} {job.seed} {recipe.parts}".encode())
    for rows in (job.train, job.validation):
        sha.update(rows.astype("<i8").tobytes() + b"|")
    return sha.hexdigest()


class Best(Callback):
    """Keeps the weights of the epoch with the lowest loss on the validation part.

    Args:
        inputs: of all captions.
        rows: of the validation part.
        targets: their truth.
    """

    def __init__(self, inputs: Inputs, rows: np.ndarray[Any, Any], targets: Tensor) -> None:
        self.inputs, self.rows, self.targets = inputs, rows, targets
        self.loss = float("inf")
        self.weights: dict[str, Tensor] = {}

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Store the weights if this is the best epoch so far."""
        del trainer
        assert isinstance(pl_module, Attacker)
        loss = self._loss(pl_module)
        if loss < self.loss:
            self.loss = loss
            state = pl_module.state_dict()
            self.weights = {name: value.detach().cpu().clone() for name, value in state.items()}

    @torch.no_grad()
    def _loss(self, attacker: Attacker) -> float:
        """Mean over the validation part, without dropout."""
        attacker.eval()
        together = int(getattr(attacker.encoder, "together", len(self.rows))) or 1
        total = 0.0
        for start in range(0, len(self.rows), together):
            rows = self.rows[start : start + together]
            inputs = {n: v.to(attacker.device) for n, v in tensors(self.inputs, rows).items()}
            truth = self.targets[start : start + together].to(attacker.device)
            total += float(attacker.loss(attacker(**inputs), truth)) * len(rows)
        attacker.train()
        return total / len(self.rows)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"loss": self.loss, "weights": self.weights}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From a checkpoint."""
        self.loss, self.weights = state_dict["loss"], state_dict["weights"]

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Load the best weights."""
        del trainer
        if self.weights:
            pl_module.load_state_dict(self.weights)
