"""The image and text encoders ("towers") of a model, found by its files.

Networks of two modes give separate vectors, and matching scores of pairs; a picture is encoded
once for all of its texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.data.photos import read_photo
from bias_pipeline.data.regions import Crop, crop_cache_key, crop_person
from bias_pipeline.errors import UsageError
from bias_pipeline.io import signals
from bias_pipeline.io.progress import bar, track
from bias_pipeline.models import clip
from bias_pipeline.models.clip import ClipPhotos, ClipTexts
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.retrieval.embedders import DualEncoderModel, ModelOnDevice, OneSpaceModel
from bias_pipeline.retrieval.fiber.folder import LONGEST, Head, find_fiber, is_fiber
from bias_pipeline.retrieval.open_clip_folder import find_open_clip, is_open_clip, quick_gelu

if TYPE_CHECKING:
    from PIL.Image import Image

    from bias_pipeline.retrieval.embedders import LazyDualModel, Photos, Texts
    from bias_pipeline.retrieval.fiber.model import FiberModel
    from bias_pipeline.retrieval.open_clip import OpenClipModel
    from bias_pipeline.retrieval.two_modes import BlipModel

_SHOWN = 8  # pictures per batch, each with all of its texts


class CrossEncoder(Protocol):
    """A network with matching scores of pairs."""

    def prepare(self, photo: Image, /) -> Float32Array:
        """(3, H, W) a photo as the network takes it."""

    def encode_texts(self, texts: Sequence[str], /) -> Any:
        """Texts, encoded as far as possible without a picture."""

    def match(self, photos: Sequence[Float32Array], texts: Any, pairs: IntArray, /) -> Float32Array:
        """(P,) matching scores; pairs (P, 2) are indices of a photo and a text."""


class TwoModes(CrossEncoder, DualEncoderModel, Protocol):
    """A network with vectors and matching scores."""

    @property
    def matches(self) -> bool:
        """Whether its weights have a matching head."""

    def prepare(self, photo: Image, /) -> Float32Array:
        """(3, H, W) a photo as the network takes it, in either mode."""


@dataclass(frozen=True)
class TwoModesModel(OneSpaceModel, ABC):
    """A model of two modes on disk."""

    judging: ClassVar[str]  # a published model of its kind with a matching head

    @property
    @abstractmethod
    def net(self) -> TwoModes:
        """The network, loaded at first use."""

    @property
    def cross_encoder(self) -> CrossEncoder:
        """The network, checked for a matching head."""
        net = self.net
        if not net.matches:
            raise UsageError(
                f"metric.rerank: the weights in {self.name} have no matching head (itm_score); "
                f"name a model that has one, such as {self.judging}, or set "
                "metric.rerank=null"
            )
        return net


class HasCrossEncoder(Protocol):
    """A model on disk; its network is loaded at first use."""

    @property
    def cross_encoder(self) -> CrossEncoder:
        """The network."""


@dataclass(frozen=True)
class PairMatcher:
    """Scores each pair once."""

    model: HasCrossEncoder  # that was found
    crop: Crop  # the part of pictures to use
    # Scores by picture and text
    memory: dict[tuple[str, str], float] = field(default_factory=dict, compare=False, repr=False)

    def require(self) -> None:
        assert self.model.cross_encoder

    def match(self, pictures: Pictures, texts: Sequence[str], pairs: IntArray, /) -> Float32Array:
        rows = pairs[:, 0].tolist()
        looks = {row: crop_cache_key(pictures, row, self.crop) for row in set(rows)}
        keys = [(looks[row], texts[text]) for row, text in pairs.tolist()]
        missing: dict[str, tuple[int, set[str]]] = {}
        for key, row in zip(keys, rows, strict=True):
            if key not in self.memory:
                missing.setdefault(key[0], (row, set()))[1].add(key[1])
        if missing:
            self._score_missing(pictures, missing)
        return np.array([self.memory[key] for key in keys], np.float32)

    def _score_missing(
        self, pictures: Pictures, missing: Mapping[str, tuple[int, set[str]]]
    ) -> None:
        cross_encoder = self.model.cross_encoder
        texts = sorted(set().union(*(needed for _, needed in missing.values())))
        encoded = cross_encoder.encode_texts(texts)
        numbers = {text: k for k, text in enumerate(texts)}
        names = list(missing)
        starts = range(0, len(names), _SHOWN)
        with bar("pictures judged with texts"):
            for start in track(starts, len(starts)):
                shown = names[start : start + _SHOWN]
                wanted = [
                    (k, text) for k, name in enumerate(shown) for text in sorted(missing[name][1])
                ]
                pairs = np.array([(k, numbers[text]) for k, text in wanted])
                photos = [
                    cross_encoder.prepare(crop_person(pictures, missing[name][0], self.crop))
                    for name in shown
                ]
                scores = cross_encoder.match(photos, encoded, pairs).tolist()
                for (k, text), value in zip(wanted, scores, strict=True):
                    self.memory[shown[k], text] = value
                signals.stop_if_requested()


@dataclass(frozen=True)
class ClipTowers(ModelOnDevice):
    """A CLIP or SigLIP on disk."""

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files."""
        return {"files": dict(self.model.files)}

    def photos(self, *, normalize: bool) -> ClipPhotos:
        return _photos(self.model, self.device, normalize)

    def texts(self) -> ClipTexts:
        return _texts(self.model, self.device)


@lru_cache(maxsize=1)
def _photos(model: Pretrained, device: str, normalise: bool) -> ClipPhotos:
    """The model that was asked last."""
    return ClipPhotos(model, device_of(device), normalize=normalise)


@lru_cache(maxsize=1)
def _texts(model: Pretrained, device: str) -> ClipTexts:
    """The model that was asked last."""
    return ClipTexts(model, device_of(device), normalize=True)


@dataclass(frozen=True)
class OpenClipTowers(OneSpaceModel):
    """A model of open_clip on disk."""

    quick: bool  # whether it computes QuickGELU

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files and its settings."""
        digests = sorted(self.model.files.values())  # independent of file names
        return {"kind": self.model.kind, "files": digests, "quick_gelu": self.quick}

    @property
    def net(self) -> OpenClipModel:
        from bias_pipeline.retrieval.open_clip import loaded

        return loaded(self.model, self.quick, device_of(self.device))


@dataclass(frozen=True)
class FiberTowers(TwoModesModel):
    """A FIBER on disk."""

    judging: ClassVar[str] = "fiber_pretrain.ckpt"

    longest: int  # tokens that are read of a text
    head: Head = "rank_output"  # the matching head, see `read_fiber`

    @property
    def spec(self) -> Mapping[str, object]:
        digests = sorted(self.model.files.values())  # independent of file names
        settings = {"kind": "fiber", "files": digests, "longest": self.longest}
        return settings | ({"head": self.head} if self.head != "rank_output" else {})

    @property
    def net(self) -> FiberModel:
        from bias_pipeline.retrieval.fiber.model import loaded

        return loaded(self.model, self.longest, device_of(self.device), self.head)


@dataclass(frozen=True)
class BlipTowers(TwoModesModel):
    """A BLIP for retrieval on disk."""

    judging: ClassVar[str] = "Salesforce/blip-itm-base-coco"

    @property
    def spec(self) -> Mapping[str, object]:
        return {"kind": self.model.kind, "files": dict(self.model.files)}

    @property
    def net(self) -> BlipModel:
        from bias_pipeline.retrieval.two_modes import loaded

        return loaded(self.model, device_of(self.device))


BLIP = "blip"  # it also has a matching mode
KINDS = (*clip.KINDS, BLIP)


def towers_of(name: str, revision: str, device: str) -> LazyDualModel:
    """The towers of a model in any supported format, with its own settings."""
    if is_fiber(name):
        return FiberTowers(find_fiber(name), device, LONGEST)
    if is_open_clip(name):
        model = find_open_clip(name, revision=revision)
        return OpenClipTowers(model, device, quick_gelu(model.folder, None))
    return published_towers(find_pretrained(name, KINDS, revision=revision), device)


def published_towers(model: Pretrained, device: str) -> ClipTowers | BlipTowers:
    """The towers of a transformers model."""
    if model.kind == BLIP:
        return BlipTowers(model, device)
    return ClipTowers(model, device)


@dataclass(frozen=True)
class PhotoFiles:
    """An image encoder that reads files."""

    photos: Photos  # the tower

    def read(self, path: Path) -> Float32Array:
        """(3, H, W) a photo as the network takes it."""
        return self.photos.prepare(read_photo(path))

    def describe(self, photos: Sequence[Float32Array]) -> Float32Array:
        return self.photos.describe(photos)


@dataclass(frozen=True)
class PlainTexts:
    """A text encoder that reads texts as they are."""

    texts: Texts  # the tower

    def read(self, text: str) -> str:
        """A text as it is."""
        return text

    def describe(self, texts: Sequence[str]) -> Float32Array:
        return self.texts.describe(texts)
