"""Makes leaderboards of headlines, with a paired test of every two captioners.

If there are more than :data:`ALL_PAIRS` captioners, each is tested only against the fairest
captioner. Tests of every pair would take minutes, and Holm's correction would leave little power.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.results.identity import deciding
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import deciding_seeds, gold_setting, label, text_settings
from bias_pipeline.stats.bootstrap import Draws
from bias_pipeline.stats.compare import holm, paired_difference, significance_groups

LEVEL = 0.95  # confidence level of tests and intervals
ALL_PAIRS = 30  # with more captioners, not every pair is tested


@dataclass(frozen=True)
class Rank:
    """The place of a captioner on a leaderboard."""

    row: Row  # its headline
    # The ranked number: the headline if lower is fairer, its negative if higher is better, else the
    # headline's distance from the metric's no-bias value
    unfairness: float
    # Captioners that share a letter do not differ significantly. If captioners are tested only
    # against the fairest, the fairest and captioners that do not differ from it have `a`; other
    # captioners have no letter.
    letters: str


@dataclass(frozen=True)
class Leaderboard:
    """Captioners, ranked by one headline of one metric under equal settings."""

    metric: str  # its name
    part: str  # the headline
    ranks: Sequence[Rank]  # the fairest first
    quality: bool = False  # whether the headline says how good captions are, not how fair
    settings: str = ""  # settings in which its cells differ from others of the metric

    @property
    def against_first(self) -> bool:
        """Whether each captioner was tested only against the first captioner."""
        return len(self.ranks) > ALL_PAIRS


def rank_captioners(
    results: Sequence[Result],
    draws: Mapping[str, Mapping[str, Draws]],
    least: int = 2,
    parts: Sequence[str] = HEADLINES,
) -> list[Leaderboard]:
    """A leaderboard for each headline of results that differ only in the captioner."""
    leaderboards = []
    for group in group_by_cell(results):
        for part in parts:
            scored = [r for r in group if part in draws[r.run_id]]
            if len(scored) >= least:
                leaderboards.append(_leaderboard(scored, part, draws))
    return leaderboards


def group_by_cell(results: Sequence[Result]) -> list[list[Result]]:
    groups: dict[tuple[object, ...], dict[str, Result]] = {}
    for result in results:
        row = result.rows[0]
        config = json.dumps(deciding(result.facts.config, row.dataset), sort_keys=True)
        text = (*text_settings(result).values(), *gold_setting(result).values())
        key = (row.metric, row.attribute, row.dataset, deciding_seeds(result), config, text)
        groups.setdefault(key, {}).setdefault(row.captioner, result)
    return [list(by_captioner.values()) for by_captioner in groups.values()]


def _leaderboard(
    results: Sequence[Result],
    part: str,
    draws: Mapping[str, Mapping[str, Draws]],
) -> Leaderboard:
    rows = {r.rows[0].captioner: _headline(r, part) for r in results}
    placed = {r.rows[0].captioner: draws_ranked(r, part, draws[r.run_id][part]) for r in results}
    means = {name: float(part_draws.per_seed.mean()) for name, part_draws in placed.items()}
    order = sorted(rows, key=lambda name: means[name])
    letters = _letters(order, placed)
    return Leaderboard(
        metric=rows[order[0]].metric,
        part=part,
        ranks=[Rank(rows[name], means[name], letters[name]) for name in order],
        quality=higher_is_better(results[0]),
        settings=label(results[0]),
    )


def _letters(order: Sequence[str], placed: Mapping[str, Draws]) -> dict[str, str]:
    """The letters of each captioner, which show significant differences.

    If there are many captioners, each was tested only against the first captioner. Otherwise every
    pair was tested.
    """
    first, *others = order
    if len(order) > ALL_PAIRS:
        pairs = [(first, other) for other in others]
        differ = _differ(pairs, placed)
        return {first: "a"} | {other: "" if differ[first, other] else "a" for other in others}
    return significance_groups(order, _differ(list(combinations(order, 2)), placed))


def _differ(
    pairs: Sequence[tuple[str, str]], placed: Mapping[str, Draws]
) -> dict[tuple[str, str], bool]:
    """Whether each pair of captioners differs significantly, corrected for all pairs (Holm)."""
    estimates = [paired_difference(placed[one], placed[two]) for one, two in pairs]
    adjusted = holm([estimate.p_value for estimate in estimates])
    return {pair: p < 1 - LEVEL for pair, p in zip(pairs, adjusted, strict=True)}


def _headline(result: Result, part: str) -> Row:
    return next(row for row in result.rows if row.part == part)


def draws_ranked(result: Result, part: str, draws: Draws) -> Draws:
    """Turn draws of a headline into draws of the ranked number; see :class:`Rank`."""
    return as_ranked(draws, result.facts.metric.direction, result.neutral(part))


def as_ranked(draws: Draws, direction: str, neutral: float) -> Draws:
    """Turn draws into draws of the ranked number, for which lower is better; see :class:`Rank`.

    Example:
        >>> draws = Draws(np.array([-0.2]), np.array([[-0.3], [0.1]]), trained=False)
        >>> as_ranked(draws, "0 is fairest", 0.0).resampled.tolist()
        [[0.3], [0.1]]
    """
    values, resampled = (
        _rank_values(numbers, direction, neutral) for numbers in (draws.per_seed, draws.resampled)
    )
    trials = draws.trials if np.array_equal(values, draws.per_seed) else math.nan
    return replace(draws, per_seed=values, resampled=resampled, trials=trials)


def ranking_values(result: Result, part: str, values: Float64Array) -> Float64Array:
    """Turn values of a headline into ranked numbers; lower is better, see :class:`Rank`."""
    return _rank_values(values, result.facts.metric.direction, result.neutral(part))


def _rank_values(values: Float64Array, direction: str, neutral: float) -> Float64Array:
    if direction.startswith("higher"):
        return -values
    return values if direction.startswith("lower") else np.abs(values - neutral)


def higher_is_better(result: Result) -> bool:
    """Whether a metric measures how good captions are, not how fair."""
    return result.facts.metric.direction.startswith("higher is better")
