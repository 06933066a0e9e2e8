"""Base class of encoders of pictures and texts in one space, such as ``clip`` and ``fiber``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import LabelledCaptions
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
    """A frozen model of pictures and texts. Retrieval metrics use both halves, attackers the texts.

    Attributes:
        standardize: whether attackers get vectors whose numbers have mean 0 and spread 1.
        cache: folder of all caches, None to store no vectors.
    """

    frozen: ClassVar[bool] = True

    standardize: bool
    cache: str | None

    @property
    def judges(self) -> bool:
        """Whether it also has a mode that judges a picture and a text together."""
        return False

    @property
    @abstractmethod
    def pretrained(self) -> Pretrained:
        """The model on disk.

        Raises:
            BiasPipelineError: if it is not there, or cannot be used.
        """

    @abstractmethod
    def dual(self, crop: Crop, normalise: Normalise = "both") -> DualEncoder:
        """Both halves.

        Args:
            crop: the part of pictures that is used.
            normalise: which vectors have length 1.
        """

    def notes_of(self, pictures: Pictures) -> list[str]:
        """Notes on the model for readers of results on these pictures."""
        del pictures
        return []

    def prompts(self) -> ClipTexts:
        """The text half alone, as generators of pictures use it.

        Raises:
            BiasPipelineError: if generators do not use its kind, or it is missing.
        """
        raise UsageError(
            "--prompts needs a text encoder as in picture generators, a CLIP's; choose "
            "encoder=clip with a CLIP as encoder.model"
        )

    @property
    def cache_folder(self) -> str | None:
        """The folder of vectors, None to store none."""
        return None if self.cache is None else str(Path(self.cache, "embeddings"))

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests."""
        return {"files": dict(self.pretrained.files), "standardize": self.standardize}

    def read(self, data: LabelledCaptions) -> Vectors:
        """The vectors of N captions."""
        texts, rows = distinct(data.captions)
        return Vectors(self.dual("none").texts.embed(texts), rows, self.standardize)

    def build(self, inputs: VectorInputs) -> nn.Module:
        """A network that returns the vectors unchanged."""
        from bias_pipeline.encoders.nets import GivenNet

        return GivenNet(inputs.items.vectors.shape[1])
