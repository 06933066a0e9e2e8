"""Backbones, which turn a picture into a captioner's visual input.

The input comes from the pixels, through our network or a published network
(``encoder.backbone=timm:NAME``). The input can also come from the annotated objects, or from
objects with their boxes (``encoder.backbone=boxes``).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.corpus.pictures import MissingPicture, Pictures, Pixels, Region
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.photos import VERSION as PIXELS_VERSION
from bias_pipeline.data.photos import in_size, pixel_table
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.models.pretrained import device_of
from bias_pipeline.pictures.vision.networks import VisionRegions, find_network

if TYPE_CHECKING:
    from torch import nn

NOTHING = 0  # padding of short lists of objects
ANNOTATIONS_VERSION = 2  # raise it whenever any prediction from annotations changes


class BackboneInputs(ABC):
    """The visual inputs of N captions."""

    def fit(self, train: IntArray) -> Self:
        """A copy that knows only the content of the training part; by default the same inputs."""
        del train
        return self

    @abstractmethod
    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """The (B, ...) arguments of the network of :meth:`Backbone.build`, by their names."""


class Backbone(ABC):
    """A source of visual inputs, with the network that reads them."""

    needs: ClassVar[str]  # what a data set must have, `pictures` or `objects`
    cache: str | None = None  # folder that caches the inputs; None for no cache

    @property
    @abstractmethod
    def spec(self) -> Mapping[str, object]:
        """All settings that decide the inputs, as plain data."""

    def require(self) -> None:  # noqa: B027 - most need nothing
        """Check, before any work, that all files that the backbone needs are present."""

    @abstractmethod
    def digest(self, data: LabelledCaptions) -> str:
        """SHA-256 (hex) of the inputs."""

    @abstractmethod
    def read(self, data: LabelledCaptions) -> BackboneInputs:
        """The visual inputs, which are computed only once."""

    @abstractmethod
    def build(self, inputs: BackboneInputs) -> nn.Module:
        """A network with fresh weights, which maps a batch to regions (B, R, ``output_dim``)."""


def pictures_of(data: LabelledCaptions) -> Pictures:
    if data.pictures is None:
        raise NotApplicableError(
            f"{data.name}: this encoder needs pictures, and there are none; name their folder "
            "(dataset.images=DIR) and use metric=imagecaptioner2, or choose an encoder of "
            "texts"
        )
    return data.pictures


class PictureBackbone(Backbone):
    """A backbone that uses the pictures themselves."""

    needs: ClassVar[str] = "pictures"

    def digest(self, data: LabelledCaptions) -> str:
        return pictures_of(data).digest


@dataclass(frozen=True)
class PixelBackbone(PictureBackbone):
    """A small convolutional network, trained from scratch with the captioner."""

    side: int  # pixels a side of the square input
    # Channels of the first layer; each following layer has twice as many, up to four times as many
    width: int
    grid: int = 8  # regions a side
    cache: str | None = None  # folder that caches the pictures as arrays, None for no cache

    @property
    def spec(self) -> Mapping[str, object]:
        settings = {"side": self.side, "width": self.width, "grid": self.grid}
        return {"sees": "pixels", "version": PIXELS_VERSION, **settings}

    def read(self, data: LabelledCaptions) -> PixelInputs:
        return PixelInputs(pixel_table(pictures_of(data), self.side, self.cache))

    def build(self, inputs: BackboneInputs) -> nn.Module:
        del inputs
        from bias_pipeline.pictures.captioners.nets import Convolutions

        return Convolutions(self.side, self.width, self.grid)


@dataclass(frozen=True, eq=False)
class PixelInputs(BackboneInputs):
    table: Pixels  # (N, side, side, 3)

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``pixels`` (B, 3, side, side) uint8."""
        return {"pixels": np.ascontiguousarray(self.table[rows].transpose(0, 3, 1, 2))}


@dataclass(frozen=True)
class AnnotationBackbone(Backbone):
    """Regions without pixels, made of the objects that the data set lists for a picture.

    This backbone is ours and not from a paper. With this backbone, the picture metric needs labels
    and objects but no pictures.
    """

    needs: ClassVar[str] = "objects"

    size: int  # how many numbers describe an object

    @property
    def spec(self) -> Mapping[str, object]:
        return {"sees": "annotations", "version": ANNOTATIONS_VERSION, "size": self.size}

    def digest(self, data: LabelledCaptions) -> str:
        text = repr([sorted(names) for names in _objects_of(data)])
        return hashlib.sha256(text.encode()).hexdigest()

    def read(self, data: LabelledCaptions) -> ObjectInputs:
        lines = [tuple(map(NamedObject, sorted(names))) for names in _objects_of(data)]
        return ObjectInputs.of_lines(lines)

    def build(self, inputs: BackboneInputs) -> nn.Module:
        assert isinstance(inputs, ObjectInputs)
        from bias_pipeline.pictures.captioners.nets import ListedObjects

        return ListedObjects(len(inputs.names) + 1, self.size, NOTHING)


def _objects_of(data: LabelledCaptions) -> Sequence[frozenset[str]]:
    if data.objects is None:
        raise NotApplicableError(
            f"{data.name}: encoder.backbone=annotations needs the objects of a data set, and "
            "there are none here (dataset.instances=FILE)"
        )
    return data.objects


class NamedObject(NamedTuple):
    """An object's name and, if its place is known, :data:`N_NUMBERS` numbers in [0, 1] for it."""

    name: str
    place: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class ObjectInputs(BackboneInputs):
    """The objects in the image of each of N captions, by name."""

    objects: Sequence[tuple[NamedObject, ...]]
    known: frozenset[str]  # names that have a vector; other names are ignored

    @classmethod
    def of_lines(cls, objects: Sequence[tuple[NamedObject, ...]]) -> Self:
        return cls(objects, frozenset(item.name for line in objects for item in line))

    def fit(self, train: IntArray) -> Self:
        """A copy that knows only the objects in the training part."""
        known = frozenset(item.name for row in train.tolist() for item in self.objects[row])
        retained = [tuple(item for item in line if item.name in known) for line in self.objects]
        return type(self)(retained, known)

    @cached_property
    def names(self) -> list[str]:
        return sorted(self.known)

    @cached_property
    def numbers(self) -> IntArray:
        """(N, R) the objects' numbers from 1 on, padded; an image without objects has "nothing"."""
        number = {name: place for place, name in enumerate(self.names, 1)}
        table = np.full((len(self.objects), max([1, *map(len, self.objects)])), NOTHING, np.int64)
        for row, line in zip(table, self.objects, strict=True):
            row[: len(line)] = [number[item.name] for item in line]
        return table

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``objects`` (B, R)."""
        return {"objects": self.numbers[rows]}


VERSION = 1  # raise it whenever any region changes


@dataclass(frozen=True)
class PublishedBackbone(PictureBackbone):
    """Regions from a published vision network: its last grid, or its tokens.

    The network is frozen. Its regions are stored as float16 for all seeds, recipes and sides of a
    metric. A fitted captioner may tune the network, and then reads pixels.
    """

    name: str  # the network's name in `encoder.backbone`
    cache: str | None = None  # folder that caches regions or pictures, None for no cache
    device: str = "auto"  # where to compute; `auto` is the first GPU if there is one
    tuned: int = 0  # the number of last blocks that learn

    @property
    def spec(self) -> Mapping[str, object]:
        versions = [VERSION, PIXELS_VERSION]
        files = dict(find_network(self.name).files)
        return {"sees": "regions", "version": versions, "files": files}

    def require(self) -> None:
        find_network(self.name)

    def read(self, data: LabelledCaptions) -> PixelInputs | RegionInputs:
        from bias_pipeline.models.picture_vectors import regions_of

        pictures, model = pictures_of(data), find_network(self.name)
        if self.tuned:
            return PixelInputs(pixel_table(pictures, model.side, self.cache))
        regions = regions_of(
            pictures,
            self.cache,
            self.spec,
            self.name,
            lambda: VisionRegions(model, device_of(self.device)),
        )
        return RegionInputs(regions)

    def build(self, inputs: BackboneInputs) -> nn.Module:
        assert isinstance(inputs, RegionInputs)
        from bias_pipeline.pictures.vision.net import Sight

        return Sight(inputs.table.shape[2])


@dataclass(frozen=True, eq=False)
class RegionInputs(BackboneInputs):
    """Regions computed by a frozen network."""

    table: npt.NDArray[np.float16]  # (N, R, D) float16

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``regions`` (B, R, D)."""
        return {"regions": np.array(self.table[rows])}


BOXES_VERSION = 1  # raise it whenever any prediction from boxes changes
N_NUMBERS = 5  # of a place: left, top, width, height (shares of the picture), and confidence
_DRAWN = 64  # pixels a side of the drawings whose regions are read


@dataclass(frozen=True)
class BoxBackbone(PictureBackbone):
    """Regions without pixels, made of the boxes of annotations or of a detector.

    This backbone is ours and not from a paper; it works without pictures. Objects that an edit
    hides have no box, so masked people are absent.
    """

    size: int  # how many numbers describe an object

    @property
    def spec(self) -> Mapping[str, object]:
        return {"sees": "boxes", "version": BOXES_VERSION, "size": self.size}

    def read(self, data: LabelledCaptions) -> BoxInputs:
        pictures = pictures_of(data)
        if pictures.regions is None and any(isinstance(file, Path) for file in pictures.files):
            raise NotApplicableError(
                f"{data.name}: encoder.backbone=boxes needs regions of pictures, and no file has "
                "them (dataset.regions=FILE, or dataset.instances=FILE)"
            )
        return BoxInputs.of_lines([placed_objects(pictures, row) for row in range(len(pictures))])

    def build(self, inputs: BackboneInputs) -> nn.Module:
        assert isinstance(inputs, BoxInputs)
        from bias_pipeline.pictures.captioners.nets import PlacedObjects

        return PlacedObjects(len(inputs.names) + 1, N_NUMBERS, self.size, NOTHING)


def placed_objects(pictures: Pictures, row: int) -> tuple[NamedObject, ...]:
    """The visible annotated objects of one picture, in the order of the annotations."""
    file = pictures.files[row]
    if file is None:
        return ()
    if isinstance(file, Path | MissingPicture):
        regions = in_size(pictures.regions_of(row) or (), file)
    else:
        regions = file.draw(_DRAWN).regions
    return tuple(
        NamedObject(region.category, _place(region))
        for region in regions
        if all(region.size)
        and not region.is_outside
        and not any(edit.hides(region.category) for edit in pictures.edits)
    )


def _place(region: Region) -> tuple[float, ...]:
    """The place of a region, cut at the picture's edges, and its confidence."""
    height, width = region.size
    left, top, wide, high = region.box
    ends = [left / width, top / height, (left + wide) / width, (top + high) / height]
    first_x, first_y, last_x, last_y = (min(max(end, 0.0), 1.0) for end in ends)
    return first_x, first_y, last_x - first_x, last_y - first_y, region.score


@dataclass(frozen=True, eq=False)
class BoxInputs(ObjectInputs):
    @cached_property
    def _places(self) -> Float32Array:
        """(N, R, 5) the places of the objects, which are 0 where a place is unknown."""
        places = np.zeros((*self.numbers.shape, N_NUMBERS), np.float32)
        for row, line in zip(places, self.objects, strict=True):
            for column, item in enumerate(line):
                row[column] = item.place
        return places

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``objects`` (B, R) and ``places`` (B, R, 5)."""
        return {**super().batch(rows), "places": self._places[rows]}
