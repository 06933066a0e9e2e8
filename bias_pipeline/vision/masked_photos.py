"""Photos of a folder as attackers see them: masked in their own size, or cropped to a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.corpus.pictures import Region
from bias_pipeline.errors import DataError
from bias_pipeline.vision.drawn import in_size, with_regions
from bias_pipeline.vision.masking import ImageMasking
from bias_pipeline.vision.people import Crop, largest_person, squared
from bias_pipeline.vision.photos import UnreadableError, image_id, read_photo

if TYPE_CHECKING:
    from PIL.Image import Image

PhotoReader: TypeAlias = Callable[[Path], "Image"]
VERSION = 1  # raise it whenever any pixel changes


@dataclass(frozen=True)
class MaskedPhotos:
    """Reads photos, masks them and crops them; a photo that cannot be is unreadable.

    Example:
        >>> str(MaskedPhotos({}, ImageMasking(person="part", target="foreground")))
        'person=part target=foreground'
        >>> str(MaskedPhotos({}, ImageMasking(person="none"), "person"))
        'crop=person'
    """

    regions: Mapping[str, tuple[Region, ...]]  # image id to the people and things in the photo
    masking: ImageMasking  # what is painted over
    crop: Crop = "none"  # `person`: only the box of the largest person is left, on a grey square

    def __str__(self) -> str:
        """The settings that differ from those of whole photos."""
        settings = {**asdict(self.masking), "crop": self.crop}
        usual = {**asdict(type(self.masking)(person="none")), "crop": "none"}
        return " ".join(f"{key}={value}" for key, value in settings.items() if value != usual[key])

    def __call__(self, path: Path) -> Image:
        """A photo as it is shown.

        Raises:
            UnreadableError: with the reason: the file is broken, or has nobody to mask or to crop
                to.
        """
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
        return shown if person is None else squared(shown, person)

    def absent(self, path: Path) -> str | None:
        """What a photo lacks to be masked or cropped, in words; None if nothing."""
        regions = self._regions(path)
        if self.crop == "person" and self._person(in_size(regions or (), path)) is None:
            return "box of a person"
        return self.masking.absent(regions, path)

    def _regions(self, path: Path) -> tuple[Region, ...] | None:
        return self.regions.get(short_id(image_id(path.name)))

    def _person(self, regions: tuple[Region, ...]) -> Region | None:
        """Who is cropped to, if anybody is."""
        return largest_person(self.masking.certain(regions)) if self.crop == "person" else None
