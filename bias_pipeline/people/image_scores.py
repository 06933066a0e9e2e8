"""Reads attackers' guesses from a run's Parquet file, and how much each image adds to the score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.stats.scoring import Scoring, correct

if TYPE_CHECKING:
    import pyarrow as pa

_PAIRED = "paired"


@dataclass(frozen=True, eq=False)
class ImageScores:
    """The N images on which the attackers of a part were tested."""

    ids: pa.Array  # the N ids as an Arrow array of strings
    groups: tuple[str, ...]  # names of the K groups
    truth: IntArray  # (N,) int64, the true group of each
    # (N,) share of right guesses among the guesses from the captioner's caption, in [0, 1]; NaN
    # for an image without such a guess
    right: Float64Array
    # (N,) mean probability of the true group in these guesses, in [0, 1]; NaN without a guess
    confidence: Float64Array
    # By side, (N,) what each image adds to the side's score
    side_shares: Mapping[str, Float64Array] = field(default_factory=dict)
    _orders: dict[tuple[str, bool], IntArray] = field(default_factory=dict)

    def shares(self, part: str) -> Float64Array | None:
        """(N,) how much each image adds to a part, or None if the part is not a sum over images.

        ``model`` and ``human`` are sums, so their difference ``score`` is a sum too.
        """
        if part in self.side_shares:
            return self.side_shares[part]
        if part == "score" and len(self.side_shares) == 2:
            return self.side_shares["model"] - self.side_shares["human"]
        return None

    def order(self, by: str, *, descending: bool) -> IntArray | None:
        """(N,) the order of the images, NaN last, or None if there are no values to sort by."""
        if (by, descending) not in self._orders:
            numbers = self.confidence if by == "sure" else self.shares(by)
            if numbers is None:
                return None
            signed = -numbers if descending else numbers
            self._orders[by, descending] = np.argsort(signed, kind="stable")
        return self._orders[by, descending]


def image_scores(path: Path, scoring: Scoring) -> ImageScores:
    """Add up the guesses of each image.

    A side's score is a mean over the images on which an attacker was tested, then over seeds, then
    over caption positions (LIC, eq. 2-3). So each guess adds its score divided by these three
    numbers. If groups count equally (``average=groups``), the number of images is replaced by the
    number of images of the image's group times the number of groups.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        groups = tuple(name.removeprefix("p_") for name in names if name.startswith("p_"))
        tables = _Column(file, "side")
        sides = _sides(tables.values)
        if not sides:
            raise ValueError("it has no guesses from captions")
        is_side = np.isin(np.arange(len(tables.values)), list(sides))
        chosen = slice(None) if is_side.all() else is_side[tables.codes]  # a slice copies nothing
        table, seed = tables.codes[chosen], _Column(file, "seed").codes[chosen]
        images, truth = _Column(file, "image_id"), _Column(file, "truth").as_of(groups)[chosen]
        image = images.codes[chosen]
        columns = (file.read([f"p_{group}"]).column(0).to_numpy() for group in groups)
        probs = np.stack([column[chosen] for column in columns], axis=1)
    weight = _weights(table, seed, truth, len(groups), scoring)
    values = scoring.per_guess(probs, truth)
    n_images = len(images.values)
    counted = np.bincount(image, minlength=n_images) > 0
    is_model = np.isin(table, [code for code, side in sides.items() if side == "model"])

    def sums(rows: BoolArray, numbers: Float64Array) -> Float64Array:
        return np.asarray(np.bincount(image[rows], numbers[rows], n_images)[counted], np.float64)

    shares = {}
    for side in dict.fromkeys(sides.values()):
        codes = [code for code, name in sides.items() if name == side]
        shares[side] = sums(np.isin(table, codes), values * weight) / len(codes)
    ones = np.ones(len(image))
    with np.errstate(invalid="ignore"):
        n_guesses = sums(is_model, ones)
        right = sums(is_model, correct(probs, truth)) / n_guesses
        sure = sums(is_model, np.take_along_axis(probs, truth[:, None], axis=1)[:, 0])
    of_image = np.zeros(n_images, np.int64)
    of_image[image] = truth
    ids = images.values.filter(pa.array(counted))
    return ImageScores(ids, groups, of_image[counted], right, sure / n_guesses, shares)


def guesses_of(path: Path, image: str) -> list[dict[str, Any]]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = []
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            here = pc.equal(file.read_row_group(group, ["image_id"]).column(0), image)
            if pc.any(here).as_py():
                rows += file.read_row_group(group).filter(here).to_pylist()
    return rows


class _Column:
    """A column of a table that is stored as codes of its distinct values."""

    def __init__(self, file: Any, name: str) -> None:
        encoded = file.read([name]).column(0).combine_chunks().dictionary_encode()
        self.values: Any = encoded.dictionary
        self.codes: IntArray = encoded.indices.to_numpy().astype(np.int64)

    def as_of(self, names: tuple[str, ...]) -> IntArray:
        """The codes that the values have in a given list of names."""
        place = np.array([names.index(value) for value in self.values.to_pylist()], np.int64)
        return place[self.codes]


def _sides(tables: Any) -> dict[int, str]:
    """The side, ``model`` or ``human``, of each table of guesses from captions, by its code."""
    names = [name.split(":") for name in tables.to_pylist()]
    separate = {side for side, *more in names if _PAIRED in more}
    sides = {}
    for code, (side, *more) in enumerate(names):
        plain = all(word == _PAIRED or word.isdigit() for word in more)
        if side in SIDES and plain and (_PAIRED in more) == (side in separate):
            sides[code] = side
    return sides


def _weights(
    table: IntArray, seed: IntArray, truth: IntArray, n_groups: int, scoring: Scoring
) -> Float64Array:
    """The factor that multiplies the score of each guess; see :func:`image_scores`."""
    n_seeds = len(np.flatnonzero(np.bincount(seed)))
    block = table * (seed.max() + 1) + seed
    if scoring.average == "groups":
        cell = block * n_groups + truth
        sizes = np.bincount(cell)
        present = np.bincount(np.flatnonzero(sizes) // n_groups)
        wholes = n_seeds * present[np.arange(len(sizes)) // n_groups] * sizes
    else:
        cell, wholes = block, n_seeds * np.bincount(block)
    return (1 / np.maximum(wholes, 1))[cell]  # no guess has a cell with 0
