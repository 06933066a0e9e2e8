"""Trains a captioner to write word by word. Needs PyTorch and Lightning.

A captioner that writes for a group also gets a head that guesses the group of a picture (Img2Emo).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.attack.attacker import Batch, optimization
from bias_pipeline.attack.checkpoints import Learner
from bias_pipeline.attack.recipe import Optimizer, Schedule
from bias_pipeline.pictures.captioners.backbones import BackboneInputs
from bias_pipeline.pictures.captioners.prompt import PAD
from bias_pipeline.pictures.fitting.mitigation import CAN_HIDE, HIDDEN, EqualizerWeights
from bias_pipeline.pictures.vision.net import VisionNet, learnt_weights

_EPSILON = 1e-5  # of the confident loss, as in the authors' code


class CaptionLearner(Learner):
    """Learns the next word of captions after the words before it (teacher forcing)."""

    def __init__(self, network: Any, optimizer: Optimizer, schedule: Schedule | None) -> None:
        super().__init__()
        self.network = network
        self.optimizer, self.schedule = optimizer, schedule

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        del batch_idx
        inputs = dict(batch.inputs)
        tokens = inputs.pop("tokens")
        loss = self.loss(tokens, **inputs)
        self.note(loss, len(tokens))
        return (loss + getattr(self.network, "penalty", 0.0)) * batch.weight

    def loss(self, tokens: Tensor, **picture: Tensor) -> Tensor:
        """The cross-entropy of words, averaged within each caption (B, L), then over captions.

        So the weight of a caption does not depend on its batch.
        """
        return words_loss(
            self.network.next_word_log_probs(tokens[:, :-1], **picture), tokens[:, 1:]
        )

    def configure_optimizers(self) -> OptimizerLRScheduler:
        return optimization(self, _Gentle(self.optimizer), self.schedule)


_GENTLE = 0.1  # the share of the captioner's learning rate with which a published network learns


@dataclass(frozen=True)
class _Gentle(Optimizer):
    """An optimiser that changes a published vision network's weights less than other weights."""

    optimizer: Optimizer

    @property
    def spec(self) -> Mapping[str, object]:
        return self.optimizer.spec

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        built = self.optimizer.build(module)
        networks = [part for part in module.modules() if isinstance(part, VisionNet)]
        published = {id(weight) for network in networks for weight in network.parameters()}
        for group in list(built.param_groups) if published else ():
            weights = group["params"]
            group["params"] = [one for one in weights if id(one) not in published]
            gentle = [one for one in weights if id(one) in published and one.requires_grad]
            if gentle:
                built.add_param_group({**group, "params": gentle, "lr": _GENTLE * group["lr"]})
        return built


def words_loss(log_probs: Tensor, wanted: Tensor) -> Tensor:
    """The mean cross-entropy of captions (B, L) under log-probabilities (B, L, V)."""
    present = wanted != PAD
    answer_log_probs = log_probs.gather(2, wanted[..., None]).squeeze(2) * present
    return -(answer_log_probs.sum(dim=1) / present.sum(dim=1)).mean()


class EqualizedLearner(CaptionLearner):
    """Also learns to name a group by the person and not by the scene.

    ``members`` (V, 2) is 1 if a word names a group.
    """

    members: Tensor

    def __init__(
        self,
        network: Any,
        optimizer: Optimizer,
        schedule: Schedule | None,
        weights: EqualizerWeights,
        members: Float32Array,
    ) -> None:
        super().__init__(network, optimizer, schedule)
        self.weights = weights
        self.register_buffer("members", torch.from_numpy(members), persistent=False)

    def loss(self, tokens: Tensor, **picture: Tensor) -> Tensor:
        can_hide = picture.pop(CAN_HIDE)
        hidden = {
            name.removeprefix(HIDDEN): picture.pop(name)
            for name in list(picture)
            if name.startswith(HIDDEN)
        }
        named = self.members[tokens[:, 1:]]  # (B, L, 2)
        confusion = self._confusion(tokens, named, can_hide, hidden)
        # Called last, so that the network's penalty belongs to the whole picture.
        log_probs = self.network.next_word_log_probs(tokens[:, :-1], **picture)
        by_group = self._by_group(log_probs)
        unsure = named * by_group.flip(2) / (by_group + _EPSILON)
        return (
            words_loss(log_probs, tokens[:, 1:])
            + self.weights.confusion * confusion
            + self.weights.confident * unsure.sum() / len(tokens)
        )

    def _confusion(
        self, tokens: Tensor, named: Tensor, can_hide: Tensor, hidden: dict[str, Tensor]
    ) -> Tensor:
        """How much groups' probabilities differ at words of a group when people are hidden."""
        rows = (can_hide & named.flatten(1).any(dim=1)).nonzero().squeeze(1)
        if not len(rows):
            return named.new_zeros(())
        shown = {name: item[rows] for name, item in hidden.items()}
        by_group = self._by_group(self.network.next_word_log_probs(tokens[rows, :-1], **shown))
        apart = (by_group[..., 0] - by_group[..., 1]).abs() * named[rows].sum(dim=2)
        return apart.sum() / len(tokens)

    def _by_group(self, log_probs: Tensor) -> Tensor:
        """(B, L, 2) the sum of the probabilities of each group's words."""
        return log_probs.float().exp() @ self.members


class EachEpoch(pl.Callback):
    def __init__(self, write: Callable[[int, dict[str, Tensor]], None]) -> None:
        self.write = write

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero:
            assert isinstance(pl_module, CaptionLearner)
            self.write(trainer.current_epoch + 1, dict(learnt_weights(pl_module.network)))


_TOGETHER = 256  # pictures per batch
_DECAY = 1e-3  # the penalty on squared weights of standardised features
_STEPS = 100


def fit_guess(network: Any, visual: BackboneInputs, images: IntArray, groups: IntArray) -> float:
    """Fit only the head to the mean regions of pictures, by logistic regression.

    ImageCaptioner2 takes "a pre-trained image-to-emotion classifier" and does not say which. We
    chose this head on the captioner's own vision network, which is frozen by then. Each caption has
    an image and a group; captions of one image may have different groups.
    """
    network.eval()
    rows = np.arange(int(images.max()) + 1)
    device = next(network.parameters()).device
    with torch.no_grad():
        blocks = []
        for start in range(0, len(rows), _TOGETHER):
            arrays = visual.batch(rows[start : start + _TOGETHER])
            batch = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
            blocks.append(network.means(**batch).float())
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
