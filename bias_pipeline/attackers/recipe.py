"""How an attacker is trained, and how to train the same one with less memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, TypedDict

from bias_pipeline.attackers.optimizers import Optimizer, Schedule
from bias_pipeline.declared import Count, Positive, Range
from bias_pipeline.encoders.base import Head, NetEncoder, named_spec
from bias_pipeline.learning.distributed import world_size
from bias_pipeline.learning.loop import Survival


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
    """All settings of one training besides its data.

    Attributes:
        encoder: the encoder's description.
        head: the head's description.
        optimizer: moves the weights.
        batch_size: captions in a batch.
        trainer: Lightning's own flags, unchanged. ``precision: null`` uses bfloat16 matrix
            products if the processor has them.
        schedule: how the learning rate changes, None if it does not.
        parts: pieces that each batch is cut into so that it fits the memory; gradients are added
            up, so weights change as with the whole batch.
        may_leave_gpu: whether to train on the processor if the GPU's memory is too small.
        stacked: whether attackers, even a single one, are trained as an ensemble.
        survival: checkpoints from which a killed training resumes, None for none.
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
        """All settings that change an attacker's weights, with those of the encoder.

        How many attackers or processes share the work does not matter. Whether weights are stacked
        does: it changes the order of sums.
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
    """Free the memory of the failed attempt, which PyTorch would hold."""
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
    # A list of GPUs becomes a number of processes; the precision is chosen again.
    flags = {"accelerator": "cpu", "devices": world_size(recipe.trainer), "precision": None}
    return replace(recipe, parts=1, trainer={**recipe.trainer, **flags})
