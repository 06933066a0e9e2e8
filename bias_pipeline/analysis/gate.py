"""Is the first captioner less fair than another, by readings that saying more or less cannot move?

The leaderboards of :mod:`bias_pipeline.analysis.compare` rank headlines as published; many of them
follow how much a captioner says. A team's gate decides by what is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bias_pipeline.analysis import doubts
from bias_pipeline.analysis.compare import alike, draws_ranked, higher_is_better
from bias_pipeline.analysis.doubts import LIMITS, Limits
from bias_pipeline.metrics.base import HEADLINES, Reading
from bias_pipeline.results.settings import label
from bias_pipeline.results.store import Result, Row
from bias_pipeline.stats.bootstrap import Draws, Estimate, two_sided_p
from bias_pipeline.stats.compare import holm, paired_difference

# What the winner makes the first captioner: whether quality is compared, then who won.
_WORDS = {
    False: {"first": "fairer", "other": "less fair"},
    True: {"first": "better", "other": "worse"},
}


@dataclass(frozen=True)
class Decision:
    """The first captioner against another under one headline.

    Attributes:
        metric: its name.
        headline: the headline that is asked about.
        part: what decides; the headline itself where nothing may.
        attribute: whose groups.
        first: the captioner that was named first.
        other: the other.
        difference: of ``part`` as it is ranked (lower is fairer, or better), first minus other.
            Its p is that of a difference of at least ``least``, adjusted for all that decide.
        unit: of the difference.
        least: the smallest difference that matters, in ``unit``.
        level: of interval and test.
        doubts: why nothing is decided, empty if something is.
        quality: whether it says how good captions are, not how fair.
        settings: what tells its cells from others of the metric, as part of its name.
    """

    metric: str
    headline: str
    part: str
    attribute: str
    first: str
    other: str
    difference: Estimate
    unit: str
    least: float
    level: float
    doubts: tuple[str, ...] = ()
    quality: bool = False
    settings: str = ""

    @property
    def name(self) -> str:
        """What is asked: the metric, its headline where there are several, its settings."""
        headline = "" if self.headline == "score" else self.headline
        return " ".join(filter(None, [self.metric, headline, self.settings]))

    @property
    def winner(self) -> str:
        """``first``, ``other``, or empty: who is fairer (better) beyond chance and doubt."""
        if self.doubts or not self.difference.p_value < 1 - self.level:
            return ""
        return "other" if self.difference.value > 0 else "first"

    def sentence(self) -> str:
        """What is decided, or why nothing is."""
        name = self.name
        by = "" if self.part == self.headline else f" (by {self.part})"
        numbers = f"difference {self._told()}"
        if self.doubts:
            return (
                f"{name}{by}: no verdict on {self.first} and {self.other} ({numbers}): "
                f"{'; '.join(self.doubts)}"
            )
        p = self.difference.p_value
        numbers += ", p < 0.001 after Holm" if p < 0.001 else f", p {p:.3f} after Holm"
        if not self.winner:
            return (
                f"{name}{by}: {self.first} and {self.other} cannot be told apart"
                f"{self._beyond()} ({numbers})"
            )
        better = _WORDS[self.quality][self.winner]
        return f"{name}{by}: {self.first} is {better} than {self.other}{self._beyond()} ({numbers})"

    def line(self) -> dict[str, object]:
        """The same as a line of a table; ``difference`` is of the part as it is ranked."""
        return {
            "metric": self.metric,
            "headline": self.headline,
            "settings": self.settings,
            "part": self.part,
            "attribute": self.attribute,
            "first": self.first,
            "other": self.other,
            "difference": self.difference.value,
            "ci_low": self.difference.ci_low,
            "ci_high": self.difference.ci_high,
            "p_value": self.difference.p_value,
            "unit": self.unit,
            "least": self.least,
            "level": self.level,
            "winner": self.winner,
            "doubts": "; ".join(self.doubts),
        }

    def _beyond(self) -> str:
        return f" by more than {self.least:g}" if self.least else ""

    def _told(self) -> str:
        """The difference with its interval; what was turned around to be ranked is back."""
        if math.isnan(self.difference.value):
            return "unknown"
        digits, scale = (1, 100) if self.unit == "fraction" else (2, 1)
        ends = [scale * self.difference.ci_low, scale * self.difference.ci_high]
        value = scale * self.difference.value
        if self.quality:
            value, ends = -value, [-ends[1], -ends[0]]
        return f"{value:+.{digits}f} [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]"


def decisions(
    results: Sequence[Result],
    draws: Mapping[str, Mapping[str, Draws]],
    *,
    least: float = 0.0,
    level: float = 0.95,
    limits: Limits = LIMITS,
) -> list[Decision]:
    """The first captioner against every other, under every headline of cells alike in all else.

    Args:
        results: cells, those of the first captioner first.
        draws: run id to the readings under resampling.
        least: the smallest difference that matters, in the unit of the reading.
        level: of intervals and tests, in (0, 1).
        limits: when captioners cannot be compared.

    Raises:
        DataError: if cells differ in seeds or resampling.
    """
    found = [
        _decision(first, other, headline, draws, least, level, limits)
        for first, *others in alike(results)
        for headline in HEADLINES
        for other in others
        if all(_row(result, headline) for result in (first, other))
    ]
    sure = [decision for decision in found if not decision.doubts]
    adjusted = iter(holm([decision.difference.p_value for decision in sure]))
    return [own if own.doubts else _with_p(own, next(adjusted)) for own in found]


def _with_p(decision: Decision, p_value: float) -> Decision:
    return replace(decision, difference=replace(decision.difference, p_value=p_value))


def _decision(
    first: Result,
    other: Result,
    headline: str,
    draws: Mapping[str, Mapping[str, Draws]],
    least: float,
    level: float,
    limits: Limits,
) -> Decision:
    reading = doubts.readings_of(first).get(headline)
    pair = (first, other)
    part = reading.part if reading else headline
    difference = _difference(pair, part, draws, level)
    row = _row(first, part) or _row(first, headline)
    assert row is not None
    return Decision(
        metric=row.metric,
        headline=headline,
        part=part,
        attribute=row.attribute,
        first=row.captioner,
        other=other.rows[0].captioner,
        difference=_beyond(difference, least),
        unit=row.unit,
        least=least,
        level=level,
        doubts=tuple(_doubts(pair, headline, reading, difference, limits)),
        quality=higher_is_better(first),
        settings=label(first),
    )


def _difference(
    pair: tuple[Result, Result],
    part: str,
    draws: Mapping[str, Mapping[str, Draws]],
    level: float,
) -> Estimate:
    """First less other as a part is ranked; unknown where one was not resampled."""
    one, two = (draws[result.run_id].get(part) for result in pair)
    if one is None or two is None:
        nan = math.nan
        return Estimate(nan, nan, nan, nan, nan, nan, n_seeds=0)
    first, other = pair
    return paired_difference(draws_ranked(first, part, one), draws_ranked(other, part, two), level)


def _row(result: Result, part: str) -> Row | None:
    return next((row for row in result.rows if row.part == part), None)


def _beyond(difference: Estimate, least: float) -> Estimate:
    """The same with the p of a true difference of at most ``least``, either way."""
    if not least or math.isnan(difference.value):
        return difference
    nearest = min(max(difference.value, -least), least)
    return replace(difference, p_value=two_sided_p(difference, nearest))


def _doubts(
    pair: tuple[Result, Result],
    headline: str,
    reading: Reading | None,
    difference: Estimate,
    limits: Limits,
) -> list[str]:
    """Why a headline decides nothing between two captioners."""
    if not all("readings" in _reading(result) for result in pair):
        return ["these results are of an earlier version; run their cells again"]
    if reading is None:
        return [_unread(pair[0])]
    rows = {result.rows[0].captioner: _row(result, reading.part) for result in pair}
    found = [
        f"of {name}, {text}"
        for name, row in rows.items()
        if (text := doubts.unsupported(row, reading, limits) if row else "it is absent")
    ]
    found += doubts.unlike(*pair, reading, limits)
    if not found and math.isnan(difference.value):
        found = ["it was made without resampling, or by an earlier version; run the cells again"]
    if not higher_is_better(pair[0]):
        fairer, worse = pair if difference.value < 0 else pair[::-1]
        found += [text for text in [doubts.more_silent(fairer, worse, limits)] if text]
    return found


def _unread(result: Result) -> str:
    """Why a headline has no reading that decides."""
    if _reading(result).get("question") == "mentions":
        return "it is told and not judged"
    return "it follows how much is said, for all groups alike"


def _reading(result: Result) -> Mapping[str, object]:
    found = result.manifest.get("metric", {})
    return found if isinstance(found, Mapping) else {}
