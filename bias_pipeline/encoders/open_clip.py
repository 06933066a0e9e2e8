"""``encoder=open_clip``: a model of open_clip; its texts for attackers too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bias_pipeline.encoders.picture_text import PictureTextEncoder
from bias_pipeline.encoders.published import Line
from bias_pipeline.io.extras import OPEN_CLIP
from bias_pipeline.models.open_clip_folder import (
    find_open_clip,
    preprocessing,
    quick_gelu,
    tokenizing,
)
from bias_pipeline.models.places import MAIN
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.vision.people import Crop

if TYPE_CHECKING:
    from bias_pipeline.inference.embedders import DualEncoder, Normalise


@dataclass(frozen=True)
class OpenClip(PictureTextEncoder):
    """A CLIP, SigLIP or CoCa in open_clip's files, frozen.

    Attributes:
        model: a folder with ``open_clip_config.json`` and weights, or a name on the hub.
        revision: of a name on the hub.
        weights: the file's name, None for that which open_clip writes.
        quick_gelu: whether QuickGELU is computed instead of GELU; None: as the configuration says.
        standardize: whether attackers see vectors whose numbers have mean 0 and spread 1.
        device: where to compute; ``auto`` is the first GPU if there is one.
        cache: folder of vectors, None to keep none.

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
            AbsentModelError: if a file is absent.
            DataError: if the configuration asks for what is not there.
            ResourceError: if open_clip is not installed.
        """
        found = self.found
        preprocessing(found.folder)
        tokenizing(found.folder)
        OPEN_CLIP.require()

    @property
    def found(self) -> Pretrained:
        """See the base."""
        return find_open_clip(self.model, self.weights, revision=self.revision)

    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        """See the base."""
        from bias_pipeline.inference.embedders import dual_of
        from bias_pipeline.inference.open_clip import OpenClipHalves

        found = self.found
        own = OpenClipHalves(found, self.device, quick_gelu(found.folder, self.quick_gelu))
        return dual_of(own, crop, self.kept, normalise)

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, and what is computed of them."""
        found = self.found
        quick = quick_gelu(found.folder, self.quick_gelu)
        return {"files": dict(found.files), "standardize": self.standardize, "quick_gelu": quick}

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The model by the digests of its files, and the activation that is computed."""
        revision = settings.get("revision", MAIN)
        found = find_open_clip(settings.get("model"), settings.get("weights"), revision=revision)
        return {
            "model": sorted(found.files.values()),
            "revision": MAIN,
            "weights": None,
            "quick_gelu": quick_gelu(found.folder, settings.get("quick_gelu")),
        }
