"""Pictures and texts as vectors of one space: each is embedded once for whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.texts import TextEmbedder, embed_missing, vectors_from
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.vision.people import Crop, look, look_key

if TYPE_CHECKING:
    from PIL.Image import Image

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
Normalise = Literal["both", "texts"]

VERSION = 1  # raise it whenever any vector changes
_BATCH = 64  # at once


class Embedder(Protocol):
    """Items to vectors; nothing of it is trained, though it may be debiased.

    Attributes:
        spec: everything that decides its vectors, as plain data.
    """

    @property
    def spec(self) -> Mapping[str, object]: ...  # noqa: D102

    def embed(self, items: Any, /) -> FloatArray:
        """(N, D) vectors of length 1."""


class Matcher(Protocol):
    """Judges a picture and a text together, which costs a reading of every pair."""

    def require(self) -> None:
        """Know that it can.

        Raises:
            BiasPipelineError: if it cannot.
        """

    def match(self, pictures: Pictures, texts: Sequence[str], pairs: IntArray, /) -> FloatArray:
        """(P,) how well they match, the better the more.

        Args:
            pictures: each of which is there, if it is in a pair.
            texts: any number.
            pairs: (P, 2) number of a picture and of a text.
        """


@dataclass(frozen=True)
class DualEncoder:
    """Pictures and texts as vectors of one space, whose products are their similarity.

    Attributes:
        images: of :class:`~bias_pipeline.corpus.pictures.Pictures`.
        texts: of texts.
        matcher: the same model's other mode; None: it has none.
    """

    images: Embedder
    texts: Embedder
    matcher: Matcher | None = None


class Photos(Protocol):
    """The picture half of a model."""

    def prepare(self, photo: Image, /) -> FloatArray:
        """(3, H, W) a photo as the network takes it."""

    def describe(self, photos: Sequence[FloatArray], /) -> FloatArray:
        """(N, D) a vector for each photo."""


class Texts(Protocol):
    """The text half of a model."""

    def describe(self, texts: Sequence[str], /) -> FloatArray:
        """(N, D) a vector of length 1 for each text."""


class Halves(Protocol):
    """A model that was found; its halves are loaded when they are asked."""

    @property
    def name(self) -> str:
        """As the user wrote it."""

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides its vectors."""

    def photos(self, *, normalize: bool) -> Photos:
        """Those of pictures, of length 1 or as the model makes them."""

    def texts(self) -> Texts:
        """Those of texts."""


@dataclass(frozen=True)
class Found:
    """A model that was found, of which :class:`Halves` are made.

    Attributes:
        model: the same.
        device: where it computes.
    """

    model: Pretrained
    device: str

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self.model.name


def dual_of(
    own: Halves,
    crop: Crop,
    cache: str | None,
    normalise: Normalise = "both",
    matcher: Matcher | None = None,
) -> DualEncoder:
    """A model as a pair of embedders.

    Args:
        own: that was found.
        crop: what of pictures is shown, see :func:`~bias_pipeline.vision.people.look`.
        cache: folder of vectors, None to keep them in memory.
        normalise: whose vectors are of length 1.
        matcher: its other mode, if it has one.
    """
    images = Images(own, cache, crop=crop, normalise=normalise == "both")
    return DualEncoder(images, Queries(own, cache), matcher)


@dataclass(frozen=True)
class _Kept:
    """What vectors are kept under.

    Attributes:
        model: whose they are.
        cache: folder of vectors, None to keep them in memory.
        memory: those.
    """

    model: Halves
    cache: str | None
    memory: dict[str, npt.NDArray[np.float32]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests."""
        return {"job": "dual", "version": VERSION, **self.model.spec}

    def _vectors(self, keys: Sequence[str], load: Callable[[], TextEmbedder]) -> FloatArray:
        """(N, D) vectors by what they are of, those that are not there yet computed."""
        distinct = list(dict.fromkeys(keys))
        place = {key: row for row, key in enumerate(distinct)}
        rows = [place[key] for key in keys]
        if self.cache is not None:
            store = BlockStore(Path(self.cache), self.spec, self.model.name)
            embed_missing(distinct, store, load)
            return vectors_from(distinct, store)[rows]
        missing = [key for key in distinct if key not in self.memory]
        if missing:
            self.memory.update(zip(missing, load().embed(missing), strict=True))
        return np.stack([self.memory[key] for key in keys])


@dataclass(frozen=True)
class Images(_Kept):
    """The picture half of a model.

    Attributes:
        crop: what of pictures is shown, see :func:`~bias_pipeline.vision.people.look`.
        normalise: whether vectors are of length 1.
    """

    crop: Crop = "none"
    normalise: bool = True

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests."""
        raw = {} if self.normalise else {"normalise": False}
        return {**super().spec, "source": "pictures", **raw}

    def embed(self, items: Pictures, /) -> FloatArray:
        """(N, D) vectors of pictures, each of which is there.

        Raises:
            BiasPipelineError: if a picture cannot be read, or the model cannot be loaded.
        """
        keys = [look_key(items, row, self.crop) for row in range(len(items))]
        return self._vectors(keys, lambda: _Shown(self, items, keys))


class _Shown:
    """Pictures under their keys, as texts are embedded."""

    cut = ()

    def __init__(self, how: Images, pictures: Pictures, keys: Sequence[str]) -> None:
        self.net = how.model.photos(normalize=how.normalise)
        self.pictures, self.crop = pictures, how.crop
        self.rows = {key: row for row, key in enumerate(keys)}

    def embed(self, keys: Sequence[str]) -> FloatArray:
        found = []
        for start in range(0, len(keys), _BATCH):
            rows = [self.rows[key] for key in keys[start : start + _BATCH]]
            shown = [self.net.prepare(look(self.pictures, row, self.crop)) for row in rows]
            found.append(self.net.describe(shown))
        return np.concatenate(found)


@dataclass(frozen=True)
class Queries(_Kept):
    """The text half of a model."""

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests."""
        return {**super().spec, "source": "texts"}

    def embed(self, items: Sequence[str], /) -> FloatArray:
        """(N, D) vectors of length 1 of texts.

        Raises:
            BiasPipelineError: if the model cannot be loaded.
        """
        return self._vectors(items, lambda: _Read(self.model.texts()))


@dataclass(frozen=True)
class _Read:
    """Texts, as texts are embedded."""

    net: Texts
    cut: tuple[int, ...] = ()

    def embed(self, texts: Sequence[str]) -> FloatArray:
        starts = range(0, len(texts), _BATCH)
        return np.concatenate([self.net.describe(texts[s : s + _BATCH]) for s in starts])
