"""The protocol of the built-in data set, which draws its own pictures.

Code that needs pictures without a download uses the class named in ``conf/dataset/scenes.yaml``.
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
    """A drawn picture in which no person has a mark that shows a group."""

    id: int  # the image's id
    pixels: Pixels
    groups: Mapping[str, str]  # the group that is not shown, by label column


@dataclass(frozen=True)
class Planted:
    """The bias that was built into a captioner and is therefore known."""

    value: float  # a share, 0 without bias
    about: str  # the things of which it is a share


class Generator(Dataset):
    """A data set that draws any number of pictures and writes captions for them."""

    @classmethod
    @abstractmethod
    def activities(cls) -> Mapping[str, str]:
        """A mapping from the name of each activity to a text about a person who does it."""

    @classmethod
    @abstractmethod
    def draw_captioned(
        cls, n_images: int, seed: int, association: float
    ) -> tuple[Pictures, list[str]]:
        """Draw pictures, and write a caption for each.

        ``association`` is the share of activities in captions, in [0, 1], that are replaced by
        activities typical of the person's group.
        """

    @classmethod
    @abstractmethod
    def numbers(cls, pictures: Pictures, seed: int) -> Sequence[int]:
        """The numbers of pictures drawn with this seed; empty for pictures drawn otherwise."""

    @classmethod
    @abstractmethod
    def planted_bias(cls, captioner: str, attribute: str, metric: str) -> Mapping[str, Planted]:
        """For each headline number of a metric, the planted bias; empty if it is unknown."""

    @abstractmethod
    def unmarked_pictures(self, side: int) -> Iterator[UnmarkedPicture]:
        """The pictures without the marks that show groups, ``side`` pixels wide and high.

        Activities, objects and places do not change. So they are as common in each group as before.
        """

    @abstractmethod
    def unmarked_captions(self, captioner: str) -> Mapping[int, str]:
        """By image id, the captioner's captions of the pictures without marks."""


def is_generator(target: str) -> bool:
    """Whether a dotted name is that of the class of the built-in data set.

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
