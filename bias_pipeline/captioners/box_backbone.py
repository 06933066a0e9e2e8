"""``encoder.backbone=boxes``: annotated objects and their boxes, without pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.captioners.backbones import (
    NOTHING,
    BackboneInputs,
    PictureBackbone,
    pictures_of,
)
from bias_pipeline.corpus.pictures import Elsewhere, Pictures, Region
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.vision.drawn import in_size

if TYPE_CHECKING:
    from torch import nn

VERSION = 1  # raise it whenever any prediction from boxes changes
N_NUMBERS = 5  # of a place: left, top, width and height as shares of the picture, and certainty
_DRAWN = 64  # pixels a side of drawings, whose regions are read


class Thing(NamedTuple):
    """An object's name and place: :data:`N_NUMBERS` numbers in [0, 1]."""

    name: str
    place: tuple[float, ...]


@dataclass(frozen=True)
class BoxBackbone(PictureBackbone):
    """Regions without pixels: the boxes of annotations or of a detector.

    Ours, in no paper. It works without the pictures. Objects that an edit hides have no box, so
    masked people are absent.
    """

    size: int  # numbers a thing is described by

    @property
    def spec(self) -> Mapping[str, object]:
        """The size."""
        return {"sees": "boxes", "version": VERSION, "size": self.size}

    def read(self, data: LabelledCaptions) -> BoxInputs:
        """The objects in each picture. Raises: NotApplicableError: if there are no regions."""
        pictures = pictures_of(data)
        if pictures.regions is None and any(isinstance(file, Path) for file in pictures.files):
            raise NotApplicableError(
                f"{data.name}: encoder.backbone=boxes needs regions of pictures, and no file has "
                "them (dataset.regions=FILE, or dataset.instances=FILE)"
            )
        return BoxInputs.of([things_in(pictures, row) for row in range(len(pictures))])

    def build(self, inputs: BackboneInputs) -> nn.Module:
        """See :class:`~bias_pipeline.captioners.backbone_nets.Placed`."""
        assert isinstance(inputs, BoxInputs)
        from bias_pipeline.captioners.backbone_nets import Placed

        return Placed(len(inputs.names) + 1, N_NUMBERS, self.size, NOTHING)


def things_in(pictures: Pictures, row: int) -> tuple[Thing, ...]:
    """The visible annotated objects of one picture, in the order of annotation."""
    file = pictures.files[row]
    if file is None:
        return ()
    if isinstance(file, Path | Elsewhere):
        regions = in_size(pictures.known(row) or (), file)
    else:
        regions = file.draw(_DRAWN).regions
    return tuple(
        Thing(region.category, _place(region))
        for region in regions
        if all(region.size)
        and not region.outside
        and not any(edit.hides(region.category) for edit in pictures.edits)
    )


def _place(region: Region) -> tuple[float, ...]:
    """Its place, cut at the picture's edges, and its confidence."""
    height, width = region.size
    left, top, wide, high = region.box
    ends = [left / width, top / height, (left + wide) / width, (top + high) / height]
    first_x, first_y, last_x, last_y = (min(max(end, 0.0), 1.0) for end in ends)
    return first_x, first_y, last_x - first_x, last_y - first_y, region.score


@dataclass(frozen=True, eq=False)
class BoxInputs(BackboneInputs):
    """Things and where they are."""

    things: Sequence[tuple[Thing, ...]]  # in the picture of each of N captions
    known: frozenset[str]  # names that have a vector; others are ignored

    @classmethod
    def of(cls, things: Sequence[tuple[Thing, ...]]) -> BoxInputs:
        """All things of N captions' pictures, each known."""
        return cls(things, frozenset(thing.name for line in things for thing in line))

    def fit(self, train: IntArray) -> BoxInputs:
        """Keep only objects of the training part."""
        known = frozenset(thing.name for row in train.tolist() for thing in self.things[row])
        retained = [tuple(thing for thing in line if thing.name in known) for line in self.things]
        return BoxInputs(retained, known)

    @cached_property
    def names(self) -> list[str]:
        """The known things by name, sorted."""
        return sorted(self.known)

    @cached_property
    def _arrays(self) -> tuple[IntArray, Float32Array]:
        """(N, R) numbers of things, from 1 on, filled up, and (N, R, 5) their places."""
        number = {name: place for place, name in enumerate(self.names, 1)}
        shape = (len(self.things), max([1, *map(len, self.things)]))
        numbers = np.full(shape, NOTHING, np.int64)
        places = np.zeros((*shape, N_NUMBERS), np.float32)
        for row, line in enumerate(self.things):
            for column, thing in enumerate(line):
                numbers[row, column] = number[thing.name]
                places[row, column] = thing.place
        return numbers, places

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``objects`` (B, R) and ``places`` (B, R, 5)."""
        numbers, places = self._arrays
        return {"objects": numbers[rows], "places": places[rows]}
