"""Stores the scores of many attackers, each on the images on which it was tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.stats.scoring import Scoring

_FEW = 6  # lines that are multiplied one by one


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """A table with one number for each image and attacker."""

    images: IntArray  # (I,) corpus rows of the images that any attacker was tested on, ascending
    values: Float64Array  # (I, A) scores, NaN where an attacker was not tested on an image
    seed_of: IntArray  # (A,) to which of the S seeds each attacker belongs
    n_seeds: int  # S
    # (I,) the group of each image if groups are averaged equally, else 0; -1 for images on which no
    # attacker was tested
    group_of: IntArray
    scoring: Scoring  # how guesses are scored; its link turns an attacker's mean into a score

    @classmethod
    def from_predictions(cls, predictions: Sequence[Predictions], scoring: Scoring) -> ScoreTable:
        n_seeds = len(predictions[0].seeds)
        tested = [images for one in predictions for images in one.images]
        rows = np.flatnonzero(np.bincount(np.concatenate(tested)))
        values = np.full((len(rows), n_seeds * len(predictions)), np.nan)
        group_of = np.zeros(len(rows), np.int64)
        for column, (images, truth, probs) in enumerate(b for p in predictions for b in p):
            place = np.searchsorted(rows, images)
            values[place, column] = scoring.per_guess(probs, truth)
            if scoring.average == "groups":
                group_of[place] = truth
        seed_of = np.tile(np.arange(n_seeds), len(predictions))
        return cls(rows, values, seed_of, n_seeds, group_of, scoring)

    def per_seed(self, weights: Float64Array) -> Float64Array:
        """(B, S): the mean score of each seed's attackers under (B, I) weights."""
        each = np.stack([self._means(weights, *of_group) for of_group in self._by_group])
        present = np.isfinite(each)  # a resampling may lack one of the groups
        with np.errstate(invalid="ignore"):
            mean = np.where(present, each, 0.0).sum(axis=0) / present.sum(axis=0)
        scores = self.scoring.link(mean)
        member = np.eye(self.n_seeds)[self._columns[1]]
        known = np.isfinite(scores)  # NaN times 0 is NaN, so one NaN would spread to every seed
        means = np.where(known, scores, 0.0) @ (member / member.sum(axis=0))
        return np.where(~known @ member > 0, np.nan, means)

    @cached_property
    def _columns(self) -> tuple[Float64Array, IntArray]:
        """(I, A): scores, and the seed to which each column belongs.

        If all attackers of a seed were tested on the same images and a score is a mean, the seed
        has one column, which is the mean of its attackers.
        """
        tested = self.values[self.group_of >= 0]
        if type(self.scoring).link is not Scoring.link or np.isnan(tested).any():
            return self.values, self.seed_of
        member = np.eye(self.n_seeds)[self.seed_of]
        return self.values @ member / member.sum(axis=0), np.arange(self.n_seeds)

    @cached_property
    def _by_group(self) -> list[tuple[slice | IntArray, Float64Array]]:
        """For each group, its images, rows of scores (0 for NaN), and rows with 1 where tested.

        Neighbouring images form a slice, which is not copied. If all images were tested, all scores
        share one row of ones.
        """
        parts, columns = [], self._columns[0]
        for group in np.unique(self.group_of[self.group_of >= 0]):
            images = np.flatnonzero(self.group_of == group)
            first, last = int(images[0]), int(images[-1])
            values = columns[images]
            tested = np.isfinite(values)
            counted = np.ones((len(images), 1)) if tested.all() else tested.astype(np.float64)
            parts.append(
                (
                    slice(first, last + 1) if last - first < len(images) else images,
                    np.hstack([np.where(tested, values, 0.0), counted]).T.copy(),
                )
            )
        return parts

    def _means(
        self, weights: Float64Array, images: slice | IntArray, lines: Float64Array
    ) -> Float64Array:
        """(B, A): the mean of each attacker over a group; NaN in resamplings without the group."""
        counted = weights[:, images] if isinstance(images, slice) else weights.take(images, axis=1)
        if len(lines) <= _FEW:  # for few lines, one product is several times slower
            totals = np.stack([counted @ line for line in lines], axis=1)
        else:
            totals = (lines @ counted.T).T
        sums, number = np.split(totals, [self._columns[0].shape[1]], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / number, np.float64)

    @staticmethod
    def images_by_group(tables: Sequence[ScoreTable]) -> IntArray:
        """(I,): the images of all tables, in the order of their groups."""
        images = np.unique(np.concatenate([table.images for table in tables]))
        group_of = np.zeros(len(images), np.int64)
        for table in tables:
            place = np.searchsorted(images, table.images)
            group_of[place] = np.maximum(group_of[place], table.group_of)
        return images[np.argsort(group_of, kind="stable")]

    def rows_at(self, images: IntArray) -> ScoreTable:
        """The table with rows for ``images``, in any order. Images without a test have NaN."""
        if np.array_equal(images, self.images):
            return self
        values = np.full((len(images), self.values.shape[1]), np.nan)
        place = np.searchsorted(self.images, images)
        inside = place < len(self.images)
        rows = np.flatnonzero(inside)[self.images[place[inside]] == images[inside]]
        values[rows] = self.values[place[rows]]
        group_of = np.full(len(images), -1, np.int64)
        group_of[rows] = self.group_of[place[rows]]
        return ScoreTable(images, values, self.seed_of, self.n_seeds, group_of, self.scoring)
