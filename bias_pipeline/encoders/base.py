"""What every encoder and every head is: a description from which the real thing is built.

An encoder reads captions once (:meth:`Encoder.read`), however many attackers learn from them.
What it read is fitted to each attacker's training part (:meth:`Items.fit`), which gives the inputs
of any batch (:class:`Inputs`) and, with them, the network that turns a batch into vectors
(:meth:`Encoder.build`). Attackers know no more of an encoder than that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.declared import Configurable, known_name
from bias_pipeline.errors import UsageError

if TYPE_CHECKING:
    from scipy import sparse
    from torch import nn

    from bias_pipeline.inference.texts import Embedded

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class Inputs(Protocol):
    """The inputs of N items, fitted to the part of them that an attacker learns from.

    Attributes:
        lengths: (N,) int64, how long each item is; items of a batch are of almost equal length.
    """

    lengths: IntArray

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """Name to (B, ...) the arrays of B items, which the network's ``forward`` takes by name."""


class Features(Protocol):
    """Inputs that are numbers as they stand; a linear attacker needs nothing else."""

    def matrix(self, rows: IntArray) -> sparse.csr_array | npt.NDArray[np.float64]:
        """(B, F) features of B items."""


@dataclass(frozen=True, eq=False)
class SharedFeatures:
    """Features that are the same for all S attackers; only which of them each knows differs.

    Attributes:
        matrix: (R, F) features of the R distinct items.
        rows: (N,) which of those each item is.
        known: (F, S) whether an attacker knows a feature.
    """

    matrix: sparse.csr_array
    rows: IntArray
    known: npt.NDArray[np.bool_]

    def tally(self, numbers: FloatArray, positions: IntArray) -> FloatArray:
        """(M, ...) numbers of the items at M positions, (R, ...) summed by distinct item."""
        total = np.zeros((self.matrix.shape[0], *numbers.shape[1:]))
        np.add.at(total, self.rows[positions], numbers)
        return total


class Items(ABC):
    """N items as an encoder reads them, before any attacker."""

    @abstractmethod
    def fit(self, train: IntArray) -> Any:
        """The inputs of all N items; what is learnt of them is learnt of ``train`` alone."""

    def shared(self, trains: Sequence[IntArray]) -> SharedFeatures | None:
        """The same for S attackers at once, if their features differ in nothing else.

        Linear attackers then learn together, several times as fast.

        Args:
            trains: S training parts.

        Returns:
            The features, None where each attacker has its own.
        """
        del trains
        return None


class Encoder(Configurable, ABC):
    """What attackers see of captions. Its dataclass fields are its settings."""

    @property
    def spec(self) -> Mapping[str, object]:
        """Everything that decides its vectors, as plain data; part of the cache's key."""
        return asdict(self)  # type: ignore[call-overload]

    @property
    def sees(self) -> str:
        """What it sees of images beside captions: ``pictures``, ``objects`` or, empty, nothing."""
        return ""

    def digest(self, data: Labelled) -> str:
        """SHA-256 (hex) of all that it sees of N captions, and of their labels."""
        return data.digest

    def require(self) -> None:
        """Know before any work that all it needs is there.

        Raises:
            BiasPipelineError: naming what is not.
        """

    def told(self, groups: Sequence[str]) -> list[str]:
        """What a reader of its results must know, beside groups of such names."""
        del groups
        return []

    def prepare(self, data: Labelled) -> Embedded | None:
        """Do, in one process, what is slow and the same for all attackers.

        Returns:
            What it took, None if there was nothing of the kind.
        """
        del data
        return None

    @abstractmethod
    def read(self, data: Labelled) -> Items:
        """The items of N captions; done once for any number of attackers."""


def named_spec(encoder: Encoder) -> list[object]:
    """What of an encoder keys its attackers' predictions: two kinds may have the same settings."""
    kind = type(encoder)
    return [known_name(kind.__module__, kind.__name__), encoder.spec]


class FeatureEncoder(Encoder):
    """An encoder that learns nothing, so that a convex attacker can have its features.

    Its :class:`Items` are fitted to :class:`Features`.
    """


class NetEncoder(Encoder):
    """An encoder that is a network, with the head on top.

    Attributes:
        frozen: whether the head alone is trained, so that attackers cost little and a processor,
            too, trains them all at once.
    """

    frozen: ClassVar[bool] = False

    @abstractmethod
    def build(self, inputs: Any) -> nn.Module:
        """A network with fresh weights and ``output_dim``: a batch of ``inputs`` to (B, D)."""


class AnsweringEncoder(Encoder):
    """A model that names groups as it is: nothing is trained."""

    @abstractmethod
    def likely(self, data: Labelled) -> FloatArray:
        """(N, K) logarithms of how likely each group's answer is."""

    def read(self, data: Labelled) -> Items:
        """Nothing can be learnt of what it sees.

        Raises:
            UsageError: naming what to choose instead.
        """
        raise UsageError(
            f"{type(self).__name__} answers as it is and gives {data.name} no vectors that an "
            "attacker could learn from; choose probe=zero_shot, or another encoder"
        )


class Head(Configurable, ABC):
    """A description of a head."""

    def n_outputs(self, n_classes: int, *, exclusive: bool) -> int:
        """How many numbers it gives: two groups have one sigmoid, more a softmax over all."""
        return 1 if exclusive and n_classes == 2 else n_classes

    @abstractmethod
    def build(self, n_inputs: int, n_outputs: int) -> nn.Module:
        """A network with fresh weights, (B, n_inputs) to (B, n_outputs)."""
