"""Optimisers and schedules of attackers: ``probe.optimizer`` and ``probe.schedule``.

These are descriptions; PyTorch is imported when they build the optimiser.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from bias_pipeline.declared import Configurable, Dropout, NotNegative, Positive, Range

if TYPE_CHECKING:
    from torch import nn, optim


class Optimizer(Configurable, ABC):
    """A description of an optimiser."""

    @property
    @abstractmethod
    def spec(self) -> Mapping[str, object]:
        """All settings that change its steps, as plain data."""

    @abstractmethod
    def build(self, module: nn.Module) -> optim.Optimizer:
        """The optimiser of a network's weights."""


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015).

    Attributes:
        lr: learning rate.
        betas: decay of the means of gradients and of their squares.
        eps: added to the root of the latter.
        weight_decay: added to gradients.
        amsgrad: whether the largest mean of squares counts.
    """

    lr: Positive
    betas: Sequence[Dropout] = (0.9, 0.999)
    eps: Positive = 1e-8
    weight_decay: NotNegative = 0.0
    amsgrad: bool = False

    @property
    def spec(self) -> Mapping[str, object]:
        """Settings that differ from the defaults, so that old keys of Adam stay valid.

        Example:
            >>> Adam(0.003).spec
            {'lr': 0.003}
        """
        usual = asdict(Adam(self.lr))
        settings = {**asdict(self), "betas": tuple(self.betas)}
        return {
            "lr": self.lr,
            **{key: settings[key] for key in settings if settings[key] != usual[key]},
        }

    def build(self, module: nn.Module) -> optim.Optimizer:
        """See the base."""
        from torch import optim

        first, second = self.betas
        return optim.Adam(module.parameters(), **{**asdict(self), "betas": (first, second)})


@dataclass(frozen=True)
class AdamW(Optimizer):
    """Adam with weight decay apart from gradients (Loshchilov and Hutter 2019).

    Attributes:
        lr: learning rate.
        betas: see :class:`Adam`.
        eps: see :class:`Adam`.
        weight_decay: share of the learning rate by which weights shrink in each step.
        undecayed: parts of the names of weights that do not shrink.
    """

    lr: Positive
    betas: Sequence[Dropout] = (0.9, 0.999)
    eps: Positive = 1e-8
    weight_decay: NotNegative = 0.01
    undecayed: Sequence[str] = ("bias", "LayerNorm.weight")

    @property
    def spec(self) -> Mapping[str, object]:
        """All settings."""
        settings = {**asdict(self), "betas": list(self.betas), "undecayed": list(self.undecayed)}
        return {"name": "AdamW", **settings}

    def build(self, module: nn.Module) -> optim.Optimizer:
        """See the base."""
        from torch import optim

        decayed: list[nn.Parameter] = []
        spared: list[nn.Parameter] = []
        for name, weight in module.named_parameters():
            undecayed = any(part in name for part in self.undecayed)
            (spared if undecayed else decayed).append(weight)
        groups = [
            {"params": decayed, "weight_decay": self.weight_decay},
            {"params": spared, "weight_decay": 0.0},
        ]
        first, second = self.betas
        return optim.AdamW(groups, lr=self.lr, betas=(first, second), eps=self.eps)


class Schedule(Configurable, ABC):
    """A description of how the learning rate changes."""

    @property
    def spec(self) -> list[object]:
        """Class and settings, as plain data."""
        return [type(self).__name__, asdict(self)]  # type: ignore[call-overload]

    @abstractmethod
    def factor(self, step: int, n_steps: int) -> float:
        """The factor of the learning rate.

        Args:
            step: from 0.
            n_steps: of the whole training.
        """


@dataclass(frozen=True)
class Warmup(Schedule):
    """The learning rate rises evenly, then falls evenly to zero or stays.

    Attributes:
        share: of all steps, in which it rises.
        then: ``linear`` falls to zero at the end, ``constant`` stays.

    Example:
        >>> [round(Warmup(0.2).factor(step, 10), 3) for step in (0, 1, 2, 9)]
        [0.5, 1.0, 1.0, 0.125]
    """

    share: Annotated[float, Range(low=0, below=1)] = 0.1
    then: Literal["linear", "constant"] = "linear"

    def factor(self, step: int, n_steps: int) -> float:
        """See the base."""
        rising = round(self.share * n_steps)
        if step < rising:
            return (step + 1) / rising
        return 1.0 if self.then == "constant" else (n_steps - step) / max(n_steps - rising, 1)
