"""What networks share that give vectors of photos and texts, and judge the two together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from bias_pipeline.models.pretrained import Preprocessing, Pretrained, numbers_of, tokenizer

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

_PAIRS = 32  # that are judged at once


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
        """Whether it has been trained to judge photos and texts together."""

    def match(self, photos: Sequence[FloatArray], texts: Any, pairs: IntArray) -> FloatArray:
        """(P,) how well photos and texts match, on a scale of logits.

        Args:
            photos: a few, which are looked at at once.
            texts: begun.
            pairs: (P, 2) number of a photo and of a text.
        """
        found = []
        with torch.inference_mode():
            seen = self._look(self._pixels(photos))
            for start in range(0, len(pairs), _PAIRS):
                photo, text = torch.from_numpy(pairs[start : start + _PAIRS].T).to(self._device)
                found.append(self._judge(seen, photo, texts, text))
            return numbers_of(torch.cat(found), self._name)

    @abstractmethod
    def _look(self, pixels: torch.Tensor) -> Any:
        """Photos, as far as they are looked at without a text."""

    @abstractmethod
    def _judge(
        self, seen: Any, photo: torch.Tensor, texts: Any, text: torch.Tensor
    ) -> torch.Tensor:
        """(P,) logits of pairs, by the numbers (P,) of their photos and of their texts."""

    def _pixels(self, photos: Sequence[FloatArray]) -> torch.Tensor:
        return torch.from_numpy(np.stack(photos)).to(self._device)

    def _vectors(self, found: torch.Tensor, *, normalize: bool) -> FloatArray:
        found = torch.nn.functional.normalize(found, dim=-1) if normalize else found
        return numbers_of(found, self._name)


class Tokens(NamedTuple):
    """Texts as a network of transformers takes them, both (N, L)."""

    numbers: torch.Tensor
    there: torch.Tensor

    def of(self, text: torch.Tensor) -> Tokens:
        """Those of some texts, by their numbers."""
        return Tokens(self.numbers[text], self.there[text])


class PublishedTwoModes(TwoModeNet):
    """One of transformers, with a tokenizer and preprocessing of its own.

    Args:
        model: that was found.
        device: where it computes.
        longest: tokens that are read of a text.
    """

    def __init__(self, model: Pretrained, device: torch.device, longest: int) -> None:
        super().__init__(model.name, device)
        self._prepare = Preprocessing(model).of_one_shape()
        self._tokenizer, self._longest = tokenizer(model), longest

    def prepare(self, photo: Image.Image) -> FloatArray:
        """(3, H, W) a photo as the network takes it."""
        return self._prepare(photo)

    def _tokens(self, texts: Sequence[str]) -> Tokens:
        read = self._tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        return Tokens(read["input_ids"], read["attention_mask"])
