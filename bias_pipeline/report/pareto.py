"""Shows quality and bias together, since a captioner that says little looks fair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.report.compare import group_by_cell, higher_is_better, ranking_values
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import label
from bias_pipeline.stats.bootstrap import Draws

Stored = Mapping[str, Mapping[str, Draws]]


MOST_LISTED = 10  # most captioners that a sentence names


def joined_names(names: Sequence[str]) -> str:
    """Names joined by commas; of many names, only the first and the number of further names.

    Example:
        >>> joined_names(["a", "b"]), joined_names(["a"] * 12)
        ('a, b', 'a, a, a, a, a, a, a, a, a, a and 2 more')
    """
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


@dataclass(frozen=True)
class ParetoPoint:
    """A captioner under one measure of quality and one measure of bias."""

    quality: Row  # the headline of quality
    bias: Row  # the headline of bias
    # Captioners that are at least as good and as fair, and better or fairer
    beaten_by: tuple[str, ...]
    # The share of resamples of images in which no captioner beats it, in [0, 1]; NaN if draws are
    # not stored or differ in number. The share leaves out noise of attackers.
    share: float

    @property
    def optimal(self) -> bool:
        """Whether no captioner beats this captioner in both measures."""
        return not self.beaten_by


@dataclass(frozen=True)
class Front:
    """Captioners under one measure of quality and one headline of bias, with the best first."""

    places: Sequence[ParetoPoint]  # two captioners or more
    # The settings in which runs of quality, and runs of bias, differ from others of their metric
    settings: tuple[str, str] = ("", "")

    @property
    def names(self) -> tuple[str, str]:
        """The names of the measure of quality and of the headline of bias."""
        first = self.places[0]
        bias = "" if first.bias.part == "score" else first.bias.part
        quality, biased = self.settings
        return (
            " ".join(filter(None, [first.quality.metric, quality])),
            " ".join(filter(None, [first.bias.metric, bias, biased])),
        )

    def verdict(self) -> str:
        """A sentence on which captioners are on the front, and which are beaten."""
        return front_verdicts([self])[0]


def front_verdicts(all_fronts: Sequence[Front]) -> list[str]:
    """Sentences on which captioners are on the front, and which are beaten.

    Headlines of bias with the same outcome have one sentence.
    """
    names: dict[tuple[str, str], list[str]] = {}
    for front in all_fronts:
        good, bias = front.names
        names.setdefault((good, _standing(front.places)), []).append(bias)
    return [
        f"{good} and {', '.join(biased)}: {standing}" for (good, standing), biased in names.items()
    ]


def _standing(places: Sequence[ParetoPoint]) -> str:
    best = joined_names([place.bias.captioner for place in places if place.optimal])
    beaten = [
        f"{place.bias.captioner} (by {joined_names(place.beaten_by)})"
        for place in places
        if not place.optimal
    ]
    lost = f"; worse on one and no better on the other: {joined_names(beaten)}" if beaten else ""
    return f"no captioner is better and fairer than {best}{lost}"


def fronts(results: Sequence[Result], draws: Stored | None = None) -> list[Front]:
    """A front for each measure of quality and headline of bias that two captioners have."""
    groups = group_by_cell(results)
    good = [group for group in groups if higher_is_better(group[0])]
    biased = [group for group in groups if not higher_is_better(group[0])]
    all_fronts = []
    for quality in good:
        same_data = _data_key(quality[0])
        for bias in (group for group in biased if _data_key(group[0]) == same_data):
            for part in HEADLINES:
                pairs = _pairs(quality, bias, part)
                if len(pairs) > 1:
                    all_fronts.append(_front(pairs, draws or {}))
    return all_fronts


@dataclass(frozen=True)
class _Measured:
    row: Row
    result: Result

    def point(self) -> Float64Array:
        """(1,) the ranked number, for which lower is better."""
        return ranking_values(self.result, self.row.part, np.array([self.row.value]))

    def resampled_values(self, draws: Stored) -> Float64Array:
        """(B,) the ranked number under resampling; empty if no draws are stored."""
        part_draws = draws.get(self.result.run_id, {}).get(self.row.part)
        empty = np.empty(0)
        means = empty if part_draws is None else part_draws.resampled.mean(axis=1)
        return ranking_values(self.result, self.row.part, means)


def _data_key(result: Result) -> tuple[str, str]:
    return result.rows[0].attribute, result.rows[0].dataset


def _pairs(
    quality: Sequence[Result], bias: Sequence[Result], part: str
) -> list[tuple[_Measured, _Measured]]:
    """The quality and the bias of every captioner that has both numbers."""
    good = {m.row.captioner: m for result in quality for m in _find_headlines(result, HEADLINES)}
    fair = [m for result in bias for m in _find_headlines(result, (part,))]
    return [(good[m.row.captioner], m) for m in fair if m.row.captioner in good]


def _find_headlines(result: Result, parts: Sequence[str]) -> list[_Measured]:
    return [
        _Measured(row, result)
        for row in result.rows
        if row.part in parts and np.isfinite(row.value)
    ]


def _front(pairs: Sequence[tuple[_Measured, _Measured]], draws: Stored) -> Front:
    names = [bias.row.captioner for _, bias in pairs]
    points = [np.stack([pair[side].point() for pair in pairs]) for side in (0, 1)]
    beaten = _beats(*points)[..., 0]
    shares = _shares(pairs, draws)
    places = [
        ParetoPoint(
            quality=good.row,
            bias=bias.row,
            beaten_by=tuple(name for name, by in zip(names, beaten[:, i], strict=True) if by),
            share=float(shares[i]),
        )
        for i, (good, bias) in enumerate(pairs)
    ]
    order = np.argsort(points[0][:, 0], kind="stable")
    (good, bias), *_ = pairs
    return Front([places[i] for i in order], (label(good.result), label(bias.result)))


def _shares(pairs: Sequence[tuple[_Measured, _Measured]], draws: Stored) -> Float64Array:
    """(P,) the share of resamples in which a captioner is not beaten."""
    drawn = [[pair[side].resampled_values(draws) for pair in pairs] for side in (0, 1)]
    sizes = {len(values) for side in drawn for values in side}
    if len(sizes) > 1 or 0 in sizes:
        return np.full(len(pairs), np.nan)
    quality, bias = (np.stack(side) for side in drawn)  # (P, B) each
    columns = zip(quality.T, bias.T, strict=True)
    return np.mean([_unbeaten(*column) for column in columns], axis=0)


def _unbeaten(quality: Float64Array, bias: Float64Array) -> BoolArray:
    """(P,) whether no other captioner is as good in both measures and better in one of them.

    Example:
        >>> _unbeaten(np.array([1.0, 2.0, 0.0]), np.array([1.0, 1.0, 3.0])).tolist()
        [True, False, True]
    """
    order = np.lexsort((bias, quality))
    good, fair = quality[order], bias[order]
    first = np.searchsorted(good, good)  # the fairest of captioners that are as good
    fairest = np.minimum.accumulate(np.append(np.inf, fair))[first]  # of the better captioners
    unbeaten = np.empty(len(order), bool)
    unbeaten[order] = (fairest > fair) & (fair[first] == fair)
    return unbeaten


def _beats(quality: Float64Array, bias: Float64Array) -> BoolArray:
    """(P, P, B) whether one captioner is as good as another in both measures, and better in one.

    ``quality`` and ``bias`` are (P, B), for P captioners.

    Example:
        >>> quality, bias = np.array([[1.0], [2.0], [0.0]]), np.array([[1.0], [1.0], [3.0]])
        >>> _beats(quality, bias)[..., 0].astype(int).tolist()
        [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    """
    as_good, as_fair = (measure[:, None] <= measure[None] for measure in (quality, bias))
    better = (quality[:, None] < quality[None]) | (bias[:, None] < bias[None])
    beats: BoolArray = as_good & as_fair & better
    return beats
