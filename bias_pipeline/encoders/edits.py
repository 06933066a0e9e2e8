"""Edits of a frozen encoder's vectors of texts; what they are is in ``debias/``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.declared import Configurable

Vectors: TypeAlias = npt.NDArray[np.float32]
Embed: TypeAlias = Callable[[Sequence[str]], Vectors]


class TextEdits(Configurable, ABC):
    """How vectors of texts are edited."""

    @abstractmethod
    def of_texts(self, attribute: Attribute) -> Mapping[str, object] | None:
        """What decides the edit beside the encoder, None if there is none.

        Raises:
            BiasPipelineError: if texts of this attribute cannot be edited so.
        """

    @abstractmethod
    def edited(self, vectors: Vectors, embed: Embed, attribute: Attribute) -> Vectors:
        """Vectors of texts without what tells groups apart.

        Args:
            vectors: (N, D) of an encoder.
            embed: texts to vectors of the same encoder, from which the edit is learnt.
            attribute: whose groups.

        Raises:
            BiasPipelineError: if the edit cannot be learnt.
        """
