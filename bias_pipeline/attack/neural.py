"""Trains neural attackers for all splits in parallel, in the way that suits the device.

On a processor, each core runs one process with one thread. With two cores this is faster than one
process with two threads (``benchmarks/attackers.py``). A GPU trains one ensemble over stacked
weights (``attacker.py``). With several devices, all processes together train one attacker after the
other (``attack/lightning_loop.py``). Only processes that train import PyTorch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.attack import lightning_loop as loop
from bias_pipeline.attack.encoder import Head, NetEncoder
from bias_pipeline.attack.lightning_loop import CheckpointSettings, Share, ranks, world_size
from bias_pipeline.attack.probe import Probe, ProbeResult, TrainingJob
from bias_pipeline.attack.recipe import (
    Optimizer,
    Recipe,
    Schedule,
    TrainerFlags,
    free_gpu_memory,
    is_shortage,
    with_less_memory,
)
from bias_pipeline.attack.training import (
    Prepared,
    predict,
    train_attacker,
    train_ensemble,
    train_locally,
)
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.declared import ConfiguredAs, Count, NotNegative, Range
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.hashing import derived_seed
from bias_pipeline.io.machine import n_cores

VERSION = 2  # raise it whenever any prediction changes
ATTEMPTS = 3
EVERYONE = 1_000_000  # an ensemble of all attackers of a call

log = logging.getLogger(__name__)


class NeuralProbe(Probe):
    """Attackers trained from scratch with Lightning.

    An attacker has failed if its predictions are not finite, or if they are the same for all test
    captions although the captions differ. A failed attacker is counted, but no mean includes it.
    The attacker is trained again from the next derived seed, at most three times in all.
    """

    def __init__(
        self,
        encoder: NetEncoder,
        head: Head,
        optimizer: Optimizer,
        batch_size: Count,
        trainer: Annotated[Mapping[str, Any], ConfiguredAs(TrainerFlags)],
        processes: Annotated[int, Range(low=1, high=1024)] | None = None,
        cache: str | None = None,
        may_leave_gpu: bool = True,
        ensemble: Count | None = None,
        schedule: Schedule | None = None,
        checkpoint_minutes: NotNegative | None = None,
        select: Literal["last", "best"] = "last",
    ) -> None:
        super().__init__(cache)
        self.encoder = encoder
        flags = dict(trainer)
        self.world = world_size(flags)
        single, on_cpu = self.world == 1, flags.get("accelerator") == "cpu"
        self.processes = processes or (n_cores() if on_cpu and single else 1)
        # float16 scales the loss, which would make members of an ensemble depend on each other.
        scaled = str(flags.get("precision")).startswith("16")
        alone = not single or scaled or (on_cpu and not encoder.frozen)
        self.ensemble = ensemble or (1 if alone else EVERYONE)
        if self.world > 1 and self.processes > 1:
            raise ValueError(
                f"processes={self.processes} and trainer.devices={self.world} exclude each other; "
                "choose one of them"
            )
        if self.ensemble < 1 or (self.ensemble > 1 and (self.world > 1 or scaled)):
            raise ValueError(
                f"probe.ensemble={self.ensemble} must be 1 or more, and 1 with several "
                "trainer.devices or with trainer.precision=16-mixed"
            )
        self.recipe = Recipe(
            encoder,
            head,
            optimizer,
            batch_size,
            flags,
            schedule,
            may_leave_gpu=may_leave_gpu,
            stacked=self.ensemble > 1,
        )
        self.select = select
        if select == "best" and self.recipe.stacked:
            raise UsageError(
                "metric.select=best needs attackers that are trained alone; set probe.ensemble=1"
            )
        if cache is not None and checkpoint_minutes is not None:
            survival = CheckpointSettings(
                str(Path(cache) / "checkpoints"), VERSION, checkpoint_minutes
            )
            self.recipe = replace(self.recipe, survival=survival)

    def job(self, split: Split, images: IntArray, groups: IntArray) -> TrainingJob:
        job = super().job(split, images, groups)
        if self.select == "last":
            return job
        validation = split.select_validation(images, groups)
        if not len(validation):
            raise UsageError(
                "metric.select=best needs a part of the images to validate on; choose split=ic2, "
                "or set split.validation_share"
            )
        return replace(job, validation=validation)

    @property
    def spec(self) -> Mapping[str, object]:
        """The recipe, the version, and the epoch whose weights are used."""
        selected = {"select": self.select} if self.select != "last" else {}
        return {"probe": "neural", "version": VERSION, **self.recipe.spec, **selected}

    def train(self, data: LabelledCaptions, jobs: Sequence[TrainingJob]) -> Iterator[ProbeResult]:
        """Train a new attacker for each job. Results are in the order of the jobs."""
        groups = [jobs[i : i + self.ensemble] for i in range(0, len(jobs), self.ensemble)]
        tasks = [(self.recipe, data, group) for group in groups]
        results: Iterable[list[ProbeResult]]
        if self.processes > 1 and len(tasks) > 1:
            results = loop.pool(self.processes).map(_train, tasks)
        else:
            results = map(_train, tasks)
        try:
            for job, one in zip(jobs, chain.from_iterable(results), strict=True):
                if one.attempts > 1:
                    message = "%s, seed %d: failed attackers: %d"
                    log.warning(message, data.name, job.seed, one.attempts - 1)
                yield one
        except BrokenProcessPool as error:
            _stop_workers()
            raise ResourceError(
                f"{data.name}: a training process was killed from outside, perhaps for lack of "
                "memory; set probe.processes=1 or lower probe.batch_size"
            ) from error
        except BaseException:
            _stop_workers()
            raise

    def attacker(self, data: LabelledCaptions, job: TrainingJob) -> Prepared:
        """Train the attacker of a job alone and in this process, so that it can be inspected.

        The attacker equals the one that :meth:`train` would train for the job. Only the order of
        float sums may differ if :meth:`train` trains several at once.
        """
        for attempt in range(ATTEMPTS):
            prepared = train_locally(self.recipe, data, _attempt(job, attempt))
            if not _has_failed(predict(prepared, data, job.test).probs, data, job):
                return prepared
        raise _all_failed(data, job)


def _stop_workers() -> None:
    """End trainings that are no longer needed."""
    loop.kill_workers()
    ranks.cache_clear()


def _train(task: tuple[Recipe, LabelledCaptions, Sequence[TrainingJob]]) -> list[ProbeResult]:
    """Train attackers at once. Then train each failed attacker again, alone, until all succeed."""
    recipe, data, jobs = task
    shortages: list[Mapping[str, object]] = []
    first = _train_within_memory(recipe, data, jobs, shortages)
    results = [_train_until_sound(recipe, data, *pair) for pair in zip(jobs, first, strict=True)]
    return [replace(results[0], shortages=[*shortages, *results[0].shortages]), *results[1:]]


def _train_until_sound(
    recipe: Recipe, data: LabelledCaptions, job: TrainingJob, first: ProbeResult
) -> ProbeResult:
    shortages: list[Mapping[str, object]] = []
    one = first
    for attempt in range(ATTEMPTS):
        if attempt:
            again = _attempt(job, attempt)
            (one,) = _train_within_memory(recipe, data, [again], shortages)
        if not _has_failed(one.probs, data, job):
            world = one.world_size or 1
            return replace(one, attempts=attempt + 1, shortages=shortages, world_size=world)
    raise _all_failed(data, job)


def _attempt(job: TrainingJob, number: int) -> TrainingJob:
    """The job with the seed of an attempt. The first attempt has the job's own seed."""
    return replace(job, seed=derived_seed("retry", job.seed, number)) if number else job


def _all_failed(data: LabelledCaptions, job: TrainingJob) -> DataError:
    return DataError(
        f"{data.name}, seed {job.seed}: {ATTEMPTS} attackers in a row diverged or predicted the "
        "same for all captions; lower probe.optimizer.lr or raise trainer.max_epochs"
    )


def _has_failed(probs: Float64Array, data: LabelledCaptions, job: TrainingJob) -> bool:
    if not np.isfinite(probs).all():
        return True
    differ = len(np.unique(data.captions.identities[job.test])) > 1
    return differ and bool(np.ptp(probs, axis=0).max() < 1e-9)


def _train_within_memory(
    recipe: Recipe,
    data: LabelledCaptions,
    jobs: Sequence[TrainingJob],
    shortages: list[Mapping[str, object]],
) -> list[ProbeResult]:
    """Train.

    If memory runs out, train fewer attackers at once, then use smaller parts of batches.
    """
    try:
        if recipe.stacked:
            return train_ensemble(recipe, data, jobs)
        train = train_attacker if world_size(recipe.trainer) == 1 else _train_together
        return [train(recipe, data, job) for job in jobs]
    except RuntimeError as error:
        if not is_shortage(error):
            raise
        reason = str(error).partition("\n")[0][:200]
    free_gpu_memory()
    if len(jobs) > 1:
        half = len(jobs) // 2
        shortages.append({**_shortage(data, jobs[0], reason), "then_ensemble": half})
        log.warning("%s: out of memory; again with %d attackers at once", data.name, half)
        groups = (jobs[:half], jobs[half:])
        return [
            one for group in groups for one in _train_within_memory(recipe, data, group, shortages)
        ]
    less = with_less_memory(recipe)
    if less is None:
        raise ResourceError(
            f"{data.name}, seed {jobs[0].seed}: out of memory with one caption at a time "
            f"({reason}); choose a smaller encoder or use a device without other programs"
        )
    accelerator = str(less.trainer.get("accelerator"))
    then = {"then_parts": less.parts, "then_accelerator": accelerator}
    shortages.append({**_shortage(data, jobs[0], reason), **then})
    message = "%s, seed %d: out of memory; again with batches in %d parts, accelerator %s"
    log.warning(message, data.name, jobs[0].seed, less.parts, accelerator)
    return _train_within_memory(less, data, jobs, shortages)


def _shortage(data: LabelledCaptions, job: TrainingJob, reason: str) -> dict[str, object]:
    return {"data": data.name, "seed": job.seed, "error": reason}


def _train_together(recipe: Recipe, data: LabelledCaptions, job: TrainingJob) -> ProbeResult:
    """Train an attacker as :func:`train_attacker` does, with one process for each device.

    Each process predicts its share of the test captions. The loss is the mean over processes.
    """
    try:
        shares = ranks(world_size(recipe.trainer)).run(_train_share, recipe, data, job)
    except Exception:
        _stop_workers()  # the others wait for the one that failed
        raise
    world = shares[0][1]
    probs = np.full((len(job.test), shares[0][0].probs.shape[1]), np.nan)
    for rank, (part, _) in enumerate(shares):
        probs[rank::world] = part.probs
    losses = tuple(np.mean([part.losses for part, _ in shares], axis=0).tolist())
    return ProbeResult(probs, losses, world_size=world)


def _train_share(
    recipe: Recipe, data: LabelledCaptions, job: TrainingJob, share: Share
) -> tuple[ProbeResult, int]:
    """The result of one process, and the number of processes that PyTorch reports."""
    one = train_attacker(recipe, data, job, share)
    from torch import distributed

    return one, distributed.get_world_size()
