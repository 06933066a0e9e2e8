"""Uses published language models as encoders, and debiases their vectors.

The weights of ``encoder=minilm|mpnet|distilroberta|distilbert|bert_frozen`` stay frozen.
``encoder=bert`` is fine-tuned with a head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray
from bias_pipeline.attack.encoder import FeatureEncoder, Items, NetEncoder, TextEdits
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.declared import Count, Text
from bias_pipeline.models.model_location import MAIN, require_vocabulary
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.models.sentences import (
    KINDS,
    Pooling,
    Precision,
    Sentences,
    Tokens,
    pooling_of,
    tokens_of,
)

if TYPE_CHECKING:
    from torch import nn

    from bias_pipeline.models.blocks import BlockStore
    from bias_pipeline.models.text_vectors import Embedded

Line = Annotated[str, Text(r"[^\x00-\x1f\x7f]+", "a name or a folder on one line")]


@dataclass(frozen=True)
class Published(NetEncoder):
    """A description of an encoder that is a published language model."""

    model: Line  # a folder, or a name on the hub
    revision: Line = MAIN  # of a name on the hub
    # How the vectors of tokens become one vector; None: as in the model's own files, else the
    # last token of a causal model and the mean of other models
    pooling: Literal["mean", "cls", "last"] | None = None

    @property
    def pretrained_model(self) -> Pretrained:
        return find_pretrained(self.model, KINDS, revision=self.revision)

    def require(self) -> None:
        model = self.pretrained_model
        require_vocabulary(model.folder, model.files)

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The settings, in which digests of the model's files replace the model's name."""
        model = find_pretrained(settings["model"], KINDS, revision=settings.get("revision", MAIN))
        return {"model": dict(model.files), "revision": MAIN}


VERSION = 1  # raise it whenever any prediction changes


@dataclass(frozen=True)
class FineTuned(Published):
    """A description of a language model to be fine-tuned, which :meth:`build` loads.

    The training of every attacker starts from the published weights.
    """

    # Tokens of a caption that are read; None: as many as the model has positions
    longest: Count | None = None

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of the model's files, and how vectors are read from the model."""
        model = self.pretrained_model
        pooling = asdict(self._pooling(model))
        return {"version": VERSION, "files": dict(model.files), "pooling": pooling}

    def _pooling(self, model: Pretrained) -> Pooling:
        pooling = pooling_of(model, self.pooling, normalize=False)
        most = [number for number in (self.longest, pooling.longest) if number]
        return Pooling(pooling.how, False, pooling.lowercase, min(most, default=None))

    def require(self) -> None:
        super().require()
        self._pooling(self.pretrained_model)

    def prepare(self, data: LabelledCaptions) -> Embedded | None:
        """Count the captions that are cut. Nothing is stored."""
        from bias_pipeline.models.text_vectors import Embedded

        tokens = self._tokens()
        tokens(texts_of(data))
        return Embedded(cut=len(tokens.cut))

    def _tokens(self) -> Tokens:
        model = self.pretrained_model
        return tokens_of(model, self._pooling(model))

    def read(self, data: LabelledCaptions) -> TokenInputs:
        """Turn N captions into token ids."""
        tokens = self._tokens()
        return TokenInputs(tokens(texts_of(data)), tokens.padding)

    def build(self, inputs: TokenInputs) -> nn.Module:
        """The language model's network with its published weights."""
        del inputs
        from bias_pipeline.attack.nets import LanguageNet

        model = self.pretrained_model
        return LanguageNet(model, self._pooling(model).how)


def texts_of(data: LabelledCaptions) -> list[str]:
    return [data.captions.text(row) for row in range(len(data.captions))]


@dataclass(frozen=True, eq=False)
class TokenInputs(Items):
    """Captions as the token ids of a model."""

    numbers: Sequence[Sequence[int]]  # the ids of each of N captions, at least one
    padding: int  # the id that fills shorter captions

    def fit(self, train: IntArray) -> TokenInputs:
        """The inputs, equal for every attacker since the model has its own vocabulary."""
        del train
        return self

    @cached_property
    def lengths(self) -> IntArray:
        """(N,): the number of tokens of each caption."""
        return np.array([len(tokens) for tokens in self.numbers], np.int64)

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``tokens`` (B, L), padded to the longest caption, and ``lengths`` (B,)."""
        lengths = self.lengths[rows]
        tokens = np.full((len(rows), int(lengths.max(initial=1))), self.padding, np.int64)
        for place, row in zip(tokens, rows.tolist(), strict=True):
            place[: len(self.numbers[row])] = self.numbers[row]
        return {"tokens": tokens, "lengths": lengths}


@dataclass(frozen=True)
class Frozen(Published, FeatureEncoder):
    """Captions as vectors of a language model whose weights are not trained.

    Each distinct caption is embedded once, for all seeds, heads, captioners and runs that share
    ``cache``.
    """

    frozen: ClassVar[bool] = True

    # Whether vectors have length 1; None: as in the model's own files, else no
    normalize: bool | None = None
    # Whether each number of the vectors gets mean 0 and spread 1 over the captions that an attacker
    # learns from
    standardize: bool = True
    # Precision of the network's products; with bfloat16 a vector's cosine to that of float32 is at
    # least 0.9999 for MiniLM
    dtype: Precision = "float32"
    device: str = "auto"  # where to embed; `auto` is the first GPU if there is one
    cache: str | None = None  # folder of the vectors, None to store none
    # Removes group information from the vectors, None: nothing does. It is learnt from sentences
    # that name the groups of `attribute`, never from captions.
    debias: TextEdits | None = None
    attribute: Attribute | None = None  # whose groups

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of the model's files, and how the model's vectors are processed."""
        edits = {} if self._edits is None else {"edits": self._edits}
        return {**self._settings(self.pretrained_model), "standardize": self.standardize, **edits}

    @property
    def _edits(self) -> Mapping[str, object] | None:
        if self.debias is None or self.attribute is None:
            return None
        return self.debias.of_texts(self.attribute)

    def _settings(self, model: Pretrained) -> dict[str, object]:
        pooling = pooling_of(model, self.pooling, self.normalize)
        return {
            "job": "embed",
            "version": VERSION,
            "source": "texts",
            "pooling": pooling.how,
            "normalize": pooling.normalize,
            "files": dict(model.files),
            **({} if self.dtype == "float32" else {"dtype": self.dtype}),
        }

    def require(self) -> None:
        super().require()
        self._settings(self.pretrained_model)
        _ = self._edits  # raises if the debiasing does not work on texts

    def prepare(self, data: LabelledCaptions) -> Embedded | None:
        """Embed the captions that are not in the cache."""
        return self._embed_missing(distinct_texts(data.captions)[0])

    def _embed_missing(self, texts: Sequence[str]) -> Embedded | None:
        from bias_pipeline.models.text_vectors import embed_missing

        if self.cache is None:
            return None
        return embed_missing(texts, self._store(self.pretrained_model), self._load)

    def _store(self, model: Pretrained) -> BlockStore:
        from bias_pipeline.models.blocks import BlockStore

        return BlockStore(Path(str(self.cache)), self._settings(model), model.name)

    def _load(self) -> Sentences:
        model = self.pretrained_model
        pooling = pooling_of(model, self.pooling, self.normalize)
        return _load_sentences(model, self.device, pooling, self.dtype)

    def read(self, data: LabelledCaptions) -> Vectors:
        texts, rows = distinct_texts(data.captions)
        vectors = self.vectors(texts)
        if self.debias is not None and self.attribute is not None:
            vectors = self.debias.edit_vectors(vectors, self.vectors, self.attribute)
        return Vectors(vectors, rows, self.standardize)

    def vectors(self, texts: Sequence[str]) -> Float32Array:
        """(N, D): the model's vectors of distinct texts, read from the cache if possible."""
        from bias_pipeline.models.text_vectors import vectors_from

        self._embed_missing(texts)
        if self.cache is None:
            return self._load().embed(texts)
        return vectors_from(texts, self._store(self.pretrained_model))

    def build(self, inputs: VectorInputs) -> nn.Module:
        """A network that returns the vectors unchanged."""
        from bias_pipeline.attack.nets import GivenNet

        return GivenNet(inputs.items.vectors.shape[1])


@lru_cache(maxsize=1)
def _load_sentences(
    model: Pretrained, device: str, pooling: Pooling, dtype: Precision
) -> Sentences:
    """The model, which stays loaded since both sides of a metric use it in turn."""
    return Sentences(model, device_of(device), pooling, dtype)


def distinct_texts(captions: Captions) -> tuple[list[str], IntArray]:
    """The distinct texts, and for each caption the index of its text, (N,).

    Example:
        >>> distinct_texts(Captions.from_texts(["a dog", "a cat", "a dog"]))
        (['a dog', 'a cat'], array([0, 1, 0]))
    """
    numbers = captions.identities
    _, first = np.unique(numbers, return_index=True)
    return [captions.text(int(row)) for row in first], numbers


@dataclass(frozen=True, eq=False)
class Vectors(Items):
    """The vectors of N captions."""

    vectors: Float32Array  # (U, D) of the distinct captions
    rows: IntArray  # (N,) the vector of each caption
    standardize: bool  # see `Frozen`

    def fit(self, train: IntArray) -> VectorInputs:
        """The vectors, standardised by the training captions."""
        size = self.vectors.shape[1]
        if not self.standardize:
            return VectorInputs(self, np.zeros(size, np.float32), np.ones(size, np.float32))
        training = self.vectors[self.rows[train]]
        spread = training.std(axis=0)
        return VectorInputs(self, training.mean(axis=0), np.where(spread > 0, spread, 1))


@dataclass(frozen=True, eq=False)
class VectorInputs:
    """The vectors in the form that an attacker gets."""

    items: Vectors  # of all captions
    mean: Float32Array  # (D,) subtracted
    spread: Float32Array  # (D,) divided by

    @cached_property
    def lengths(self) -> IntArray:
        """(N,): ones, since a caption is one vector."""
        return np.ones(len(self.items.rows), np.int64)

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        return {"vectors": self._standardise(rows)}

    def matrix(self, rows: IntArray) -> Float64Array:
        return self._standardise(rows).astype(np.float64)

    def _standardise(self, rows: IntArray) -> Float32Array:
        vectors: Float32Array = self.items.vectors[self.items.rows[rows]]  # a copy
        vectors -= self.mean
        vectors /= self.spread
        return vectors
