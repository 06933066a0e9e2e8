"""Base classes of encoders and heads.

Encoders and heads only describe networks, which are built later.

An encoder reads captions once (:meth:`Encoder.read`) for any number of attackers. The captions are
then items, which are fitted to the training part of each attacker (:meth:`Items.fit`). The result,
:class:`Inputs`, gives the inputs of any batch. :meth:`Encoder.build` makes the network that turns a
batch into vectors. Attackers use nothing else from an encoder. Networks that are trained from
scratch read captions as word ids (:class:`WordEncoder`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import BoolArray, Float32Array, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.declared import Configurable, known_name
from bias_pipeline.errors import UsageError

if TYPE_CHECKING:
    from scipy import sparse
    from torch import nn

    from bias_pipeline.models.text_vectors import Embedded


class Inputs(Protocol):
    """The inputs of N items, fitted to the items that an attacker learns from.

    Attributes:
        lengths: (N,) int64, how long each item is. The items of a batch have almost equal length.
    """

    lengths: IntArray

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """The (B, ...) arrays of B items, by the argument names of the network's ``forward``."""


class Features(Protocol):
    """Inputs of linear attackers, which are features already."""

    def matrix(self, rows: IntArray) -> sparse.csr_array | Float64Array:
        """(B, F): the features of B items."""


@dataclass(frozen=True, eq=False)
class SharedFeatures:
    """Features that S attackers share. Each attacker knows only some of the features.

    Attributes:
        matrix: (R, F), the features of the R distinct items.
        rows: (N,), the index of each item among the distinct items.
        known: (F, S), whether each attacker knows each feature.
    """

    matrix: sparse.csr_array
    rows: IntArray
    known: BoolArray

    def tally(self, numbers: Float64Array, positions: IntArray) -> Float64Array:
        """Sum the (M, ...) numbers of M positions over equal items, which gives (R, ...) sums."""
        n_items, rows = self.matrix.shape[0], self.rows[positions]
        if numbers[:1].size == 1:
            total = np.bincount(rows, numbers.ravel(), n_items).astype(np.float64, copy=False)
            return total.reshape(-1, *numbers.shape[1:])
        total = np.zeros((n_items, *numbers.shape[1:]))
        np.add.at(total, rows, numbers)
        return total


class Items(ABC):
    """N items that an encoder has read, and that are not yet fitted to an attacker."""

    @abstractmethod
    def fit(self, train: IntArray) -> Any:
        """The inputs of all N items, fitted only to the items in ``train``."""

    def share_features(self, trains: Sequence[IntArray]) -> SharedFeatures | None:
        """The features of S attackers at once, if attackers differ only in the known features.

        Linear attackers are then trained together, which is several times faster.

        Args:
            trains: S training parts.

        Returns:
            The features, None where each attacker has its own.
        """
        del trains
        return None


class Encoder(Configurable, ABC):
    """Turns captions into the inputs of attackers.

    The fields of the dataclass are the encoder's settings.
    """

    @property
    def spec(self) -> Mapping[str, object]:
        """The settings that change the encoder's vectors, which are part of the cache key."""
        return asdict(self)  # type: ignore[call-overload]

    @property
    def sees(self) -> str:
        """What the encoder reads besides captions: ``pictures``, ``objects`` or nothing."""
        return ""

    def digest(self, data: LabelledCaptions) -> str:
        """SHA-256 (hex) of the labels and of everything that the encoder reads for N captions."""
        return data.digest

    def require(self) -> None:
        """Check, before any work, that all files exist that the encoder needs.

        Raises:
            BiasPipelineError: naming what is missing.
        """

    def notes(self, groups: Sequence[str]) -> list[str]:
        """Notes for readers of results of the encoder. ``groups`` are the group names."""
        del groups
        return []

    def prepare(self, data: LabelledCaptions) -> Embedded | None:
        """Do the slow work that all attackers share, only once and in one process.

        Returns:
            An account of the work, None if there was none.
        """
        del data
        return None

    @abstractmethod
    def read(self, data: LabelledCaptions) -> Items:
        """Read N captions once, for any number of attackers."""


def named_spec(encoder: Encoder) -> list[object]:
    """The class and settings of an encoder, for the key under which predictions are stored."""
    kind = type(encoder)
    return [known_name(kind.__module__, kind.__name__), encoder.spec]


class FeatureEncoder(Encoder):
    """An encoder without training, whose features a convex attacker can use.

    The encoder's :class:`Items` are fitted to :class:`Features`.
    """


class NetEncoder(Encoder):
    """An encoder that is a network, with the head on top.

    Attributes:
        frozen: whether only the head is trained. Attackers are then cheap, so that even a processor
            trains all of them at once.
    """

    frozen: ClassVar[bool] = False

    @abstractmethod
    def build(self, inputs: Any) -> nn.Module:
        """A network with new weights that turns a batch of ``inputs`` into (B, ``output_dim``)."""


class AnsweringEncoder(Encoder):
    """A model that names groups without any training."""

    @abstractmethod
    def answer_log_probs(self, data: LabelledCaptions) -> Float64Array:
        """(N, K): the log-probability of each group's answer."""

    def read(self, data: LabelledCaptions) -> Items:
        """Raise an error, because the model gives no vectors from which attackers could learn.

        Raises:
            UsageError: naming what to choose instead.
        """
        raise UsageError(
            f"{type(self).__name__} is not trained and gives {data.name} no vectors that an "
            "attacker could learn from; choose probe=zero_shot, or another encoder"
        )


class Head(Configurable, ABC):
    """A description of a head."""

    def n_outputs(self, n_classes: int, *, exclusive: bool) -> int:
        """The number of outputs: one (sigmoid) for two groups, else one per group (softmax)."""
        return 1 if exclusive and n_classes == 2 else n_classes

    @abstractmethod
    def build(self, n_inputs: int, n_outputs: int) -> nn.Module:
        """A network with new weights, which maps (B, n_inputs) to (B, n_outputs)."""


Embed: TypeAlias = Callable[[Sequence[str]], Float32Array]


class TextEdits(Configurable, ABC):
    """How vectors of texts are edited."""

    @abstractmethod
    def of_texts(self, attribute: Attribute) -> Mapping[str, object] | None:
        """The settings of the edit, without the encoder's settings. There may be no edit.

        Raises:
            BiasPipelineError: if texts of this attribute cannot be edited.
        """

    @abstractmethod
    def edit_vectors(
        self, vectors: Float32Array, embed: Embed, attribute: Attribute
    ) -> Float32Array:
        """Remove group information from vectors of texts.

        Args:
            vectors: (N, D) of an encoder.
            embed: texts to vectors of the same encoder, from which the edit is learnt.
            attribute: whose groups.

        Raises:
            BiasPipelineError: if the edit cannot be learnt.
        """


UNKNOWN, PAD = 0, 1
N_SPECIAL = 2


class WordEncoder(NetEncoder):
    """An encoder whose network reads whole words: ``forward(tokens, lengths)``."""

    def read(self, data: LabelledCaptions) -> Words:
        """The captions. Words get ids when the captions are fitted to an attacker."""
        return Words(data.captions)


@dataclass(frozen=True, eq=False)
class Words(Items):
    """Captions in which words have no ids yet."""

    captions: Captions

    def fit(self, train: IntArray) -> WordInputs:
        """Give ids to the words of the training captions."""
        return WordInputs(self.captions, train)


class WordInputs:
    """The word ids of N captions, which are padded batch by batch.

    The words of training captions get the ids after the special ids, from the most frequent to the
    rarest. Words of equal frequency are in alphabetical order. Words that occur only in other
    captions are unknown. An empty caption has one padding token. The vector of this token is zero
    and is never trained, so it does not affect <unk>.

    Args:
        captions: all captions.
        train: which captions the attacker learns from.

    Attributes:
        size: how many ids there are, including special ids.
        lengths: (N,) words of each caption, at least 1.

    Example:
        >>> inputs = WordInputs(Captions.from_texts(["a dog", "a cat sat"]), np.array([0]))
        >>> inputs.batch(np.array([0, 1]))["tokens"].tolist()
        [[2, 3, 1], [2, 0, 0]]
    """

    def __init__(self, captions: Captions, train: IntArray) -> None:
        training = captions.take(train)
        ranked = sorted(zip((-training.counts).tolist(), training.types, strict=True))
        number = {word: i + N_SPECIAL for i, (_, word) in enumerate(ranked)}
        table = np.array([number.get(word, UNKNOWN) for word in captions.types], np.int64)
        self.size = len(number) + N_SPECIAL
        self.lengths = np.maximum(captions.lengths, 1)
        self._captions = captions
        self._numbers = table[captions.tokens]

    def batch(self, rows: IntArray) -> Mapping[str, IntArray]:
        """``tokens`` (B, L), padded to the longest caption, and ``lengths`` (B,)."""
        lengths = self._captions.lengths[rows]
        tokens = np.full((len(rows), max(int(lengths.max(initial=0)), 1)), PAD, np.int64)
        inside = np.arange(tokens.shape[1]) < lengths[:, None]
        place = np.nonzero(inside)[1]
        tokens[inside] = self._numbers[np.repeat(self._captions.starts[rows], lengths) + place]
        return {"tokens": tokens, "lengths": self.lengths[rows]}
