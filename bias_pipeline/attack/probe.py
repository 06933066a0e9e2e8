"""Trains a new attacker for every split, and stores predictions so that they are reused."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.attack.encoder import AnsweringEncoder, Encoder, named_spec
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions, Training
from bias_pipeline.corpus.split import Split, every_image_tested, seeds_in
from bias_pipeline.declared import Configurable
from bias_pipeline.errors import UsageError
from bias_pipeline.io.arrays import ArrayCache
from bias_pipeline.io.progress import track

if TYPE_CHECKING:
    from bias_pipeline.models.text_vectors import Embedded

LOSSES = "-losses"  # the key of losses is the key of predictions with this ending


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """One attacker to train, given by positions in a :class:`LabelledCaptions`."""

    seed: int  # of the split, and of the attacker
    train: IntArray  # positions to train on
    test: IntArray  # positions to predict
    # Positions that select the best epoch; empty unless the split has such a part
    validation: IntArray = field(default_factory=lambda: np.array([], np.int64))


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """The result of training one attacker."""

    probs: Float64Array  # (M, K) or (M, T) its predictions for its test captions
    # Mean loss on its training captions in each epoch; empty if it has no epochs
    losses: tuple[float, ...] = ()
    # How many attackers were trained until one did not fail; 0 if none was needed
    attempts: int = 1
    shortages: Sequence[Mapping[str, object]] = ()  # what was changed each time memory ran out
    world_size: int | None = None  # processes that trained it together; None if it is not a network


class Probe(Configurable, ABC):
    """Trains one attacker per split, and returns each attacker's guesses for its test images."""

    encoder: Encoder  # gives its attackers' inputs
    # Whether training takes so little time that more attackers than a score needs are trained, for
    # its learning curve
    quick: ClassVar[bool] = False

    def __init__(self, cache: str | None = None) -> None:
        self.cache = None if cache is None else ArrayCache(cache)

    @property
    @abstractmethod
    def spec(self) -> Mapping[str, object]:
        """All settings that change an attacker's predictions, as plain data."""

    @abstractmethod
    def train(self, data: LabelledCaptions, jobs: Sequence[TrainingJob]) -> Iterable[ProbeResult]:
        """The predictions of a new attacker for each job, in the order of jobs."""

    def cross_fits(self, splits: Sequence[Split]) -> bool:
        """Whether each seed has several attackers that learn from each other's test images."""
        return every_image_tested(splits)

    def fit_predict(self, data: LabelledCaptions, splits: Sequence[Split]) -> Predictions:
        """The predictions for all splits, which are computed only if they are not stored."""
        return self.fit_predict_each(data, [splits])[0]

    def fit_predict_each(
        self, data: LabelledCaptions, sets: Sequence[Sequence[Split]]
    ) -> list[Predictions]:
        """The predictions for several sets of splits. All attackers are trained together."""
        groups = np.zeros(len(data.labels), np.int64) if data.multi_label else data.labels
        rows = data.captions.image_rows
        drawn = [[self.job(split, rows, groups) for split in splits] for splits in sets]
        # With few captions a fold may be empty.
        jobs = [[job for job in one_set if len(job.test)] for one_set in drawn]
        fitted = self._predictions(data, jobs)
        return [self._join(data, *each) for each in zip(sets, jobs, fitted, strict=True)]

    def _join(
        self,
        data: LabelledCaptions,
        splits: Sequence[Split],
        jobs: Sequence[TrainingJob],
        results: tuple[Sequence[ProbeResult], Training],
    ) -> Predictions:
        fitted, training = results
        seeds = seeds_in(splits)
        folds = [[i for i, job in enumerate(jobs) if job.seed == seed] for seed in seeds]
        tested = [np.concatenate([jobs[i].test for i in members]) for members in folds]
        return Predictions(
            name=data.name,
            seeds=seeds,
            images=tuple(data.captions.image_rows[rows] for rows in tested),
            truth=tuple(data.labels[rows] for rows in tested),
            probs=tuple(np.concatenate([fitted[i].probs for i in members]) for members in folds),
            classes=data.classes,
            training=training,
        )

    def job(self, split: Split, images: IntArray, groups: IntArray) -> TrainingJob:
        """The attacker of a split; see :meth:`~bias_pipeline.corpus.split.Split.select`."""
        return TrainingJob(split.seed, *split.select(images, groups))

    def _predictions(
        self, data: LabelledCaptions, sets: Sequence[Sequence[TrainingJob]]
    ) -> list[tuple[list[ProbeResult], Training]]:
        """The results of each set of jobs, and a record of how attackers were trained."""
        keys = [[self._key(data, job) for job in jobs] for jobs in sets]
        pairs = [*zip(chain(*keys), chain(*sets), strict=True)]
        results = {key: self._load_stored(key) for key, _ in pairs}
        missing = [(key, job) for key, job in pairs if results[key] is None]
        took = self.encoder.prepare(data) if missing else None
        # Nothing is read where nothing is trained.
        trained = self.train(data, [job for _, job in missing]) if missing else ()
        fitted = track(trained, len(missing))
        fresh: dict[str, ProbeResult] = {}
        for (key, _), result in zip(missing, fitted, strict=True):
            if self.cache is not None:
                if result.losses:
                    self.cache.put(key + LOSSES, np.array(result.losses))
                self.cache.put(key, result.probs)
            fresh[key] = result
        answers: list[tuple[list[ProbeResult], Training]] = []
        for of_set, jobs in zip(keys, sets, strict=True):
            whole = [one for key in of_set if (one := fresh.get(key) or results[key]) is not None]
            of_now = [fresh[key] for key in of_set if key in fresh]
            curves = [_curve(data.name, *pair) for pair in zip(jobs, whole, strict=True)]
            account = replace(
                _training_record(of_now),
                cached=len(jobs) - len(of_now),
                curves=list(chain(*curves)),
            )
            answers.append((whole, account if answers else _with_embedding(account, took)))
        return answers

    def _load_stored(self, key: str) -> ProbeResult | None:
        probs = None if self.cache is None else self.cache.get(key)
        if self.cache is None or probs is None:
            return None
        losses = self.cache.get(key + LOSSES)
        return ProbeResult(probs, () if losses is None else tuple(losses.tolist()))

    def _key(self, data: LabelledCaptions, job: TrainingJob) -> str:
        sha = hashlib.sha256(json.dumps(self.spec, sort_keys=True).encode())
        sha.update(f"{self.encoder.digest(data)} {job.seed}".encode())
        for part in (job.train, job.test, *([job.validation] if len(job.validation) else [])):
            sha.update(part.astype("<i8").tobytes() + b"|")
        return sha.hexdigest()


def _training_record(trained: Sequence[ProbeResult]) -> Training:
    """The record of trained attackers for the manifest."""
    return Training.total(
        Training(
            trained=min(one.attempts, 1),
            failed=max(one.attempts - 1, 0),
            world_size=one.world_size,
            out_of_memory=one.shortages,
        )
        for one in trained
    )


def _with_embedding(account: Training, took: Embedded | None) -> Training:
    """The record, with the number of embedded captions added if any were embedded."""
    if took is None:
        return account
    return replace(account, embedded=took.fresh, embedded_before=took.reused, cut=took.cut)


def _curve(side: str, job: TrainingJob, one: ProbeResult) -> list[dict[str, object]]:
    """The losses of an attacker, with one line for each epoch."""
    return [
        {"side": side, "seed": job.seed, "epoch": epoch, "train_loss": loss}
        for epoch, loss in enumerate(one.losses, start=1)
    ]


VERSION = 1  # raise it whenever any prediction changes


class ZeroShotProbe(Probe):
    """Asks a model about the test captions of each split; nothing is trained.

    Seeds differ only in their splits, so the spread over seeds comes only from the images.
    """

    def __init__(
        self, encoder: Encoder, renormalise: bool = True, cache: str | None = None
    ) -> None:
        super().__init__(cache)
        if not isinstance(encoder, AnsweringEncoder):
            raise UsageError(
                "probe=zero_shot needs a model that answers without training (encoder=hf); choose "
                "probe=neural"
            )
        self.encoder: AnsweringEncoder = encoder
        self.renormalise = renormalise

    @property
    def spec(self) -> Mapping[str, object]:
        return {
            "probe": "zero_shot",
            "version": VERSION,
            "encoder": named_spec(self.encoder),
            "renormalise": self.renormalise,
        }

    def cross_fits(self, splits: Sequence[Split]) -> bool:
        """False: nothing is learnt, so no attacker depends on the images of a fold."""
        del splits
        return False

    def train(self, data: LabelledCaptions, jobs: Sequence[TrainingJob]) -> Iterator[ProbeResult]:
        """Ask about all captions, once."""
        if not jobs:
            return
        probs = self._probabilities(self.encoder.answer_log_probs(data))
        yield from (ProbeResult(probs[job.test], attempts=0) for job in jobs)

    def _probabilities(self, log_probs: Float64Array) -> Float64Array:
        """(N, K): probabilities, or (N, K + 1) with the probability of all other answers."""
        if self.renormalise:
            return np.asarray(special.softmax(log_probs, axis=1), np.float64)
        named = np.exp(log_probs)
        rest = 1 - named.sum(axis=1, keepdims=True)
        return np.concatenate([named, rest.clip(0)], axis=1)


def outputs_of(data: LabelledCaptions) -> Float64Array:
    """(N, T, K): the true values of K outputs for T tasks. Groups count as one task.

    Two groups have one output with a sigmoid. More groups have one output each, with a softmax.
    """
    if data.multi_label:
        return data.labels[:, :, None].astype(np.float64)
    if data.n_classes == 2:
        return data.labels[:, None, None].astype(np.float64)
    return np.eye(data.n_classes)[data.labels][:, None]


def probabilities_of(scores: Float64Array, data: LabelledCaptions) -> Float64Array:
    """Turn (M, T, K) scores into probabilities: (M, T) for tasks, else (M, n_classes)."""
    if data.multi_label:
        return special.expit(scores[:, :, 0])
    if data.n_classes == 2:
        p = special.expit(scores[:, 0])
        return np.hstack([1 - p, p])
    return np.asarray(special.softmax(scores[:, 0], axis=1), np.float64)
