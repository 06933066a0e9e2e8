"""Networks of two modes: separate vectors, and matching scores of pairs.

A picture is encoded once for all of its texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import UsageError
from bias_pipeline.inference.embedders import DualEncoderModel, FoundOneSpace
from bias_pipeline.io import signals
from bias_pipeline.io.progress import bar, track
from bias_pipeline.vision.people import Crop, crop_cache_key, crop_person

if TYPE_CHECKING:
    from PIL.Image import Image

_SHOWN = 8  # pictures per batch, each with all of its texts


class CrossEncoder(Protocol):
    """A network with matching scores of pairs."""

    def prepare(self, photo: Image, /) -> Float32Array:
        """(3, H, W) a photo as the network takes it."""

    def begin(self, texts: Sequence[str], /) -> Any:
        """Texts, encoded as far as possible without a picture."""

    def match(self, photos: Sequence[Float32Array], texts: Any, pairs: IntArray, /) -> Float32Array:
        """(P,) matching scores; pairs (P, 2) are indices of a photo and a text."""


class TwoModes(CrossEncoder, DualEncoderModel, Protocol):
    """A network with vectors and matching scores."""

    @property
    def matches(self) -> bool:
        """Whether its weights have a matching head."""

    def prepare(self, photo: Image, /) -> Float32Array:
        """(3, H, W) a photo as the network takes it, in either mode."""


@dataclass(frozen=True)
class FoundTwoModes(FoundOneSpace, ABC):
    """A model of two modes on disk."""

    judging: ClassVar[str]  # a published model of its kind with a matching head

    @property
    @abstractmethod
    def net(self) -> TwoModes:
        """The network, loaded at first use."""

    @property
    def judge(self) -> CrossEncoder:
        """The network, checked for a matching head.

        Raises:
            BiasPipelineError: if it cannot be loaded, or has no matching head.
        """
        net = self.net
        if not net.matches:
            raise UsageError(
                f"metric.rerank: the weights in {self.name} have no matching head (itm_score); "
                f"name a model that has one, such as {self.judging}, or set "
                "metric.rerank=null"
            )
        return net


class Judging(Protocol):
    """A model on disk; its network is loaded at first use."""

    @property
    def judge(self) -> CrossEncoder:
        """The network.

        Raises:
            BiasPipelineError: if it cannot be loaded, or has no matching head.
        """


@dataclass(frozen=True)
class PairMatcher:
    """Scores each pair once."""

    model: Judging  # that was found
    crop: Crop  # the part of pictures to use
    # Scores by picture and text
    memory: dict[tuple[str, str], float] = field(default_factory=dict, compare=False, repr=False)

    def require(self) -> None:
        """See :class:`~bias_pipeline.inference.embedders.Matcher`."""
        assert self.model.judge

    def match(self, pictures: Pictures, texts: Sequence[str], pairs: IntArray, /) -> Float32Array:
        """See :class:`~bias_pipeline.inference.embedders.Matcher`."""
        rows = pairs[:, 0].tolist()
        looks = {row: crop_cache_key(pictures, row, self.crop) for row in set(rows)}
        keys = [(looks[row], texts[text]) for row, text in pairs.tolist()]
        missing: dict[str, tuple[int, set[str]]] = {}
        for key, row in zip(keys, rows, strict=True):
            if key not in self.memory:
                missing.setdefault(key[0], (row, set()))[1].add(key[1])
        if missing:
            self._judge(pictures, missing)
        return np.array([self.memory[key] for key in keys], np.float32)

    def _judge(self, pictures: Pictures, missing: Mapping[str, tuple[int, set[str]]]) -> None:
        judge = self.model.judge
        texts = sorted(set().union(*(needed for _, needed in missing.values())))
        begun, numbers = judge.begin(texts), {text: k for k, text in enumerate(texts)}
        names = list(missing)
        starts = range(0, len(names), _SHOWN)
        with bar("pictures judged with texts"):
            for start in track(starts, len(starts)):
                shown = names[start : start + _SHOWN]
                wanted = [
                    (k, text) for k, name in enumerate(shown) for text in sorted(missing[name][1])
                ]
                pairs = np.array([(k, numbers[text]) for k, text in wanted])
                photos = [
                    judge.prepare(crop_person(pictures, missing[name][0], self.crop))
                    for name in shown
                ]
                scores = judge.match(photos, begun, pairs).tolist()
                for (k, text), value in zip(wanted, scores, strict=True):
                    self.memory[shown[k], text] = value
                signals.stop_if_requested()
