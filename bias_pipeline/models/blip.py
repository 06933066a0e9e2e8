"""BLIP for retrieval: photos and texts as vectors of one space, and judged together.

Li et al., BLIP: Bootstrapping Language-Image Pre-training (ICML 2022), as transformers'
``BlipForImageTextRetrieval`` has it but for one token: where the authors judge a picture and a text
together, the text begins with [ENC], the last word of their vocabulary, and not with [CLS]
(transformers issue 25629). They add the two sides' similarity to what they rank by; we do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from bias_pipeline.models.pretrained import Preprocessing, Pretrained, load, numbers_of, tokenizer
from bias_pipeline.vision.torchvision import make_importable

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

LONGEST = 35  # tokens of a text, as the authors retrieve
_PAIRS = 32  # that are judged at once


class Tokens(NamedTuple):
    """Texts as the network takes them, both (N, L)."""

    numbers: torch.Tensor
    there: torch.Tensor


class BlipModel:
    """Both modes.

    Args:
        model: of kind ``blip``, with tokenizer and preprocessing.
        device: where to compute.

    Raises:
        DataError: if it was not trained for retrieval, or is broken.
    """

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        make_importable()
        import transformers

        self._name = model.name
        self.prepare_photo = Preprocessing(model).of_one_shape()
        self._tokenizer = tokenizer(model)
        self._net: Any = load(model, transformers.BlipForImageTextRetrieval, device)
        self._device = device
        own = self._net.config.text_config
        self._longest = min(LONGEST, own.max_position_embeddings)
        self._encode = own.vocab_size - 1  # [ENC]

    def prepare(self, photo: Image.Image) -> FloatArray:
        """(3, H, W) a photo as the network takes it."""
        return self.prepare_photo(photo)

    def photos(self, photos: Sequence[FloatArray], *, normalize: bool) -> FloatArray:
        """(N, D) a vector for each photo, by itself."""
        with torch.inference_mode():
            found = self._net.vision_proj(self._seen(photos)[:, 0])
            return numbers_of(_unit(found) if normalize else found, self._name)

    def texts(self, texts: Sequence[str]) -> FloatArray:
        """(N, D) a vector of length 1 for each text, by itself."""
        numbers, there = self._tokens(texts)
        with torch.inference_mode():
            read = self._net.text_encoder(input_ids=numbers, attention_mask=there)
            found = _unit(self._net.text_proj(read.last_hidden_state[:, 0]))
            return numbers_of(found, self._name)

    def begin(self, texts: Sequence[str]) -> Tokens:
        """Texts with [ENC] before them; nothing is read without a picture."""
        numbers, there = self._tokens(texts)
        numbers[:, 0] = self._encode
        return Tokens(numbers, there)

    def match(self, photos: Sequence[FloatArray], texts: Tokens, pairs: IntArray) -> FloatArray:
        """(P,) how well photos and texts match, on a scale of logits.

        Args:
            photos: a few, which are looked at at once.
            texts: of :meth:`begin`.
            pairs: (P, 2) number of a photo and of a text.
        """
        found = []
        with torch.inference_mode():
            seen = self._seen(photos)
            for start in range(0, len(pairs), _PAIRS):
                photo, text = torch.from_numpy(pairs[start : start + _PAIRS].T).to(self._device)
                patches = seen[photo]
                read = self._net.text_encoder(
                    input_ids=texts.numbers[text],
                    attention_mask=texts.there[text],
                    encoder_hidden_states=patches,
                    encoder_attention_mask=patches.new_ones(patches.shape[:2], dtype=torch.long),
                )
                found.append(self._net.itm_head(read.last_hidden_state[:, 0])[:, 1])
            return numbers_of(torch.cat(found), self._name)

    def _seen(self, photos: Sequence[FloatArray]) -> torch.Tensor:
        """(N, M, C) patches, the first of which stands for all."""
        pixels = torch.from_numpy(np.stack(photos)).to(self._device)
        seen: torch.Tensor = self._net.vision_model(pixel_values=pixels).last_hidden_state
        return seen

    def _tokens(self, texts: Sequence[str]) -> Tokens:
        read = self._tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        return Tokens(read["input_ids"], read["attention_mask"])


def _unit(found: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(found, dim=-1)


@lru_cache(maxsize=1)
def loaded(model: Pretrained, device: torch.device) -> BlipModel:
    """The model that was asked last."""
    return BlipModel(model, device)
