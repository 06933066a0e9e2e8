"""Trains attackers on this device with Lightning.

PyTorch is imported when training starts. :func:`train_attacker` trains one attacker.
:func:`train_ensemble` trains several attackers at once over stacked weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.attack.lightning_loop import WHOLE, Share, precision, run_training
from bias_pipeline.attack.probe import ProbeResult, TrainingJob
from bias_pipeline.attack.recipe import Recipe, is_shortage
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.io.hashing import derived_seed
from bias_pipeline.models.torchvision import make_importable

if TYPE_CHECKING:
    import pytorch_lightning as pl
    from pytorch_lightning import Callback

    from bias_pipeline.attack.attacker import Attacker, LengthBatches, SharedBatches
    from bias_pipeline.attack.encoder import Inputs, Items


@dataclass(frozen=True, eq=False)
class Prepared:
    """An attacker before its training."""

    attacker: Attacker  # with fresh weights
    batches: LengthBatches | SharedBatches  # its training batches
    inputs: Inputs  # of all captions, fitted to the training captions
    seed: int  # of weights and batches
    random_state: Any  # state of the random numbers after the weights were drawn


def train_attacker(
    recipe: Recipe, data: LabelledCaptions, job: TrainingJob, share: Share = WHOLE
) -> ProbeResult:
    """Train one attacker, and predict this process's share of the test captions."""
    return predict(train_locally(recipe, data, job, share), data, share.take(job.test))


def train_locally(
    recipe: Recipe, data: LabelledCaptions, job: TrainingJob, share: Share = WHOLE
) -> Prepared:
    import torch

    prepared = prepare(recipe, data, job, share)
    if share.world > 1:
        # Each process has its own dropout; weights come from rank 0.
        torch.manual_seed(derived_seed("dropout", job.seed, share.rank))
    fit(
        prepared.attacker, prepared.batches, recipe, training_callbacks(recipe, data, job, prepared)
    )
    return prepared


def training_callbacks(
    recipe: Recipe, data: LabelledCaptions, job: TrainingJob, prepared: Prepared
) -> list[Callback]:
    """Callbacks that keep the best epoch of a training and write checkpoints."""
    import torch

    from bias_pipeline.attack.attacker import Best, checkpoint_name

    callbacks: list[Callback] = []
    if len(job.validation):
        truth = torch.from_numpy(data.labels[job.validation])
        callbacks.append(Best(prepared.inputs, job.validation, truth))
    how = recipe.survival
    if how is not None:
        name = checkpoint_name(how.version, recipe, recipe.encoder.digest(data), job)
        callbacks.append(how.checkpoint(name, prepared.batches))
    return callbacks


def train_ensemble(
    recipe: Recipe, data: LabelledCaptions, jobs: Sequence[TrainingJob]
) -> list[ProbeResult]:
    """Train attackers at once over stacked weights, or one after the other if networks differ."""
    from bias_pipeline.attack.attacker import Ensemble, SideBySide
    from bias_pipeline.attack.stacked import can_stack

    items = recipe.encoder.read(data)
    first = prepare(recipe, data, jobs[0], items=items)
    if not can_stack(first.attacker.encoder, first.attacker.head):
        return [train_attacker(recipe, data, job) for job in jobs]
    members = [first, *(prepare(recipe, data, job, items=items) for job in jobs[1:])]
    ensemble = Ensemble(
        [one.attacker for one in members],
        [one.seed for one in members],
        [one.random_state for one in members],
    )
    fit(ensemble, SideBySide([one.batches for one in members]), recipe)
    return [predict(one, data, job.test) for one, job in zip(members, jobs, strict=True)]


def prepare(
    recipe: Recipe,
    data: LabelledCaptions,
    job: TrainingJob,
    share: Share = WHOLE,
    items: Items | None = None,
) -> Prepared:
    """A new attacker with its inputs and batches."""
    import torch

    make_importable()  # before Lightning imports it
    from bias_pipeline.attack.attacker import Attacker, LengthBatches, SharedBatches

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


def predict(prepared: Prepared, data: LabelledCaptions, rows: Any) -> ProbeResult:
    """Predictions of a trained attacker for some captions, on the device where it was trained.

    If the GPU has too little memory for the predictions, the processor computes them.
    """
    attacker = prepared.attacker
    try:
        probs = _probabilities(prepared, rows)
    except RuntimeError as error:
        if attacker.device.type == "cpu" or not is_shortage(error):
            raise
        attacker.cpu()
        probs = _probabilities(prepared, rows)
    finally:
        attacker.cpu()
    return ProbeResult(probs, tuple(attacker.losses))


def _probabilities(prepared: Prepared, rows: Any) -> Float64Array:
    """The predictions, (M, K) or (M, T), on the attacker's device."""
    from bias_pipeline.attack.attacker import tensors

    attacker = prepared.attacker
    together = int(getattr(attacker.encoder, "together", len(rows))) or 1
    parts = []
    for start in range(0, len(rows), together):
        inputs = tensors(prepared.inputs, rows[start : start + together], attacker.device)
        parts.append(attacker.probabilities(**inputs).cpu().numpy())
    return np.concatenate(parts).astype(np.float64)


def fit(
    module: pl.LightningModule, batches: Any, recipe: Recipe, callbacks: Sequence[Callback] = ()
) -> None:
    """Train with Lightning's loop and the flags of a recipe. The module stays on its device."""
    module.to(run_training(module, batches, flags(recipe), callbacks))


def flags(recipe: Recipe) -> dict[str, Any]:
    """The flags for Lightning, which include the precision and the number of parts per step."""
    trainer_flags = recipe.trainer
    steps = int(trainer_flags.get("accumulate_grad_batches") or 1) * recipe.parts
    chosen = trainer_flags.get("precision") or precision(trainer_flags)
    return {**trainer_flags, "precision": chosen, "accumulate_grad_batches": steps}
