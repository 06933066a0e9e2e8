"""Training attackers on this device with Lightning; PyTorch is imported when it starts.

:func:`train_attacker` trains one, :func:`train_ensemble` several at once over stacked weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.attackers.probe import Job, Trained
from bias_pipeline.attackers.recipe import Recipe
from bias_pipeline.corpus.predictions import FloatArray, Labelled
from bias_pipeline.io.hashing import derived_seed
from bias_pipeline.learning.loop import precision, run
from bias_pipeline.learning.ranks import WHOLE, Share
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

    from bias_pipeline.attackers.surviving import Best, name_of

    found: list[Callback] = []
    if len(job.validation):
        truth = torch.from_numpy(data.labels[job.validation])
        found.append(Best(own.inputs, job.validation, truth))
    how = recipe.survival
    if how is not None:
        name = name_of(how.version, recipe, recipe.encoder.digest(data), job)
        found.append(how.of(name, own.batches))
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
    """Lightning's loop, as a recipe has it.

    Raises:
        ResourceError: if the devices are absent.
    """
    run(module, batches, flags(recipe), callbacks)


def flags(recipe: Recipe) -> dict[str, Any]:
    """Lightning's flags: the precision chosen, and the parts of a batch one step."""
    own = recipe.trainer
    steps = int(own.get("accumulate_grad_batches") or 1) * recipe.parts
    chosen = own.get("precision") or precision(own)
    return {**own, "precision": chosen, "accumulate_grad_batches": steps}
