"""Finds the image and text encoders ("halves") of a model by its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bias_pipeline.array_types import Float32Array
from bias_pipeline.inference.cross_encoder import FoundTwoModes
from bias_pipeline.inference.embedders import Found, FoundOneSpace
from bias_pipeline.models import clip
from bias_pipeline.models.clip import ClipPhotos, ClipTexts
from bias_pipeline.models.fiber.folder import LONGEST, Head, find_fiber, is_fiber
from bias_pipeline.models.open_clip_folder import find_open_clip, is_open_clip, quick_gelu
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.vision.photos import read_photo

if TYPE_CHECKING:
    from bias_pipeline.inference.embedders import LazyDualModel, Photos, Texts
    from bias_pipeline.models.blip import BlipModel
    from bias_pipeline.models.bridgetower import BridgeTowerModel
    from bias_pipeline.models.fiber.model import FiberModel
    from bias_pipeline.models.open_clip import OpenClipModel


@dataclass(frozen=True)
class ClipHalves(Found):
    """A CLIP or SigLIP on disk."""

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files."""
        return {"files": dict(self.model.files)}

    def photos(self, *, normalize: bool) -> ClipPhotos:
        """The image encoder, with vectors of length 1 or the model's own."""
        return _photos(self.model, self.device, normalize)

    def texts(self) -> ClipTexts:
        """The text encoder."""
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
class OpenClipHalves(FoundOneSpace):
    """A model of open_clip on disk."""

    quick: bool  # whether it computes QuickGELU

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files and its settings."""
        digests = sorted(self.model.files.values())  # independent of file names
        return {"kind": self.model.kind, "files": digests, "quick_gelu": self.quick}

    @property
    def net(self) -> OpenClipModel:
        """See the base."""
        from bias_pipeline.models.open_clip import loaded

        return loaded(self.model, self.quick, device_of(self.device))


@dataclass(frozen=True)
class FiberHalves(FoundTwoModes):
    """A FIBER on disk."""

    judging: ClassVar[str] = "fiber_pretrain.ckpt"

    side: int | None  # pixels a side of a picture, None for the file's own
    longest: int  # tokens that are read of a text
    head: Head = "rank_output"  # the matching head, see `read_fiber`

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files and its settings."""
        digests = sorted(self.model.files.values())  # independent of file names
        settings = {"kind": "fiber", "files": digests, "side": self.side, "longest": self.longest}
        return settings | ({"head": self.head} if self.head != "rank_output" else {})

    @property
    def net(self) -> FiberModel:
        """See the base."""
        from bias_pipeline.models.fiber.model import loaded

        return loaded(self.model, self.side, self.longest, device_of(self.device), self.head)


@dataclass(frozen=True)
class PublishedHalves(FoundTwoModes):
    """Such a model on disk."""

    judging: ClassVar[str] = "BridgeTower/bridgetower-large-itm-mlm-itc"

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files."""
        return {"kind": self.model.kind, "files": dict(self.model.files)}

    @property
    def net(self) -> BlipModel | BridgeTowerModel:
        """See the base."""
        from bias_pipeline.models import blip, bridgetower

        module = blip if self.model.kind == "blip" else bridgetower
        return module.loaded(self.model, device_of(self.device))


JUDGING = ("blip", "bridgetower")  # these also have a matching mode
KINDS = (*clip.KINDS, *JUDGING)


def halves_of(name: str, revision: str, device: str) -> LazyDualModel:
    """The halves of a model in any supported format, with its own settings.

    Args:
        name: a folder of transformers', of open_clip's or with FIBER's files; or a name on the hub.
        revision: of a name.
        device: where to compute.

    Raises:
        BiasPipelineError: if it is absent, or of another kind.
    """
    if is_fiber(name):
        return FiberHalves(find_fiber(name), device, None, LONGEST)
    if is_open_clip(name):
        model = find_open_clip(name, revision=revision)
        return OpenClipHalves(model, device, quick_gelu(model.folder, None))
    return published_halves(find_pretrained(name, KINDS, revision=revision), device)


def published_halves(model: Pretrained, device: str) -> ClipHalves | PublishedHalves:
    """The halves of a transformers model."""
    if model.kind in JUDGING:
        return PublishedHalves(model, device)

    return ClipHalves(model, device)


@dataclass(frozen=True)
class PhotoFiles:
    """An image encoder that reads files."""

    photos: Photos  # the half

    def read(self, path: Path) -> Float32Array:
        """(3, H, W) a photo as the network takes it.

        Raises:
            UnreadableError: with the reason.
        """
        return self.photos.prepare(read_photo(path))

    def describe(self, photos: Sequence[Float32Array]) -> Float32Array:
        """(N, D) a vector for each photo."""
        return self.photos.describe(photos)


@dataclass(frozen=True)
class PlainTexts:
    """A text encoder that reads texts as they are."""

    texts: Texts  # the half

    def read(self, text: str) -> str:
        """A text as it is."""
        return text

    def describe(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector of length 1 for each text."""
        return self.texts.describe(texts)
