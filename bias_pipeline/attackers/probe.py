"""The engine: a fresh attacker for every split, predictions kept so nothing is trained twice."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from bias_pipeline.corpus.predictions import FloatArray, IntArray, Labelled, Predictions, Training
from bias_pipeline.corpus.split import Split
from bias_pipeline.declared import Configurable
from bias_pipeline.encoders.base import Encoder
from bias_pipeline.io.arrays import ArrayCache
from bias_pipeline.io.progress import track

if TYPE_CHECKING:
    from bias_pipeline.inference.texts import Embedded

LOSSES = "-losses"  # after the key of an attacker's predictions, that of its losses


@dataclass(frozen=True, eq=False)
class Job:
    """One attacker to train: positions within a :class:`Labelled`.

    Attributes:
        seed: of the split, and of the attacker.
        train: what it learns from.
        test: what it is asked.
        validation: what tells which epoch is the best; empty unless the split has such a part.
    """

    seed: int
    train: IntArray
    test: IntArray
    validation: IntArray = field(default_factory=lambda: np.array([], np.int64))


@dataclass(frozen=True, eq=False)
class Trained:
    """What came of one attacker.

    Attributes:
        probs: (M, K) or (M, T) its predictions for its test captions.
        losses: mean loss on its training captions in each epoch; empty if it has no epochs.
        attempts: how many attackers were trained until one did not fail; 0 if none need be.
        shortages: what was done each time memory was short.
        world_size: processes that trained it together; None if it is no network.
    """

    probs: FloatArray
    losses: tuple[float, ...] = ()
    attempts: int = 1
    shortages: Sequence[Mapping[str, object]] = ()
    world_size: int | None = None


class Probe(Configurable, ABC):
    """Trains one attacker per split and returns what each predicts for its test images.

    Args:
        cache: folder where predictions are kept, None to keep none. Where they are kept does not
            change them, so it is no part of a result's identity.

    Attributes:
        encoder: what its attackers see.
    """

    encoder: Encoder

    def __init__(self, cache: str | None = None) -> None:
        self.cache = None if cache is None else ArrayCache(cache)

    @property
    @abstractmethod
    def spec(self) -> Mapping[str, object]:
        """Everything that decides an attacker's predictions, as plain data."""

    @abstractmethod
    def train(self, data: Labelled, jobs: Sequence[Job]) -> Iterable[Trained]:
        """What a fresh attacker predicts for each job, in order."""

    def fit_predict(self, data: Labelled, splits: Sequence[Split]) -> Predictions:
        """Train what has not been trained before.

        Args:
            data: captions and labels.
            splits: one attacker is trained for each.

        Returns:
            The predictions for the test captions, in the order of ``splits``.
        """
        groups = np.zeros(len(data.labels), np.int64) if data.multi_label else data.labels
        jobs = [self.job(split, data.captions.image_rows, groups) for split in splits]
        fitted, training = self._predictions(data, jobs)
        return Predictions(
            name=data.name,
            seeds=tuple(job.seed for job in jobs),
            images=tuple(data.captions.image_rows[job.test] for job in jobs),
            truth=tuple(data.labels[job.test] for job in jobs),
            probs=tuple(one.probs for one in fitted),
            classes=data.classes,
            training=training,
        )

    def job(self, split: Split, images: IntArray, groups: IntArray) -> Job:
        """The attacker of a split; see :meth:`~bias_pipeline.corpus.split.Split.select`."""
        return Job(split.seed, *split.select(images, groups))

    def _predictions(self, data: Labelled, jobs: Sequence[Job]) -> tuple[list[Trained], Training]:
        keys = [self._key(data, job) for job in jobs]
        found = {key: self._kept(key) for key in keys}
        missing = [(key, job) for key, job in zip(keys, jobs, strict=True) if found[key] is None]
        trained = []
        took = self.encoder.prepare(data) if missing else None
        fitted = track(self.train(data, [job for _, job in missing]), len(missing))
        for (key, _), fresh in zip(missing, fitted, strict=True):
            self._keep(key, fresh)
            found[key] = fresh
            trained.append(fresh)
        whole = [one for key in keys if (one := found[key]) is not None]
        curves = [_curve(data.name, *pair) for pair in zip(jobs, whole, strict=True)]
        account = replace(
            _account(trained), cached=len(jobs) - len(missing), curves=list(chain(*curves))
        )
        return whole, _with_embedding(account, took)

    def _kept(self, key: str) -> Trained | None:
        probs = None if self.cache is None else self.cache.get(key)
        if self.cache is None or probs is None:
            return None
        losses = self.cache.get(key + LOSSES)
        return Trained(probs, () if losses is None else tuple(losses.tolist()))

    def _keep(self, key: str, one: Trained) -> None:
        if self.cache is not None:
            if one.losses:
                self.cache.put(key + LOSSES, np.array(one.losses))
            self.cache.put(key, one.probs)

    def _key(self, data: Labelled, job: Job) -> str:
        sha = hashlib.sha256(json.dumps(self.spec, sort_keys=True).encode())
        sha.update(f"{self.encoder.digest(data)} {job.seed}".encode())
        for part in (job.train, job.test, *([job.validation] if len(job.validation) else [])):
            sha.update(part.astype("<i8").tobytes() + b"|")
        return sha.hexdigest()


def _account(trained: Sequence[Trained]) -> Training:
    """What the manifest tells of attackers that were trained."""
    return Training.total(
        Training(
            trained=min(own.attempts, 1),
            failed=max(own.attempts - 1, 0),
            world_size=own.world_size,
            out_of_memory=own.shortages,
        )
        for own in trained
    )


def _with_embedding(account: Training, took: Embedded | None) -> Training:
    """An account with what it took to have the vectors of the captions, if there are any."""
    if took is None:
        return account
    return replace(account, embedded=took.fresh, embedded_before=took.kept, cut=took.cut)


def _curve(side: str, job: Job, one: Trained) -> list[dict[str, object]]:
    """The losses of an attacker, one line for each epoch."""
    return [
        {"side": side, "seed": job.seed, "epoch": epoch, "train_loss": loss}
        for epoch, loss in enumerate(one.losses, start=1)
    ]
