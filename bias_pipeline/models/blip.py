"""BLIP for retrieval: photos and texts as vectors of one space, and judged together.

Li et al., BLIP: Bootstrapping Language-Image Pre-training (ICML 2022), as in transformers'
``BlipForImageTextRetrieval``, except one token: like the authors we begin a text that is judged
with a picture with [ENC], the last word of their vocabulary, not with [CLS] (transformers issue
25629). Unlike the authors we do not add the similarity to the matching score.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from bias_pipeline.array_types import Float32Array
from bias_pipeline.models.pretrained import Pretrained, load
from bias_pipeline.models.two_modes import PublishedTwoModes, TokenBatch
from bias_pipeline.vision.torchvision import make_importable

LONGEST = 35  # tokens of a text, as the authors retrieve


class BlipModel(PublishedTwoModes):
    """Both modes.

    Args:
        model: of kind ``blip``, with tokenizer and preprocessing.
        device: where to compute.

    Raises:
        DataError: if it was not trained for retrieval, or is broken.
    """

    matches = True  # without it, it is not a BLIP for retrieval and is not loaded

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        make_importable()
        import transformers

        self._net: Any = load(model, transformers.BlipForImageTextRetrieval, device)
        config = self._net.config.text_config
        super().__init__(model, device, min(LONGEST, config.max_position_embeddings))
        self._encode = config.vocab_size - 1  # [ENC]

    def photos(self, photos: Sequence[Float32Array], *, normalize: bool) -> Float32Array:
        """(N, D) a vector for each photo, by itself."""
        with torch.inference_mode():
            projected = self._net.vision_proj(self._look(self._pixels(photos))[:, 0])
            return self._vectors(projected, normalize=normalize)

    def texts(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector of length 1 for each text, by itself."""
        numbers, there = self._tokens(texts)
        with torch.inference_mode():
            read = self._net.text_encoder(input_ids=numbers, attention_mask=there)
            projected = self._net.text_proj(read.last_hidden_state[:, 0])
            return self._vectors(projected, normalize=True)

    def begin(self, texts: Sequence[str]) -> TokenBatch:
        """Tokens of texts, beginning with [ENC]; they are encoded together with a picture."""
        numbers, there = self._tokens(texts)
        numbers[:, 0] = self._encode
        return TokenBatch(numbers, there)

    def _look(self, pixels: torch.Tensor) -> torch.Tensor:
        """(N, M, C) patches; the first summarises all."""
        states: torch.Tensor = self._net.vision_model(pixel_values=pixels).last_hidden_state
        return states

    def _judge(
        self, states: torch.Tensor, photo: torch.Tensor, texts: TokenBatch, text: torch.Tensor
    ) -> torch.Tensor:
        numbers, there = texts.of(text)
        patches = states[photo]
        read = self._net.text_encoder(
            input_ids=numbers,
            attention_mask=there,
            encoder_hidden_states=patches,
            encoder_attention_mask=patches.new_ones(patches.shape[:2], dtype=torch.long),
        )
        logits: torch.Tensor = self._net.itm_head(read.last_hidden_state[:, 0])[:, 1]
        return logits


@lru_cache(maxsize=1)
def loaded(model: Pretrained, device: torch.device) -> BlipModel:
    """The model; the last one is cached."""
    return BlipModel(model, device)
