"""BLIP for retrieval: photos and texts as vectors of one space, and judged together.

Li et al., BLIP: Bootstrapping Language-Image Pre-training (ICML 2022), as transformers'
``BlipForImageTextRetrieval`` has it but for one token: where the authors judge a picture and a text
together, the text begins with [ENC], the last word of their vocabulary, and not with [CLS]
(transformers issue 25629). They add the two sides' similarity to what they rank by; we do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from bias_pipeline.models.pretrained import Pretrained, load
from bias_pipeline.models.two_modes import FloatArray, PublishedTwoModes, Tokens
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

    matches = True  # else it is no BLIP for retrieval, and not loaded

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        make_importable()
        import transformers

        self._net: Any = load(model, transformers.BlipForImageTextRetrieval, device)
        own = self._net.config.text_config
        super().__init__(model, device, min(LONGEST, own.max_position_embeddings))
        self._encode = own.vocab_size - 1  # [ENC]

    def photos(self, photos: Sequence[FloatArray], *, normalize: bool) -> FloatArray:
        """(N, D) a vector for each photo, by itself."""
        with torch.inference_mode():
            found = self._net.vision_proj(self._look(self._pixels(photos))[:, 0])
            return self._vectors(found, normalize=normalize)

    def texts(self, texts: Sequence[str]) -> FloatArray:
        """(N, D) a vector of length 1 for each text, by itself."""
        numbers, there = self._tokens(texts)
        with torch.inference_mode():
            read = self._net.text_encoder(input_ids=numbers, attention_mask=there)
            found = self._net.text_proj(read.last_hidden_state[:, 0])
            return self._vectors(found, normalize=True)

    def begin(self, texts: Sequence[str]) -> Tokens:
        """Texts with [ENC] before them; nothing is read without a picture."""
        numbers, there = self._tokens(texts)
        numbers[:, 0] = self._encode
        return Tokens(numbers, there)

    def _look(self, pixels: torch.Tensor) -> torch.Tensor:
        """(N, M, C) patches, the first of which stands for all."""
        seen: torch.Tensor = self._net.vision_model(pixel_values=pixels).last_hidden_state
        return seen

    def _judge(
        self, seen: torch.Tensor, photo: torch.Tensor, texts: Tokens, text: torch.Tensor
    ) -> torch.Tensor:
        numbers, there = texts.of(text)
        patches = seen[photo]
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
    """The model that was asked last."""
    return BlipModel(model, device)
