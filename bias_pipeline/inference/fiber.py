"""FIBER as a pair of embedders, and as a judge of a picture and a text together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import UsageError
from bias_pipeline.inference.embedders import (
    DualEncoder,
    FloatArray,
    Images,
    IntArray,
    Normalise,
    Queries,
)
from bias_pipeline.io import stopping
from bias_pipeline.io.progress import bar, track
from bias_pipeline.models.pretrained import Pretrained, device_of
from bias_pipeline.vision.people import Crop, look, look_key

if TYPE_CHECKING:
    from bias_pipeline.models.fiber.model import FiberModel, FiberPhotos, FiberTexts

_SHOWN = 8  # pictures that are judged at once, each with all of its texts


def fiber_dual(
    model: FiberHalves, crop: Crop, cache: str | None, normalise: Normalise = "both"
) -> DualEncoder:
    """A FIBER as a pair of embedders, with its fused mode.

    Args:
        model: that was found.
        crop: what of pictures is shown, see :func:`~bias_pipeline.vision.people.look`.
        cache: folder of vectors, None to keep them in memory, as what is judged in pairs is.
        normalise: whose vectors are of length 1.
    """
    images = Images(model, cache, crop=crop, normalise=normalise == "both")
    return DualEncoder(images, Queries(model, cache), FiberMatcher(model, crop))


@dataclass(frozen=True)
class FiberHalves:
    """A FIBER that was found.

    Attributes:
        model: the same.
        device: where it computes.
        side: of a picture in pixels, None for the file's own.
        longest: tokens that are read of a text.
    """

    model: Pretrained
    device: str
    side: int | None
    longest: int

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self.model.name

    @property
    def spec(self) -> Mapping[str, object]:
        """By its digests, and how it is shown what."""
        digests = sorted(self.model.files.values())  # whatever the files are called
        return {"kind": "fiber", "files": digests, "side": self.side, "longest": self.longest}

    @property
    def loaded(self) -> FiberModel:
        """The network, loaded when it is first asked."""
        from bias_pipeline.models.fiber.model import loaded

        return loaded(self.model, self.side, self.longest, device_of(self.device))

    def photos(self, *, normalize: bool) -> FiberPhotos:
        """The half of pictures."""
        from bias_pipeline.models.fiber.model import FiberPhotos

        return FiberPhotos(self.loaded, normalize)

    def texts(self) -> FiberTexts:
        """The half of texts."""
        from bias_pipeline.models.fiber.model import FiberTexts

        return FiberTexts(self.loaded)


@dataclass(frozen=True)
class FiberMatcher:
    """Pictures and texts, judged together; each pair once.

    Attributes:
        model: that was found.
        crop: what of pictures is shown.
        memory: what was judged, by picture and text.
    """

    model: FiberHalves
    crop: Crop
    memory: dict[tuple[str, str], float] = field(default_factory=dict, compare=False, repr=False)

    def require(self) -> None:
        """See :class:`~bias_pipeline.inference.embedders.Matcher`.

        Raises:
            UsageError: if the file was not trained to judge pairs.
        """
        if not self.model.loaded.matches:
            raise UsageError(
                f"metric.rerank: the weights in {self.model.name} have no itm_score, which judges "
                "a picture and a text together; name a file that has, such as fiber_pretrain.ckpt, "
                "or set metric.rerank=null"
            )

    def match(self, pictures: Pictures, texts: Sequence[str], pairs: IntArray, /) -> FloatArray:
        """See :class:`~bias_pipeline.inference.embedders.Matcher`."""
        looks = {row: look_key(pictures, row, self.crop) for row in set(pairs[:, 0].tolist())}
        keys = [(looks[row], texts[text]) for row, text in pairs.tolist()]
        # A picture is looked at once for all of its texts.
        missing: dict[str, tuple[int, set[str]]] = {}
        for key, row in zip(keys, pairs[:, 0].tolist(), strict=True):
            if key not in self.memory:
                missing.setdefault(key[0], (row, set()))[1].add(key[1])
        if missing:
            self._judge(pictures, missing)
        return np.array([self.memory[key] for key in keys], np.float32)

    def _judge(self, pictures: Pictures, missing: Mapping[str, tuple[int, set[str]]]) -> None:
        net = self.model.loaded
        texts = sorted(set().union(*(own for _, own in missing.values())))
        begun, numbers = net.begin(texts), {text: k for k, text in enumerate(texts)}
        names = list(missing)
        starts = range(0, len(names), _SHOWN)
        with bar("pictures judged with texts"):
            for start in track(starts, len(starts)):
                shown = names[start : start + _SHOWN]
                wanted = [
                    (k, text) for k, own in enumerate(shown) for text in sorted(missing[own][1])
                ]
                pairs = np.array([(k, numbers[text]) for k, text in wanted])
                photos = [net.prepare(look(pictures, missing[own][0], self.crop)) for own in shown]
                found = net.match(photos, begun, pairs).tolist()
                for (k, text), value in zip(wanted, found, strict=True):
                    self.memory[shown[k], text] = value
                stopping.stop_if_requested()
