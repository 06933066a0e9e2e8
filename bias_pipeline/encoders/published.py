"""Base class of encoders that use a published language model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from bias_pipeline.declared import Text
from bias_pipeline.encoders.base import NetEncoder
from bias_pipeline.models.folders import require_vocabulary
from bias_pipeline.models.model_location import MAIN
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from bias_pipeline.models.sentences import KINDS

Line = Annotated[str, Text(r"[^\x00-\x1f\x7f]+", "a name or a folder on one line")]


@dataclass(frozen=True)
class Published(NetEncoder):
    """A description of an encoder made of a published language model.

    Attributes:
        model: a folder, or a name on the hub.
        revision: of a name on the hub.
        pooling: how the vectors of tokens become one; None: as in the model's own files, else the
            last token of a causal model, the mean of others.
    """

    model: Line
    revision: Line = MAIN
    pooling: Literal["mean", "cls", "last"] | None = None

    @property
    def pretrained(self) -> Pretrained:
        """The model on disk.

        Raises:
            BiasPipelineError: if it is not there, or cannot be used.
        """
        return find_pretrained(self.model, KINDS, revision=self.revision)

    def require(self) -> None:
        """See the base."""
        model = self.pretrained
        require_vocabulary(model.folder, model.files)

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The model by the digests of its files."""
        model = find_pretrained(settings["model"], KINDS, revision=settings.get("revision", MAIN))
        return {"model": dict(model.files), "revision": MAIN}
