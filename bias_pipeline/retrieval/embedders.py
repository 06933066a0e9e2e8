"""Pictures and texts as vectors of one space; each is embedded once and cached.

Networks that are loaded as a whole have two towers, which are two views of one network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.data.regions import Crop, crop_cache_key, crop_person
from bias_pipeline.models.blocks import BlockStore
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.models.text_vectors import TextEmbedder, embed_missing, vectors_from

if TYPE_CHECKING:
    from PIL.Image import Image

Normalise = Literal["both", "texts"]

VERSION = 1  # raise it whenever any vector changes
_BATCH = 64  # at once


class Embedder(Protocol):
    """Items to vectors; frozen, but possibly debiased."""

    @property
    def spec(self) -> Mapping[str, object]: ...

    def embed(self, items: Any, /) -> Float32Array:
        """(N, D) vectors of length 1."""


class Matcher(Protocol):
    """Scores pairs of picture and text, with one pass for every pair."""

    def require(self) -> None:
        """Check that the model can do it."""

    def match(self, pictures: Pictures, texts: Sequence[str], pairs: IntArray, /) -> Float32Array:
        """(P,) matching scores of pairs (P, 2) of a picture and a text; higher is better."""


@dataclass(frozen=True)
class DualEncoder:
    """Pictures and texts as vectors of one space; their products are similarities."""

    images: Embedder  # of `Pictures`
    texts: Embedder  # of texts
    matcher: Matcher | None = None  # the same model's matching mode, None if it has none


class Photos(Protocol):
    """The picture tower of a model."""

    def prepare(self, photo: Image, /) -> Float32Array:
        """(3, H, W) a photo as the network takes it."""

    def describe(self, photos: Sequence[Float32Array], /) -> Float32Array:
        """(N, D) a vector for each photo."""


class Texts(Protocol):
    """The text tower of a model."""

    def describe(self, texts: Sequence[str], /) -> Float32Array:
        """(N, D) a vector of length 1 for each text."""


class LazyDualModel(Protocol):
    """A model on disk; its towers are loaded when needed."""

    @property
    def name(self) -> str:
        """As the user wrote it."""

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides its vectors."""

    def photos(self, *, normalize: bool) -> Photos:
        """The embedder of pictures, with vectors of length 1 or as the model makes them."""

    def texts(self) -> Texts:
        """The embedder of texts."""


@dataclass(frozen=True)
class ModelOnDevice:
    """A model on disk, the base of :class:`LazyDualModel`."""

    model: Pretrained  # the same
    device: str  # where it computes

    @property
    def name(self) -> str:
        return self.model.name


def dual_of(
    towers: LazyDualModel,
    crop: Crop,
    cache: str | None,
    normalise: Normalise = "both",
    matcher: Matcher | None = None,
) -> DualEncoder:
    """A model as a pair of embedders."""
    images = ImageEmbedder(towers, cache, crop=crop, normalise=normalise == "both")
    return DualEncoder(images, QueryEmbedder(towers, cache), matcher)


@dataclass(frozen=True)
class _CachedEmbedder:
    """A cache of a model's vectors."""

    model: LazyDualModel  # the model
    cache: str | None  # folder that caches vectors, None for memory only
    # The vectors in memory
    memory: dict[str, Float32Array] = field(default_factory=dict, compare=False, repr=False)

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests."""
        return {"job": "dual", "version": VERSION, **self.model.spec}

    def _vectors(self, keys: Sequence[str], load: Callable[[], TextEmbedder]) -> Float32Array:
        """(N, D) vectors by key; missing ones are computed."""
        distinct = list(dict.fromkeys(keys))
        place = {key: row for row, key in enumerate(distinct)}
        rows = [place[key] for key in keys]
        if self.cache is not None:
            store = BlockStore(Path(self.cache), self.spec, self.model.name)
            embed_missing(distinct, store, load)
            return vectors_from(distinct, store)[rows]
        missing = [key for key in distinct if key not in self.memory]
        if missing:
            self.memory.update(zip(missing, load().embed(missing), strict=True))
        return np.stack([self.memory[key] for key in keys])


@dataclass(frozen=True)
class ImageEmbedder(_CachedEmbedder):
    """The picture tower of a model."""

    crop: Crop = "none"  # the part of pictures to use, see `crop_person`
    normalise: bool = True  # whether vectors are of length 1

    @property
    def spec(self) -> Mapping[str, object]:
        raw = {} if self.normalise else {"normalise": False}
        return {**super().spec, "source": "pictures", **raw}

    def embed(self, items: Pictures, /) -> Float32Array:
        """(N, D) vectors of pictures, which must exist."""
        keys = [crop_cache_key(items, row, self.crop) for row in range(len(items))]
        return self._vectors(keys, lambda: _Shown(self, items, keys))


class _Shown:
    """Adapts pictures by key to the interface for texts."""

    cut = ()

    def __init__(self, how: ImageEmbedder, pictures: Pictures, keys: Sequence[str]) -> None:
        self.net = how.model.photos(normalize=how.normalise)
        self.pictures, self.crop = pictures, how.crop
        self.rows = {key: row for row, key in enumerate(keys)}

    def embed(self, keys: Sequence[str]) -> Float32Array:
        parts = []
        for start in range(0, len(keys), _BATCH):
            rows = [self.rows[key] for key in keys[start : start + _BATCH]]
            shown = [self.net.prepare(crop_person(self.pictures, row, self.crop)) for row in rows]
            parts.append(self.net.describe(shown))
        return np.concatenate(parts)


@dataclass(frozen=True)
class QueryEmbedder(_CachedEmbedder):
    """The text tower of a model."""

    @property
    def spec(self) -> Mapping[str, object]:
        return {**super().spec, "source": "texts"}

    def embed(self, items: Sequence[str], /) -> Float32Array:
        """(N, D) vectors of length 1 of texts."""
        return self._vectors(items, lambda: _Read(self.model.texts()))


@dataclass(frozen=True)
class _Read:
    """Adapts the text tower to the interface for texts."""

    net: Texts
    cut: tuple[int, ...] = ()

    def embed(self, texts: Sequence[str]) -> Float32Array:
        starts = range(0, len(texts), _BATCH)
        return np.concatenate([self.net.describe(texts[s : s + _BATCH]) for s in starts])


class DualEncoderModel(Protocol):
    """A network with separate vectors of photos and texts."""

    def prepare(self, photo: Image, /) -> Float32Array:
        """(3, H, W) a photo as the network takes it."""

    def photos(self, photos: Sequence[Float32Array], /, *, normalize: bool) -> Float32Array:
        """(N, D) a vector for each photo, by itself."""

    def texts(self, texts: Sequence[str], /) -> Float32Array:
        """(N, D) a vector of length 1 for each text, by itself."""


@dataclass(frozen=True)
class PhotoTower:
    """Pictures by themselves."""

    net: DualEncoderModel  # of both towers
    normalize: bool  # whether vectors are of length 1

    def prepare(self, photo: Image) -> Float32Array:
        return self.net.prepare(photo)

    def describe(self, photos: Sequence[Float32Array]) -> Float32Array:
        return self.net.photos(photos, normalize=self.normalize)


@dataclass(frozen=True)
class TextTower:
    """Texts by themselves."""

    net: DualEncoderModel  # of both towers

    def describe(self, texts: Sequence[str]) -> Float32Array:
        return self.net.texts(texts)


@dataclass(frozen=True)
class OneSpaceModel(ModelOnDevice, ABC):
    """A model on disk that is loaded as a whole."""

    @property
    @abstractmethod
    def net(self) -> DualEncoderModel:
        """The network, loaded at first use."""

    def photos(self, *, normalize: bool) -> PhotoTower:
        """The image encoder; its vectors are scaled to length 1 or left as the model gives them."""
        return PhotoTower(self.net, normalize)

    def texts(self) -> TextTower:
        """The text encoder."""
        return TextTower(self.net)
