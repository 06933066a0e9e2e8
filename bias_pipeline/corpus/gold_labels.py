"""Labels that people gave to some of the machine-labelled images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.image_ids import first_ids, short_id
from bias_pipeline.errors import DataError


@dataclass(frozen=True)
class GoldLabels:
    """The true labels of some images, by image id."""

    file: str  # the file that the labels were read from
    attribute: str  # the attribute's name
    groups: Mapping[str, str]  # the group of each image that belongs to a group
    unsure: frozenset[str]  # images whose group people cannot tell
    others: frozenset[str]  # images of no group for another reason
    # Each image's chance of having been drawn; empty: all had the same chance
    chances: Mapping[str, float]
    notes: Sequence[str] = ()

    @cached_property
    def digest(self) -> str:
        """A hash of everything in the gold labels on which scores depend."""
        content = [self.attribute, self.groups, sorted(self.unsure), sorted(self.others)]
        text = json.dumps([*content, self.chances], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def labels_in(self, corpus: Corpus) -> tuple[IntArray, IntArray, Float64Array]:
        """(n,) arrays for images with gold labels: rows, labels, and chances of being drawn.

        A label is the index of a group, K if people cannot tell the group, and K + 1 for any other
        label.
        """
        names = corpus.groupings[self.attribute].names
        number = {name: code for code, name in enumerate(names)}
        codes = {image: number.get(group, len(names) + 1) for image, group in self.groups.items()}
        codes |= dict.fromkeys(self.unsure, len(names)) | dict.fromkeys(self.others, len(names) + 1)
        place = {image: row for row, image in enumerate(corpus.ids)}
        image_of = {
            place[name]: image
            for image in codes
            if (name := image if image in place else short_id(image)) in place
        }
        if not image_of:
            raise DataError(
                f"{self.file}: the gold labels are of other images, such as {first_ids(codes)}; "
                f"the scored images are {first_ids(corpus.ids)}"
            )
        rows = sorted(image_of)
        chances = [self.chances.get(image_of[row], 1.0) for row in rows]
        return (
            np.array(rows, np.int64),
            np.array([codes[image_of[row]] for row in rows], np.int64),
            np.array(chances, np.float64),
        )
