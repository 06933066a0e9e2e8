"""Edits of a frozen encoder's vectors of texts; the edits themselves are in ``debias/``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from bias_pipeline.array_types import Float32Array
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.declared import Configurable

Embed: TypeAlias = Callable[[Sequence[str]], Float32Array]


class TextEdits(Configurable, ABC):
    """How vectors of texts are edited."""

    @abstractmethod
    def of_texts(self, attribute: Attribute) -> Mapping[str, object] | None:
        """Settings of the edit besides the encoder, None if there is no edit.

        Raises:
            BiasPipelineError: if texts of this attribute cannot be edited.
        """

    @abstractmethod
    def edited(self, vectors: Float32Array, embed: Embed, attribute: Attribute) -> Float32Array:
        """Vectors of texts without group information.

        Args:
            vectors: (N, D) of an encoder.
            embed: texts to vectors of the same encoder, from which the edit is learnt.
            attribute: whose groups.

        Raises:
            BiasPipelineError: if the edit cannot be learnt.
        """
