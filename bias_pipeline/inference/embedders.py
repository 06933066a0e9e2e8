"""Pictures and texts as vectors of one space: each is embedded once for whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.texts import TextEmbedder, embed_missing, vectors_from
from bias_pipeline.models.clip import ClipPhotos, ClipTexts
from bias_pipeline.models.pretrained import Pretrained, device_of
from bias_pipeline.vision.people import Crop, look, look_key

FloatArray = npt.NDArray[np.float32]
Normalise = Literal["both", "texts"]

VERSION = 1  # raise it whenever any vector changes
_BATCH = 64  # at once


class Embedder(Protocol):
    """Items to vectors; nothing of it is trained, though it may be debiased.

    Attributes:
        spec: everything that decides its vectors, as plain data.
    """

    @property
    def spec(self) -> Mapping[str, object]: ...  # noqa: D102

    def embed(self, items: Any, /) -> FloatArray:
        """(N, D) vectors of length 1."""


@dataclass(frozen=True)
class DualEncoder:
    """Pictures and texts as vectors of one space, whose products are their similarity.

    Attributes:
        images: of :class:`~bias_pipeline.corpus.pictures.Pictures`.
        texts: of texts.
    """

    images: Embedder
    texts: Embedder


def clip_dual(
    model: Pretrained, crop: Crop, device: str, cache: str | None, normalise: Normalise = "both"
) -> DualEncoder:
    """A CLIP as a pair of embedders.

    Args:
        model: that was found.
        crop: what of pictures is shown, see :func:`~bias_pipeline.vision.people.look`.
        device: where it computes.
        cache: folder of vectors, None to keep them in memory.
        normalise: whose vectors are of length 1.
    """
    images = ClipImages(model, device, cache, crop=crop, normalise=normalise == "both")
    return DualEncoder(images, ClipQueries(model, device, cache))


@dataclass(frozen=True)
class _Clip:
    model: Pretrained
    device: str
    cache: str | None
    memory: dict[str, npt.NDArray[np.float32]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests."""
        return {"job": "dual", "version": VERSION, "files": dict(self.model.files)}

    def _vectors(self, keys: Sequence[str], load: Callable[[], TextEmbedder]) -> FloatArray:
        """(N, D) vectors by what they are of, those that are not there yet computed."""
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
class ClipImages(_Clip):
    """The picture half of a CLIP.

    Attributes:
        crop: what of pictures is shown.
        normalise: whether vectors are of length 1.
    """

    crop: Crop = "none"
    normalise: bool = True

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests."""
        raw = {} if self.normalise else {"normalise": False}
        return {**super().spec, "source": "pictures", **raw}

    def embed(self, items: Pictures, /) -> FloatArray:
        """(N, D) vectors of pictures, each of which is there.

        Raises:
            BiasPipelineError: if a picture cannot be read, or the model cannot be loaded.
        """
        keys = [look_key(items, row, self.crop) for row in range(len(items))]
        return self._vectors(keys, lambda: _Shown(self, items, keys))


class _Shown:
    """Pictures under their keys, as texts are embedded."""

    n_cut = 0

    def __init__(self, how: ClipImages, pictures: Pictures, keys: Sequence[str]) -> None:
        self.net = _photos(how.model, how.device, how.normalise)
        self.pictures, self.crop = pictures, how.crop
        self.rows = {key: row for row, key in enumerate(keys)}

    def embed(self, keys: Sequence[str]) -> FloatArray:
        found = []
        for start in range(0, len(keys), _BATCH):
            rows = [self.rows[key] for key in keys[start : start + _BATCH]]
            shown = [self.net.prepare(look(self.pictures, row, self.crop)) for row in rows]
            found.append(self.net.describe(shown))
        return np.concatenate(found)


@dataclass(frozen=True)
class ClipQueries(_Clip):
    """The text half of a CLIP."""

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests."""
        return {**super().spec, "source": "texts"}

    def embed(self, items: Sequence[str], /) -> FloatArray:
        """(N, D) vectors of length 1 of texts.

        Raises:
            BiasPipelineError: if the model cannot be loaded.
        """
        return self._vectors(items, lambda: _Read(_texts(self.model, self.device)))


@dataclass(frozen=True)
class _Read:
    """Texts, as texts are embedded."""

    net: ClipTexts
    n_cut: int = 0

    def embed(self, texts: Sequence[str]) -> FloatArray:
        starts = range(0, len(texts), _BATCH)
        return np.concatenate([self.net.describe(texts[s : s + _BATCH]) for s in starts])


@lru_cache(maxsize=1)
def _photos(model: Pretrained, device: str, normalise: bool) -> ClipPhotos:
    """The model that was asked last."""
    return ClipPhotos(model, device_of(device), normalize=normalise)


@lru_cache(maxsize=1)
def _texts(model: Pretrained, device: str) -> ClipTexts:
    """The model that was asked last."""
    return ClipTexts(model, device_of(device), normalize=True)
