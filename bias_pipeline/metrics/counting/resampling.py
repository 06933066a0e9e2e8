"""Computes intervals of counted numbers. Images are resampled by multiplying weights and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray
from bias_pipeline.io.hashing import LIMITS, UIntArray, random_words
from bias_pipeline.metrics.counting.numbers import COUNT, CountedNumber, Tally
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import (
    Bootstrap,
    Estimate,
    share_of,
    summary,
    two_sided_p,
    widen_draws,
)
from bias_pipeline.stats.compare import paired_difference

MOST_BUNDLES = 8_192
FEWEST_BUNDLES = 1_024
_IMAGES = 1 << 20  # images whose rows are summed at once
_CELLS = 20_000_000  # the most cells of all tables of bundles together


class ResamplingBlocks:
    """Bundles of images that are resampled together.

    A hash of the image id chooses the bundle. Sums over bundles vary as much as sums over images.
    So intervals are as wide as if single images were resampled, but a million images take no
    longer. An image has the same bundle and the same weights for every captioner. The argument
    ``keys`` has hashes of all image ids. The attribute ``keys`` has one key for each bundle, by
    which resamples are drawn.
    """

    def __init__(self, rows: IntArray, keys: UIntArray, n_columns: int) -> None:
        most = MOST_BUNDLES
        while most > FEWEST_BUNDLES and most * n_columns > _CELLS:
            most //= 2  # halved each time, so that tables of similar size get equally many bundles
        parts = np.split(rows, range(_IMAGES, len(rows), _IMAGES))
        words = (random_words("bundle", 0, keys[part]) % np.uint64(most) for part in parts)
        of_rows = np.concatenate([part.astype(np.int16) for part in words])
        used = np.flatnonzero(np.bincount(of_rows, minlength=most))
        place = np.zeros(most, np.int16)
        place[used] = np.arange(len(used))
        self.bundle, self.keys = np.zeros(len(keys), np.int16), used.astype(np.uint64)
        self.bundle[rows] = place[of_rows]

    def sums(self, table: sparse.csr_array) -> Float64Array:
        """Sums of a table's rows over each bundle, (number of bundles, C)."""
        shape = len(self.keys), table.shape[1]
        sums = np.zeros(shape[0] * shape[1])
        for first in range(0, len(self.bundle), _IMAGES):
            begins = self.bundle[first : first + _IMAGES].astype(np.int64) * shape[1]
            ends = table.indptr[first : first + _IMAGES + 1]
            of_images = slice(ends[0], ends[-1])
            cell = np.repeat(begins, np.diff(ends)) + table.indices[of_images]
            sums += np.bincount(cell, table.data[of_images], len(sums))
        return sums.reshape(shape)


def estimates_of(
    tally: Tally,
    numbers: Mapping[PartName, CountedNumber],
    keys: UIntArray,
    stats: Bootstrap,
) -> dict[PartName, Estimate]:
    """The numbers with intervals and p values. ``keys`` (N,) are hashes of image ids."""
    used = [table.indptr[1:] > table.indptr[:-1] for table in tally.tables.values()]
    masks = {id(number.images): number.images for number in numbers.values()}  # many share one
    counted = np.logical_or.reduce([*used, *masks.values()])
    width = sum(table.shape[1] for table in tally.tables.values())
    blocks = ResamplingBlocks(np.flatnonzero(counted), keys, width)
    sums = {name: _single_if_exact(blocks.sums(table)) for name, table in tally.tables.items()}
    block_keys = [blocks.keys, *(smoothing.keys for smoothing in tally.smoothing.values())]

    def evaluate(weights: Float64Array) -> dict[PartName, Float64Array]:
        ends = np.cumsum([len(of_part) for of_part in block_keys][:-1])
        of_images, *of_noise = np.split(weights, ends, axis=1)
        single = of_images.astype(np.float32)
        totals: dict[str, Float64Array] = {
            name: np.asarray(
                (single if table.dtype == np.float32 else of_images) @ table, np.float64
            )
            for name, table in sums.items()
        }
        for (name, smoothing), drawn in zip(tally.smoothing.items(), of_noise, strict=True):
            totals[name] = totals[name] + (drawn - 1) * smoothing.amounts
        return {
            name: number.values[:, None] for name, number in tally.counted_numbers(totals).items()
        }

    estimates = stats.estimate_weighted(
        np.concatenate(block_keys), evaluate, trained=lambda _: False
    )
    shares = {
        id(number): share_of(
            estimates[name].draws, float(number.observations[0]), float(number.images.sum())
        )
        for name, number in numbers.items()
        if number.observations is not None and not math.isnan(estimates[name].value)
    }
    names = {id(number): name for name, number in numbers.items()}

    def finish(name: PartName, number: CountedNumber) -> Estimate:
        estimate = estimates[name]
        # At this level, the intervals of all pairs of groups together have the level of `stats`
        of_pairs = 1 - (1 - stats.level) / math.comb(number.chosen_from, 2)
        if number.widening != 1:
            estimate = summary(widen_draws(estimate.draws, number.widening), stats.level)
        if number.tested is not None:
            tested = estimates[names[id(number.tested)]]
            estimate = replace(estimate, p_value=two_sided_p(tested))
        paired = [shares[id(share)] for share in number.shares if id(share) in shares]
        if id(number) in shares:
            estimate = summary(shares[id(number)], stats.level)
        elif len(paired) == 2:
            difference = paired_difference(paired[0], paired[1], of_pairs)
            estimate = replace(difference, p_value=math.nan)
        elif number.chosen_from > 2 and estimate.draws is not None:
            estimate = summary(estimate.draws, of_pairs)
        if not math.isnan(number.p_value):
            estimate = replace(estimate, p_value=number.p_value)
        if number.unit == COUNT:  # resampling images does not show the uncertainty of a count
            nan = math.nan
            estimate = replace(estimate, image_std=nan, ci_low=nan, ci_high=nan)
        return estimate

    return {name: finish(name, number) for name, number in numbers.items()}


def _single_if_exact(sums: Float64Array) -> Float64Array | Float32Array:
    """The sums, in single precision if this stores all products with weights exactly."""
    most = len(LIMITS) * np.abs(sums).sum(axis=0).max(initial=0)
    whole = most < 2**24 and np.array_equal(sums, np.rint(sums))
    return sums.astype(np.float32) if whole else sums
