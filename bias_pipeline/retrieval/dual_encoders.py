"""Embeds pictures and texts as vectors of one space, with a model on disk.

The files of the model decide its format. Each picture and text is embedded once and cached. Some
networks also match pairs of picture and text. Such a network encodes a picture once for all texts
that it is matched with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.data.photos import read_photo
from bias_pipeline.data.regions import Crop, crop_cache_key, crop_person
from bias_pipeline.errors import UsageError
from bias_pipeline.io import signals
from bias_pipeline.io.progress import bar, track
from bias_pipeline.models import clip
from bias_pipeline.models.blocks import BlockStore
from bias_pipeline.models.clip import ClipPhotos, ClipTexts
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.models.text_vectors import embed_missing, vectors_from
from bias_pipeline.retrieval.fiber.folder import LONGEST, Head, find_fiber, is_fiber
from bias_pipeline.retrieval.open_clip_folder import find_open_clip, is_open_clip, quick_gelu

if TYPE_CHECKING:
    from PIL.Image import Image

    from bias_pipeline.retrieval.fiber.model import FiberModel
    from bias_pipeline.retrieval.open_clip import OpenClipModel
    from bias_pipeline.retrieval.two_modes import BlipModel, TwoModeNet

Normalise = Literal["both", "texts"]
T = TypeVar("T")

VERSION = 1  # raise it whenever any vector changes
_BATCH = 64  # pictures or texts at once
_SHOWN = 8  # pictures per batch when pairs are matched, each picture with all of its texts


class Embedder(Protocol):
    """Turns items into vectors; the weights are frozen, but the vectors may be debiased."""

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides the vectors, as plain data."""

    def embed(self, items: Any, /) -> Float32Array:
        """(N, D) vectors of length 1."""


@dataclass(frozen=True)
class DualEncoder:
    """Turns pictures and texts into vectors of one space, whose products are similarities."""

    images: Embedder  # embeds `Pictures`
    texts: Embedder  # embeds texts
    matcher: PairMatcher | None = None  # the same model's matching mode; None without one


@dataclass(frozen=True)
class PhotoTower:
    prepare: Callable[[Image], Float32Array]  # to (3, H, W), as the network takes it
    describe: Callable[[Sequence[Float32Array]], Float32Array]  # to (N, D)

    def read(self, path: Path) -> Float32Array:
        """(3, H, W) the photo in a file."""
        return self.prepare(read_photo(path))


@dataclass(frozen=True)
class TextTower:
    describe: Callable[[Sequence[str]], Float32Array]  # to (N, D) vectors of length 1

    def read(self, text: str) -> str:
        return text


@dataclass(frozen=True)
class Towers(ABC):
    """A model on disk with two towers, which are loaded when they are needed."""

    model: Pretrained
    device: str  # where the model computes

    @property
    def name(self) -> str:
        """The name of the model, in the form in which the user wrote it."""
        return self.model.name

    @property
    @abstractmethod
    def spec(self) -> Mapping[str, object]:
        """Everything that decides the vectors: digests of the model's files, and its settings."""

    @abstractmethod
    def photos(self, *, normalize: bool) -> PhotoTower:
        """The tower for pictures; with ``normalize`` vectors have length 1, else any length."""

    @abstractmethod
    def texts(self) -> TextTower: ...


@dataclass(frozen=True)
class ClipTowers(Towers):
    @property
    def spec(self) -> Mapping[str, object]:
        return {"files": dict(self.model.files)}

    def photos(self, *, normalize: bool) -> PhotoTower:
        tower = _tower(ClipPhotos, self.model, self.device, normalize)
        return PhotoTower(tower.prepare, tower.describe)

    def texts(self) -> TextTower:
        return TextTower(self.text_model().describe)

    def text_model(self) -> ClipTexts:
        return _tower(ClipTexts, self.model, self.device, True)


@lru_cache(maxsize=2)  # both towers of a model
def _tower(kind: Callable[..., T], model: Pretrained, device: str, normalize: bool) -> T:
    return kind(model, device_of(device), normalize=normalize)


@lru_cache(maxsize=1)
def _load_whole(kind: Callable[..., T], model: Pretrained, device: str, *settings: Any) -> T:
    """A network with both towers; the network loaded last is cached."""
    return kind(model, device_of(device), *settings)


@dataclass(frozen=True)
class WholeTowers(Towers):
    """A model that is loaded as a whole, and whose towers are two views of one network."""

    judging: ClassVar[str] = ""  # a published model of this kind that also matches pairs, or empty

    @property
    @abstractmethod
    def net(self) -> Any:
        """The network, which is loaded at its first use."""

    @property
    def cross_encoder(self) -> TwoModeNet:
        """The network; an error is raised if it has no head for matching."""
        net: TwoModeNet = self.net
        if not net.matches:
            raise UsageError(
                f"metric.rerank: the weights in {self.name} have no matching head (itm_score); "
                f"name a model that has one, such as {self.judging}, or set metric.rerank=null"
            )
        return net

    def photos(self, *, normalize: bool) -> PhotoTower:
        net = self.net
        return PhotoTower(net.prepare, partial(net.photos, normalize=normalize))

    def texts(self) -> TextTower:
        return TextTower(self.net.texts)


@dataclass(frozen=True)
class OpenClipTowers(WholeTowers):
    quick: bool  # whether the network computes QuickGELU

    @property
    def spec(self) -> Mapping[str, object]:
        digests = sorted(self.model.files.values())  # independent of file names
        return {"kind": self.model.kind, "files": digests, "quick_gelu": self.quick}

    @property
    def net(self) -> OpenClipModel:
        from bias_pipeline.retrieval.open_clip import OpenClipModel

        return _load_whole(OpenClipModel, self.model, self.device, self.quick)


@dataclass(frozen=True)
class FiberTowers(WholeTowers):
    judging: ClassVar[str] = "fiber_pretrain.ckpt"

    longest: int  # how many tokens of a text are read
    head: Head = "rank_output"  # the matching head, see `read_fiber`

    @property
    def spec(self) -> Mapping[str, object]:
        digests = sorted(self.model.files.values())  # independent of file names
        settings = {"kind": "fiber", "files": digests, "longest": self.longest}
        return settings | ({"head": self.head} if self.head != "rank_output" else {})

    @property
    def net(self) -> FiberModel:
        from bias_pipeline.retrieval.fiber.model import FiberModel

        return _load_whole(FiberModel, self.model, self.device, self.longest, self.head)


@dataclass(frozen=True)
class BlipTowers(WholeTowers):
    judging: ClassVar[str] = "Salesforce/blip-itm-base-coco"

    @property
    def spec(self) -> Mapping[str, object]:
        return {"kind": self.model.kind, "files": dict(self.model.files)}

    @property
    def net(self) -> BlipModel:
        from bias_pipeline.retrieval.two_modes import BlipModel

        return _load_whole(BlipModel, self.model, self.device)


BLIP = "blip"  # this kind of model also has a matching mode
KINDS = (*clip.KINDS, BLIP)


def towers_of(name: str, revision: str, device: str) -> Towers:
    """The towers of a model in any supported format, with the format's settings."""
    if is_fiber(name):
        return FiberTowers(find_fiber(name), device, LONGEST)
    if is_open_clip(name):
        model = find_open_clip(name, revision=revision)
        return OpenClipTowers(model, device, quick_gelu(model.folder, None))
    return published_towers(find_pretrained(name, KINDS, revision=revision), device)


def published_towers(model: Pretrained, device: str) -> ClipTowers | BlipTowers:
    return (BlipTowers if model.kind == BLIP else ClipTowers)(model, device)


def dual_of(
    towers: Towers, crop: Crop, cache: str | None, normalise: Normalise = "both"
) -> DualEncoder:
    """A model as a pair of embedders, with a matcher if the model can match pairs."""
    images = ImageEmbedder(towers, cache, crop=crop, normalise=normalise == "both")
    matcher = None
    if isinstance(towers, WholeTowers) and towers.judging:
        matcher = PairMatcher(towers, crop)
    return DualEncoder(images, QueryEmbedder(towers, cache), matcher)


@dataclass(frozen=True)
class _Batched:
    """Embeds items (texts, or the keys of pictures) in batches."""

    describe: Callable[[Sequence[str]], Float32Array]
    cut: tuple[int, ...] = ()

    def embed(self, items: Sequence[str]) -> Float32Array:
        starts = range(0, len(items), _BATCH)
        return np.concatenate([self.describe(items[s : s + _BATCH]) for s in starts])


@dataclass(frozen=True)
class _CachedEmbedder:
    """An embedder that caches the vectors of a model."""

    towers: Towers  # the model
    cache: str | None  # folder that caches vectors; None: memory only
    # The vectors in memory
    memory: dict[str, Float32Array] = field(default_factory=dict, compare=False, repr=False)

    @property
    def spec(self) -> Mapping[str, object]:
        return {"job": "dual", "version": VERSION, **self.towers.spec}

    def _vectors(self, keys: Sequence[str], load: Callable[[], _Batched]) -> Float32Array:
        """(N, D) the vectors of the keys; absent vectors are computed now."""
        distinct = list(dict.fromkeys(keys))
        place = {key: row for row, key in enumerate(distinct)}
        rows = [place[key] for key in keys]
        if self.cache is not None:
            store = BlockStore(Path(self.cache), self.spec, self.towers.name)
            embed_missing(distinct, store, load)
            return vectors_from(distinct, store)[rows]
        missing = [key for key in distinct if key not in self.memory]
        if missing:
            self.memory.update(zip(missing, load().embed(missing), strict=True))
        return np.stack([self.memory[key] for key in keys])


@dataclass(frozen=True)
class ImageEmbedder(_CachedEmbedder):
    crop: Crop = "none"  # the part of pictures to use, see `crop_person`
    normalise: bool = True  # whether vectors are of length 1

    @property
    def spec(self) -> Mapping[str, object]:
        raw = {} if self.normalise else {"normalise": False}
        return {**super().spec, "source": "pictures", **raw}

    def embed(self, items: Pictures, /) -> Float32Array:
        """(N, D) the vectors of pictures; every picture must exist."""
        keys = [crop_cache_key(items, row, self.crop) for row in range(len(items))]
        rows = {key: row for row, key in enumerate(keys)}

        def load() -> _Batched:
            tower = self.towers.photos(normalize=self.normalise)

            def describe(shown: Sequence[str]) -> Float32Array:
                photos = [crop_person(items, rows[key], self.crop) for key in shown]
                return tower.describe([tower.prepare(photo) for photo in photos])

            return _Batched(describe)

        return self._vectors(keys, load)


@dataclass(frozen=True)
class QueryEmbedder(_CachedEmbedder):
    @property
    def spec(self) -> Mapping[str, object]:
        return {**super().spec, "source": "texts"}

    def embed(self, items: Sequence[str], /) -> Float32Array:
        """(N, D) vectors of texts, which have length 1."""
        return self._vectors(items, lambda: _Batched(self.towers.texts().describe))


@dataclass(frozen=True)
class PairMatcher:
    """Scores each pair of picture and text, with one pass of the network per pair."""

    towers: WholeTowers
    crop: Crop  # the part of pictures to use
    # Scores by picture and text
    memory: dict[tuple[str, str], float] = field(default_factory=dict, compare=False, repr=False)

    def require(self) -> None:
        """Refuse a model that cannot match pairs."""
        assert self.towers.cross_encoder

    def match(self, pictures: Pictures, texts: Sequence[str], pairs: IntArray, /) -> Float32Array:
        """(P,) matching scores of pairs (P, 2) of a picture and a text; higher is better."""
        rows = pairs[:, 0].tolist()
        looks = {row: crop_cache_key(pictures, row, self.crop) for row in set(rows)}
        keys = [(looks[row], texts[text]) for row, text in pairs.tolist()]
        missing: dict[str, tuple[int, set[str]]] = {}
        for key, row in zip(keys, rows, strict=True):
            if key not in self.memory:
                missing.setdefault(key[0], (row, set()))[1].add(key[1])
        if missing:
            self._score_missing(pictures, missing)
        return np.array([self.memory[key] for key in keys], np.float32)

    def _score_missing(
        self, pictures: Pictures, missing: Mapping[str, tuple[int, set[str]]]
    ) -> None:
        net = self.towers.cross_encoder
        texts = sorted(set().union(*(needed for _, needed in missing.values())))
        encoded = net.encode_texts(texts)
        numbers = {text: k for k, text in enumerate(texts)}
        names = list(missing)
        starts = range(0, len(names), _SHOWN)
        with bar("pictures judged with texts"):
            for start in track(starts, len(starts)):
                shown = names[start : start + _SHOWN]
                wanted = [
                    (k, text) for k, name in enumerate(shown) for text in sorted(missing[name][1])
                ]
                pairs = np.array([(k, numbers[text]) for k, text in wanted])
                crops = (crop_person(pictures, missing[name][0], self.crop) for name in shown)
                scores = net.match(list(map(net.prepare, crops)), encoded, pairs).tolist()
                for (k, text), value in zip(wanted, scores, strict=True):
                    self.memory[shown[k], text] = value
                signals.stop_if_requested()
