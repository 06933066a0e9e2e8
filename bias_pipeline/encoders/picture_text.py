"""What encoders of pictures and texts in one space share: ``clip`` and ``fiber``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.encoders.base import FeatureEncoder, NetEncoder
from bias_pipeline.encoders.frozen import VectorInputs, Vectors, distinct
from bias_pipeline.errors import UsageError
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.vision.people import Crop

if TYPE_CHECKING:
    from torch import nn

    from bias_pipeline.inference.embedders import DualEncoder, Normalise
    from bias_pipeline.models.clip import ClipTexts


class PictureTextEncoder(NetEncoder, FeatureEncoder):
    """A model of both, frozen. Metrics of retrieval ask both halves, attackers that of texts.

    Attributes:
        standardize: whether attackers see vectors whose numbers have mean 0 and spread 1.
        cache: folder of all caches, None to keep no vectors.
    """

    frozen: ClassVar[bool] = True

    standardize: bool
    cache: str | None

    @property
    def judges(self) -> bool:
        """Whether it has a mode too that judges a picture and a text together; it is there."""
        return False

    @property
    @abstractmethod
    def found(self) -> Pretrained:
        """The model on disk.

        Raises:
            BiasPipelineError: if it is not there, or cannot be used.
        """

    @abstractmethod
    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        """Both halves.

        Args:
            crop: what of pictures is shown.
            normalise: whose vectors are of length 1.
        """

    def told_of(self, pictures: Pictures) -> list[str]:
        """What a reader must know of the model beside results on such pictures."""
        del pictures
        return []

    def prompts(self) -> ClipTexts:
        """The text half by itself, as generators of pictures have it.

        Raises:
            BiasPipelineError: if generators have none of its kind, or it is not there.
        """
        raise UsageError(
            "--prompts is of the text encoder that a generator of pictures has, a CLIP's; choose "
            "encoder=clip with a CLIP as encoder.model"
        )

    @property
    def kept(self) -> str | None:
        """The folder of vectors, None to keep none."""
        return None if self.cache is None else str(Path(self.cache, "embeddings"))

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests."""
        return {"files": dict(self.found.files), "standardize": self.standardize}

    def read(self, data: Labelled) -> Vectors:
        """The vectors of N captions."""
        texts, rows = distinct(data.captions)
        return Vectors(self.dual("none").texts.embed(texts), rows, self.standardize)

    def build(self, inputs: VectorInputs) -> nn.Module:
        """A network that passes vectors on."""
        from bias_pipeline.encoders.nets import GivenNet

        return GivenNet(inputs.items.vectors.shape[1])
