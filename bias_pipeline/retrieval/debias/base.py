"""The base class of debiasings, which edit vectors and are fitted to examples of each group.

Debiasings of text encoders are fitted to our own sentences and terms. A definition set has one
sentence for each group, and its sentences differ only in the group that they name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray
from bias_pipeline.attack.encoder import TextEdits
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.declared import Count, known_name
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.text.articles import with_article

if TYPE_CHECKING:
    from bias_pipeline.attack.encoder import Embed
    from bias_pipeline.retrieval.dual_encoders import DualEncoder, Embedder

_GENDER: Mapping[str, Sequence[str]] = {
    "male": ("man", "boy", "guy", "gentleman", "father", "son", "brother", "male person"),
    "female": ("woman", "girl", "lady", "gentlewoman", "mother", "daughter", "sister",
               "female person"),
}  # fmt: skip
_FURTHER: Mapping[str, Sequence[str]] = {
    "male": ("husband", "uncle", "grandfather", "nephew"),
    "female": ("wife", "aunt", "grandmother", "niece"),
}
_MOST = 8  # words of each group to which debiasings are fitted
_MORE = 4  # further words of each group, for held-out sentences
_TEMPLATES = (
    "a photo of {}", "a picture of {}", "a close photo of {}", "a portrait of {}",
    "{} in a photo", "{} looking at the camera", "{} standing in a room", "{} standing outside",
    "{} sitting on a chair", "{} walking down a street", "{} holding something", "{} with a dog",
    "{} riding a bicycle", "{} reading a book", "{} eating lunch", "{} at work",
    "{} at a table", "{} near a window", "{} in a park", "{} on a bench",
    "{} wearing a hat", "{} wearing a shirt", "{} talking on a phone", "{} playing a game",
    "{} next to a car", "{} waiting for a bus", "this is {}", "there is {} here",
)  # fmt: skip
_HELD_OUT = (
    "a photograph that shows {}", "{} smiling", "{} running through a field", "{} carrying a bag",
    "{} cooking in a kitchen", "{} on a skateboard", "{} among trees", "we see {} from behind",
)  # fmt: skip


def template_sentences(attribute: Attribute, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Definition sets in which each sentence is filled with each term, for every group.

    Gender has terms of ours, which give 224 sets. Other attributes use the words that their YAML
    lists for each group, in order, to describe a person. A group without words, as in
    intersections, is refused.

    Args:
        attribute: the attribute whose words are used.
        names: the K groups that the data set has.

    Returns:
        S sets of K sentences.

    Example:
        >>> words = {"low": ["sad"], "high": ["happy"]}
        >>> mood = Attribute("mood", tuple(words), words, {})
        >>> sentences = template_sentences(mood, ("low", "high"))
        >>> len(sentences), sentences[0]
        (28, ('a photo of a sad person', 'a photo of a happy person'))
    """
    sets = _fill_templates(_TEMPLATES, [_terms(attribute, name, names)[:_MOST] for name in names])
    if not sets:
        raise NotApplicableError(
            f"attribute {attribute.name!r}: its groups have no words, to which a debiasing of "
            "texts could be fitted; use debias.side=image"
        )
    return sets


def held_out(attribute: Attribute, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Held-out definition sets, with other sentences than for fitting and with further terms.

    There are no sets if a group has no words.

    Example:
        >>> words = {"low": ["sad"], "high": ["happy"]}
        >>> held_out(Attribute("mood", tuple(words), words, {}), ("low", "high"))[1]
        ('a sad person smiling', 'a happy person smiling')
    """
    return _fill_templates(_HELD_OUT, [_terms(attribute, name, names) for name in names])


def _fill_templates(
    templates: Sequence[str], terms: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """Each sentence with each term; terms beyond the shortest list of a group are unused."""
    return [
        tuple(template.format(with_article(term)) for term in group_terms)
        for template in templates
        for group_terms in zip(*terms, strict=False)
    ]


def _terms(attribute: Attribute, name: str, names: Sequence[str]) -> Sequence[str]:
    """The terms of a group, first for fitting and then held out."""
    if set(names) <= set(_GENDER):
        return (*_GENDER[name], *_FURTHER[name])
    return [f"{word} person" for word in attribute.words.get(name, ())[: _MOST + _MORE]]


Side = Literal["image", "text", "both"]
_TEXT_SEED = 0  # seed if only texts are edited; definition sets are not drawn


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of one side to which a debiasing is fitted.

    Attributes:
        vectors: (N, D) of length 1.
        groups: (N,) the number of the group that each example shows.
        sets: (N,) the definition set of each sentence; -1 for pictures, which have no
            counterparts.
        names: the names of the K groups.
        seed: the seed of random draws.
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
        """Vectors of the definition sets of an attribute."""
        sets = template_sentences(attribute, names)
        vectors = embed([text for texts in sets for text in texts]).astype(np.float64)
        groups = np.tile(np.arange(len(names)), len(sets))
        return cls(vectors, groups, np.repeat(np.arange(len(sets)), len(names)), names, seed)


class EmbeddingEdit(Protocol):
    """A fitted change of vectors."""

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides the edit, as plain data."""

    def __call__(self, vectors: Float64Array) -> Float64Array:
        """(N, D) the edited vectors."""


@dataclass(frozen=True, eq=False)
class Debiased:
    """An embedder whose vectors are edited and, with ``renormalise``, rescaled to length 1.

    Attributes:
        inner: the original embedder.
        edit: the edit of the vectors.
        renormalise: whether vectors are rescaled to length 1.
    """

    inner: Embedder
    edit: EmbeddingEdit
    renormalise: bool = True

    @property
    def spec(self) -> Mapping[str, object]:
        """The settings of the inner embedder and the settings of the edit."""
        edit = {**self.edit.spec, "renormalise": self.renormalise}
        return {**self.inner.spec, "debias": edit}

    def embed(self, items: Any, /) -> Float32Array:
        """(N, D) vectors."""
        edited = self.edit(self.inner.embed(items).astype(np.float64))
        return (of_length_1(edited) if self.renormalise else edited).astype(np.float32)


@dataclass(frozen=True)
class Debias(TextEdits, ABC):
    """The base of the settings with which a debiasing is fitted.

    All debiasings have the same settings, so that sweeps can compare methods. Settings in
    :attr:`unused` are ignored.

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
        """The sides that are edited, ``image``, ``text`` or both."""
        return ("image", "text") if self.side == "both" else (self.side,)

    @abstractmethod
    def fit(self, examples: Examples) -> EmbeddingEdit:
        """The edit of one side; an error is raised if there are too few examples."""

    def wrap(self, dual: DualEncoder, examples: Mapping[str, Examples]) -> DualEncoder:
        """The pair of embedders with edits fitted to the examples of each of :attr:`sides`."""
        edits = {side: self.fit(examples[side]) for side in self.sides}
        return edit_encoder(dual, edits, renormalise=self.renormalise)

    def of_texts(self, attribute: Attribute) -> Mapping[str, object] | None:
        """The settings and the sentences to which the debiasing is fitted."""
        if not self.sides:
            return None
        if "text" not in self.sides:
            raise UsageError(
                "this debiasing is fitted to pictures, and the encoder has only texts; set "
                "debias.side=text if it was image, or choose another debiasing"
            )
        settings = {key: value for key, value in vars(self).items() if key not in self.unused}
        texts = template_sentences(attribute, attribute.groups)
        return {"debias": known_name(type(self).__module__, type(self).__name__), **settings,
                "side": "text", "sentences": texts}  # fmt: skip

    def edit_vectors(
        self, vectors: Float32Array, embed: Embed, attribute: Attribute
    ) -> Float32Array:
        """The edited vectors; with ``renormalise``, vectors of length 1 get length 1 again."""
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
        """Refuse to remove all dimensions."""
        if not self.k < vectors.shape[1]:
            raise UsageError(
                f"debias.k={self.k}: the vectors have {vectors.shape[1]} dimensions, of which at "
                f"most {vectors.shape[1] - 1} can be removed"
            )

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """Leave settings that are not used out of the run id."""
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
    """(K, D) the mean vector of each group; a group without examples is refused."""
    members = [examples.vectors[examples.groups == k] for k in range(len(examples.names))]
    for name, rows in zip(examples.names, members, strict=True):
        if not len(rows):
            raise DataError(f"debias: no example of group {name!r}, to which it must be fitted")
    return np.stack([rows.mean(axis=0) for rows in members])


def edit_encoder(
    dual: DualEncoder, edits: Mapping[str, EmbeddingEdit], *, renormalise: bool
) -> DualEncoder:
    """A pair of embedders whose vectors are edited on the side ``image``, ``text`` or both.

    A matcher has no vectors and stays unchanged.
    """
    images, texts = dual.images, dual.texts
    if "image" in edits:
        images = Debiased(images, edits["image"], renormalise)
    if "text" in edits:
        texts = Debiased(texts, edits["text"], renormalise)
    return replace(dual, images=images, texts=texts)
