"""Defines the captions and labels that attackers read, and the predictions of attackers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.pictures import Pictures


@dataclass(frozen=True, eq=False)
class LabelledCaptions:
    """Captions (at most one per image) and the labels that an attacker must guess."""

    name: str  # what the captions are, such as `model` or `human:0`
    captions: Captions  # N captions
    # (N,) int64 classes below `n_classes`, or (N, T) 0/1, of any integer type, for T independent
    # tasks
    labels: IntArray
    n_classes: int  # K, or T for tasks
    # Names of the classes, for files; empty if no file will have them
    classes: tuple[str, ...] = ()
    # The pictures of the N captions' images, if attackers may see them
    pictures: Pictures | None = None
    # The objects in each of the N captions' images, if attackers may know them
    objects: Sequence[frozenset[str]] | None = None

    @property
    def multi_label(self) -> bool:
        """Whether there are T independent tasks rather than K exclusive classes."""
        return self.labels.ndim == 2

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of captions and labels. Names and pictures play no part."""
        sha = hashlib.sha256(self.captions.digest.encode())
        sha.update(f"{self.labels.shape} {self.n_classes}".encode())
        sha.update(np.ascontiguousarray(self.labels, dtype="<i8").tobytes())
        return sha.hexdigest()


@dataclass(frozen=True)
class Training:
    """How attackers were trained, as recorded in the manifest of a result."""

    trained: int = 0  # attackers that were trained for these predictions
    cached: int = 0  # attackers whose predictions were in the cache
    failed: int = 0  # attackers that diverged or predicted the same for all, and were replaced
    # Processes that trained each attacker together; None if no network was trained
    world_size: int | None = None
    out_of_memory: Sequence[Mapping[str, object]] = ()  # what was done each time memory was short
    # Side, seed, epoch and mean training loss of every epoch of every attacker
    curves: Sequence[Mapping[str, object]] = ()
    embedded: int = 0  # captions that a frozen encoder embedded
    embedded_before: int = 0  # captions whose vectors were in the cache
    cut: int = 0  # captions that the encoder had to shorten

    @classmethod
    def total(cls, accounts: Iterable[Training]) -> Training:
        """The sum of several accounts.

        Example:
            >>> Training.total([Training(trained=2), Training(cached=1, world_size=1)]).trained
            2
        """
        parts = list(accounts)
        return cls(
            trained=sum(one.trained for one in parts),
            cached=sum(one.cached for one in parts),
            failed=sum(one.failed for one in parts),
            world_size=max((one.world_size for one in parts if one.world_size), default=None),
            out_of_memory=[event for one in parts for event in one.out_of_memory],
            curves=[line for one in parts for line in one.curves],
            embedded=sum(one.embedded for one in parts),
            embedded_before=sum(one.embedded_before for one in parts),
            cut=sum(one.cut for one in parts),
        )


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of attackers for test captions, with one block per seed."""

    name: str  # name of the `LabelledCaptions` that attackers were trained on
    seeds: tuple[int, ...]  # the S seeds
    images: tuple[IntArray, ...]  # S arrays (M_s,) of corpus rows
    truth: tuple[IntArray, ...]  # S arrays (M_s,) or (M_s, T)
    # S arrays (M_s, K) of class probabilities, or (M_s, T) of task probabilities
    probs: tuple[Float64Array, ...]
    classes: tuple[str, ...] = ()  # names of the classes
    # How the attackers were trained; empty if predictions were read from a file
    training: Training = Training()

    def __iter__(self) -> Iterator[tuple[IntArray, IntArray, Float64Array]]:
        return zip(self.images, self.truth, self.probs, strict=True)

    def of_first_seed(self) -> Predictions:
        return replace(
            self,
            seeds=self.seeds[:1],
            images=self.images[:1],
            truth=self.truth[:1],
            probs=self.probs[:1],
        )

    @classmethod
    def of_all_seeds(cls, parts: Sequence[Predictions]) -> Predictions:
        """Join predictions of the same kind for different seeds."""
        return cls(
            name=parts[0].name,
            seeds=tuple(seed for one in parts for seed in one.seeds),
            images=tuple(images for one in parts for images in one.images),
            truth=tuple(truth for one in parts for truth in one.truth),
            probs=tuple(probs for one in parts for probs in one.probs),
            classes=parts[0].classes,
            training=Training.total(one.training for one in parts),
        )
