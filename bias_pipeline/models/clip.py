"""CLIP: photos and texts as vectors of one space.

Radford et al., Learning Transferable Visual Models From Natural Language Supervision (ICML 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bias_pipeline.errors import DataError
from bias_pipeline.models.pretrained import Preprocessing, Pretrained, load, tokenizer
from bias_pipeline.vision.photos import read_photo
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

KINDS = ("clip",)
FloatArray = npt.NDArray[np.float32]


class ClipPhotos:
    """Photos as vectors.

    Args:
        model: a CLIP.
        device: where to compute.
        normalize: whether vectors have length 1.
    """

    def __init__(self, model: Pretrained, device: torch.device, *, normalize: bool) -> None:
        make_importable()
        from transformers import CLIPModel

        self._prepare = Preprocessing(model).of_one_shape()
        self._network = load(model, CLIPModel, device)
        self._device, self._normalize = device, normalize

    def read(self, path: Path) -> FloatArray:
        """(3, H, W) a photo as the network takes it.

        Raises:
            UnreadableError: with the reason.
        """
        return self.prepare(read_photo(path))

    def prepare(self, photo: Image) -> FloatArray:
        """(3, H, W) a photo that was read, as the network takes it."""
        return self._prepare(photo)

    def describe(self, photos: Sequence[FloatArray]) -> FloatArray:
        """(N, D) a vector for each photo."""
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(photos)).to(self._device)
            pooled = self._network.vision_model(pixel_values=pixels).pooler_output
            return _vectors(self._network.visual_projection(pooled), self._normalize)


class ClipTexts:
    """Texts as vectors of the same space; what is longer than CLIP reads is cut off.

    Args:
        model: a CLIP with its tokenizer.
        device: where to compute.
        normalize: whether vectors have length 1.

    Raises:
        DataError: if there is no tokenizer.
    """

    def __init__(self, model: Pretrained, device: torch.device, *, normalize: bool) -> None:
        from transformers import CLIPModel

        self._network = load(model, CLIPModel, device)
        self._tokens = tokenizer(model)
        self._longest = self._network.config.text_config.max_position_embeddings
        self._device, self._normalize = device, normalize

    @property
    def scale(self) -> float:
        """What cosines are multiplied by before a softmax over texts."""
        return math.exp(self._network.logit_scale.item())

    def read(self, text: str) -> str:
        """A text as it is."""
        return text

    def describe(self, texts: Sequence[str]) -> FloatArray:
        """(N, D) a vector for each text."""
        import torch

        with torch.inference_mode():
            tokens = self._tokens(
                list(texts),
                padding=True,
                truncation=True,
                max_length=self._longest,
                return_tensors="pt",
            ).to(self._device)
            pooled = self._network.text_model(
                input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]
            ).pooler_output
            return _vectors(self._network.text_projection(pooled), self._normalize)


def _vectors(found: torch.Tensor, normalize: bool) -> FloatArray:
    import torch

    if normalize:
        found = torch.nn.functional.normalize(found, dim=-1)
    vectors: FloatArray = found.float().cpu().numpy()
    if not np.isfinite(vectors).all():
        raise DataError("the model gives vectors that are no numbers; its weights are broken")
    return vectors
