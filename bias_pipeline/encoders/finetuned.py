"""``encoder=bert``: a published language model, fine-tuned with a head on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.declared import Count
from bias_pipeline.encoders.base import Items
from bias_pipeline.encoders.published import Published
from bias_pipeline.models.pooling import Pooling
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.models.sentences import Tokens, pooling_of, tokens_of

if TYPE_CHECKING:
    from torch import nn

    from bias_pipeline.inference.texts import Embedded

VERSION = 1  # raise it whenever any prediction changes


@dataclass(frozen=True)
class FineTuned(Published):
    """A description of a language model that is fine-tuned; :meth:`build` loads it.

    Every attacker starts with the published weights.

    Attributes:
        longest: tokens of a caption that are read; None: as many as the model has positions.
    """

    longest: Count | None = None

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, and how its vectors are read."""
        model = self.pretrained
        pooling = asdict(self._pooling(model))
        return {"version": VERSION, "files": dict(model.files), "pooling": pooling}

    def _pooling(self, model: Pretrained) -> Pooling:
        pooling = pooling_of(model, self.pooling, normalize=False)
        most = [number for number in (self.longest, pooling.longest) if number]
        return Pooling(pooling.how, False, pooling.lowercase, min(most, default=None))

    def require(self) -> None:
        """See the base."""
        super().require()
        self._pooling(self.pretrained)

    def prepare(self, data: LabelledCaptions) -> Embedded | None:
        """Count the captions that are cut; nothing is stored."""
        from bias_pipeline.inference.texts import Embedded

        tokens = self._tokens()
        tokens(texts_of(data))
        return Embedded(cut=len(tokens.cut))

    def _tokens(self) -> Tokens:
        model = self.pretrained
        return tokens_of(model, self._pooling(model))

    def read(self, data: LabelledCaptions) -> TokenInputs:
        """The token ids of N captions."""
        tokens = self._tokens()
        return TokenInputs(tokens(texts_of(data)), tokens.padding)

    def build(self, inputs: TokenInputs) -> nn.Module:
        """The network with its published weights."""
        del inputs
        from bias_pipeline.models.language_net import LanguageNet

        model = self.pretrained
        return LanguageNet(model, self._pooling(model).how)


def texts_of(data: LabelledCaptions) -> list[str]:
    """N captions as texts."""
    return [data.captions.text(row) for row in range(len(data.captions))]


@dataclass(frozen=True, eq=False)
class TokenInputs(Items):
    """Captions as token ids of a model.

    Attributes:
        numbers: the ids of each of N captions, at least one.
        padding: the id that fills shorter captions.
    """

    numbers: Sequence[Sequence[int]]
    padding: int

    def fit(self, train: IntArray) -> TokenInputs:
        """The same inputs: the vocabulary is the model's."""
        del train
        return self

    @cached_property
    def lengths(self) -> IntArray:
        """(N,) tokens of each caption."""
        return np.array([len(tokens) for tokens in self.numbers], np.int64)

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``tokens`` (B, L) padded to the longest, and ``lengths`` (B,)."""
        lengths = self.lengths[rows]
        tokens = np.full((len(rows), int(lengths.max(initial=1))), self.padding, np.int64)
        for place, row in zip(tokens, rows.tolist(), strict=True):
            place[: len(self.numbers[row])] = self.numbers[row]
        return {"tokens": tokens, "lengths": lengths}
