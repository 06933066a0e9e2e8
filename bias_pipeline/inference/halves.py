"""Networks that are loaded whole: their halves are two views of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bias_pipeline.inference.embedders import FloatArray, Found

if TYPE_CHECKING:
    from PIL.Image import Image


class OneSpace(Protocol):
    """A network that gives vectors of photos and of texts, either by itself."""

    def prepare(self, photo: Image, /) -> FloatArray:
        """(3, H, W) a photo as the network takes it."""

    def photos(self, photos: Sequence[FloatArray], /, *, normalize: bool) -> FloatArray:
        """(N, D) a vector for each photo, by itself."""

    def texts(self, texts: Sequence[str], /) -> FloatArray:
        """(N, D) a vector of length 1 for each text, by itself."""


@dataclass(frozen=True)
class PhotoHalf:
    """Pictures by themselves.

    Attributes:
        net: of both halves.
        normalize: whether vectors are of length 1.
    """

    net: OneSpace
    normalize: bool

    def prepare(self, photo: Image) -> FloatArray:
        """(3, H, W) a photo as the network takes it."""
        return self.net.prepare(photo)

    def describe(self, photos: Sequence[FloatArray]) -> FloatArray:
        """(N, D) a vector for each photo."""
        return self.net.photos(photos, normalize=self.normalize)


@dataclass(frozen=True)
class TextHalf:
    """Texts by themselves.

    Attributes:
        net: of both halves.
    """

    net: OneSpace

    def describe(self, texts: Sequence[str]) -> FloatArray:
        """(N, D) a vector of length 1 for each text."""
        return self.net.texts(texts)


@dataclass(frozen=True)
class FoundOneSpace(Found, ABC):
    """A model that was found and is loaded whole."""

    @property
    @abstractmethod
    def net(self) -> OneSpace:
        """The network, loaded when it is first asked."""

    def photos(self, *, normalize: bool) -> PhotoHalf:
        """The half of pictures, of vectors of length 1 or as the model makes them."""
        return PhotoHalf(self.net, normalize)

    def texts(self) -> TextHalf:
        """The half of texts."""
        return TextHalf(self.net)
