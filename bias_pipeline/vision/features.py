"""``image_masking=background|some_objects``: pictures changed where no group of people shows.

Scores of bias should hardly change when a background is slightly blurred or one object in ten is
hidden; published ones do, by up to 175 % ("Bias in Gender Bias Benchmarks: How Spurious Features
Distort Evaluation", ICCV 2025). ``analysis feature_sensitivity`` measures it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.pictures import PERSON, Drawn, Elsewhere, Pixels, Region
from bias_pipeline.declared import InnerShare
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.vision.masking import ImageMasking, blurred
from bias_pipeline.vision.people import grown, region_mask, union


@dataclass(frozen=True)
class FeatureMasking(ImageMasking):
    """Changes the background, or some of the objects, of every picture; people stay as they are.

    Pictures that were never annotated cannot be changed and lose their picture, with a note.
    """

    person: Literal["none"] = "none"  # none; people stay
    background: bool = False  # whether all but people and annotated things is changed
    # The share of objects that is changed with `objects`; which ones follows from category and box
    # alone, so every model sees the same
    share: InnerShare = 0.1
    blur: InnerShare = 0.02  # the radius of `fill=blur`, as a share of the picture's larger side

    @property
    def idle(self) -> bool:
        """Whether nothing is changed."""
        return not (self.background or self.objects)

    def absent(self, regions: tuple[Region, ...] | None, file: Path | Elsewhere) -> str | None:
        """See the base."""
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
            return ~grown(union(masks, height, width), self.grow)
        chosen = [region_mask(region, height, width) for region in self.hidden(regions)]
        people = [
            region_mask(region, height, width) for region in regions if region.category == PERSON
        ]
        hidden = grown(union(chosen, height, width), self.grow)
        return hidden & ~union(people, height, width)

    def hidden(self, regions: Iterable[Region]) -> list[Region]:
        """The objects that are hidden.

        Example:
            >>> regions = [Region("dog", (x, 0, 5, 5), (99, 99)) for x in range(90)]
            >>> len(FeatureMasking(objects=True, share=0.5).hidden(regions))
            51
        """
        objects = [region for region in regions if region.category != PERSON]
        draws = hash_ids(f"hidden {region.category} {region.box}" for region in objects)
        limit = np.uint64(self.share * 2.0**63) * np.uint64(2)
        return [region for region, draw in zip(objects, draws, strict=True) if draw < limit]

    def _paint(self, pixels: Pixels, mask: BoolArray) -> npt.NDArray[np.uint8]:
        if self.fill == "blur":
            return blurred(pixels, self.blur)[mask]
        return super()._paint(pixels, mask)
