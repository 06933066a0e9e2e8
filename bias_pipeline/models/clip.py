"""CLIP and SigLIP: photos and texts as vectors of one space.

Radford et al., Learning Transferable Visual Models From Natural Language Supervision (ICML 2021);
Zhai et al., Sigmoid Loss for Language Image Pre-Training (ICCV 2023). SigLIP read lower case and
texts filled up to their full length, with nothing masked, so it is shown the same here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.errors import DataError
from bias_pipeline.models.pretrained import Preprocessing, Pretrained, load, tokenizer
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

CLIP, SIGLIP = "clip", "siglip"
KINDS = (CLIP, SIGLIP)
FloatArray = npt.NDArray[np.float32]


def _load(model: Pretrained, device: torch.device) -> Any:
    import transformers

    own = transformers.SiglipModel if model.kind == SIGLIP else transformers.CLIPModel
    return load(model, own, device)


class ClipPhotos:
    """Photos as vectors.

    Args:
        model: of one of :data:`KINDS`.
        device: where to compute.
        normalize: whether vectors have length 1.
    """

    def __init__(self, model: Pretrained, device: torch.device, *, normalize: bool) -> None:
        make_importable()
        self._prepare = Preprocessing(model).of_one_shape()
        self._network = _load(model, device)
        self._sigmoid = model.kind == SIGLIP  # whose pooled vector is not projected
        self._device, self._normalize = device, normalize

    def prepare(self, photo: Image) -> FloatArray:
        """(3, H, W) a photo that was read, as the network takes it."""
        return self._prepare(photo)

    def describe(self, photos: Sequence[FloatArray]) -> FloatArray:
        """(N, D) a vector for each photo."""
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(photos)).to(self._device)
            found = self._network.vision_model(pixel_values=pixels).pooler_output
            found = found if self._sigmoid else self._network.visual_projection(found)
            return _vectors(found, self._normalize)


class ClipTexts:
    """Texts as vectors of the same space; what is longer than the model reads is cut off.

    Args:
        model: of one of :data:`KINDS`, with its tokenizer.
        device: where to compute.
        normalize: whether vectors have length 1.

    Raises:
        DataError: if there is no tokenizer.
    """

    def __init__(self, model: Pretrained, device: torch.device, *, normalize: bool) -> None:
        self._network = _load(model, device)
        self._tokens = tokenizer(model)
        self._sigmoid = model.kind == SIGLIP
        self._longest = self._network.config.text_config.max_position_embeddings
        self._device, self._normalize = device, normalize

    @property
    def scale(self) -> float:
        """What cosines are multiplied by before a softmax over texts."""
        return math.exp(self._network.logit_scale.item())

    def read(self, text: str) -> str:
        """A text as it is."""
        return text

    @property
    def projection(self) -> FloatArray:
        """(D, H) by which a CLIP makes vectors of states."""
        return _numbers(self._network.text_projection.weight)

    @property
    def mark(self) -> FloatArray:
        """(H,) what a CLIP adds to every first token: what its text model is known by."""
        return _numbers(self._network.text_model.embeddings.position_embedding.weight[0])

    def states(self, texts: Sequence[str]) -> FloatArray:
        """(N, H) of each text the last token's state, which its vector is made of."""
        import torch

        with torch.inference_mode():
            return _vectors(self._states(texts), normalize=False)

    def describe(self, texts: Sequence[str]) -> FloatArray:
        """(N, D) a vector for each text."""
        import torch

        with torch.inference_mode():
            found = self._states(texts)
            found = found if self._sigmoid else self._network.text_projection(found)
            return _vectors(found, self._normalize)

    def _states(self, texts: Sequence[str]) -> torch.Tensor:
        tokens = self._tokens(
            [text.lower() if self._sigmoid else text for text in texts],
            padding="max_length" if self._sigmoid else True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        seen = {} if self._sigmoid else {"attention_mask": tokens["attention_mask"]}
        found: torch.Tensor = self._network.text_model(
            input_ids=tokens["input_ids"], **seen
        ).pooler_output
        return found


def _numbers(weight: torch.Tensor) -> FloatArray:
    found: FloatArray = weight.detach().float().cpu().numpy()
    return found


def _vectors(found: torch.Tensor, normalize: bool) -> FloatArray:
    import torch

    if normalize:
        found = torch.nn.functional.normalize(found, dim=-1)
    vectors: FloatArray = found.float().cpu().numpy()
    if not np.isfinite(vectors).all():
        raise DataError("the model gives vectors that are no numbers; its weights are broken")
    return vectors
