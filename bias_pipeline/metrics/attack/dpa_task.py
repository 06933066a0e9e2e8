"""What attackers of DPA read and guess in one direction: label vectors, written as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.split import SMALLEST_GROUP
from bias_pipeline.metrics.value_names import PartName


@dataclass(frozen=True, eq=False)
class PredictionTask:
    """What attackers of one direction guess, on M images."""

    name: str  # the direction
    inputs: Captions  # M label vectors written as words
    labels: IntArray  # (M,) true classes, or (M, T) 0/1 for several tasks
    predicted: IntArray  # classes by the model's captions, in the same shape
    classes: tuple[str, ...]  # names of the classes or tasks
    lacking: str = ""  # why the direction cannot be scored, empty if it can
    note: str = ""  # a sentence for readers, empty if there is none

    def part(self, what: str = "", **fields: str) -> PartName:
        """The name of a number of this direction."""
        return PartName(what, direction=self.name, **fields)

    @property
    def images(self) -> IntArray:
        """(M,) rows of the corpus."""
        return self.inputs.image_rows

    @property
    def several(self) -> bool:
        """Whether there are several tasks rather than one variable."""
        return self.labels.ndim == 2


def common_groups(labels: IntArray, predicted: IntArray, n_groups: int) -> IntArray:
    """The groups that are labelled and named often enough for attackers, without the others."""
    groups = np.arange(n_groups)
    while True:
        both = np.isin(labels, groups) & np.isin(predicted, groups)
        sizes = [np.bincount(classes[both], minlength=n_groups) for classes in (labels, predicted)]
        frequent = np.flatnonzero(np.min(sizes, axis=0) >= SMALLEST_GROUP)
        if len(frequent) == len(groups):
            return groups
        groups = frequent


def written(vectors: Sequence[Sequence[str]], rows: IntArray) -> Captions:
    """Label vectors as captions, one word a label that is set."""
    texts = [" ".join(name.replace(" ", "_") for name in vector) for vector in vectors]
    return Captions.from_texts(texts, rows.tolist())
