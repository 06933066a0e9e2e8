"""The base of networks that give vectors of photos and texts and matching scores of pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.models.pretrained import Preprocessing, Pretrained, numbers_of, tokenizer

_PAIRS = 32  # pairs per batch


class TwoModeNet(ABC):
    """A network of two modes.

    Args:
        name: of the model.
        device: where it computes.
    """

    def __init__(self, name: str, device: torch.device) -> None:
        self._name, self._device = name, device

    @property
    @abstractmethod
    def matches(self) -> bool:
        """Whether it has a matching head."""

    def match(self, photos: Sequence[Float32Array], texts: Any, pairs: IntArray) -> Float32Array:
        """(P,) how well photos and texts match, on a scale of logits.

        Args:
            photos: a few, as one batch.
            texts: from ``begin``.
            pairs: (P, 2) number of a photo and of a text.
        """
        scores = []
        with torch.inference_mode():
            states = self._look(self._pixels(photos))
            for start in range(0, len(pairs), _PAIRS):
                photo, text = torch.from_numpy(pairs[start : start + _PAIRS].T).to(self._device)
                scores.append(self._judge(states, photo, texts, text))
            return numbers_of(torch.cat(scores), self._name)

    @abstractmethod
    def _look(self, pixels: torch.Tensor) -> Any:
        """Photos, encoded as far as possible without a text."""

    @abstractmethod
    def _judge(
        self, states: Any, photo: torch.Tensor, texts: Any, text: torch.Tensor
    ) -> torch.Tensor:
        """(P,) logits of pairs, by the numbers (P,) of their photos and of their texts."""

    def _pixels(self, photos: Sequence[Float32Array]) -> torch.Tensor:
        return torch.from_numpy(np.stack(photos)).to(self._device)

    def _vectors(self, vectors: torch.Tensor, *, normalize: bool) -> Float32Array:
        vectors = torch.nn.functional.normalize(vectors, dim=-1) if normalize else vectors
        return numbers_of(vectors, self._name)


class TokenBatch(NamedTuple):
    """Tokens and mask of texts, both (N, L)."""

    numbers: torch.Tensor
    there: torch.Tensor

    def of(self, text: torch.Tensor) -> TokenBatch:
        """The tokens of some texts, by their numbers."""
        return TokenBatch(self.numbers[text], self.there[text])


class PublishedTwoModes(TwoModeNet):
    """A network of transformers with its own tokenizer and preprocessing.

    Args:
        model: that was found.
        device: where it computes.
        longest: tokens that are read of a text.
    """

    def __init__(self, model: Pretrained, device: torch.device, longest: int) -> None:
        super().__init__(model.name, device)
        self._prepare = Preprocessing(model).of_one_shape()
        self._tokenizer, self._longest = tokenizer(model), longest

    def prepare(self, photo: Image.Image) -> Float32Array:
        """(3, H, W) a photo as the network takes it."""
        return self._prepare(photo)

    def _tokens(self, texts: Sequence[str]) -> TokenBatch:
        read = self._tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        return TokenBatch(read["input_ids"], read["attention_mask"])
