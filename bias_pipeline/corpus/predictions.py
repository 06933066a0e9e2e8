"""What goes into an attacker and what comes out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.captions import Captions

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Captions, at most one an image, with what an attacker must guess.

    Attributes:
        name: what the captions are, such as ``model`` or ``human:0``.
        captions: N captions.
        labels: (N,) int64 classes below ``n_classes``, or (N, T) 0/1 for T independent tasks.
        n_classes: K, or T for tasks.
        classes: names of the classes, for files; empty where nobody will read them.
    """

    name: str
    captions: Captions
    labels: IntArray
    n_classes: int
    classes: tuple[str, ...] = ()

    @property
    def multi_label(self) -> bool:
        """Whether there are T independent tasks rather than K exclusive classes."""
        return self.labels.ndim == 2

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of captions and labels; names do not count."""
        sha = hashlib.sha256(self.captions.digest.encode())
        sha.update(f"{self.labels.shape} {self.n_classes}".encode())
        sha.update(np.ascontiguousarray(self.labels, dtype="<i8").tobytes())
        return sha.hexdigest()


@dataclass(frozen=True, eq=False)
class Predictions:
    """What attackers answered on their test captions, one block a seed.

    Attributes:
        name: of the :class:`Labelled` they were trained on.
        seeds: the S seeds.
        images: S arrays (M_s,) of corpus rows.
        truth: S arrays (M_s,) or (M_s, T).
        probs: S arrays (M_s, K) of class probabilities, or (M_s, T) of task probabilities.
        classes: names of the classes.
    """

    name: str
    seeds: tuple[int, ...]
    images: tuple[IntArray, ...]
    truth: tuple[IntArray, ...]
    probs: tuple[FloatArray, ...]
    classes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        return zip(self.images, self.truth, self.probs, strict=True)

    def restricted_to(self, seeds: Sequence[int]) -> Predictions:
        """The blocks of some seeds."""
        at = [self.seeds.index(seed) for seed in seeds]
        return Predictions(
            self.name,
            tuple(seeds),
            tuple(self.images[i] for i in at),
            tuple(self.truth[i] for i in at),
            tuple(self.probs[i] for i in at),
            self.classes,
        )
