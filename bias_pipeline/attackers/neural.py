"""The neural engine: fresh attackers for all splits, at once in the way that suits the device.

On processors, one single-threaded process a core: measured on two cores, that beats one process
with two threads (``benchmarks/attackers.py``); small matrices do not share well. On a GPU, one
ensemble over stacked weights (``ensemble.py``). With several devices all processes train the same
attacker, one after the other (``learning/ranks.py``). PyTorch is imported by the processes that
train, never for a cached one.
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

from bias_pipeline.attackers.optimizers import Optimizer, Schedule
from bias_pipeline.attackers.probe import Job, Probe, Trained
from bias_pipeline.attackers.recipe import (
    Recipe,
    TrainerFlags,
    free_memory,
    is_shortage,
    smaller,
)
from bias_pipeline.attackers.training import (
    Prepared,
    predict,
    train_attacker,
    train_ensemble,
    trained,
)
from bias_pipeline.corpus.predictions import FloatArray, IntArray, Labelled
from bias_pipeline.corpus.split import Split
from bias_pipeline.declared import Count, Given, NotNegative, Range
from bias_pipeline.encoders.base import Head, NetEncoder
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.cores import n_cores
from bias_pipeline.io.hashing import derived_seed
from bias_pipeline.learning import workers
from bias_pipeline.learning.loop import Survival
from bias_pipeline.learning.ranks import Share, ranks, world_size

VERSION = 1  # raise it whenever any prediction changes
ATTEMPTS = 3
EVERYONE = 1_000_000  # an ensemble of all attackers of a call

log = logging.getLogger(__name__)


class NeuralProbe(Probe):
    """Attackers trained from scratch with Lightning.

    An attacker whose predictions are not finite, or the same for all test captions although
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
        ensemble: how many attackers are trained at once over stacked weights; 1 trains each
            alone. If left out, all of a call on a single GPU or under a frozen encoder, 1
            elsewhere. Encoders that ``attackers/stacked/dispatch.py`` does not know are trained one
            after the other all the same.
        schedule: see :class:`Recipe`.
        checkpoint_minutes: a training that takes longer is written down at the end of an epoch,
            whenever so many minutes have passed, and goes on from there if it is killed; None:
            never. Attackers trained at once over stacked weights begin anew.
        select: which epoch's weights are asked: of the ``last``, or of the ``best`` by the loss on
            the split's validation part.

    Raises:
        UsageError: if the best epoch is asked for of attackers trained at once.
    """

    def __init__(
        self,
        encoder: NetEncoder,
        head: Head,
        optimizer: Optimizer,
        batch_size: Count,
        trainer: Annotated[Mapping[str, Any], Given(TrainerFlags)],
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
        # A scaled loss, as float16 has, would tie the members of an ensemble to each other.
        scaled = str(flags.get("precision")).startswith("16")
        alone = not single or scaled or (on_cpu and not encoder.frozen)
        self.ensemble = ensemble or (1 if alone else EVERYONE)
        self._check_sharing(scaled)
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
                "metric.select=best is of attackers that are trained alone; set probe.ensemble=1"
            )
        if cache is not None and checkpoint_minutes is not None:
            survival = Survival(str(Path(cache) / "checkpoints"), VERSION, checkpoint_minutes)
            self.recipe = replace(self.recipe, survival=survival)

    def job(self, split: Split, images: IntArray, groups: IntArray) -> Job:
        """See the base.

        Raises:
            UsageError: if the best epoch is asked for, and the split has no validation part.
        """
        own = super().job(split, images, groups)
        if self.select == "last":
            return own
        validation = split.validated(images, groups)
        if not len(validation):
            raise UsageError(
                "metric.select=best needs a part of the images to validate on; choose split=ic2, "
                "or set split.validation_share"
            )
        return replace(own, validation=validation)

    def _check_sharing(self, scaled: bool) -> None:
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

    @property
    def spec(self) -> Mapping[str, object]:
        """The recipe, the version, and which epoch's weights are asked."""
        selected = {"select": self.select} if self.select != "last" else {}
        return {"probe": "neural", "version": VERSION, **self.recipe.spec, **selected}

    def train(self, data: Labelled, jobs: Sequence[Job]) -> Iterator[Trained]:
        """One fresh attacker a job, in order."""
        groups = [jobs[i : i + self.ensemble] for i in range(0, len(jobs), self.ensemble)]
        tasks = [(self.recipe, data, group) for group in groups]
        found: Iterable[list[Trained]]
        if self.processes > 1 and len(tasks) > 1:
            found = workers.pool(self.processes).map(_train, tasks)
        else:
            found = map(_train, tasks)
        try:
            for job, one in zip(jobs, chain.from_iterable(found), strict=True):
                if one.attempts > 1:
                    told = "%s, seed %d: %d attackers failed"
                    log.warning(told, data.name, job.seed, one.attempts - 1)
                yield one
        except BrokenProcessPool as error:
            _stop_workers()
            raise ResourceError(
                f"{data.name}: a training process was ended from outside, perhaps for want of "
                "memory; set probe.processes=1 or lower probe.batch_size"
            ) from error
        except BaseException:
            _stop_workers()
            raise

    def attacker(self, data: Labelled, job: Job) -> Prepared:
        """The attacker of a job itself, to be looked into: trained alone, in this process.

        It is the one that :meth:`train` would train for the job, but for the order of float sums
        where that trains several at once.

        Raises:
            DataError: if all attempts fail.
        """
        for attempt in range(ATTEMPTS):
            own = trained(self.recipe, data, _attempt(job, attempt))
            if not _failed(predict(own, data, job.test).probs, data, job):
                return own
        raise _hopeless(data, job)


def _stop_workers() -> None:
    """End trainings nobody waits for."""
    workers.kill_workers()
    ranks.cache_clear()


def _train(task: tuple[Recipe, Labelled, Sequence[Job]]) -> list[Trained]:
    """Train attackers at once; those that fail again, each by itself, until none does.

    Raises:
        DataError: if all attempts of one fail.
    """
    recipe, data, jobs = task
    shortages: list[Mapping[str, object]] = []
    first = _train_within_memory(recipe, data, jobs, shortages)
    trained = [_until_sound(recipe, data, *pair) for pair in zip(jobs, first, strict=True)]
    return [replace(trained[0], shortages=[*shortages, *trained[0].shortages]), *trained[1:]]


def _until_sound(recipe: Recipe, data: Labelled, job: Job, first: Trained) -> Trained:
    shortages: list[Mapping[str, object]] = []
    one = first
    for attempt in range(ATTEMPTS):
        if attempt:
            again = _attempt(job, attempt)
            (one,) = _train_within_memory(recipe, data, [again], shortages)
        if not _failed(one.probs, data, job):
            world = one.world_size or 1
            return replace(one, attempts=attempt + 1, shortages=shortages, world_size=world)
    raise _hopeless(data, job)


def _attempt(job: Job, number: int) -> Job:
    """The job with the seed of an attempt, the first of which is its own."""
    return replace(job, seed=derived_seed("retry", job.seed, number)) if number else job


def _hopeless(data: Labelled, job: Job) -> DataError:
    return DataError(
        f"{data.name}, seed {job.seed}: {ATTEMPTS} attackers in a row diverged or predicted the "
        "same for all captions; lower probe.optimizer.lr or raise trainer.max_epochs"
    )


def _failed(probs: FloatArray, data: Labelled, job: Job) -> bool:
    if not np.isfinite(probs).all():
        return True
    differ = len(np.unique(data.captions.identities[job.test])) > 1
    return differ and bool(np.ptp(probs, axis=0).max() < 1e-9)


def _train_within_memory(
    recipe: Recipe,
    data: Labelled,
    jobs: Sequence[Job],
    shortages: list[Mapping[str, object]],
) -> list[Trained]:
    """Train; where memory is short, fewer attackers at once, then batches in smaller parts.

    Raises:
        ResourceError: if there is no smaller way left.
    """
    try:
        return _train_as_told(recipe, data, jobs)
    except RuntimeError as error:
        if not is_shortage(error):
            raise
        reason = str(error).partition("\n")[0][:200]
    free_memory()
    if len(jobs) > 1:
        half = len(jobs) // 2
        shortages.append({**_shortage(data, jobs[0], reason), "then_ensemble": half})
        log.warning("%s: out of memory; again with %d attackers at once", data.name, half)
        groups = (jobs[:half], jobs[half:])
        return [one for own in groups for one in _train_within_memory(recipe, data, own, shortages)]
    less = smaller(recipe)
    if less is None:
        raise ResourceError(
            f"{data.name}, seed {jobs[0].seed}: out of memory with one caption at a time "
            f"({reason}); choose a smaller encoder or leave the device to this run alone"
        )
    accelerator = str(less.trainer.get("accelerator"))
    then = {"then_parts": less.parts, "then_accelerator": accelerator}
    shortages.append({**_shortage(data, jobs[0], reason), **then})
    told = "%s, seed %d: out of memory; again with batches in %d parts, accelerator %s"
    log.warning(told, data.name, jobs[0].seed, less.parts, accelerator)
    return _train_within_memory(less, data, jobs, shortages)


def _shortage(data: Labelled, job: Job, reason: str) -> dict[str, object]:
    return {"data": data.name, "seed": job.seed, "error": reason}


def _train_as_told(recipe: Recipe, data: Labelled, jobs: Sequence[Job]) -> list[Trained]:
    if recipe.stacked:
        return train_ensemble(recipe, data, jobs)
    train = train_attacker if world_size(recipe.trainer) == 1 else _train_together
    return [train(recipe, data, job) for job in jobs]


def _train_together(recipe: Recipe, data: Labelled, job: Job) -> Trained:
    """As :func:`train_attacker`, by a process for each device.

    Each predicts for its share of the test captions, so every caption is predicted once. The loss
    is the mean of theirs.
    """
    try:
        shares = ranks(world_size(recipe.trainer)).run(_train_share, recipe, data, job)
    except Exception:
        _stop_workers()  # the others wait for the one that failed
        raise
    world = shares[0][1]
    probs = np.full((len(job.test), shares[0][0].probs.shape[1]), np.nan)
    for rank, (own, _) in enumerate(shares):
        probs[rank::world] = own.probs
    losses = tuple(np.mean([own.losses for own, _ in shares], axis=0).tolist())
    return Trained(probs, losses, world_size=world)


def _train_share(recipe: Recipe, data: Labelled, job: Job, share: Share) -> tuple[Trained, int]:
    """What one of the processes predicted, and how many of them PyTorch counts."""
    one = train_attacker(recipe, data, job, share)
    from torch import distributed

    return one, distributed.get_world_size()
