"""``encoder=clip``: pictures and texts as vectors of one space; attackers use its texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.datasets.scenes.dataset import ScenesDataset
from bias_pipeline.declared import Share, known_name
from bias_pipeline.encoders.picture_text import PictureTextEncoder
from bias_pipeline.encoders.published import Line
from bias_pipeline.errors import AbsentModelError, ResourceError, UsageError
from bias_pipeline.inference.dual_models import JUDGING, KINDS, published_halves
from bias_pipeline.models import clip
from bias_pipeline.models.folders import require_preprocessing, require_vocabulary
from bias_pipeline.models.model_location import MAIN
from bias_pipeline.models.open_clip_folder import is_open_clip
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from bias_pipeline.vision.people import Crop

if TYPE_CHECKING:
    from bias_pipeline.inference.embedders import DualEncoder, Normalise
    from bias_pipeline.models.clip import ClipTexts
    from bias_pipeline.models.clip_of_scenes import ClipOfScenes


@dataclass(frozen=True)
class Clip(PictureTextEncoder):
    """A frozen CLIP or SigLIP, or a BLIP or BridgeTower, which judge pairs too.

    Attributes:
        dataset: the class of the data set that is scored. Without a ``model``, scenes get a small
            CLIP that is fitted at first use and stored in ``cache``; others get ``published``.
        published: the model of other data sets.
        model: a folder, such as ``fit clip`` writes, or a name on the hub.
        revision: of a name on the hub.
        association: of the small CLIP of scenes, in [0, 1]: how strongly tasks and groups are
            associated in its training pictures, see
            :class:`~bias_pipeline.models.clip_of_scenes.ClipOfScenes`.
        standardize: whether attackers get vectors whose numbers have mean 0 and spread 1.
        device: where to compute; ``auto`` is the first GPU if there is one.
        cache: folder of vectors and of the small CLIP, None to store no vectors.

    Example:
        >>> Clip("bias_pipeline.datasets.coco.CocoDataset").named
        'openai/clip-vit-base-patch32'
    """

    dataset: Line
    published: Line = "openai/clip-vit-base-patch32"
    model: Line | None = None
    revision: Line = MAIN
    association: Share = 0.5
    standardize: bool = True
    device: str = "auto"
    cache: str | None = None

    @property
    def named(self) -> str:
        """The model that must be there; empty if one is fitted."""
        if self.model is not None:
            return self.model
        return "" if fitted_for(self.dataset) else self.published

    @property
    def of_scenes(self) -> ClipOfScenes:
        """The small CLIP that is fitted to scenes."""
        from bias_pipeline.models.clip_of_scenes import ClipOfScenes

        return ClipOfScenes(self.association)

    def require(self) -> None:
        """See the base.

        Raises:
            AbsentModelError: if there is no such model.
            UsageError: if one is to be fitted and there is no folder to store it in, or it only
                has open_clip's files.
        """
        if not self.named:
            if self.cache is None:
                raise UsageError(
                    "encoder.cache=null: without encoder.model a CLIP is fitted to scenes, and "
                    "there is no folder to store it in; set encoder.cache or encoder.model"
                )
            return
        if is_open_clip(self.named):
            raise UsageError(
                f"encoder.model={self.named}: a model of open_clip's; choose encoder=open_clip"
            )
        try:
            model = find_pretrained(self.named, KINDS, revision=self.revision)
            require_vocabulary(model.folder, model.files)
            require_preprocessing(model.folder, model.files)
        except ResourceError as error:
            raise AbsentModelError(str(error)) from error

    @property
    def judges(self) -> bool:
        """Whether its kind of model judges pairs."""
        return bool(self.named) and self.pretrained.kind in JUDGING

    @property
    def pretrained(self) -> Pretrained:
        """The model on disk, which may have to be fitted first.

        Raises:
            BiasPipelineError: if it is not there, or cannot be used.
        """
        self.require()
        name = self.named or str(self.of_scenes.made(Path(str(self.cache))))
        return find_pretrained(name, KINDS, revision=self.revision)

    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        """See the base."""
        from bias_pipeline.inference.cross_encoder import PairMatcher
        from bias_pipeline.inference.embedders import dual_of
        from bias_pipeline.inference.published import PublishedHalves

        halves = published_halves(self.pretrained, self.device)
        matcher = PairMatcher(halves, crop) if isinstance(halves, PublishedHalves) else None
        return dual_of(halves, crop, self.cache_folder, normalise, matcher)

    def notes_of(self, pictures: Pictures) -> list[str]:
        """A note if the small CLIP of scenes was fitted to the pictures that are scored."""
        learnt = 0 if self.named else self.of_scenes.n_learnt(pictures)
        if not learnt:
            return []
        return [
            f"the CLIP was fitted to {learnt} of these {len(pictures)} pictures, as it learns from "
            "scenes of this dataset.seed; set another dataset.seed"
        ]

    def prompts(self) -> ClipTexts:
        """See the base."""
        model = self.pretrained
        if model.kind != clip.CLIP:
            return super().prompts()
        from bias_pipeline.inference.clip import ClipHalves

        return ClipHalves(model, self.device).texts()

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The model by the digests of its files, or by its training data."""
        encoder = cls(**{key: value for key, value in settings.items() if key != "_target_"})
        content: object = encoder.of_scenes.spec
        if encoder.named:
            content = dict(find_pretrained(encoder.named, KINDS, revision=encoder.revision).files)
        return {
            "dataset": "",
            "published": "",
            "model": content,
            "revision": MAIN,
            "association": 0.0,
        }


def fitted_for(dataset: str) -> bool:
    """Whether a small CLIP is fitted for a data set, by its class; others need a published one.

    Example:
        >>> fitted_for("bias_pipeline.datasets.scenes.dataset.ScenesDataset")
        True
    """
    module, _, name = dataset.rpartition(".")
    scenes = (ScenesDataset.__module__, ScenesDataset.__name__)
    return known_name(module, name) == known_name(*scenes)
