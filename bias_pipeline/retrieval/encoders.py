"""``encoder=clip|open_clip|fiber``: embeds pictures and texts in one space; attackers use texts.

FIBER also judges pairs of pictures and texts (Dou et al. 2022).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bias_pipeline.attack.encoder import FeatureEncoder, NetEncoder
from bias_pipeline.attack.language_models import Line, VectorInputs, Vectors, distinct_texts
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.generator import is_generator
from bias_pipeline.data.regions import Crop
from bias_pipeline.declared import Count, Share
from bias_pipeline.errors import AbsentModelError, ResourceError, UsageError
from bias_pipeline.io.machine import OPEN_CLIP
from bias_pipeline.models import clip
from bias_pipeline.models.model_location import MAIN, require_preprocessing, require_vocabulary
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from bias_pipeline.retrieval.dual_encoders import (
    BLIP,
    KINDS,
    ClipTowers,
    DualEncoder,
    FiberTowers,
    Normalise,
    OpenClipTowers,
    dual_of,
    published_towers,
)
from bias_pipeline.retrieval.fiber.folder import LONGEST, Head, fiber_files, find_fiber
from bias_pipeline.retrieval.open_clip_folder import (
    find_open_clip,
    is_open_clip,
    preprocessing,
    quick_gelu,
    tokenizing,
)

if TYPE_CHECKING:
    from torch import nn

    from bias_pipeline.models.clip import ClipTexts
    from bias_pipeline.retrieval.clip_fitting import ClipOfScenes


class PictureTextEncoder(NetEncoder, FeatureEncoder):
    """A frozen model of pictures and texts; retrieval uses both towers, attackers use texts."""

    frozen: ClassVar[bool] = True

    standardize: bool  # whether attackers get vectors whose numbers have mean 0 and spread 1
    cache: str | None  # folder of all caches; None: no vectors are stored

    @property
    def judges(self) -> bool:
        """Whether the model can judge a picture and a text together."""
        return False

    @property
    @abstractmethod
    def pretrained_model(self) -> Pretrained:
        """The model on disk."""

    @abstractmethod
    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder: ...

    def notes_of(self, pictures: Pictures) -> list[str]:
        """Notes on the model for readers of results on these pictures."""
        del pictures
        return []

    def prompts(self) -> ClipTexts:
        """The tower for texts without the tower for pictures; generators of pictures use it so."""
        raise UsageError(
            "--prompts needs a CLIP's text encoder, which picture generators have; choose "
            "encoder=clip with a CLIP as encoder.model"
        )

    @property
    def cache_folder(self) -> str | None:
        return None if self.cache is None else str(Path(self.cache, "embeddings"))

    @property
    def spec(self) -> Mapping[str, object]:
        return {"files": dict(self.pretrained_model.files), "standardize": self.standardize}

    def read(self, data: LabelledCaptions) -> Vectors:
        texts, rows = distinct_texts(data.captions)
        return Vectors(self.dual("none").texts.embed(texts), rows, self.standardize)

    def build(self, inputs: VectorInputs) -> nn.Module:
        from bias_pipeline.attack.nets import GivenNet

        return GivenNet(inputs.items.vectors.shape[1])


@dataclass(frozen=True)
class Clip(PictureTextEncoder):
    """A frozen CLIP or SigLIP, or a frozen BLIP, which also judges pairs.

    Example:
        >>> Clip("bias_pipeline.data.coco.CocoDataset").model_name
        'openai/clip-vit-base-patch32'
    """

    # The class of the scored data set. Without a `model`, scenes get a small CLIP that is
    # fitted at first use and stored in `cache`; others get `published`.
    dataset: Line
    published: Line = "openai/clip-vit-base-patch32"  # the model of other data sets
    model: Line | None = None  # a folder, such as `fit clip` writes, or a name on the hub
    revision: Line = MAIN  # of a name on the hub
    # Only for the small CLIP of scenes: how strongly its training captions associate tasks with
    # groups, in [0, 1], see `ClipOfScenes`
    association: Share = 0.5
    standardize: bool = True  # whether attackers get vectors whose numbers have mean 0 and spread 1
    device: str = "auto"  # where to compute; `auto` is the first GPU if there is one
    cache: str | None = None  # folder of vectors and of the small CLIP; None: no vectors are stored

    @property
    def model_name(self) -> str:
        """The name of the model that must exist; empty if a CLIP is fitted instead."""
        if self.model is not None:
            return self.model
        return "" if is_generator(self.dataset) else self.published

    @property
    def of_scenes(self) -> ClipOfScenes:
        from bias_pipeline.retrieval.clip_fitting import ClipOfScenes

        return ClipOfScenes(self.association)

    def require(self) -> None:
        if not self.model_name:
            if self.cache is None:
                raise UsageError(
                    "encoder.cache=null: without encoder.model a CLIP is fitted to scenes, and "
                    "there is no folder to store it in; set encoder.cache or encoder.model"
                )
            return
        if is_open_clip(self.model_name):
            raise UsageError(
                f"encoder.model={self.model_name}: a model of open_clip's; choose encoder=open_clip"
            )
        try:
            model = find_pretrained(self.model_name, KINDS, revision=self.revision)
            require_vocabulary(model.folder, model.files)
            require_preprocessing(model.folder, model.files)
        except ResourceError as error:
            raise AbsentModelError(str(error)) from error

    @property
    def judges(self) -> bool:
        return bool(self.model_name) and self.pretrained_model.kind == BLIP

    @property
    def pretrained_model(self) -> Pretrained:
        """The model on disk, which is fitted first if necessary."""
        self.require()
        name = self.model_name or str(self.of_scenes.fit_once(Path(str(self.cache))))
        return find_pretrained(name, KINDS, revision=self.revision)

    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        towers = published_towers(self.pretrained_model, self.device)
        return dual_of(towers, crop, self.cache_folder, normalise)

    def notes_of(self, pictures: Pictures) -> list[str]:
        """A note if the small CLIP of scenes was fitted to the pictures that are scored."""
        learnt = 0 if self.model_name else self.of_scenes.n_learnt(pictures)
        if not learnt:
            return []
        return [
            f"the CLIP was fitted to {learnt} of these {len(pictures)} pictures, as it learns from "
            "scenes of this dataset.seed; set another dataset.seed"
        ]

    def prompts(self) -> ClipTexts:
        model = self.pretrained_model
        if model.kind != clip.CLIP:
            return super().prompts()
        return ClipTowers(model, self.device).text_model()

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """Name a model by the digests of its files, or by its training data, in run ids."""
        encoder = cls(**{key: value for key, value in settings.items() if key != "_target_"})
        content: object = encoder.of_scenes.spec
        if encoder.model_name:
            content = dict(
                find_pretrained(encoder.model_name, KINDS, revision=encoder.revision).files
            )
        return {
            "dataset": "",
            "published": "",
            "model": content,
            "revision": MAIN,
            "association": 0.0,
        }


@dataclass(frozen=True)
class OpenClip(PictureTextEncoder):
    """A frozen CLIP, SigLIP or CoCa in open_clip's files.

    Example:
        >>> OpenClip("weights/laion").judges
        False
    """

    # A folder with `open_clip_config.json` and weights, or a name on the hub
    model: Line | None = None
    revision: Line = MAIN  # of a name on the hub
    weights: Line | None = None  # the name of the file of weights; None: open_clip's usual name
    # Whether QuickGELU is used instead of GELU; None: as the configuration says
    quick_gelu: bool | None = None
    standardize: bool = True  # whether attackers get vectors whose numbers have mean 0 and spread 1
    device: str = "auto"  # where to compute; `auto` is the first GPU if there is one
    cache: str | None = None  # folder of vectors; None: no vectors are stored

    def require(self) -> None:
        model = self.pretrained_model
        preprocessing(model.folder)
        tokenizing(model.folder)
        OPEN_CLIP.require()

    @property
    def pretrained_model(self) -> Pretrained:
        return find_open_clip(self.model, self.weights, revision=self.revision)

    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        model = self.pretrained_model
        towers = OpenClipTowers(model, self.device, quick_gelu(model.folder, self.quick_gelu))
        return dual_of(towers, crop, self.cache_folder, normalise)

    @property
    def spec(self) -> Mapping[str, object]:
        model = self.pretrained_model
        quick = quick_gelu(model.folder, self.quick_gelu)
        return {"files": dict(model.files), "standardize": self.standardize, "quick_gelu": quick}

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        revision = settings.get("revision", MAIN)
        model = find_open_clip(settings.get("model"), settings.get("weights"), revision=revision)
        return {
            "model": sorted(model.files.values()),
            "revision": MAIN,
            "weights": None,
            "quick_gelu": quick_gelu(model.folder, settings.get("quick_gelu")),
        }


@dataclass(frozen=True)
class Fiber(PictureTextEncoder):
    """A frozen FIBER; its fused mode can reorder the pictures that its dual mode retrieves.

    Example:
        >>> Fiber("weights/fiber").judges
        True
    """

    model: Line | None = None  # a folder with a released file of weights and RoBERTa's vocabulary
    weights: Line | None = None  # the name of the file of weights; None: the folder's only file
    # The tokens of a text that are read; the authors use 40, and 50 for the model that they
    # fine-tuned for retrieval
    longest: Count = LONGEST
    # The head whose logit scores a pair in the fused mode: `rank_output` or `itm_score`. The
    # authors evaluate with `rank_output` where a file has it, though their released code does not
    # train it; `itm_score` is trained to match. Files without `rank_output` use `itm_score`.
    head: Head = "rank_output"
    standardize: bool = True  # whether attackers get vectors whose numbers have mean 0 and spread 1
    device: str = "auto"  # where to compute; `auto` is the first GPU if there is one
    cache: str | None = None  # folder of vectors; None: no vectors are stored

    def require(self) -> None:
        fiber_files(self.model, self.weights)

    @property
    def judges(self) -> bool:
        """True, since loading refuses a file without the weights that judge pairs."""
        return True

    @property
    def pretrained_model(self) -> Pretrained:
        return find_fiber(self.model, self.weights)

    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        towers = FiberTowers(self.pretrained_model, self.device, self.longest, self.head)
        return dual_of(towers, crop, self.cache_folder, normalise)

    @property
    def spec(self) -> Mapping[str, object]:
        settings = {**super().spec, "longest": self.longest}
        return settings | ({"head": self.head} if self.head != "rank_output" else {})

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        model = find_fiber(settings.get("model"), settings.get("weights"))
        return {"model": sorted(model.files.values()), "weights": None}
