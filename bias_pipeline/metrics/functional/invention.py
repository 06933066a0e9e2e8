"""Counts how often captions name absent objects, and how many present objects captions name.

CHAIR (Rohrbach et al. 2018) is the share of captions that name an absent object, or the share of
mentions that name an absent object. Different objects can be invented on the pictures of different
groups. So the gap is also measured on pictures with the same objects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array


@dataclass(frozen=True, eq=False)
class NamedObjects:
    """For M images, which of T objects captions name and which are in the image.

    Attributes:
        named: (M, T) share of the image's captions that name the object; 0 or 1 if there is one
            caption.
        present: (M, T) 1 where the object is in the image.

    Example:
        >>> caption = NamedObjects(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 1.0]]))
        >>> caption.absent.tolist(), caption.recall.tolist()
        ([[0.0, 1.0, 0.0]], [0.5])
    """

    named: Float64Array
    present: Float64Array

    @property
    def absent(self) -> Float64Array:
        """(M, T): the share of captions that name the object although it is not in the image."""
        return self.named * (1 - self.present)

    @property
    def invents(self) -> Float64Array:
        """(M,): 1 where a caption names an absent object."""
        return np.asarray((self.absent > 0).any(axis=1), np.float64)

    @property
    def recall(self) -> Float64Array:
        """(M,): the share of the image's objects that captions name, or NaN without objects."""
        there = self.present.sum(axis=1)
        named = (self.named * self.present).sum(axis=1)
        shares: Float64Array = np.where(there > 0, named / np.maximum(there, 1), np.nan)
        return shares


@dataclass(frozen=True)
class Amount:
    """A number and its standard error."""

    value: float
    error: float

    def interval(self, errors: float = 1.96) -> tuple[float, float]:
        """The ends of the interval: ``errors`` standard errors below and above the number."""
        return self.value - errors * self.error, self.value + errors * self.error


def mean(values: Float64Array) -> Amount:
    """The mean of independent values, or NaN without values.

    Example:
        >>> mean(np.array([0.0, 1.0])).value
        0.5
    """
    if not len(values):
        return Amount(math.nan, math.nan)
    return Amount(float(values.mean()), float(values.std() / math.sqrt(len(values))))


def mean_gap(values: Float64Array, members: BoolArray) -> Amount:
    """The mean of a group's values minus the mean of all other values.

    Example:
        >>> mean_gap(np.array([1.0, 1.0, 0.0]), np.array([True, False, False])).value
        0.5
    """
    of_group, of_others = mean(values[members]), mean(values[~members])
    return Amount(of_group.value - of_others.value, math.hypot(of_group.error, of_others.error))


def ratio_of_sums(numerators: Float64Array, denominators: Float64Array) -> Amount:
    """A ratio of sums over images, with its standard error, or NaN if the denominators are 0.

    Example:
        >>> ratio_of_sums(np.array([1.0, 0.0]), np.array([2.0, 2.0])).value
        0.25
    """
    total = float(denominators.sum())
    if not total:
        return Amount(math.nan, math.nan)
    value = float(numerators.sum()) / total
    left = numerators - value * denominators
    return Amount(value, float(np.sqrt((left**2).sum()) / total))
