"""``image_masking=``: pictures without people, without objects, or without both.

``background`` and ``some_objects`` change only parts of pictures without people. Scores of bias
should hardly change when a background is slightly blurred or one object in ten is hidden. But
published scores change by up to 175 % ("Bias in Gender Bias Benchmarks: How Spurious Features
Distort Evaluation", ICCV 2025). ``analysis feature_sensitivity`` measures this change.

Photos of a folder are shown as attackers see them: masked in their own size, or cropped to a
person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.corpus.pictures import PERSON, Drawn, MissingPicture, Pictures, Pixels, Region
from bias_pipeline.data.photos import UnreadableError, image_id, in_size, read_photo, with_regions
from bias_pipeline.data.regions import (
    Crop,
    box_mask,
    crop_to_square,
    grow_mask,
    largest_person,
    region_mask,
    union,
)
from bias_pipeline.declared import Configurable, InnerShare, NotNegativeCount, Share
from bias_pipeline.errors import DataError, NotApplicableError, UsageError, inflect
from bias_pipeline.io.hashing import hash_ids, random_words

if TYPE_CHECKING:
    from PIL.Image import Image

_GREY = 127
_STRONG = 1 / 8  # the radius of a strong blur, as a share of a picture's larger side
# Least size of a person in the foreground, as a share of the largest person's box
_FOREGROUND = 0.5
_GRAINS = 256  # pixels per noise cell each way, in larger pictures


@dataclass(frozen=True)
class ImageMasking(Configurable):
    """A transform and an edit that paint over people or objects in every picture of a corpus.

    An image without an annotated person cannot be masked and loses its picture, with a note. If
    outlines are needed, an image whose people have only boxes loses its picture, too.
    """

    # The masked part of people: their `segment`, their `box`, the upper `part` of their segment, or
    # `none`
    person: Literal["none", "segment", "box", "part"] = "segment"
    # Whether all other annotated objects are masked: by their outlines, or by their boxes if they
    # have no outlines
    objects: bool = False
    # What is painted: `grey`, the `mean` colour of the rest, a strong `blur` of the picture itself,
    # or `noise`, the same in all pictures
    fill: Literal["grey", "mean", "blur", "noise"] = "grey"
    # Pixels by which masks grow, since outlines may be too tight; in the file's size, before
    # resizing for an encoder (drawings have the encoder's size)
    grow: NotNegativeCount = 0
    # The share of a person's height, from the top, that `part` masks. Ours: DBAC does not say which
    # part it masks.
    fraction: InnerShare = 0.5
    # Which people: `all`, the `largest`, or those in the `foreground`, at least half as large
    # as the largest (boxes)
    target: Literal["all", "largest", "foreground"] = "all"
    min_score: Share = 0.5  # detections with a lower score do not count

    @property
    def spec(self) -> Mapping[str, object]:
        # Earlier versions took the share of the rows with an outline.
        of_height = {"of": "height"} if self.person == "part" else {}
        return {"edit": "mask", **asdict(self), **of_height}

    def __call__(self, corpus: Corpus) -> Corpus:
        """The corpus with pictures that are masked when they are read."""
        if corpus.pictures is None or self.changes_nothing:
            return corpus
        # Drawings always have the regions to mask
        known = (corpus.pictures.regions_of(row) for row in range(len(corpus.pictures)))
        able = np.array(
            [
                self._knows(regions, file)
                if isinstance(file, Path | MissingPicture)
                else file is not None
                for file, regions in zip(corpus.pictures.files, known, strict=True)
            ],
            bool,
        )
        n_lost = int((corpus.pictures.present & ~able).sum())
        sought = self._what_is_sought + (self._how_sure(corpus.pictures) if n_lost else "")
        if n_lost and not able.any():
            first = corpus.ids[int(np.argmin(able))]
            raise NotApplicableError(
                f"dataset {corpus.dataset!r}: image {first} and all others have no {sought}; "
                "name a file that has them (dataset.regions=FILE), or choose another image_masking"
            )
        if corpus.pictures.regions is not None:
            self.check_things(corpus.pictures.regions, f"dataset {corpus.dataset!r}")
        files = tuple(
            file if ok else None for file, ok in zip(corpus.pictures.files, able, strict=True)
        )
        note = inflect(n_lost, f"pictures have no {sought}, cannot be masked and are not scored")
        return replace(
            corpus,
            pictures=replace(corpus.pictures, files=files).with_edit(self),
            notes=(*corpus.notes, *([note] if n_lost else ())),
        )

    def check_things(self, known: Iterable[tuple[Region, ...] | None], source: str) -> None:
        """Refuse to hide things if only people are annotated, since pictures would stay whole."""
        certain = chain.from_iterable(self.certain(regions or ()) for regions in known)
        if self.objects and all(region.category == PERSON for region in certain):
            raise DataError(
                f"{source}: no thing beside people is annotated, so none can be hidden; name a "
                "file of regions that has things, or choose another image_masking"
            )

    @property
    def changes_nothing(self) -> bool:
        return self.person == "none" and not self.objects

    def absent(self, regions: tuple[Region, ...] | None, file: Path | MissingPicture) -> str | None:
        """What a picture lacks for the masking, in words, or None if it lacks nothing."""
        return None if self.changes_nothing or self._knows(regions, file) else self._what_is_sought

    @property
    def _what_is_sought(self) -> str:
        if self.person == "none":
            return "annotated things"
        return "box of a person" if self.person == "box" else "outline of a person"

    def _how_sure(self, pictures: Pictures) -> str:
        """The lowest score of detections that count, in words; empty if all detections count."""
        all_known = (pictures.regions_of(row) or () for row in range(len(pictures)))
        unsure = any(region.score < self.min_score for regions in all_known for region in regions)
        return f" of image_masking.min_score={self.min_score:g} or more" if unsure else ""

    def _knows(self, regions: tuple[Region, ...] | None, file: Path | MissingPicture) -> bool:
        if regions is None:
            return False
        if self.person == "none":
            return True
        people = self._people(in_size(regions, file))
        return bool(people) and (
            self.person == "box" or all(region.has_outline for region in people)
        )

    def _people(self, regions: Iterable[Region]) -> list[Region]:
        people = [region for region in self.certain(regions) if region.category == PERSON]
        if self.target == "all" or not people:
            return people
        sizes = [region.box[2] * region.box[3] for region in people]
        if self.target == "largest":
            return [people[int(np.argmax(sizes))]]
        least = _FOREGROUND * max(sizes)
        return [region for region, size in zip(people, sizes, strict=True) if size >= least]

    def certain(self, regions: Iterable[Region]) -> list[Region]:
        """The regions within the picture whose score is high enough."""
        return [
            region for region in regions if region.score >= self.min_score and not region.is_outside
        ]

    def hides(self, category: str) -> bool:
        """Whether the edit makes objects of this category invisible."""
        if category == PERSON:
            return self.person in ("segment", "box") and self.target == "all"
        return self.objects

    def mask(self, drawn: Drawn) -> BoolArray:
        """(H, W) the pixels to paint over."""
        height, width = drawn.pixels.shape[:2]
        people = self._people(drawn.regions) if self.person != "none" else []
        masks = [self._person_mask(region, height, width) for region in people]
        if self.objects:
            others = [region for region in self.certain(drawn.regions) if region.category != PERSON]
            masks += [region_mask(region, height, width) for region in others]
        return grow_mask(union(masks, height, width), self.grow)

    def _person_mask(self, person: Region, height: int, width: int) -> BoolArray:
        if self.person == "box":
            return box_mask(person, height, width)
        mask = region_mask(person, height, width)
        if not mask.any():
            raise ValueError("a person's outline and box contain no pixel")
        if self.person == "part":
            rows = np.flatnonzero(mask.any(axis=1))
            height = rows[-1] - rows[0] + 1  # including any gap in the outline
            mask[rows[0] + round(self.fraction * height) :] = False
        return mask

    def apply(self, drawn: Drawn) -> Pixels:
        """The masked pixels of the picture."""
        mask = self.mask(drawn)
        if not mask.any():
            return drawn.pixels
        pixels = drawn.pixels.copy()
        pixels[mask] = self._paint(drawn.pixels, mask)
        return pixels

    def _paint(self, pixels: Pixels, mask: BoolArray) -> npt.NDArray[np.uint8]:
        """(M, 3) the new colours of the M masked pixels, or (3,) if all pixels get one colour."""
        if self.fill == "grey" or (self.fill == "mean" and mask.all()):
            return np.full(3, _GREY, np.uint8)
        if self.fill == "mean":
            return pixels[~mask].mean(axis=0).round().astype(np.uint8)
        if self.fill == "blur":
            return blur_pixels(pixels, _STRONG)[mask]
        return _noise(*mask.shape)[mask]


@dataclass(frozen=True)
class Silhouette:
    """Replaces a picture by a white silhouette, on black, of the parts that a masking hides."""

    masking: ImageMasking  # the masking

    @property
    def spec(self) -> Mapping[str, object]:
        return {**self.masking.spec, "edit": "silhouette"}

    def apply(self, drawn: Drawn) -> Pixels:
        """White where the masking would paint, black elsewhere."""
        mask = self.masking.mask(drawn)
        return np.repeat(np.where(mask, 255, 0).astype(np.uint8)[..., None], 3, axis=2)

    def hides(self, category: str) -> bool:
        """True, since only places and no objects are visible."""
        del category
        return True


@dataclass(frozen=True)
class Blank:
    """Replaces a picture by grey."""

    @property
    def spec(self) -> Mapping[str, object]:
        return {"edit": "blank"}

    def apply(self, drawn: Drawn) -> Pixels:
        return np.full_like(drawn.pixels, _GREY)

    def hides(self, category: str) -> bool:
        """True: nothing is visible."""
        del category
        return True


def blur_pixels(pixels: Pixels, share: float) -> Pixels:
    """A picture under a Gaussian blur, whose radius is a share of its larger side."""
    from PIL import Image, ImageFilter

    radius = max(pixels.shape[:2]) * share
    soft = Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(radius))
    return np.asarray(soft)


def _noise(height: int, width: int) -> Pixels:
    """Uniform noise that depends only on its size, coarse enough to survive resizing."""
    rows, columns = min(height, _GRAINS), min(width, _GRAINS)
    words = random_words("mask noise", 0, np.arange(rows * columns * 3, dtype=np.uint64))
    grains = (words >> np.uint64(56)).astype(np.uint8).reshape(rows, columns, 3)
    down, across = np.arange(height) * rows // height, np.arange(width) * columns // width
    return grains[down[:, None], across]


@dataclass(frozen=True)
class FeatureMasking(ImageMasking):
    """Changes the background or some of the objects of every picture; people stay.

    An image loses its picture, with a note, if the picture was never annotated.
    """

    person: Literal["none"] = "none"  # people are not masked
    background: bool = False  # whether all but people and annotated things is changed
    # The share of objects that is changed with `objects`; which ones follows from category and box
    # alone, so every model sees the same
    share: InnerShare = 0.1
    blur: InnerShare = 0.02  # the radius of `fill=blur`, as a share of the picture's larger side

    def __post_init__(self) -> None:
        """Check that one kind of change is chosen."""
        if self.background and self.objects:
            raise UsageError(
                "image_masking.objects=true: image_masking.background=true changes the background "
                "alone; leave one out"
            )

    @property
    def changes_nothing(self) -> bool:
        return not (self.background or self.objects)

    def absent(self, regions: tuple[Region, ...] | None, file: Path | MissingPicture) -> str | None:
        return "annotated things" if regions is None else None

    def hides(self, category: str) -> bool:
        """False: some objects stay."""
        del category
        return False

    def mask(self, drawn: Drawn) -> BoolArray:
        """(H, W) the pixels to change."""
        height, width = drawn.pixels.shape[:2]
        regions = self.certain(drawn.regions)
        if self.background:
            masks = [region_mask(region, height, width) for region in regions]
            return ~grow_mask(union(masks, height, width), self.grow)
        chosen = [region_mask(region, height, width) for region in self.choose_hidden(regions)]
        people = [
            region_mask(region, height, width) for region in regions if region.category == PERSON
        ]
        hidden = grow_mask(union(chosen, height, width), self.grow)
        return hidden & ~union(people, height, width)

    def choose_hidden(self, regions: Iterable[Region]) -> list[Region]:
        """The objects that are hidden.

        Example:
            >>> regions = [Region("dog", (x, 0, 5, 5), (99, 99)) for x in range(90)]
            >>> len(FeatureMasking(objects=True, share=0.5).choose_hidden(regions))
            51
        """
        objects = [region for region in regions if region.category != PERSON]
        draws = hash_ids(f"hidden {region.category} {region.box}" for region in objects)
        limit = np.uint64(self.share * 2.0**63) * np.uint64(2)
        return [region for region, draw in zip(objects, draws, strict=True) if draw < limit]

    def _paint(self, pixels: Pixels, mask: BoolArray) -> npt.NDArray[np.uint8]:
        if self.fill == "blur":
            return blur_pixels(pixels, self.blur)[mask]
        return super()._paint(pixels, mask)


PhotoReader: TypeAlias = Callable[[Path], "Image"]
VERSION = 1  # raise it whenever any pixel changes


@dataclass(frozen=True)
class MaskedPhotos:
    """Reads, masks and crops photos; a photo that cannot be masked or cropped is unreadable.

    Example:
        >>> str(MaskedPhotos({}, ImageMasking(person="part", target="foreground")))
        'person=part target=foreground'
        >>> str(MaskedPhotos({}, ImageMasking(person="none"), "person"))
        'crop=person'
    """

    regions: Mapping[str, tuple[Region, ...]]  # people and things in each photo, by image id
    masking: ImageMasking  # what is painted over
    crop: Crop = "none"  # `person`: only the box of the largest person is left, on a grey square

    def __str__(self) -> str:
        """The settings that differ from those for whole photos."""
        settings = {**asdict(self.masking), "crop": self.crop}
        usual = {**asdict(type(self.masking)(person="none")), "crop": "none"}
        return " ".join(f"{key}={value}" for key, value in settings.items() if value != usual[key])

    def __call__(self, path: Path) -> Image:
        """A photo after masking and cropping."""
        from PIL import Image

        photo = read_photo(path)
        absent = self.absent(path)
        if absent is not None:
            raise UnreadableError(f"it has no {absent}")
        try:
            picture = with_regions(path, photo, self._regions(path) or ())
            shown = Image.fromarray(self.masking.apply(picture))
        except (DataError, ValueError) as error:
            raise UnreadableError(f"its annotations cannot be used: {error}") from error
        person = self._person(picture.regions)
        return shown if person is None else crop_to_square(shown, person)

    def absent(self, path: Path) -> str | None:
        """What a photo lacks for masking or cropping, in words, or None if it lacks nothing."""
        regions = self._regions(path)
        if self.crop == "person" and self._person(in_size(regions or (), path)) is None:
            return "box of a person"
        return self.masking.absent(regions, path)

    def _regions(self, path: Path) -> tuple[Region, ...] | None:
        return self.regions.get(short_id(image_id(path.name)))

    def _person(self, regions: tuple[Region, ...]) -> Region | None:
        """The person to which the photo is cropped, or None without cropping or people."""
        return largest_person(self.masking.certain(regions)) if self.crop == "person" else None
