"""Networks of two modes: pictures and texts by themselves, and judged together.

A picture that is judged is looked at once for all of its texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import UsageError
from bias_pipeline.inference.embedders import FloatArray, IntArray
from bias_pipeline.inference.halves import FoundOneSpace, OneSpace
from bias_pipeline.io import stopping
from bias_pipeline.io.progress import bar, track
from bias_pipeline.vision.people import Crop, look, look_key

if TYPE_CHECKING:
    from PIL.Image import Image

_SHOWN = 8  # pictures that are judged at once, each with all of its texts


class Judge(Protocol):
    """A network that judges a picture and a text together."""

    def prepare(self, photo: Image, /) -> FloatArray:
        """(3, H, W) a photo as the network takes it."""

    def begin(self, texts: Sequence[str], /) -> Any:
        """Texts, as far as they are read without a picture."""

    def match(self, photos: Sequence[FloatArray], texts: Any, pairs: IntArray, /) -> FloatArray:
        """(P,) how well they match; pairs (P, 2) are of a photo and a text."""


class TwoModes(Judge, OneSpace, Protocol):
    """One that gives either vectors too."""

    @property
    def matches(self) -> bool:
        """Whether its weights have been trained to judge."""

    def prepare(self, photo: Image, /) -> FloatArray:
        """(3, H, W) a photo as the network takes it, in either mode."""


@dataclass(frozen=True)
class FoundTwoModes(FoundOneSpace, ABC):
    """A model of two modes that was found.

    Attributes:
        judging: a published model of its kind whose weights judge.
    """

    judging: ClassVar[str]

    @property
    @abstractmethod
    def net(self) -> TwoModes:
        """The network, loaded when it is first asked."""

    @property
    def judge(self) -> Judge:
        """The network as one that judges.

        Raises:
            BiasPipelineError: if it cannot be loaded, or does not judge.
        """
        net = self.net
        if not net.matches:
            raise UsageError(
                f"metric.rerank: the weights in {self.name} have no itm_score, which judges a "
                f"picture and a text together; name one that has, such as {self.judging}, or set "
                "metric.rerank=null"
            )
        return net


class Judging(Protocol):
    """A model that was found; its network is loaded when it is first asked."""

    @property
    def judge(self) -> Judge:
        """The network.

        Raises:
            BiasPipelineError: if it cannot be loaded, or does not judge.
        """


@dataclass(frozen=True)
class PairMatcher:
    """Judges each pair once.

    Attributes:
        model: that was found.
        crop: what of pictures is shown.
        memory: what was judged, by picture and text.
    """

    model: Judging
    crop: Crop
    memory: dict[tuple[str, str], float] = field(default_factory=dict, compare=False, repr=False)

    def require(self) -> None:
        """See :class:`~bias_pipeline.inference.embedders.Matcher`."""
        assert self.model.judge

    def match(self, pictures: Pictures, texts: Sequence[str], pairs: IntArray, /) -> FloatArray:
        """See :class:`~bias_pipeline.inference.embedders.Matcher`."""
        rows = pairs[:, 0].tolist()
        looks = {row: look_key(pictures, row, self.crop) for row in set(rows)}
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
        texts = sorted(set().union(*(own for _, own in missing.values())))
        begun, numbers = judge.begin(texts), {text: k for k, text in enumerate(texts)}
        names = list(missing)
        starts = range(0, len(names), _SHOWN)
        with bar("pictures judged with texts"):
            for start in track(starts, len(starts)):
                shown = names[start : start + _SHOWN]
                wanted = [
                    (k, text) for k, own in enumerate(shown) for text in sorted(missing[own][1])
                ]
                pairs = np.array([(k, numbers[text]) for k, text in wanted])
                photos = [
                    judge.prepare(look(pictures, missing[own][0], self.crop)) for own in shown
                ]
                found = judge.match(photos, begun, pairs).tolist()
                for (k, text), value in zip(wanted, found, strict=True):
                    self.memory[shown[k], text] = value
                stopping.stop_if_requested()
