"""The base of debiasings: an edit of vectors, fitted to examples of each group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.debias.sentences import template_sentences
from bias_pipeline.declared import Count, known_name
from bias_pipeline.encoders.base import TextEdits
from bias_pipeline.errors import DataError, UsageError

if TYPE_CHECKING:
    from bias_pipeline.encoders.base import Embed
    from bias_pipeline.inference.embedders import DualEncoder, Embedder

Side = Literal["image", "text", "both"]
_TEXT_SEED = 0  # seed if only texts are edited; definition sets draw nothing


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of one side to which a debiasing is fitted.

    Attributes:
        vectors: (N, D) of length 1.
        groups: (N,) which of K groups each shows.
        sets: (N,) the definition set of each: the same sentence for every group. -1 for pictures,
            which have no counterparts.
        names: of the K groups.
        seed: of random draws.
    """

    vectors: Float64Array
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
            NotApplicableError: if a group has no words.
        """
        sets = template_sentences(attribute, names)
        vectors = embed([text for texts in sets for text in texts]).astype(np.float64)
        groups = np.tile(np.arange(len(names)), len(sets))
        return cls(vectors, groups, np.repeat(np.arange(len(sets)), len(names)), names, seed)


class EmbeddingEdit(Protocol):
    """A fitted change of vectors.

    Attributes:
        spec: everything that decides it, as plain data.
    """

    @property
    def spec(self) -> Mapping[str, object]: ...  # noqa: D102

    def __call__(self, vectors: Float64Array) -> Float64Array:
        """(N, D) the edited vectors."""


@dataclass(frozen=True, eq=False)
class Debiased:
    """An embedder with edited vectors, rescaled to length 1 if ``renormalise``.

    Attributes:
        inner: the original embedder.
        edit: of the vectors.
        renormalise: whether vectors are rescaled to length 1.
    """

    inner: Embedder
    edit: EmbeddingEdit
    renormalise: bool = True

    @property
    def spec(self) -> Mapping[str, object]:
        """The specs of the inner embedder and of the edit."""
        edit = {**self.edit.spec, "renormalise": self.renormalise}
        return {**self.inner.spec, "debias": edit}

    def embed(self, items: Any, /) -> Float32Array:
        """(N, D) vectors."""
        edited = self.edit(self.inner.embed(items).astype(np.float64))
        return (of_length_1(edited) if self.renormalise else edited).astype(np.float32)


@dataclass(frozen=True)
class Debias(TextEdits, ABC):
    """How a debiasing is fitted.

    All have the same settings, so that sweeps can compare them; those of :attr:`unused` are
    ignored.

    Attributes:
        k: how many directions or neurons are removed.
        side: which vectors are edited: ``image``, ``text`` or ``both``, each fitted to its own
            examples.
        renormalise: whether vectors are rescaled to length 1.
    """

    unused: ClassVar[tuple[str, ...]] = ()

    k: Count = 10
    side: Side = "both"
    renormalise: bool = True

    @property
    def sides(self) -> tuple[str, ...]:
        """The edited ones of ``image`` and ``text``."""
        return ("image", "text") if self.side == "both" else (self.side,)

    @abstractmethod
    def fit(self, examples: Examples) -> EmbeddingEdit:
        """The edit of one side.

        Raises:
            BiasPipelineError: if the examples do not suffice.
        """

    def around(self, dual: DualEncoder, examples: Mapping[str, Examples]) -> DualEncoder:
        """The pair of embedders, edited.

        Args:
            dual: the embedders.
            examples: of each of :attr:`sides`.

        Raises:
            BiasPipelineError: if the examples do not suffice.
        """
        edits = {side: self.fit(examples[side]) for side in self.sides}
        return edited(dual, edits, renormalise=self.renormalise)

    def of_texts(self, attribute: Attribute) -> Mapping[str, object] | None:
        """See the base; its settings and the sentences it is fitted to.

        Raises:
            NotApplicableError: if a group has no words.
            UsageError: if it is not fitted to texts.
        """
        if not self.sides:
            return None
        if "text" not in self.sides:
            raise UsageError(
                "this debiasing is fitted to pictures, and the encoder has only texts; set "
                "debias.side=text if it was image, or choose another"
            )
        settings = {key: value for key, value in vars(self).items() if key not in self.unused}
        texts = template_sentences(attribute, attribute.groups)
        return {"debias": known_name(type(self).__module__, type(self).__name__), **settings,
                "side": "text", "sentences": texts}  # fmt: skip

    def edited(self, vectors: Float32Array, embed: Embed, attribute: Attribute) -> Float32Array:
        """See the base; rescaled to length 1 if they had it and ``renormalise`` is set.

        Raises:
            BiasPipelineError: see :meth:`of_texts` and :meth:`fit`.
        """
        if self.of_texts(attribute) is None:
            return vectors
        names = tuple(attribute.groups)
        examples = Examples.of_texts(embed, attribute, names, _TEXT_SEED)
        result = self.fit(examples)(vectors.astype(np.float64))
        lengths = np.linalg.norm(examples.vectors, axis=1)
        if self.renormalise and np.allclose(lengths, 1.0, atol=1e-3):
            result = of_length_1(result)
        return result.astype(np.float32)

    def check_size(self, vectors: Float64Array) -> None:
        """Refuse to remove all dimensions.

        Raises:
            UsageError: if k is not below the dimension.
        """
        if not self.k < vectors.shape[1]:
            raise UsageError(
                f"debias.k={self.k}: the vectors have {vectors.shape[1]} dimensions, of which at "
                f"most {vectors.shape[1] - 1} can be removed"
            )

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The settings without unused ones, so that those do not change the run id."""
        return {key: None for key in settings if key in cls.unused}


def of_length_1(vectors: Float64Array) -> Float64Array:
    """(N, D) vectors of length 1; a vector of zeros stays 0.

    Example:
        >>> of_length_1(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Float64Array = vectors / np.where(lengths > 0, lengths, 1.0)
    return units


def means_of(examples: Examples) -> Float64Array:
    """(K, D) the mean vector of each group.

    Raises:
        DataError: if a group has no example.
    """
    members = [examples.vectors[examples.groups == k] for k in range(len(examples.names))]
    for name, rows in zip(examples.names, members, strict=True):
        if not len(rows):
            raise DataError(f"debias: there is no example of group {name!r} to fit to")
    return np.stack([rows.mean(axis=0) for rows in members])


def edited(
    dual: DualEncoder, edits: Mapping[str, EmbeddingEdit], *, renormalise: bool
) -> DualEncoder:
    """A pair of embedders with an edit around those that have one.

    A matcher has no vectors and stays as it is.

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
