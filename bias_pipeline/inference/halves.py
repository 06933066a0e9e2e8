"""Networks that are loaded as a whole; the halves are two views of one network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bias_pipeline.array_types import Float32Array
from bias_pipeline.inference.embedders import Found

if TYPE_CHECKING:
    from PIL.Image import Image


class DualEncoderModel(Protocol):
    """A network with separate vectors of photos and texts."""

    def prepare(self, photo: Image, /) -> Float32Array:
        """(3, H, W) a photo as the network takes it."""

    def photos(self, photos: Sequence[Float32Array], /, *, normalize: bool) -> Float32Array:
        """(N, D) a vector for each photo, by itself."""

    def texts(self, texts: Sequence[str], /) -> Float32Array:
        """(N, D) a vector of length 1 for each text, by itself."""


@dataclass(frozen=True)
class PhotoHalf:
    """Pictures by themselves.

    Attributes:
        net: of both halves.
        normalize: whether vectors are of length 1.
    """

    net: DualEncoderModel
    normalize: bool

    def prepare(self, photo: Image) -> Float32Array:
        """(3, H, W) a photo as the network takes it."""
        return self.net.prepare(photo)

    def describe(self, photos: Sequence[Float32Array]) -> Float32Array:
        """(N, D) a vector for each photo."""
        return self.net.photos(photos, normalize=self.normalize)


@dataclass(frozen=True)
class TextHalf:
    """Texts by themselves.

    Attributes:
        net: of both halves.
    """

    net: DualEncoderModel

    def describe(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector of length 1 for each text."""
        return self.net.texts(texts)


@dataclass(frozen=True)
class FoundOneSpace(Found, ABC):
    """A model on disk that is loaded as a whole."""

    @property
    @abstractmethod
    def net(self) -> DualEncoderModel:
        """The network, loaded at first use."""

    def photos(self, *, normalize: bool) -> PhotoHalf:
        """The image encoder, with vectors of length 1 or the model's own."""
        return PhotoHalf(self.net, normalize)

    def texts(self) -> TextHalf:
        """The text encoder."""
        return TextHalf(self.net)
