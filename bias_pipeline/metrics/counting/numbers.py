"""Numbers that are computed from counts, each with the images and groups that were counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.io.hashing import UIntArray, hash_ids
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.value_names import PartName

Sums = Mapping[str, Float64Array]
Lines = Mapping[str, Sequence[Mapping[str, object]]]  # tables by name

COUNT = "count"
SHARE = (0.0, 1.0)  # the range of a number that is not a difference


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedNumber:
    """A number under B sets of image weights, with the images and groups that were counted.

    Subtracting two of these numbers gives a number of this class. If both are shares and belong to
    the metric, the difference has the interval of paired shares.
    """

    values: Float64Array  # (B,)
    images: BoolArray  # (N,) the images that it rests on
    side: str = "model"  # the neutral rate is of this side's captions
    unit: str = "fraction"  # see `Number`; a `count` has no interval
    range: tuple[float, float] | None = None  # see `Number`
    # (N,) coverage is `images` as a share of these images; None: of the metric's own images
    among: BoolArray | None = None
    observations: Float64Array | None = None  # (B,) the denominator, if the number is a share
    shares: tuple[CountedNumber, ...] = ()  # the two shares, if the number is their difference
    chosen_from: int = 2  # how many groups there are, if the number is the gap between two of them
    p_value: float = math.nan  # from the metric's own test
    tested: CountedNumber | None = None  # another number, whose p this number takes
    widening: float = 1.0  # the factor by which resampling underestimates the spread

    def __sub__(self, other: CountedNumber) -> CountedNumber:
        of_shares = self.observations is not None and other.observations is not None
        return CountedNumber(
            values=self.values - other.values,
            images=self.images,
            unit=self.unit,
            shares=(self, other) if of_shares else (),
        )

    def split(self, names: Iterable[PartName]) -> dict[PartName, CountedNumber]:
        """One number for each column of ``values`` (B, M); shares also split ``observations``."""
        each = {}
        for column, name in enumerate(names):
            of = None if self.observations is None else self.observations[:, column]
            each[name] = replace(self, values=self.values[:, column], observations=of)
        return each

    def by_group(
        self,
        groups: Iterable[str],
        what: str = "",
        codes: IntArray | None = None,
        **fields: str,
    ) -> dict[PartName, CountedNumber]:
        """The numbers of K groups, from (B, K) values.

        Args:
            groups: their names.
            what: the name of the number.
            codes: (N,) the group of each image, if each number is computed only from the images of
                its group.
            fields: further fields of a :class:`~bias_pipeline.metrics.value_names.PartName`.
        """
        numbers = self.split(PartName(what, group=group, **fields) for group in groups)
        if codes is None:
            return numbers
        return {
            name: replace(number, images=self.images & (codes == k))
            for k, (name, number) in enumerate(numbers.items())
        }

    def by_object(
        self, objects: Iterable[str], what: str = "", **fields: str
    ) -> dict[PartName, CountedNumber]:
        """The numbers of T objects, from (B, T) values. For the arguments see :meth:`by_group`."""
        return self.split(PartName(what, object=name, **fields) for name in objects)


def counted_share(
    events: Float64Array, observations: Float64Array, images: BoolArray, side: str = "model"
) -> CountedNumber:
    """The share of observations that are events, both (B, ...); NaN without observations."""
    return CountedNumber(
        values=share(events, observations),
        images=images,
        side=side,
        range=SHARE,
        observations=observations,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class LargestGap:
    """The largest number of any group minus the smallest, corrected for all pairs of groups.

    Every resampling compares the same two groups. Otherwise the gap would grow with noise and with
    the number of groups.
    """

    groups: Sequence[CountedNumber]  # the value is NaN for groups without images
    images: BoolArray  # (N,) the images that it rests on
    side: str = "model"
    unit: str = "fraction"
    range: tuple[float, float] = SHARE
    # Whether the gap of two groups may fall below 0 in a resampling, as a difference of shares may
    signed: bool = False
    p_value: float = math.nan  # from the metric's own test

    def between_extremes(self, whole: LargestGap) -> CountedNumber:
        """The gap between the two groups that are furthest apart among all images.

        Args:
            whole: the gap with every image counted once.

        Example:
            >>> every = np.ones(1, bool)
            >>> groups = [
            ...     CountedNumber(values=np.array([value]), images=every)
            ...     for value in (0.5, 0.2, np.nan, 0.9)
            ... ]
            >>> gap = LargestGap(groups=groups, images=every)
            >>> number = gap.between_extremes(gap)
            >>> number.values.round(3).tolist(), number.chosen_from
            ([0.7], 3)
        """
        values = np.array([group.values[0] for group in whole.groups])
        known = int((~np.isnan(values)).sum())
        lowest, highest = 0, 1
        if known > 1:
            lowest = int(np.nanargmin(values))
            others = np.where(np.arange(len(values)) == lowest, np.nan, values)
            highest = int(np.nanargmax(others))
        difference = self.groups[highest] - self.groups[lowest]
        signed = self.signed or known > 2
        return CountedNumber(
            values=difference.values if signed else np.abs(difference.values),
            images=self.images,
            side=self.side,
            unit=self.unit,
            range=self.range,
            shares=difference.shares if signed else (),
            chosen_from=max(known, 2),
            p_value=self.p_value,
        )


Numbers = Mapping[PartName, CountedNumber | LargestGap]


@dataclass(frozen=True, eq=False)
class Smoothing:
    """Noise of mean 0 that is added to the sums of resamples, but not to the estimate.

    Without noise, an event that never happened in the data would never happen in resamples, as if
    its chance were 0.
    """

    amounts: Float64Array  # (C,) scale of each sum's noise; the noise is this times Poisson(1) - 1
    name: str  # names what is summed, such as a digest of captions; equal names have equal noise

    @property
    def keys(self) -> UIntArray:
        """(C,): the keys by which the noise of each sum is drawn."""
        return hash_ids(f"{self.name}:{column}" for column in range(len(self.amounts)))


@dataclass(frozen=True, eq=False)
class Tally:
    """The tables that a metric counts, and the numbers computed from sums over rows."""

    tables: Mapping[str, sparse.csr_array]  # name to (N, C) counts of each image
    numbers: Callable[[Sums], Numbers]  # computes the numbers from the tables' sums, (B, C) each
    audit: Mapping[str, object] = field(default_factory=dict)  # for the manifest
    notes: Sequence[str] = ()  # for the reader
    lines: Lines = field(default_factory=dict)  # further tables by name
    # Name of a table to the noise of its sums under resampling
    smoothing: Mapping[str, Smoothing] = field(default_factory=dict)

    @cached_property
    def totals(self) -> dict[str, Float64Array]:
        """(1, C): the sums over all images."""
        return {
            name: np.asarray(table.sum(axis=0), np.float64)[None]
            for name, table in self.tables.items()
        }

    def counted_numbers(self, sums: Sums) -> dict[PartName, CountedNumber]:
        """The numbers.

        Each gap is between the two groups that are furthest apart among all images.
        """
        return {
            name: number.between_extremes(self._gaps[name])
            if isinstance(number, LargestGap)
            else number
            for name, number in self.numbers(sums).items()
        }

    @cached_property
    def _gaps(self) -> dict[PartName, LargestGap]:
        whole = self.numbers(self.totals)
        return {name: number for name, number in whole.items() if isinstance(number, LargestGap)}
