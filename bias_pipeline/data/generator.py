"""The protocol of the embedded data set, which draws its own pictures.

Code that needs pictures without a download uses the class that ``conf/dataset/scenes.yaml`` names.
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import yaml

from bias_pipeline.corpus.pictures import Pictures, Pixels
from bias_pipeline.data.base import Dataset
from bias_pipeline.declared import TARGET, known_name
from bias_pipeline.io.paths import conf_file


@dataclass(frozen=True)
class UnmarkedPicture:
    """A drawn picture in which nobody bears a mark of a group."""

    id: int  # the image's id
    pixels: Pixels
    groups: Mapping[str, str]  # the group that is not shown, by label column


@dataclass(frozen=True)
class Planted:
    """The bias that a built-in captioner is known to have."""

    value: float  # a share, 0 without bias
    about: str  # the things of which it is a share


class Generator(Dataset):
    """A data set that draws any number of pictures and describes them."""

    @classmethod
    @abstractmethod
    def activities(cls) -> Mapping[str, str]:
        """Map the name of each activity to a text about a person who does it."""

    @classmethod
    @abstractmethod
    def draw_captioned(
        cls, n_images: int, seed: int, association: float
    ) -> tuple[Pictures, list[str]]:
        """Pictures, and a caption of each picture.

        ``association`` is the share of activities in captions, in [0, 1], that are replaced by
        activities typical of the person's group.
        """

    @classmethod
    @abstractmethod
    def numbers(cls, pictures: Pictures, seed: int) -> Sequence[int]:
        """Numbers of the pictures in the world of a seed; empty for pictures of another world."""

    @classmethod
    @abstractmethod
    def planted_bias(cls, captioner: str, attribute: str, metric: str) -> Mapping[str, Planted]:
        """The planted bias for each headline of a metric; empty if it is unknown."""

    @abstractmethod
    def unmarked_pictures(self, side: int) -> Iterator[UnmarkedPicture]:
        """The pictures without marks of groups, ``side`` pixels wide and high.

        Activities, objects and places stay, and are as common in each group as before.
        """

    @abstractmethod
    def unmarked_captions(self, captioner: str) -> Mapping[int, str]:
        """The captioner's captions of the pictures without marks, by image id."""


def is_generator(target: str) -> bool:
    """Whether a dotted name names the embedded data set's class.

    Example:
        >>> is_generator("bias_pipeline.data.coco.CocoDataset")
        False
    """
    module, _, name = target.rpartition(".")
    return known_name(module, name) == known_name(*_target())


def generator() -> type[Generator]:
    """The class that ``conf/dataset/scenes.yaml`` names.

    Example:
        >>> len(generator().activities()), generator().activities()["surfing"]
        (40, 'a person riding a wave on a surfboard')
    """
    module, name = _target()
    kind: type[Generator] = getattr(importlib.import_module(module), name)
    return kind


@cache
def _target() -> tuple[str, str]:
    settings = yaml.safe_load(conf_file("dataset", "scenes").read_text(encoding="utf-8"))
    module, _, name = str(settings[TARGET]).rpartition(".")
    return module, name
