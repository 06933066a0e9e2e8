"""Describes how an attacker is trained: optimiser, learning rate, epochs and memory.

The classes only describe the training. PyTorch is imported when the optimiser is built.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from bias_pipeline.attack.encoder import Head, NetEncoder, named_spec
from bias_pipeline.attack.lightning_loop import CheckpointSettings, world_size
from bias_pipeline.declared import Configurable, Count, Dropout, NotNegative, Positive, Range

if TYPE_CHECKING:
    from torch import nn, optim


class Optimizer(Configurable, ABC):
    """A description of an optimiser."""

    @property
    @abstractmethod
    def spec(self) -> Mapping[str, object]:
        """All settings that change the optimiser's steps, as plain data."""

    @abstractmethod
    def build(self, module: nn.Module) -> optim.Optimizer:
        """The optimiser of a network's weights."""


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015)."""

    lr: Positive  # learning rate
    betas: Sequence[Dropout] = (0.9, 0.999)  # decay of the means of gradients and of their squares
    eps: Positive = 1e-8  # added to the root of the latter
    weight_decay: NotNegative = 0.0  # added to gradients

    @property
    def spec(self) -> Mapping[str, object]:
        """The settings that differ from the defaults, so that keys of older results stay valid.

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
        from torch import optim

        first, second = self.betas
        return optim.Adam(module.parameters(), **{**asdict(self), "betas": (first, second)})


@dataclass(frozen=True)
class AdamW(Optimizer):
    """Adam with weight decay that is decoupled from gradients (Loshchilov and Hutter 2019)."""

    lr: Positive  # learning rate
    betas: Sequence[Dropout] = (0.9, 0.999)  # see `Adam`
    eps: Positive = 1e-8  # see `Adam`
    # Share of the learning rate by which weights shrink in each step
    weight_decay: NotNegative = 0.01
    # Parts of the names of weights that do not shrink
    undecayed: Sequence[str] = ("bias", "LayerNorm.weight")

    @property
    def spec(self) -> Mapping[str, object]:
        settings = {**asdict(self), "betas": list(self.betas), "undecayed": list(self.undecayed)}
        return {"name": "AdamW", **settings}

    def build(self, module: nn.Module) -> optim.Optimizer:
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
    """A description of how the learning rate changes during training."""

    @property
    def spec(self) -> list[object]:
        """Class and settings, as plain data."""
        return [type(self).__name__, asdict(self)]  # type: ignore[call-overload]

    @abstractmethod
    def factor(self, step: int, n_steps: int) -> float:
        """The factor of the learning rate."""


@dataclass(frozen=True)
class Warmup(Schedule):
    """The learning rate rises linearly, and then falls linearly to zero or stays constant.

    Example:
        >>> [round(Warmup(0.2).factor(step, 10), 3) for step in (0, 1, 2, 9)]
        [0.5, 1.0, 1.0, 0.125]
    """

    share: Annotated[float, Range(low=0, below=1)] = 0.1  # of all steps; the rate rises in it
    # `linear` falls to zero at the end, `constant` stays
    then: Literal["linear", "constant"] = "linear"

    def factor(self, step: int, n_steps: int) -> float:
        rising = round(self.share * n_steps)
        if step < rising:
            return (step + 1) / rising
        return 1.0 if self.then == "constant" else (n_steps - step) / max(n_steps - rising, 1)


class TrainerFlags(TypedDict, total=False):
    """The flags of Lightning that a configuration may set. No flag leaves captions out."""

    accelerator: Literal["cpu", "gpu", "cuda", "mps", "auto"]
    strategy: Literal[
        "auto",
        "ddp",
        "ddp_find_unused_parameters_false",
        "ddp_find_unused_parameters_true",
        "fsdp",
    ]
    devices: Literal["auto"] | Count | Sequence[Annotated[int, Range(low=0)]]
    num_nodes: Count
    precision: (
        Literal["32", "32-true", "64", "64-true", "16", "16-mixed", "16-true", "bf16"]
        | Literal["bf16-mixed", "bf16-true", 16, 32, 64]
        | None
    )
    max_epochs: Count
    min_epochs: Count | None
    accumulate_grad_batches: Count
    gradient_clip_val: Positive | None
    gradient_clip_algorithm: Literal["norm", "value"] | None
    deterministic: bool | None
    benchmark: bool | None
    detect_anomaly: bool
    logger: bool
    enable_checkpointing: bool
    enable_progress_bar: bool
    enable_model_summary: bool
    log_every_n_steps: Count | None


@dataclass(frozen=True)
class Recipe:
    """All settings of one training except the data."""

    encoder: NetEncoder  # the encoder's description
    head: Head  # the head's description
    optimizer: Optimizer  # moves the weights
    batch_size: int  # captions in a batch
    # Lightning's own flags, unchanged. `precision: null` uses bfloat16 matrix products if the
    # processor has them.
    trainer: Mapping[str, Any]
    schedule: Schedule | None = None  # how the learning rate changes, None if it does not
    # Pieces that each batch is cut into so that it fits the memory; gradients are added up, so
    # weights change as with the whole batch
    parts: int = 1
    may_leave_gpu: bool = True  # whether to train on the processor if the GPU's memory is too small
    stacked: bool = False  # whether attackers, even a single one, are trained as an ensemble
    # Checkpoints from which a killed training resumes, None for none
    survival: CheckpointSettings | None = None

    @property
    def spec(self) -> Mapping[str, object]:
        """All settings that change an attacker's weights, including the encoder's settings.

        The weights do not depend on how many attackers or processes share the work. But stacking
        changes the weights slightly, since the order of sums changes.
        """
        return {
            "encoder": named_spec(self.encoder),
            "head": [type(self.head).__name__, asdict(self.head)],  # type: ignore[call-overload]
            "optimizer": dict(self.optimizer.spec),
            "batch_size": self.batch_size,
            "trainer": self.trainer,
            **({"stacked": True} if self.stacked else {}),
            **({"schedule": self.schedule.spec} if self.schedule else {}),
        }


def is_shortage(error: RuntimeError) -> bool:
    """Whether PyTorch's error means that a device or the processor has no memory left."""
    return type(error).__name__ == "OutOfMemoryError" or "not enough memory" in str(error)


def free_gpu_memory() -> None:
    """Free the memory of a failed attempt, which PyTorch would otherwise keep."""
    import gc

    from torch import cuda

    gc.collect()
    cuda.empty_cache()


def with_less_memory(recipe: Recipe) -> Recipe | None:
    """The next way to train the same attacker with less memory, or None."""
    if recipe.parts < recipe.batch_size:
        return replace(recipe, parts=min(2 * recipe.parts, recipe.batch_size))
    if recipe.trainer.get("accelerator") == "cpu" or not recipe.may_leave_gpu:
        return None
    # A list of GPUs becomes a number of processes; the precision is chosen again.
    flags = {"accelerator": "cpu", "devices": world_size(recipe.trainer), "precision": None}
    return replace(recipe, parts=1, trainer={**recipe.trainer, **flags})
