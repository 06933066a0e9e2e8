"""``encoder=open_clip``: a model of open_clip; attackers use its texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bias_pipeline.encoders.picture_text import PictureTextEncoder
from bias_pipeline.encoders.published import Line
from bias_pipeline.io.optional_dependencies import OPEN_CLIP
from bias_pipeline.models.model_location import MAIN
from bias_pipeline.models.open_clip_folder import (
    find_open_clip,
    preprocessing,
    quick_gelu,
    tokenizing,
)
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.vision.people import Crop

if TYPE_CHECKING:
    from bias_pipeline.inference.embedders import DualEncoder, Normalise


@dataclass(frozen=True)
class OpenClip(PictureTextEncoder):
    """A frozen CLIP, SigLIP or CoCa in open_clip's files.

    Attributes:
        model: a folder with ``open_clip_config.json`` and weights, or a name on the hub.
        revision: of a name on the hub.
        weights: the file's name, None for open_clip's usual name.
        quick_gelu: whether QuickGELU is used instead of GELU; None: as in the configuration.
        standardize: whether attackers get vectors whose numbers have mean 0 and spread 1.
        device: where to compute; ``auto`` is the first GPU if there is one.
        cache: folder of vectors, None to store none.

    Example:
        >>> OpenClip("weights/laion").judges
        False
    """

    model: Line | None = None
    revision: Line = MAIN
    weights: Line | None = None
    quick_gelu: bool | None = None
    standardize: bool = True
    device: str = "auto"
    cache: str | None = None

    def require(self) -> None:
        """See the base.

        Raises:
            AbsentModelError: if a file is missing.
            DataError: if the configuration needs something that is missing.
            ResourceError: if open_clip is not installed.
        """
        model = self.pretrained
        preprocessing(model.folder)
        tokenizing(model.folder)
        OPEN_CLIP.require()

    @property
    def pretrained(self) -> Pretrained:
        """See the base."""
        return find_open_clip(self.model, self.weights, revision=self.revision)

    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        """See the base."""
        from bias_pipeline.inference.embedders import dual_of
        from bias_pipeline.inference.open_clip import OpenClipHalves

        model = self.pretrained
        halves = OpenClipHalves(model, self.device, quick_gelu(model.folder, self.quick_gelu))
        return dual_of(halves, crop, self.cache_folder, normalise)

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, and how it is computed."""
        model = self.pretrained
        quick = quick_gelu(model.folder, self.quick_gelu)
        return {"files": dict(model.files), "standardize": self.standardize, "quick_gelu": quick}

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The model by the digests of its files, and its activation."""
        revision = settings.get("revision", MAIN)
        model = find_open_clip(settings.get("model"), settings.get("weights"), revision=revision)
        return {
            "model": sorted(model.files.values()),
            "revision": MAIN,
            "weights": None,
            "quick_gelu": quick_gelu(model.folder, settings.get("quick_gelu")),
        }
