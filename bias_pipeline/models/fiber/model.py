"""FIBER from its folder: vectors of photos and texts, and matching scores of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from PIL import Image

from bias_pipeline.array_types import Float32Array
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.models.fiber.checkpoint import read_fiber
from bias_pipeline.models.fiber.folder import PADDING, Head, fiber_checkpoint_of, read_tokenizer
from bias_pipeline.models.fiber.net import Begun
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.models.two_modes import TwoModeNet

_MEAN, _SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
_PHOTOS = 8  # per batch
_WORDLESS = 2  # tokens around a text


class FiberModel(TwoModeNet):
    """Both modes of one file.

    Args:
        model: that was found.
        side: of a picture in pixels, None for the file's own.
        longest: tokens that are read of a text, ``<s>`` and ``</s>`` among them.
        device: where to compute.
        head: see :func:`~bias_pipeline.models.fiber.checkpoint.read_fiber`.

    Raises:
        DataError: if a file is broken or of another network.
        UsageError: if it has no such side, or texts cannot be so long.
    """

    def __init__(
        self,
        model: Pretrained,
        side: int | None,
        longest: int,
        device: torch.device,
        head: Head = "rank_output",
    ) -> None:
        super().__init__(model.name, device)
        self._tokenizer = read_tokenizer(model)
        self._net = read_fiber(fiber_checkpoint_of(model), side, head).to(device)
        size = self._net.size
        most = size.n_places - PADDING - 1
        if not _WORDLESS < longest <= most:
            raise UsageError(f"encoder.longest={longest}: {model.name} reads 3 to {most} tokens")
        if self._tokenizer.get_vocab_size() > size.n_words:
            raise DataError(
                f"{model.name}: vocab.json has {self._tokenizer.get_vocab_size()} words, but the "
                f"weights have {size.n_words}; fetch roberta-base's"
            )
        self._tokenizer.enable_truncation(longest)

    @property
    def matches(self) -> bool:
        """Whether the file has a matching head."""
        return self._net.size.matches

    def prepare(self, photo: Image.Image) -> Float32Array:
        """(3, S, S) a photo, squeezed into a square."""
        side = self._net.size.side
        pixels = np.asarray(photo.resize((side, side), Image.Resampling.BICUBIC), np.float32)
        normalised = (pixels / 255 - np.array(_MEAN, np.float32)) / np.array(_SPREAD, np.float32)
        return np.ascontiguousarray(normalised.transpose(2, 0, 1))

    def photos(self, photos: Sequence[Float32Array], *, normalize: bool) -> Float32Array:
        """(N, D) a vector for each photo, by itself."""
        starts = range(0, len(photos), _PHOTOS)
        with torch.inference_mode():
            parts = [self._net.pictures(self._pixels(photos[s : s + _PHOTOS])) for s in starts]
            return self._vectors(torch.cat(parts), normalize=normalize)

    def texts(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector of length 1 for each text, by itself."""
        with torch.inference_mode():
            return self._vectors(self._net.texts(self._tokens(texts)), normalize=True)

    def begin(self, texts: Sequence[str]) -> Begun:
        """Texts, encoded as far as possible without a picture."""
        with torch.inference_mode():
            return self._net.begin_texts(self._tokens(texts))

    def _look(self, pixels: torch.Tensor) -> torch.Tensor:
        return self._net.begin_pictures(pixels)

    def _judge(
        self, states: torch.Tensor, photo: torch.Tensor, texts: Begun, text: torch.Tensor
    ) -> torch.Tensor:
        return self._net.match(states[photo], Begun(texts.vectors[text], texts.there[text]))

    def _tokens(self, texts: Sequence[str]) -> torch.Tensor:
        """(N, L) numbers of tokens, filled up to the longest."""
        rows = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        filled = np.full((len(rows), max(map(len, rows))), PADDING, np.int64)
        for row, ids in zip(filled, rows, strict=True):
            row[: len(ids)] = ids
        return torch.from_numpy(filled).to(self._device)


@lru_cache(maxsize=1)
def loaded(
    model: Pretrained, side: int | None, longest: int, device: torch.device, head: Head
) -> FiberModel:
    """The model; the last one is cached."""
    return FiberModel(model, side, longest, device, head)
