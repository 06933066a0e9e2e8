"""Training attackers on this device with Lightning; PyTorch is imported when it starts.

:func:`train_attacker` trains one, :func:`train_ensemble` several at once over stacked weights.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.attackers.ddp import WHOLE, Share
from bias_pipeline.attackers.probe import Job, Trained
from bias_pipeline.attackers.recipe import Recipe
from bias_pipeline.corpus.predictions import FloatArray, Labelled
from bias_pipeline.errors import ResourceError
from bias_pipeline.io.hashing import derived_seed
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import pytorch_lightning as pl
    from pytorch_lightning import Callback

    from bias_pipeline.attackers.attacker import Attacker
    from bias_pipeline.attackers.batches import LengthBatches, SharedBatches
    from bias_pipeline.encoders.base import Inputs, Items


@dataclass(frozen=True, eq=False)
class Prepared:
    """An attacker before its training.

    Attributes:
        attacker: with fresh weights.
        batches: what it learns from.
        inputs: of all captions, fitted to those that it learns from.
        seed: of weights and batches.
        random_state: state of the random numbers once the weights were drawn.
    """

    attacker: Attacker
    batches: LengthBatches | SharedBatches
    inputs: Inputs
    seed: int
    random_state: Any


def train_attacker(recipe: Recipe, data: Labelled, job: Job, share: Share = WHOLE) -> Trained:
    """Train one attacker and predict with it.

    Args:
        recipe: how.
        data: captions and labels.
        job: which rows are trained on and tested; its seed decides weights and batches.
        share: which part of each batch is trained on here, and which test captions are predicted.

    Returns:
        (M, K) or (M, T) probabilities, M the test captions of the share, and the losses.
    """
    return predict(trained(recipe, data, job, share), data, share.of(job.test))


def trained(recipe: Recipe, data: Labelled, job: Job, share: Share = WHOLE) -> Prepared:
    """One attacker itself, once it has learnt; see :func:`train_attacker`."""
    import torch

    own = prepare(recipe, data, job, share)
    if share.world > 1:
        # Dropout of its own; weights come from rank 0.
        torch.manual_seed(derived_seed("dropout", job.seed, share.rank))
    fit(own.attacker, own.batches, recipe, survivors(recipe, data, job, own))
    return own


def survivors(recipe: Recipe, data: Labelled, job: Job, own: Prepared) -> list[Callback]:
    """What keeps the best epoch of a training, and what it goes on from when it was killed."""
    import torch

    from bias_pipeline.attackers.surviving import Best, Checkpoint, place_of

    found: list[Callback] = []
    if len(job.validation):
        truth = torch.from_numpy(data.labels[job.validation])
        found.append(Best(own.inputs, job.validation, truth))
    if recipe.survival is not None:
        path = place_of(recipe.survival, recipe, recipe.encoder.digest(data), job)
        found.append(Checkpoint(path, own.batches, 60 * recipe.survival.minutes))
    return found


def train_ensemble(recipe: Recipe, data: Labelled, jobs: Sequence[Job]) -> list[Trained]:
    """Train attackers at once over stacked weights; one after the other where that cannot be.

    Args:
        recipe: how.
        data: captions and labels.
        jobs: which rows each is trained on and asked.

    Returns:
        What each predicts, as :func:`train_attacker` would return it.
    """
    from bias_pipeline.attackers.batches import SideBySide
    from bias_pipeline.attackers.ensemble import Ensemble
    from bias_pipeline.attackers.stacked.dispatch import can_stack

    items = recipe.encoder.read(data)
    first = prepare(recipe, data, jobs[0], items=items)
    if not can_stack(first.attacker.encoder, first.attacker.head):
        return [train_attacker(recipe, data, job) for job in jobs]
    own = [first, *(prepare(recipe, data, job, items=items) for job in jobs[1:])]
    ensemble = Ensemble(
        [one.attacker for one in own], [one.seed for one in own], [one.random_state for one in own]
    )
    fit(ensemble, SideBySide([one.batches for one in own]), recipe)
    return [predict(one, data, job.test) for one, job in zip(own, jobs, strict=True)]


def prepare(
    recipe: Recipe, data: Labelled, job: Job, share: Share = WHOLE, items: Items | None = None
) -> Prepared:
    """Everything of an attacker that its seed and its split decide.

    Args:
        recipe: how.
        data: captions and labels.
        job: of the attacker.
        share: of each batch.
        items: the captions as the encoder reads them, if it has read them before.
    """
    import torch

    make_importable()  # before Lightning asks for it
    from bias_pipeline.attackers.attacker import Attacker
    from bias_pipeline.attackers.batches import LengthBatches, SharedBatches

    torch.set_num_threads(1)
    torch.manual_seed(job.seed)
    inputs: Inputs = (items or recipe.encoder.read(data)).fit(job.train)
    exclusive = not data.multi_label
    n_outputs = recipe.head.n_outputs(data.n_classes, exclusive=exclusive)
    encoder = recipe.encoder.build(inputs)
    head = recipe.head.build(int(encoder.output_dim), n_outputs)  # type: ignore[arg-type]
    attacker = Attacker(
        encoder,
        head,
        exclusive=exclusive,
        optimizer=recipe.optimizer,
        schedule=recipe.schedule,
    )
    targets = torch.from_numpy(data.labels[job.train])
    batches: Any = LengthBatches(inputs, job.train, targets, recipe.batch_size, job.seed)
    if share.world > 1 or recipe.parts > 1:
        batches = SharedBatches(batches, share, recipe.parts)
    return Prepared(attacker, batches, inputs, job.seed, torch.get_rng_state())


def predict(own: Prepared, data: Labelled, rows: Any) -> Trained:
    """What a trained attacker predicts for some captions."""
    from bias_pipeline.attackers.batches import tensors

    attacker = own.attacker.cpu()
    together = int(getattr(attacker.encoder, "together", len(rows))) or 1
    found: list[FloatArray] = [
        attacker.probabilities(**tensors(own.inputs, rows[start : start + together])).numpy()
        for start in range(0, len(rows), together)
    ]
    return Trained(np.concatenate(found).astype(np.float64), tuple(attacker.losses))


def fit(
    module: pl.LightningModule, batches: Any, recipe: Recipe, callbacks: Sequence[Callback] = ()
) -> None:
    """Lightning's loop; its advice for data loaders does not fit a list in memory.

    Raises:
        ResourceError: if the devices are absent.
    """
    from bias_pipeline.attackers.surviving import Checkpoint

    ours = next((own for own in callbacks if isinstance(own, Checkpoint)), None)
    begun = ours.found if ours else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # Without checkpoints of ours Lightning would write its own into the current folder.
            kept = {"enable_checkpointing": True} if ours else {}
            trainer = _trainer({**flags(recipe), **kept, "callbacks": list(callbacks)})
            trainer.fit(module, batches, ckpt_path=begun, weights_only=True)
        except SystemExit as stop:
            if type(stop) is SystemExit:  # what Lightning makes of Ctrl-C
                raise KeyboardInterrupt from stop
            raise


def require_devices(own: Mapping[str, Any]) -> None:
    """Know before any work that the devices of Lightning's flags are there.

    Raises:
        ResourceError: if they are not.

    Example:
        >>> require_devices({"accelerator": "cpu", "devices": 1})
    """
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _trainer({**own, **dict.fromkeys(quiet, False)})


def _trainer(settings: Mapping[str, Any]) -> pl.Trainer:
    """Lightning's trainer, which looks for its devices when it is built."""
    make_importable()  # before Lightning asks for it
    import pytorch_lightning as pl
    from lightning_fabric.utilities.exceptions import MisconfigurationException
    from pytorch_lightning.plugins.environments import (  # type: ignore[attr-defined]
        LightningEnvironment,
    )

    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        # Otherwise Lightning, under Slurm, would count Slurm's tasks and take over its signals.
        return pl.Trainer(**settings, plugins=[LightningEnvironment()])
    except MisconfigurationException as error:
        asked = ", ".join(f"trainer.{k}={settings.get(k)}" for k in ("accelerator", "devices"))
        raise ResourceError(
            f"{asked}: {error} Choose trainer=cpu, or run where there is one"
        ) from error


def flags(recipe: Recipe) -> dict[str, Any]:
    """Lightning's flags: the precision chosen, and the parts of a batch one step."""
    own = recipe.trainer
    steps = int(own.get("accumulate_grad_batches") or 1) * recipe.parts
    chosen = own.get("precision") or precision(own)
    return {**own, "precision": chosen, "accumulate_grad_batches": steps}


def precision(own: Mapping[str, Any]) -> str:
    """bfloat16 products where the processor multiplies them itself, else float32."""
    return "bf16-mixed" if own.get("accelerator") != "cpu" or has_bf16() else "32-true"


@lru_cache(maxsize=1)
def has_bf16() -> bool:
    """Whether this processor multiplies bfloat16 matrices itself."""
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123 - not a file in any folder of ours
            own = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return False
    return "avx512_bf16" in own or "amx_bf16" in own
