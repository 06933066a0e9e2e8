"""The neural engine: fresh attackers for all splits, one single-threaded process a core.

Measured on two cores, that beats one process with two threads: small matrices do not share well.
PyTorch is imported by the processes that train, never for a cached answer.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bias_pipeline.attackers.data import FloatArray, Labelled
from bias_pipeline.attackers.probe import Job, Probe
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
        trainer: see :class:`Recipe`.
        processes: how many trainings run at once; all cores if left out, one on a GPU.
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
        on_cpu = self.recipe.trainer.get("accelerator") == "cpu"
        self.processes = processes or ((os.cpu_count() or 1) if on_cpu else 1)

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
            answers = _pool(self.processes).map(_train, tasks)
        else:
            answers = map(_train, tasks)
        try:
            for job, (probs, attempts) in zip(jobs, answers, strict=True):
                if attempts > 1:
                    failed = attempts - 1
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


@lru_cache(maxsize=1)
def _pool(processes: int) -> ProcessPoolExecutor:
    """Workers that stay for the next call: importing PyTorch takes them seconds."""
    from multiprocessing import get_context

    return ProcessPoolExecutor(processes, get_context("spawn"), initializer=_prepare_worker)


def _stop_workers() -> None:
    """End trainings nobody waits for: leaving would otherwise wait for them.

    They are killed, since Lightning catches a plain request to end while it trains.
    """
    from multiprocessing import active_children

    for child in active_children():
        child.kill()
    _pool.cache_clear()


def _prepare_worker() -> None:
    """One thread each, and no life after the parent's."""
    import signal
    import threading
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    # A handler of ours: Lightning puts its own, which goes on training, in place of the default.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    parent = parent_process()

    def leave_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=leave_with_parent, daemon=True).start()


def _train(task: tuple[Recipe, Labelled, Job]) -> tuple[FloatArray, int]:
    """Train until an attacker does not fail.

    Returns:
        Its answers, and how many attackers were trained.

    Raises:
        DataError: if all attempts fail.
    """
    recipe, data, job = task
    for attempt in range(1, ATTEMPTS + 1):
        seed = job.seed + (attempt - 1) * RETRY_STRIDE
        probs = train_attacker(recipe, data, Job(seed, job.train, job.test))
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


def train_attacker(recipe: Recipe, data: Labelled, job: Job) -> FloatArray:
    """Train one attacker and return its answers on the test captions.

    Args:
        recipe: how.
        data: captions and labels.
        job: which rows are trained on and tested; its seed decides weights and batches.

    Returns:
        (M, K) or (M, T) probabilities.
    """
    import torch

    from bias_pipeline.attackers.attacker import Attacker
    from bias_pipeline.attackers.batches import LengthBatches, Vocabulary

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
    _fit(attacker, LengthBatches(*padded, targets, recipe.batch_size, job.seed), recipe.trainer)
    answers = attacker.cpu().probabilities(*vocabulary.padded(data.captions, job.test))
    return np.asarray(answers.numpy(), np.float64)


def _fit(attacker: Any, batches: Any, flags: Mapping[str, Any]) -> None:
    """Lightning's loop; its advice for data loaders does not fit a list in memory."""
    import pytorch_lightning as pl

    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    settings = {**flags, "precision": flags.get("precision") or _precision(flags)}
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
