"""CLIP and SigLIP, which turn photos and texts into vectors of one space.

Sources: Radford et al., Learning Transferable Visual Models From Natural Language Supervision (ICML
2021); Zhai et al., Sigmoid Loss for Language Image Pre-Training (ICCV 2023). SigLIP was trained on
lower-case texts padded to full length without a mask, so SigLIP gets such texts here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.array_types import Float32Array
from bias_pipeline.errors import DataError
from bias_pipeline.models.pretrained import Preprocessing, Pretrained, load, tokenizer
from bias_pipeline.models.torchvision import make_importable

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

CLIP, SIGLIP = "clip", "siglip"
KINDS = (CLIP, SIGLIP)


def _load(model: Pretrained, device: torch.device) -> Any:
    import transformers

    architecture = transformers.SiglipModel if model.kind == SIGLIP else transformers.CLIPModel
    return load(model, architecture, device)


class ClipPhotos:
    def __init__(self, model: Pretrained, device: torch.device, *, normalize: bool) -> None:
        make_importable()
        self._prepare = Preprocessing(model).of_one_shape()
        self._network = _load(model, device)
        self._sigmoid = model.kind == SIGLIP  # SigLIP does not project its pooled vector
        self._device, self._normalize = device, normalize

    def prepare(self, photo: Image) -> Float32Array:
        """(3, H, W) a photo after preprocessing for the network."""
        return self._prepare(photo)

    def describe(self, photos: Sequence[Float32Array]) -> Float32Array:
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(photos)).to(self._device)
            return _vectors(self.states(pixels), self._normalize)

    def states(self, pixels: torch.Tensor) -> torch.Tensor:
        """(N, D) the model's vectors of pixels (N, 3, H, W); gradients pass to the pixels."""
        states: torch.Tensor = self._network.vision_model(pixel_values=pixels).pooler_output
        if not self._sigmoid:
            states = self._network.visual_projection(states)
        return states


class ClipTexts:
    """Turns texts into vectors in the space of photos; texts that are too long are cut."""

    def __init__(self, model: Pretrained, device: torch.device, *, normalize: bool) -> None:
        self._network = _load(model, device)
        self._tokens = tokenizer(model)
        self._sigmoid = model.kind == SIGLIP
        self._longest = self._network.config.text_config.max_position_embeddings
        self._device, self._normalize = device, normalize

    @property
    def scale(self) -> float:
        """The factor by which cosines are multiplied before a softmax over texts."""
        return math.exp(self._network.logit_scale.item())

    def read(self, text: str) -> str:
        return text

    @property
    def projection(self) -> Float32Array:
        """(D, H) the projection from states to vectors."""
        return _numbers(self._network.text_projection.weight)

    @property
    def mark(self) -> Float32Array:
        """(H,) the vector that CLIP adds to every first token, and that identifies text models."""
        return _numbers(self._network.text_model.embeddings.position_embedding.weight[0])

    def states(self, texts: Sequence[str]) -> Float32Array:
        """(N, H) the state of each text's last token; its projection is the text's vector."""
        import torch

        with torch.inference_mode():
            return _vectors(self._states(texts), normalize=False)

    def describe(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector for each text."""
        import torch

        with torch.inference_mode():
            states = self._states(texts)
            states = states if self._sigmoid else self._network.text_projection(states)
            return _vectors(states, self._normalize)

    def _states(self, texts: Sequence[str]) -> torch.Tensor:
        tokens = self._tokens(
            [text.lower() if self._sigmoid else text for text in texts],
            padding="max_length" if self._sigmoid else True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        mask = {} if self._sigmoid else {"attention_mask": tokens["attention_mask"]}
        states: torch.Tensor = self._network.text_model(
            input_ids=tokens["input_ids"], **mask
        ).pooler_output
        return states


def _numbers(weight: torch.Tensor) -> Float32Array:
    numbers: Float32Array = weight.detach().float().cpu().numpy()
    return numbers


def _vectors(states: torch.Tensor, normalize: bool) -> Float32Array:
    import torch

    if normalize:
        states = torch.nn.functional.normalize(states, dim=-1)
    vectors: Float32Array = states.float().cpu().numpy()
    if not np.isfinite(vectors).all():
        raise DataError("the model gives vectors that are not numbers; its weights are broken")
    return vectors
