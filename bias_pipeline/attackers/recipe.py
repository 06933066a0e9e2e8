"""How an attacker is trained, and how the same one is trained with less memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, TypedDict

from bias_pipeline.attackers.optimizers import Optimizer, Schedule
from bias_pipeline.declared import Count, Positive, Range
from bias_pipeline.encoders.base import Head, NetEncoder, named_spec
from bias_pipeline.learning.loop import Survival
from bias_pipeline.learning.ranks import world_size


class TrainerFlags(TypedDict, total=False):
    """Lightning's flags that a configuration may give; every attacker sees all captions once."""

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
    """Everything one training needs besides its data.

    Attributes:
        encoder: the encoder's description.
        head: the head's description.
        optimizer: moves the weights.
        batch_size: captions in a batch.
        trainer: Lightning's own flags, unchanged. ``precision: null`` takes bfloat16 matrix
            products where the processor has them.
        schedule: how the learning rate changes, None if it does not.
        parts: pieces that each batch is cut into so that it fits the memory; gradients are added
            up, so weights change as they would with the whole batch.
        may_leave_gpu: whether to train on the processor when the GPU's memory does not do.
        stacked: whether attackers, even a single one, are trained as an ensemble.
        survival: how a long training survives a kill, None if it does not.
    """

    encoder: NetEncoder
    head: Head
    optimizer: Optimizer
    batch_size: int
    trainer: Mapping[str, Any]
    schedule: Schedule | None = None
    parts: int = 1
    may_leave_gpu: bool = True
    stacked: bool = False
    survival: Survival | None = None

    @property
    def spec(self) -> Mapping[str, object]:
        """All that decides an attacker's weights besides its data; it asks the encoder for its own.

        How many attackers or processes share the work plays no part. Whether weights are stacked
        at all does: sums are in another order then.
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
