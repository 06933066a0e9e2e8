"""BLIP, which makes vectors of photos and texts and matches pairs, and code shared with FIBER.

Source: Li et al., BLIP: Bootstrapping Language-Image Pre-training (ICML 2022). The code follows
transformers' ``BlipForImageTextRetrieval`` with one change: a text that is judged together with a
picture begins with [ENC] instead of [CLS] (transformers issue 25629). [ENC] is the last word of the
authors' vocabulary, as in their code. Unlike the authors, we do not add the similarity to the
matching score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL.Image import Image

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.models.pretrained import (
    Preprocessing,
    Pretrained,
    load,
    numbers_of,
    tokenizer,
)
from bias_pipeline.models.torchvision import make_importable

_PAIRS = 32  # pairs per batch


class TwoModeNet(ABC):
    def __init__(self, name: str, device: torch.device) -> None:
        self._name, self._device = name, device

    @property
    @abstractmethod
    def matches(self) -> bool:
        """Whether the network has a head that matches pairs."""

    def match(self, photos: Sequence[Float32Array], texts: Any, pairs: IntArray) -> Float32Array:
        """(P,) logits that photo and text match; pairs (P, 2) contain their numbers."""
        scores = []
        with torch.inference_mode():
            states = self._encode_photos(self._pixels(photos))
            for start in range(0, len(pairs), _PAIRS):
                photo, text = torch.from_numpy(pairs[start : start + _PAIRS].T).to(self._device)
                scores.append(self._pair_logits(states, photo, texts, text))
            return numbers_of(torch.cat(scores), self._name)

    @abstractmethod
    def prepare(self, photo: Image) -> Float32Array:
        """(3, H, W) a photo in the form that both modes of the network take."""

    @abstractmethod
    def photos(self, photos: Sequence[Float32Array], *, normalize: bool) -> Float32Array:
        """(N, D) a vector for each photo, read without a text."""

    @abstractmethod
    def texts(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector of length 1 for each text, read without a picture."""

    @abstractmethod
    def encode_texts(self, texts: Sequence[str]) -> Any:
        """Texts that are encoded as far as this needs no picture."""

    @abstractmethod
    def _encode_photos(self, pixels: torch.Tensor) -> Any:
        """Photos that are encoded as far as this needs no text."""

    @abstractmethod
    def _pair_logits(
        self, states: Any, photo: torch.Tensor, texts: Any, text: torch.Tensor
    ) -> torch.Tensor:
        """(P,) logits of pairs; ``photo`` and ``text`` (P,) are the numbers of each pair."""

    def _pixels(self, photos: Sequence[Float32Array]) -> torch.Tensor:
        return torch.from_numpy(np.stack(photos)).to(self._device)

    def _vectors(self, vectors: torch.Tensor, *, normalize: bool) -> Float32Array:
        vectors = torch.nn.functional.normalize(vectors, dim=-1) if normalize else vectors
        return numbers_of(vectors, self._name)


class TokenBatch(NamedTuple):
    """The tokens and the mask of N texts, both (N, L)."""

    numbers: torch.Tensor
    there: torch.Tensor

    def take(self, text: torch.Tensor) -> TokenBatch:
        return TokenBatch(self.numbers[text], self.there[text])


_LONGEST = 35  # tokens of a text, as in the authors' retrieval


class BlipModel(TwoModeNet):
    """A BLIP for retrieval, with its own tokenizer and preprocessing."""

    matches = True  # a model without a matching head is not a BLIP for retrieval and is not loaded

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        make_importable()
        import transformers

        self._net: Any = load(model, transformers.BlipForImageTextRetrieval, device)
        super().__init__(model.name, device)
        self._prepare, self._tokenizer = Preprocessing(model).of_one_shape(), tokenizer(model)
        config = self._net.config.text_config
        self._longest = min(_LONGEST, config.max_position_embeddings)
        self._encode = config.vocab_size - 1  # [ENC]

    def prepare(self, photo: Image) -> Float32Array:
        return self._prepare(photo)

    def photos(self, photos: Sequence[Float32Array], *, normalize: bool) -> Float32Array:
        with torch.inference_mode():
            projected = self._net.vision_proj(self._encode_photos(self._pixels(photos))[:, 0])
            return self._vectors(projected, normalize=normalize)

    def texts(self, texts: Sequence[str]) -> Float32Array:
        numbers, there = self._tokens(texts)
        with torch.inference_mode():
            read = self._net.text_encoder(input_ids=numbers, attention_mask=there)
            projected = self._net.text_proj(read.last_hidden_state[:, 0])
            return self._vectors(projected, normalize=True)

    def encode_texts(self, texts: Sequence[str]) -> TokenBatch:
        """The tokens of texts, which begin with [ENC] and are encoded together with a picture."""
        numbers, there = self._tokens(texts)
        numbers[:, 0] = self._encode
        return TokenBatch(numbers, there)

    def _tokens(self, texts: Sequence[str]) -> TokenBatch:
        read = self._tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        return TokenBatch(read["input_ids"], read["attention_mask"])

    def _encode_photos(self, pixels: torch.Tensor) -> torch.Tensor:
        """(N, M, C) vectors of patches; the first vector summarises the whole photo."""
        states: torch.Tensor = self._net.vision_model(pixel_values=pixels).last_hidden_state
        return states

    def _pair_logits(
        self, states: torch.Tensor, photo: torch.Tensor, texts: TokenBatch, text: torch.Tensor
    ) -> torch.Tensor:
        numbers, there = texts.take(text)
        patches = states[photo]
        read = self._net.text_encoder(
            input_ids=numbers,
            attention_mask=there,
            encoder_hidden_states=patches,
            encoder_attention_mask=patches.new_ones(patches.shape[:2], dtype=torch.long),
        )
        logits: torch.Tensor = self._net.itm_head(read.last_hidden_state[:, 0])[:, 1]
        return logits
