"""How an attacker is trained, and how the same one is trained with less memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from bias_pipeline.attackers.team import world_size

if TYPE_CHECKING:
    from torch import nn


class NetSpec(Protocol):
    """A description from which an encoder is built."""

    def build(self, n_words: int) -> nn.Module:
        """A network with ``output_dim``."""


class HeadSpec(Protocol):
    """A description from which a head is built."""

    def build(self, n_inputs: int, n_outputs: int) -> nn.Module:
        """A network."""


@dataclass(frozen=True)
class Recipe:
    """Everything one training needs besides its data.

    Attributes:
        encoder: the encoder's description.
        head: the head's description.
        optimizer: settings of Adam (``lr``, ``weight_decay``, ...).
        batch_size: captions in a batch.
        trainer: Lightning's own flags, unchanged. ``precision: null`` takes bfloat16 matrix
            products where the processor has them.
        parts: pieces that each batch is cut into so that it fits the memory; gradients are added
            up, so weights change as they would with the whole batch.
        may_leave_gpu: whether to train on the processor when the GPU's memory does not do.
        stacked: whether attackers, even a single one, are trained as an ensemble.
    """

    encoder: NetSpec
    head: HeadSpec
    optimizer: Mapping[str, float]
    batch_size: int
    trainer: Mapping[str, Any]
    parts: int = 1
    may_leave_gpu: bool = True
    stacked: bool = False


def is_shortage(error: RuntimeError) -> bool:
    """Whether a device or the processor had no memory left, as PyTorch says it."""
    return type(error).__name__ == "OutOfMemoryError" or "not enough memory" in str(error)


def free_memory() -> None:
    """Let go of the failed attempt: PyTorch keeps a device's memory for itself."""
    import gc

    from torch import cuda

    gc.collect()
    cuda.empty_cache()


def smaller(recipe: Recipe) -> Recipe | None:
    """The next way to train the same attacker with less memory, None if there is none."""
    if recipe.parts < recipe.batch_size:
        return replace(recipe, parts=min(2 * recipe.parts, recipe.batch_size))
    if recipe.trainer.get("accelerator") == "cpu" or not recipe.may_leave_gpu:
        return None
    # Of GPUs a list may be given; the precision is chosen anew.
    own = {"accelerator": "cpu", "devices": world_size(recipe.trainer), "precision": None}
    return replace(recipe, parts=1, trainer={**recipe.trainer, **own})
