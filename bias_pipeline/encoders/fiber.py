"""``encoder=fiber``: embeds pictures and texts, or judges pairs of them (Dou et al. 2022)."""

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
    """A frozen FIBER. Its fused mode can reorder what its dual mode retrieves.

    Attributes:
        model: a folder with a released file of weights and RoBERTa's vocabulary.
        weights: the file's name, None if the folder has only one.
        side: of a picture in pixels, None for the size in training.
        longest: tokens that are read of a text; the authors use 40, and 50 for the model fine-tuned
            for retrieval.
        head: its logit scores a pair in the fused mode: ``rank_output``, which the authors use to
            evaluate files that have it, though their released code gives it no gradient, or
            ``itm_score``, which is trained to match. Files without ``rank_output`` use
            ``itm_score``.
        standardize: whether attackers get vectors whose numbers have mean 0 and spread 1.
        device: where to compute; ``auto`` is the first GPU if there is one.
        cache: folder of vectors, None to store none.

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
            AbsentModelError: if a file is missing.
            UsageError: if there are several files and none is chosen.
        """
        fiber_files(self.model, self.weights)

    @property
    def judges(self) -> bool:
        """It judges pairs, unless the file lacks the weights for it."""
        return True

    @property
    def pretrained(self) -> Pretrained:
        """See the base."""
        return find_fiber(self.model, self.weights)

    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        """See the base."""
        from bias_pipeline.inference.cross_encoder import PairMatcher
        from bias_pipeline.inference.embedders import dual_of
        from bias_pipeline.inference.fiber import FiberHalves

        halves = FiberHalves(self.pretrained, self.device, self.side, self.longest, self.head)
        return dual_of(halves, crop, self.cache_folder, normalise, PairMatcher(halves, crop))

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, and the sizes of its inputs."""
        settings = {**super().spec, "side": self.side, "longest": self.longest}
        return settings | ({"head": self.head} if self.head != "rank_output" else {})

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The model by the digests of its files, whatever their names."""
        model = find_fiber(settings.get("model"), settings.get("weights"))
        return {"model": sorted(model.files.values()), "weights": None}
