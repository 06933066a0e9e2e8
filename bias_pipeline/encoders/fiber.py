"""``encoder=fiber``: pictures and texts by themselves, or judged together (Dou et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bias_pipeline.declared import Count
from bias_pipeline.encoders.picture_text import PictureTextEncoder
from bias_pipeline.encoders.published import Line
from bias_pipeline.models.fiber.folder import LONGEST, fiber_files, find_fiber
from bias_pipeline.models.fiber.sizes import Head
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.vision.people import Crop

if TYPE_CHECKING:
    from bias_pipeline.inference.embedders import DualEncoder, Normalise


@dataclass(frozen=True)
class Fiber(PictureTextEncoder):
    """A FIBER, frozen. Its fused mode orders again what the dual mode retrieves.

    Attributes:
        model: a folder with a released file of weights and RoBERTa's vocabulary.
        weights: the file's name, None where the folder has one.
        side: of a picture in pixels, None for what the file was trained with.
        longest: tokens that are read of a text; the authors take 40, and 50 where they fine-tuned
            it for retrieval.
        head: whose logit says that a picture and a text match, where they are judged together:
            ``rank_output``, by which the authors evaluate files that have it, though their released
            code gives it no gradient, or ``itm_score``, which learns to match. Files without
            ``rank_output`` are judged by ``itm_score``.
        standardize: whether attackers see vectors whose numbers have mean 0 and spread 1.
        device: where to compute; ``auto`` is the first GPU if there is one.
        cache: folder of vectors, None to keep none.

    Example:
        >>> Fiber("weights/fiber").judges
        True
    """

    model: Line | None = None
    weights: Line | None = None
    side: Count | None = None
    longest: Count = LONGEST
    head: Head = "rank_output"
    standardize: bool = True
    device: str = "auto"
    cache: str | None = None

    def require(self) -> None:
        """See the base.

        Raises:
            AbsentModelError: if a file is absent.
            UsageError: if it is not said which of several is meant.
        """
        fiber_files(self.model, self.weights)

    @property
    def judges(self) -> bool:
        """It has, but where the file lacks its weights."""
        return True

    @property
    def found(self) -> Pretrained:
        """See the base."""
        return find_fiber(self.model, self.weights)

    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        """See the base."""
        from bias_pipeline.inference.embedders import dual_of
        from bias_pipeline.inference.fiber import FiberHalves
        from bias_pipeline.inference.matching import PairMatcher

        own = FiberHalves(self.found, self.device, self.side, self.longest, self.head)
        return dual_of(own, crop, self.kept, normalise, PairMatcher(own, crop))

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, and how it is shown what."""
        own = {**super().spec, "side": self.side, "longest": self.longest}
        return own | ({"head": self.head} if self.head != "rank_output" else {})

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The model by the digests of its files, whatever they are called."""
        found = find_fiber(settings.get("model"), settings.get("weights"))
        return {"model": sorted(found.files.values()), "weights": None}
