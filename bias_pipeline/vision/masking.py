"""``image_masking=``: pictures without people, without objects, or without both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.pictures import PERSON, Drawn, Elsewhere, Pictures, Pixels, Region
from bias_pipeline.declared import Configurable, InnerShare, NotNegativeCount, Share
from bias_pipeline.errors import DataError
from bias_pipeline.io.hashing import stream
from bias_pipeline.vision.drawn import in_size
from bias_pipeline.vision.regions import box_mask, grown, region_mask, union

Mask = npt.NDArray[np.bool_]

_GREY = 127
_FOREGROUND = 0.5  # of the largest person's box
_GRAINS = 256  # of noise, each way, in a picture that is larger


@dataclass(frozen=True)
class ImageMasking(Configurable):
    """Paints things over, in every picture of a corpus; a transform, and an edit of pictures.

    A labelled image shows a person: one in whose picture nobody found any cannot be masked and
    loses its picture, which is noted. So does one whose people have boxes alone where outlines
    are asked for.

    Attributes:
        person: what of people is masked: their ``segment``, their ``box``, the upper ``part`` of
            their segment, or ``none``.
        objects: whether all other annotated things are masked, along their outlines where they
            have any, else their boxes.
        fill: what is painted: ``grey``, the ``mean`` colour of what is left, a strong ``blur`` of
            the picture itself, or ``noise``, the same in all pictures.
        grow: pixels by which masks grow, for outlines that are too tight: of the file, before it
            is squeezed to an encoder's size; what is drawn on the spot has that size at once.
        fraction: the share of a person's height, from the top, that ``part`` masks. DBAC masks
            people in part without saying which; ours.
        target: which people: ``all``, the ``largest`` one, or those in the ``foreground``, at
            least half as large as the largest (boxes).
        min_score: detections that are less certain do not count.
    """

    person: Literal["none", "segment", "box", "part"] = "segment"
    objects: bool = False
    fill: Literal["grey", "mean", "blur", "noise"] = "grey"
    grow: NotNegativeCount = 0
    fraction: InnerShare = 0.5
    target: Literal["all", "largest", "foreground"] = "all"
    min_score: Share = 0.5

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides what is painted."""
        return {"edit": "mask", **asdict(self)}

    def __call__(self, corpus: Corpus) -> Corpus:
        """The corpus with pictures that are masked when they are read.

        Raises:
            DataError: if no picture can be masked.
        """
        if corpus.pictures is None or (self.person == "none" and not self.objects):
            return corpus
        able = self._maskable(corpus.pictures)
        n_lost = int((corpus.pictures.present & ~able).sum())
        sought = self._sought + (self._how_sure(corpus.pictures) if n_lost else "")
        if n_lost and not able.any():
            first = corpus.ids[int(np.argmin(able))]
            raise DataError(
                f"dataset {corpus.dataset!r}: image {first} and all others have no {sought}; "
                "name a file that has them (dataset.regions=FILE), or choose another image_masking"
            )
        files = tuple(
            own if ok else None for own, ok in zip(corpus.pictures.files, able, strict=True)
        )
        note = f"{n_lost} pictures have no {sought} and cannot be masked: not scored"
        return replace(
            corpus,
            pictures=replace(corpus.pictures, files=files).edited(self),
            notes=(*corpus.notes, *([note] if n_lost else ())),
        )

    @property
    def _sought(self) -> str:
        if self.person == "none":
            return "annotated things"
        return "box of a person" if self.person == "box" else "outline of a person"

    def _how_sure(self, pictures: Pictures) -> str:
        """What keeps detections from counting, if it does."""
        all_known = (pictures.known(row) or () for row in range(len(pictures)))
        unsure = any(own.score < self.min_score for regions in all_known for own in regions)
        return f" of image_masking.min_score={self.min_score:g} or more" if unsure else ""

    def _maskable(self, pictures: Pictures) -> Mask:
        """(N,) whether what is to be masked is known; drawings know themselves."""
        known = (pictures.known(row) for row in range(len(pictures)))
        return np.array(
            [
                self._knows(regions, file)
                if isinstance(file, Path | Elsewhere)
                else file is not None
                for file, regions in zip(pictures.files, known, strict=True)
            ],
            bool,
        )

    def _knows(self, regions: tuple[Region, ...] | None, file: Path | Elsewhere) -> bool:
        if regions is None:
            return False
        if self.person == "none":
            return True
        people = self._people(in_size(regions, file))
        return bool(people) and (self.person == "box" or all(own.outlined for own in people))

    def _people(self, regions: Iterable[Region]) -> list[Region]:
        """Those that are masked."""
        people = [own for own in self._certain(regions) if own.category == PERSON]
        if self.target == "all" or not people:
            return people
        sizes = [own.box[2] * own.box[3] for own in people]
        if self.target == "largest":
            return [people[int(np.argmax(sizes))]]
        least = _FOREGROUND * max(sizes)
        return [own for own, size in zip(people, sizes, strict=True) if size >= least]

    def _certain(self, regions: Iterable[Region]) -> list[Region]:
        """Those in the picture; whoever is annotated beside it would be left to be seen."""
        return [own for own in regions if own.score >= self.min_score and not own.outside]

    def hides(self, category: str) -> bool:
        """Whether nothing is left to be seen of such a thing."""
        if category == PERSON:
            return self.person in ("segment", "box") and self.target == "all"
        return self.objects

    def mask(self, drawn: Drawn) -> Mask:
        """(H, W) the pixels that are painted over."""
        height, width = drawn.pixels.shape[:2]
        people = self._people(drawn.regions) if self.person != "none" else []
        masks = [self._person_mask(own, height, width) for own in people]
        if self.objects:
            others = [own for own in self._certain(drawn.regions) if own.category != PERSON]
            masks += [region_mask(own, height, width) for own in others]
        return grown(union(masks, height, width), self.grow)

    def _person_mask(self, person: Region, height: int, width: int) -> Mask:
        if self.person == "box":
            return box_mask(person, height, width)
        mask = region_mask(person, height, width)
        if not mask.any():
            raise ValueError("a person's outline holds no pixel, nor does the box")
        if self.person == "part":
            rows = np.flatnonzero(mask.any(axis=1))
            if len(rows):
                mask[rows[0] + round(self.fraction * len(rows)) :] = False
        return mask

    def apply(self, drawn: Drawn) -> Pixels:
        """The pixels without what is masked."""
        mask = self.mask(drawn)
        if not mask.any():
            return drawn.pixels
        pixels = drawn.pixels.copy()
        pixels[mask] = self._paint(drawn.pixels, mask)
        return pixels

    def _paint(self, pixels: Pixels, mask: Mask) -> npt.NDArray[np.uint8]:
        """(M, 3) what the M masked pixels become, or (3,)."""
        if self.fill == "grey" or (self.fill == "mean" and mask.all()):
            return np.full(3, _GREY, np.uint8)
        if self.fill == "mean":
            return pixels[~mask].mean(axis=0).round().astype(np.uint8)
        if self.fill == "blur":
            return _blurred(pixels)[mask]
        return _noise(*mask.shape)[mask]


@dataclass(frozen=True)
class Silhouette:
    """Leaves of a picture no more than the outline of what a masking hides, white on black.

    Attributes:
        masking: whose outline.
    """

    masking: ImageMasking

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides the outline."""
        return {**self.masking.spec, "edit": "silhouette"}

    def apply(self, drawn: Drawn) -> Pixels:
        """White where the picture would be masked."""
        mask = self.masking.mask(drawn)
        return np.repeat(np.where(mask, 255, 0).astype(np.uint8)[..., None], 3, axis=2)

    def hides(self, category: str) -> bool:
        """All that is to be seen is where, not what."""
        del category
        return True


@dataclass(frozen=True)
class Blank:
    """Leaves nothing of a picture."""

    @property
    def spec(self) -> Mapping[str, object]:
        """That it is blank."""
        return {"edit": "blank"}

    def apply(self, drawn: Drawn) -> Pixels:
        """Grey all over."""
        return np.full_like(drawn.pixels, _GREY)

    def hides(self, category: str) -> bool:
        """Everything."""
        del category
        return True


def _blurred(pixels: Pixels) -> Pixels:
    """A picture of which large patches of colour are left."""
    from PIL import Image, ImageFilter

    radius = max(pixels.shape[:2]) / 8
    soft = Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(radius))
    return np.asarray(soft)


def _noise(height: int, width: int) -> Pixels:
    """Uniform noise that depends on nothing but its size; coarse enough to outlast squeezing."""
    rows, columns = min(height, _GRAINS), min(width, _GRAINS)
    words = stream("mask noise", 0, np.arange(rows * columns * 3, dtype=np.uint64))
    grains = (words >> np.uint64(56)).astype(np.uint8).reshape(rows, columns, 3)
    down, across = np.arange(height) * rows // height, np.arange(width) * columns // width
    return grains[down[:, None], across]
