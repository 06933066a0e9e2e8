"""Finds the image and text encoders ("halves") of a model by its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.array_types import Float32Array
from bias_pipeline.models import clip
from bias_pipeline.models.fiber.folder import LONGEST, find_fiber, is_fiber
from bias_pipeline.models.open_clip_folder import find_open_clip, is_open_clip, quick_gelu
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from bias_pipeline.vision.photos import read_photo

if TYPE_CHECKING:
    from bias_pipeline.inference.clip import ClipHalves
    from bias_pipeline.inference.embedders import LazyDualModel, Photos, Texts
    from bias_pipeline.inference.published import PublishedHalves

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
        from bias_pipeline.inference.fiber import FiberHalves

        return FiberHalves(find_fiber(name), device, None, LONGEST)
    if is_open_clip(name):
        from bias_pipeline.inference.open_clip import OpenClipHalves

        model = find_open_clip(name, revision=revision)
        return OpenClipHalves(model, device, quick_gelu(model.folder, None))
    return published_halves(find_pretrained(name, KINDS, revision=revision), device)


def published_halves(model: Pretrained, device: str) -> ClipHalves | PublishedHalves:
    """The halves of a transformers model."""
    if model.kind in JUDGING:
        from bias_pipeline.inference.published import PublishedHalves

        return PublishedHalves(model, device)
    from bias_pipeline.inference.clip import ClipHalves

    return ClipHalves(model, device)


@dataclass(frozen=True)
class PhotoFiles:
    """An image encoder that reads files.

    Attributes:
        photos: the half.
    """

    photos: Photos

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
    """A text encoder that reads texts as they are.

    Attributes:
        texts: the half.
    """

    texts: Texts

    def read(self, text: str) -> str:
        """A text as it is."""
        return text

    def describe(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector of length 1 for each text."""
        return self.texts.describe(texts)
