"""The neural engine: fresh attackers for all splits, one single-threaded process a core.

Measured on two cores, that beats one process with two threads: small matrices do not share well.
With several devices all processes train the same attacker, one after the other (``team.py``).
PyTorch is imported by the processes that train, never for a cached answer.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bias_pipeline.attackers import workers
from bias_pipeline.attackers.data import FloatArray, Labelled
from bias_pipeline.attackers.probe import Job, Probe
from bias_pipeline.attackers.record import current
from bias_pipeline.attackers.team import WHOLE, Share, team, world_size
from bias_pipeline.errors import DataError, ResourceError

if TYPE_CHECKING:
    from torch import nn

VERSION = 1  # raise it whenever any answer changes
ATTEMPTS = 3
RETRY_STRIDE = 1_000_003  # seeds of retries lie far from all seeds in use

log = logging.getLogger(__name__)


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
    """

    encoder: NetSpec
    head: HeadSpec
    optimizer: Mapping[str, float]
    batch_size: int
    trainer: Mapping[str, Any]


class NeuralProbe(Probe):
    """Attackers trained from scratch with Lightning.

    An attacker whose answers are not finite, or that answers all test captions alike although
    they differ, has failed: it is trained again from the next derived seed, at most three times
    in all, and counted. It is never averaged in.

    Args:
        encoder: see :class:`Recipe`.
        head: see :class:`Recipe`.
        optimizer: see :class:`Recipe`.
        batch_size: see :class:`Recipe`.
        trainer: see :class:`Recipe`. With several ``devices`` each attacker is trained by as many
            processes, on the same batches as one process would use.
        processes: how many trainings run at once; all cores if left out, one on a GPU or on
            several devices.
        cache: see :class:`Probe`.
    """

    def __init__(
        self,
        encoder: NetSpec,
        head: HeadSpec,
        optimizer: Mapping[str, float],
        batch_size: int,
        trainer: Mapping[str, Any],
        processes: int | None = None,
        cache: str | None = None,
    ) -> None:
        super().__init__(cache)
        self.recipe = Recipe(encoder, head, dict(optimizer), batch_size, dict(trainer))
        self.world = world_size(self.recipe.trainer)
        alone = self.recipe.trainer.get("accelerator") == "cpu" and self.world == 1
        self.processes = processes or (workers.n_cores() if alone else 1)
        if self.world > 1 and self.processes > 1:
            raise ValueError(
                f"processes={self.processes} and trainer.devices={self.world} exclude each other; "
                "choose one of them"
            )

    @property
    def spec(self) -> Mapping[str, object]:
        """The recipe and the version; how many processes share the work does not matter."""
        return {
            "probe": "neural",
            "version": VERSION,
            "encoder": [type(self.recipe.encoder).__name__, asdict(self.recipe.encoder)],  # type: ignore[call-overload]
            "head": [type(self.recipe.head).__name__, asdict(self.recipe.head)],  # type: ignore[call-overload]
            "optimizer": self.recipe.optimizer,
            "batch_size": self.recipe.batch_size,
            "trainer": self.recipe.trainer,
        }

    def train(self, data: Labelled, jobs: Sequence[Job]) -> Iterator[FloatArray]:
        """One fresh attacker a job, in order."""
        tasks = [(self.recipe, data, job) for job in jobs]
        answers: Iterable[tuple[FloatArray, int]]
        if self.processes > 1 and len(jobs) > 1:
            answers = workers.pool(self.processes).map(_train, tasks)
        else:
            answers = map(_train, tasks)
        try:
            for job, (probs, attempts) in zip(jobs, answers, strict=True):
                current().world_size = current().world_size or 1
                if attempts > 1:
                    failed = attempts - 1
                    current().failed += failed
                    log.warning("%s, seed %d: %d attackers failed", data.name, job.seed, failed)
                yield probs
        except BrokenProcessPool as error:
            _stop_workers()
            raise ResourceError(
                f"{data.name}: a training process was ended from outside, perhaps for want of "
                "memory; set probe.processes=1 or lower probe.batch_size"
            ) from error
        except BaseException:
            _stop_workers()
            raise


def _stop_workers() -> None:
    """End trainings nobody waits for."""
    workers.kill_workers()
    team.cache_clear()


def _train(task: tuple[Recipe, Labelled, Job]) -> tuple[FloatArray, int]:
    """Train until an attacker does not fail.

    Returns:
        Its answers, and how many attackers were trained.

    Raises:
        DataError: if all attempts fail.
    """
    recipe, data, job = task
    train = train_attacker if world_size(recipe.trainer) == 1 else _train_together
    for attempt in range(1, ATTEMPTS + 1):
        seed = job.seed + (attempt - 1) * RETRY_STRIDE
        probs = train(recipe, data, replace(job, seed=seed))
        if not _failed(probs, data, job):
            return probs, attempt
    raise DataError(
        f"{data.name}, seed {job.seed}: {ATTEMPTS} attackers in a row diverged or answered all "
        "captions alike; lower probe.optimizer.lr or raise trainer.max_epochs"
    )


def _failed(probs: FloatArray, data: Labelled, job: Job) -> bool:
    if not np.isfinite(probs).all():
        return True
    differ = len(np.unique(data.captions.identities[job.test])) > 1
    return differ and bool(np.ptp(probs, axis=0).max() < 1e-9)


def _train_together(recipe: Recipe, data: Labelled, job: Job) -> FloatArray:
    """As :func:`train_attacker`, by a process for each device.

    Each answers its share of the test captions, so every caption is answered once.
    """
    shares = team(world_size(recipe.trainer)).run(_train_share, recipe, data, job)
    current().world_size = world = shares[0][1]
    probs = np.full((len(job.test), shares[0][0].shape[1]), np.nan)
    for rank, (own, _) in enumerate(shares):
        probs[rank::world] = own
    return probs


def _train_share(recipe: Recipe, data: Labelled, job: Job, share: Share) -> tuple[FloatArray, int]:
    """The answers of one of the processes, and how many of them PyTorch counts."""
    probs = train_attacker(recipe, data, job, share)
    from torch import distributed

    return probs, distributed.get_world_size()


def train_attacker(recipe: Recipe, data: Labelled, job: Job, share: Share = WHOLE) -> FloatArray:
    """Train one attacker and return its answers on the test captions.

    Args:
        recipe: how.
        data: captions and labels.
        job: which rows are trained on and tested; its seed decides weights and batches.
        share: which part of each batch is trained on here, and which test captions are answered.

    Returns:
        (M, K) or (M, T) probabilities, M the test captions of the share.
    """
    import torch

    from bias_pipeline.attackers.attacker import Attacker
    from bias_pipeline.attackers.batches import LengthBatches, SharedBatches, Vocabulary

    torch.set_num_threads(1)
    torch.manual_seed(job.seed)
    vocabulary = Vocabulary(data.captions, job.train)
    exclusive = not data.multi_label
    n_outputs = 1 if exclusive and data.n_classes == 2 else data.n_classes
    encoder = recipe.encoder.build(vocabulary.size)
    head = recipe.head.build(int(encoder.output_dim), n_outputs)  # type: ignore[arg-type]
    attacker = Attacker(encoder, head, exclusive=exclusive, optimizer=recipe.optimizer)
    targets = torch.from_numpy(data.labels[job.train])
    padded = vocabulary.padded(data.captions, job.train)
    batches = LengthBatches(*padded, targets, recipe.batch_size, job.seed)
    if share.world > 1:
        torch.manual_seed(job.seed + share.rank)  # dropout of its own; weights come from rank 0
        _fit(attacker, SharedBatches(batches, share), recipe.trainer)
    else:
        _fit(attacker, batches, recipe.trainer)
    answers = attacker.cpu().probabilities(*vocabulary.padded(data.captions, share.of(job.test)))
    return np.asarray(answers.numpy(), np.float64)


def _fit(attacker: Any, batches: Any, flags: Mapping[str, Any]) -> None:
    """Lightning's loop; its advice for data loaders does not fit a list in memory."""
    import pytorch_lightning as pl
    from pytorch_lightning.plugins.environments import (  # type: ignore[attr-defined]
        LightningEnvironment,
    )

    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    settings = {**flags, "precision": flags.get("precision") or _precision(flags)}
    # Otherwise Lightning, under Slurm, would count Slurm's tasks and take over its signals.
    settings["plugins"] = [LightningEnvironment()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pl.Trainer(**settings).fit(attacker, batches)
        except SystemExit as stop:
            if type(stop) is SystemExit:  # what Lightning makes of Ctrl-C
                raise KeyboardInterrupt from stop
            raise


def _precision(flags: Mapping[str, Any]) -> str:
    """bfloat16 products where the processor multiplies them itself, else float32."""
    return "bf16-mixed" if flags.get("accelerator") != "cpu" or has_bf16() else "32-true"


@lru_cache(maxsize=1)
def has_bf16() -> bool:
    """Whether this processor multiplies bfloat16 matrices itself."""
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123 - not a file in any folder of ours
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags
