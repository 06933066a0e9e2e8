"""What every debiasing is: an edit of vectors, fitted to examples of each group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.debias.sentences import sentences
from bias_pipeline.declared import Count, known_name
from bias_pipeline.encoders.edits import Embed, TextEdits
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.inference.embedders import DualEncoder, Embedder

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]
Side = Literal["image", "text", "both"]
_TEXT_SEED = 0  # of what is drawn where texts alone are edited; definition sets draw nothing


@dataclass(frozen=True, eq=False)
class Examples:
    """What a debiasing is fitted to, of one side.

    Attributes:
        vectors: (N, D) of length 1.
        groups: (N,) which of K groups each shows.
        sets: (N,) which definition set each belongs to: the same sentence of every group. Of
            pictures, which have no counterparts, -1.
        names: of the K groups.
        seed: of what is drawn.
    """

    vectors: FloatArray
    groups: IntArray
    sets: IntArray
    names: tuple[str, ...]
    seed: int

    @classmethod
    def of_texts(
        cls, embed: Embed, attribute: Attribute, names: tuple[str, ...], seed: int
    ) -> Examples:
        """Vectors of the definition sets of an attribute.

        Raises:
            NotApplicableError: if no words tell the groups.
        """
        told = sentences(attribute, names)
        vectors = embed([text for own in told for text in own]).astype(np.float64)
        groups = np.tile(np.arange(len(names)), len(told))
        return cls(vectors, groups, np.repeat(np.arange(len(told)), len(names)), names, seed)


class Edit(Protocol):
    """A fitted change of vectors.

    Attributes:
        spec: everything that decides it, as plain data.
    """

    @property
    def spec(self) -> Mapping[str, object]: ...  # noqa: D102

    def __call__(self, vectors: FloatArray) -> FloatArray:
        """(N, D) what becomes of (N, D)."""


@dataclass(frozen=True, eq=False)
class Debiased:
    """An embedder whose vectors are edited, and of length 1 again unless that is left out.

    Attributes:
        inner: whose.
        edit: how.
        renormalise: whether the length is 1 again.
    """

    inner: Embedder
    edit: Edit
    renormalise: bool = True

    @property
    def spec(self) -> Mapping[str, object]:
        """What the inner one is, and the edit."""
        edit = {**self.edit.spec, "renormalise": self.renormalise}
        return {**self.inner.spec, "debias": edit}

    def embed(self, items: Any, /) -> Vectors:
        """(N, D) vectors."""
        found = self.edit(self.inner.embed(items).astype(np.float64))
        return (of_length_1(found) if self.renormalise else found).astype(np.float32)


@dataclass(frozen=True)
class Debias(TextEdits, ABC):
    """How a debiasing is fitted.

    All take the same settings, so that they can be swept beside each other; those of
    :attr:`unused` play no part.

    Attributes:
        k: how much is taken: directions or neurons.
        side: whose vectors: ``image``, ``text`` or ``both``, each by its own examples.
        renormalise: whether vectors are of length 1 again.
    """

    unused: ClassVar[tuple[str, ...]] = ()

    k: Count = 10
    side: Side = "both"
    renormalise: bool = True

    @property
    def sides(self) -> tuple[str, ...]:
        """Of ``image`` and ``text``, those that are edited."""
        return ("image", "text") if self.side == "both" else (self.side,)

    @abstractmethod
    def fit(self, examples: Examples) -> Edit:
        """The edit of one side.

        Raises:
            BiasPipelineError: if the examples do not suffice.
        """

    def around(self, dual: DualEncoder, examples: Mapping[str, Examples]) -> DualEncoder:
        """The pair of embedders, edited.

        Args:
            dual: whose vectors the examples are.
            examples: of each of :attr:`sides`.

        Raises:
            BiasPipelineError: if the examples do not suffice.
        """
        edits = {side: self.fit(examples[side]) for side in self.sides}
        return edited(dual, edits, renormalise=self.renormalise)

    def of_texts(self, attribute: Attribute) -> Mapping[str, object] | None:
        """See the base; the sentences it is learnt from, and its settings.

        Raises:
            NotApplicableError: if no words tell the groups.
            UsageError: if it is not learnt from texts.
        """
        if not self.sides:
            return None
        if "text" not in self.sides:
            raise UsageError(
                "this debiasing is learnt from pictures, and the encoder has texts alone; set "
                "debias.side=text where it was image, or choose another"
            )
        own = {key: value for key, value in vars(self).items() if key not in self.unused}
        told = sentences(attribute, attribute.groups)
        return {"debias": known_name(type(self).__module__, type(self).__name__), **own,
                "side": "text", "sentences": told}  # fmt: skip

    def edited(self, vectors: Vectors, embed: Embed, attribute: Attribute) -> Vectors:
        """See the base; of length 1 again where they were, and ``renormalise`` says so.

        Raises:
            BiasPipelineError: see :meth:`of_texts` and :meth:`fit`.
        """
        if self.of_texts(attribute) is None:
            return vectors
        names = tuple(attribute.groups)
        examples = Examples.of_texts(embed, attribute, names, _TEXT_SEED)
        found = self.fit(examples)(vectors.astype(np.float64))
        lengths = np.linalg.norm(examples.vectors, axis=1)
        if self.renormalise and np.allclose(lengths, 1.0, atol=1e-3):
            found = of_length_1(found)
        return found.astype(np.float32)

    def check_size(self, vectors: FloatArray) -> None:
        """Refuse to take all that there is.

        Raises:
            UsageError: if k is not below the numbers of a vector.
        """
        if not self.k < vectors.shape[1]:
            raise UsageError(
                f"debias.k={self.k}: the vectors have {vectors.shape[1]} numbers, of which at most "
                f"{vectors.shape[1] - 1} can be taken"
            )

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """Nothing of what plays no part, so that it makes no other run."""
        return {key: None for key in settings if key in cls.unused}


def of_length_1(vectors: FloatArray) -> FloatArray:
    """(N, D) vectors of length 1; one without any direction stays 0.

    Example:
        >>> of_length_1(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: FloatArray = vectors / np.where(lengths > 0, lengths, 1.0)
    return found


def means_of(examples: Examples) -> FloatArray:
    """(K, D) the mean vector of each group.

    Raises:
        DataError: if a group has no example.
    """
    members = [examples.vectors[examples.groups == k] for k in range(len(examples.names))]
    for name, own in zip(examples.names, members, strict=True):
        if not len(own):
            raise DataError(f"debias: there is no example of group {name!r} to learn from")
    return np.stack([own.mean(axis=0) for own in members])


def edited(dual: DualEncoder, edits: Mapping[str, Edit], *, renormalise: bool) -> DualEncoder:
    """A pair of embedders with an edit around those that have one.

    A mode that judges pictures and texts together has no vectors and stays as it is.

    Args:
        dual: the pair.
        edits: of ``image``, ``text`` or both.
        renormalise: see :class:`Debiased`.
    """
    images, texts = dual.images, dual.texts
    if "image" in edits:
        images = Debiased(images, edits["image"], renormalise)
    if "text" in edits:
        texts = Debiased(texts, edits["text"], renormalise)
    return replace(dual, images=images, texts=texts)
