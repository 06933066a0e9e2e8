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
from typing import Any

import numpy as np

from bias_pipeline.attackers import workers
from bias_pipeline.attackers.data import FloatArray, Labelled
from bias_pipeline.attackers.probe import Job, Probe
from bias_pipeline.attackers.recipe import (
    HeadSpec,
    NetSpec,
    Recipe,
    free_memory,
    is_shortage,
    smaller,
)
from bias_pipeline.attackers.record import current
from bias_pipeline.attackers.team import WHOLE, Share, team, world_size
from bias_pipeline.errors import DataError, ResourceError

VERSION = 1  # raise it whenever any answer changes
ATTEMPTS = 3
RETRY_STRIDE = 1_000_003  # seeds of retries lie far from all seeds in use

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trained:
    """What came of one attacker.

    Attributes:
        probs: its answers.
        attempts: how many attackers were trained until one did not fail.
        shortages: what was done each time memory was short.
    """

    probs: FloatArray
    attempts: int
    shortages: Sequence[Mapping[str, object]]


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
        may_leave_gpu: see :class:`Recipe`.
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
        may_leave_gpu: bool = True,
    ) -> None:
        super().__init__(cache)
        self.recipe = Recipe(
            encoder, head, dict(optimizer), batch_size, dict(trainer), may_leave_gpu=may_leave_gpu
        )
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
        answers: Iterable[Trained]
        if self.processes > 1 and len(jobs) > 1:
            answers = workers.pool(self.processes).map(_train, tasks)
        else:
            answers = map(_train, tasks)
        try:
            for job, answer in zip(jobs, answers, strict=True):
                _account(answer, f"{data.name}, seed {job.seed}")
                yield answer.probs
        except BrokenProcessPool as error:
            _stop_workers()
            raise ResourceError(
                f"{data.name}: a training process was ended from outside, perhaps for want of "
                "memory; set probe.processes=1 or lower probe.batch_size"
            ) from error
        except BaseException:
            _stop_workers()
            raise


def _account(answer: Trained, name: str) -> None:
    """Put down for the manifest what was out of the ordinary."""
    current().world_size = current().world_size or 1
    current().out_of_memory += map(dict, answer.shortages)
    failed = answer.attempts - 1
    if failed:
        current().failed += failed
        log.warning("%s: %d attackers failed", name, failed)


def _stop_workers() -> None:
    """End trainings nobody waits for."""
    workers.kill_workers()
    team.cache_clear()


def _train(task: tuple[Recipe, Labelled, Job]) -> Trained:
    """Train until an attacker does not fail.

    Raises:
        DataError: if all attempts fail.
    """
    recipe, data, job = task
    shortages: list[Mapping[str, object]] = []
    for attempt in range(1, ATTEMPTS + 1):
        seed = job.seed + (attempt - 1) * RETRY_STRIDE
        probs = _train_within_memory(recipe, data, replace(job, seed=seed), shortages)
        if not _failed(probs, data, job):
            return Trained(probs, attempt, shortages)
    raise DataError(
        f"{data.name}, seed {job.seed}: {ATTEMPTS} attackers in a row diverged or answered all "
        "captions alike; lower probe.optimizer.lr or raise trainer.max_epochs"
    )


def _failed(probs: FloatArray, data: Labelled, job: Job) -> bool:
    if not np.isfinite(probs).all():
        return True
    differ = len(np.unique(data.captions.identities[job.test])) > 1
    return differ and bool(np.ptp(probs, axis=0).max() < 1e-9)


def _train_within_memory(
    recipe: Recipe, data: Labelled, job: Job, shortages: list[Mapping[str, object]]
) -> FloatArray:
    """Train; where memory is short, once more with batches in smaller parts.

    Raises:
        ResourceError: if there is no smaller way left.
    """
    train = train_attacker if world_size(recipe.trainer) == 1 else _train_together
    try:
        return train(recipe, data, job)
    except RuntimeError as error:
        if not is_shortage(error):
            raise
        reason = str(error).partition("\n")[0][:200]
    free_memory()
    less = smaller(recipe)
    if less is None:
        raise ResourceError(
            f"{data.name}, seed {job.seed}: out of memory with one caption at a time ({reason}); "
            "choose a smaller encoder or leave the device to this run alone"
        )
    accelerator = str(less.trainer.get("accelerator"))
    shortages.append(
        {
            "data": data.name,
            "seed": job.seed,
            "error": reason,
            "then_parts": less.parts,
            "then_accelerator": accelerator,
        }
    )
    told = "%s, seed %d: out of memory; again with batches in %d parts, accelerator %s"
    log.warning(told, data.name, job.seed, less.parts, accelerator)
    return _train_within_memory(less, data, job, shortages)


def _train_together(recipe: Recipe, data: Labelled, job: Job) -> FloatArray:
    """As :func:`train_attacker`, by a process for each device.

    Each answers its share of the test captions, so every caption is answered once.
    """
    try:
        shares = team(world_size(recipe.trainer)).run(_train_share, recipe, data, job)
    except Exception:
        _stop_workers()  # the others wait for the one that failed
        raise
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
    batches: Any = LengthBatches(*padded, targets, recipe.batch_size, job.seed)
    if share.world > 1:
        torch.manual_seed(job.seed + share.rank)  # dropout of its own; weights come from rank 0
    if share.world > 1 or recipe.parts > 1:
        batches = SharedBatches(batches, share, recipe.parts)
    _fit(attacker, batches, _flags(recipe))
    answers = attacker.cpu().probabilities(*vocabulary.padded(data.captions, share.of(job.test)))
    return np.asarray(answers.numpy(), np.float64)


def _flags(recipe: Recipe) -> Mapping[str, Any]:
    """Lightning's flags; the parts of a batch are one step."""
    steps = int(recipe.trainer.get("accumulate_grad_batches") or 1) * recipe.parts
    return {**recipe.trainer, "accumulate_grad_batches": steps}


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
