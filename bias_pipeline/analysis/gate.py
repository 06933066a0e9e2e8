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
from bias_pipeline.errors import UsageError
from bias_pipeline.metrics.base import HEADLINES, Reading
from bias_pipeline.results.settings import label
from bias_pipeline.results.store import Result, Row
from bias_pipeline.stats.bootstrap import Draws, Estimate, quantile
from bias_pipeline.stats.compare import holm, paired_difference

POWER = 0.8  # the share of such comparisons that find a difference which is called detectable

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
            Its p is adjusted for all that decide (Holm).
        unit: of the difference.
        margin: by how much the first may be worse, in ``unit``; None: nothing is demanded of it.
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
    margin: float | None
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

    @property
    def outcome(self) -> str:
        """``passed``, ``worse`` or ``undecided``: what a gate makes of it.

        With a margin, ``passed`` needs the whole interval below it and ``worse`` all of it above.
        Without one, whoever is not shown to be worse passes.
        """
        if self.doubts:
            return "undecided"
        if self.margin is None:
            return "worse" if self.winner == "other" else "passed"
        if self.difference.ci_high < self.margin:
            return "passed"
        return "worse" if self.difference.ci_low > self.margin else "undecided"

    @property
    def detectable(self) -> float:
        """The difference that such a comparison would find in four of five cases, in ``unit``."""
        return (quantile(self.level) + quantile(2 * POWER - 1)) * self.difference.error

    def sentence(self) -> str:
        """What is decided, or why nothing is."""
        by = "" if self.part == self.headline else f" (by {self.part})"
        numbers = f"difference {self._interval()}"
        if self.doubts:
            return (
                f"{self.name}{by}: no verdict on {self.first} and {self.other} ({numbers}): "
                f"{'; '.join(self.doubts)}"
            )
        p = self.difference.p_value
        numbers += ", p < 0.001 after Holm" if p < 0.001 else f", p {p:.3f} after Holm"
        verdict = self._comparison() if self.margin is None else self._against_margin(self.margin)
        return f"{self.name}{by}: {verdict} ({numbers})"

    def _comparison(self) -> str:
        """Who is fairer; where nobody is shown to be, what could not have been seen."""
        if self.winner:
            return f"{self.first} is {_WORDS[self.quality][self.winner]} than {self.other}"
        apart = f"{self.first} and {self.other} cannot be told apart"
        if math.isnan(self.detectable):
            return apart
        return (
            f"{apart}; a difference below {self._amount(self.detectable)} could not have been seen"
        )

    def _against_margin(self, margin: float) -> str:
        """Whether the first is worse by more than it may be."""
        worse = f"{_WORDS[self.quality]['other']} than {self.other} by more than"
        return {
            "passed": f"{self.first} is not {worse} {self._amount(margin)}",
            "worse": f"{self.first} is {worse} {self._amount(margin)}",
            "undecided": f"it cannot be told whether {self.first} is {worse} "
            f"{self._amount(margin)}",
        }[self.outcome]

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
            "margin": self.margin,
            "level": self.level,
            "winner": self.winner,
            "outcome": self.outcome,
            "doubts": "; ".join(self.doubts),
        }

    def _amount(self, value: float) -> str:
        """A difference with its unit."""
        if self.unit == "fraction":
            return f"{100 * value:.3g} points"
        return f"{value:.3g}"

    def _interval(self) -> str:
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
    margin: float | None = None,
    level: float = 0.95,
    limits: Limits = LIMITS,
) -> list[Decision]:
    """The first captioner against every other, under every headline of cells alike in all else.

    Args:
        results: cells, those of the first captioner first.
        draws: run id to the readings under resampling.
        margin: by how much the first may be worse, in the unit of the reading.
        level: of intervals and tests, in (0, 1).
        limits: when captioners cannot be compared.

    Raises:
        DataError: if cells differ in seeds or resampling.
        UsageError: if no difference of a headline can reach the margin.
    """
    found = [
        _decision(first, other, headline, draws, margin, level, limits)
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
    margin: float | None,
    level: float,
    limits: Limits,
) -> Decision:
    _check_margin(margin, first, headline)
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
        difference=difference,
        unit=row.unit,
        margin=margin,
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


def _check_margin(margin: float | None, result: Result, headline: str) -> None:
    """Refuse a margin that every difference is below.

    Raises:
        UsageError: naming the range.
    """
    ranges = _reading(result).get("range", {})
    bounds = ranges.get(headline) if isinstance(ranges, Mapping) else None
    if margin is None or not isinstance(bounds, Sequence) or None in bounds:
        return
    low, high = map(float, bounds)
    if margin >= high - low:
        raise UsageError(
            f"--margin {margin:g}: {result.rows[0].metric} lies between {low:g} and {high:g}, so "
            f"no difference is above it; a fraction is wanted, 0.01 for one point"
        )


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
