"""``debias=mean_difference``: removes the directions between the groups' means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bias_pipeline.debias.base import Debias, Examples, means_of
from bias_pipeline.debias.projection import Projection, principal_directions


@dataclass(frozen=True)
class MeanDifference(Debias):
    """Projects out the K - 1 directions between the means of K groups; ``k`` is ignored.

    The simplest method without pairs: for two groups, the direction from one mean to the other.
    """

    unused: ClassVar[tuple[str, ...]] = ("k",)

    def fit(self, examples: Examples) -> Projection:
        """The projection of one side.

        Raises:
            DataError: if a group has no example.
        """
        means = means_of(examples)
        return Projection(principal_directions(means - means.mean(axis=0), len(means) - 1))
