"""Decides whether the first captioner is less fair than another.

The leaderboards of :mod:`bias_pipeline.report.compare` rank published headlines, many of which
change with longer or shorter captions. Decisions use only numbers that do not change with length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from bias_pipeline.errors import (
    NAME_HUMAN_CAPTIONS,
    DataError,
    NotApplicableError,
    UsageError,
    inflect,
    some_of,
)
from bias_pipeline.metrics.base import HEADLINES, EvidenceRule, Metric
from bias_pipeline.metrics.value_names import DECIDING, MODEL, sibling_name
from bias_pipeline.report import conclusion_checks
from bias_pipeline.report.compare import (
    LEVEL,
    Leaderboard,
    draws_ranked,
    group_by_cell,
    higher_is_better,
    rank_captioners,
    ranking_values,
)
from bias_pipeline.report.conclusion_checks import LIMITS, Limits
from bias_pipeline.report.name_collisions import resolve_name_collisions
from bias_pipeline.report.power import detectable
from bias_pipeline.report.verdict import BY_RULES, OwnAnswer
from bias_pipeline.results.rows import Result, Row, mapping_in
from bias_pipeline.results.settings import label, with_settings
from bias_pipeline.stats.bootstrap import Draws, Estimate
from bias_pipeline.stats.compare import holm, paired_difference
from bias_pipeline.stats.sign_flips import FEWEST_SETS, size_difference

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table

# Whether quality is compared, to the winner, to a word for the first captioner.
_WORDS = {
    False: {"first": "fairer", "other": "less fair"},
    True: {"first": "better", "other": "worse"},
}


@dataclass(frozen=True)
class Decision:
    """The comparison of the first captioner with another captioner, by one headline."""

    metric: str  # its name
    headline: str  # the headline that is compared
    part: str  # the part that decides; the headline itself if no part may
    attribute: str  # whose groups
    first: str  # the captioner that was named first
    other: str  # the other
    # First minus other, in `part` as it is ranked (lower is fairer, or better). The p is adjusted
    # for all decisions (Holm).
    difference: Estimate
    unit: str  # the difference's unit
    # By how much the first may be worse, in `unit`; None if there is no margin
    margin: float | None
    doubts: tuple[str, ...] = ()  # why nothing is decided, empty if something is
    quality: bool = False  # whether the headline says how good captions are, not how fair
    settings: str = ""  # settings in which its cells differ from others of the metric
    question: str = ""  # the question that the metric answers
    # The two captioners' numbers, minus the annotators' if both have one; NaN without a number
    values: tuple[float, float] = (math.nan, math.nan)
    # How far both numbers are from the no-bias value, if a bias may lie on either side of that
    # value; `difference` is then the difference of these distances
    distances: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """The metric, its headline if it has several, and its settings."""
        headline = "" if self.headline == "score" else self.headline
        return " ".join(filter(None, [self.metric, headline, self.settings]))

    @property
    def winner(self) -> str:
        """The significantly fairer (better) captioner, as ``first`` or ``other``, or empty."""
        if self.doubts or not self.difference.p_value < 1 - LEVEL:
            return ""
        return "other" if self.difference.value > 0 else "first"

    @property
    def outcome(self) -> str:
        """``passed``, ``worse`` or ``undecided``.

        With a margin, the first captioner passes if the whole interval lies below the margin, and
        is worse if the whole interval lies above it. Without a margin, the first captioner passes
        unless it is significantly worse.
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
        """The difference, in ``unit``, that this test finds in four of five cases."""
        return detectable(self.difference.error, self.difference.freedom)

    @property
    def smallest_found(self) -> str:
        """The difference :attr:`detectable` in words; empty if it is unknown or 0."""
        return self._amount(self.detectable) if self.detectable > 0 else ""

    def sentence(self) -> str:
        """A sentence with the decision, or with the reason why there is none."""
        by = "" if self.part == self.headline else f" (by {self.part})"
        numbers = f"difference {self._interval()}"
        if self.doubts:
            return (
                f"{self.name}{by}: no verdict on {self.first} and {self.other} ({numbers}): "
                f"{'; '.join(self.doubts)}"
            )
        p = self.difference.p_value
        if not math.isnan(p):
            numbers += ", p < 0.001 after Holm" if p < 0.001 else f", p {p:.3f} after Holm"
        verdict = self._comparison() if self.margin is None else self._against_margin(self.margin)
        return f"{self.name}{by}: {verdict} ({numbers})"

    def _comparison(self) -> str:
        """A clause on which captioner is fairer, or on how large a difference would be found."""
        if self.winner:
            return f"{self.first} is {_WORDS[self.quality][self.winner]} than {self.other}"
        apart = f"no significant difference between {self.first} and {self.other}"
        missed = self.smallest_found
        return f"{apart}; this test usually misses differences below {missed}" if missed else apart

    def _against_margin(self, margin: float) -> str:
        """A clause on whether the first captioner is worse by more than the margin."""
        worse = f"{_WORDS[self.quality]['other']} than {self.other} by more than"
        return {
            "passed": f"{self.first} is not {worse} {self._amount(margin)}",
            "worse": f"{self.first} is {worse} {self._amount(margin)}",
            "undecided": f"it is not clear whether {self.first} is {worse} {self._amount(margin)}",
        }[self.outcome]

    def line(self) -> dict[str, object]:
        """The decision as a table's line; ``difference`` is the first captioner minus the other."""
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
            "level": LEVEL,
            "winner": self.winner,
            "outcome": self.outcome,
            "doubts": "; ".join(self.doubts),
        }

    def _amount(self, value: float) -> str:
        """A difference as text, with its unit."""
        if self.unit == "fraction":
            return inflect(f"{100 * value:.3g}", "points")
        return f"{value:.3g}"

    def _interval(self) -> str:
        """The difference with its interval as text, in the direction of the metric."""
        if math.isnan(self.difference.value):
            return "unknown"
        digits, scale = (1, 100) if self.unit == "fraction" else (2, 1)
        ends = [scale * self.difference.ci_low, scale * self.difference.ci_high]
        value = scale * self.difference.value
        if self.quality:
            value, ends = -value, [-ends[1], -ends[0]]
        if math.isnan(ends[0]):
            return f"{value:+.{digits}f}, no interval"
        return f"{value:+.{digits}f} [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]"


def decisions(
    results: Sequence[Result],
    draws: Mapping[str, Mapping[str, Draws]],
    *,
    margin: float | None = None,
    limits: Limits = LIMITS,
) -> list[Decision]:
    """Compare the first captioner with each other captioner, by headlines of equal cells."""
    all_decisions = [
        decision
        for first, *others in group_by_cell(results)
        for headline in HEADLINES
        for other in others
        if all(_row(result, headline) for result in (first, other))
        for decision in (
            _set_decisions(first, other, headline, margin, limits)
            or [_decision(first, other, headline, draws, margin, limits)]
        )
    ]
    sure = [decision for decision in all_decisions if not decision.doubts]
    adjusted = iter(holm([decision.difference.p_value for decision in sure]))
    return [
        d if d.doubts else replace(d, difference=replace(d.difference, p_value=next(adjusted)))
        for d in all_decisions
    ]


def _set_decisions(
    first: Result, other: Result, headline: str, margin: float | None, limits: Limits
) -> list[Decision]:
    """A decision for each part that both captioners have for every set of pictures."""
    differences = {}
    for part, pair in _paired_sets(first, other).items():
        rows = [_row(result, part) for result in (first, other)]
        ends = [(row.ci_low, row.ci_high) for row in rows if row]
        differences[part] = size_difference(*pair, ends)
    if margin is None:
        known = {part: one for part, one in differences.items() if one.p_value == one.p_value}
        order = sorted(known, key=lambda part: (known[part].p_value, -abs(known[part].value)))
    else:
        order = sorted(differences, key=lambda part: -differences[part].ci_high)
    few = () if order else (f"fewer than {FEWEST_SETS} sets of pictures differ between them",)
    made = []
    for part in order or list(differences)[:1]:
        rule, difference = EvidenceRule(part), differences[part]
        decision = _decision_by(first, other, headline, rule, difference, margin, limits)
        ours, theirs = _values((first, other), part)
        doubts = (*decision.doubts, *few)
        made.append(replace(decision, doubts=doubts, distances=(abs(ours), abs(theirs))))
    return made


def _paired_sets(
    first: Result, other: Result
) -> dict[str, tuple[Mapping[str, float], Mapping[str, float]]]:
    """Both captioners' differences between groups, by part and by set of pictures."""
    metric = first.rows[0].metric
    stored = [mapping_in(result.facts.audit, metric, "sets") for result in (first, other)]
    return {
        part: (ours, theirs)
        for compared in stored[0]
        for part, ours in mapping_in(stored[0], compared, DECIDING).items()
        if (theirs := mapping_in(stored[1], compared, DECIDING, part))
    }


def _notes_on_sets(results: Sequence[Result]) -> Iterator[str]:
    """Notes on sets of pictures that only one of the two captioners has."""
    for first, *others in group_by_cell(results):
        for other in others:
            pairs = _paired_sets(first, other).values()
            if alone := sorted({name for ours, theirs in pairs for name in {*ours} ^ {*theirs}}):
                yield (
                    f"{inflect(len(alone), 'sets of pictures are')} left out ({some_of(alone)}): "
                    f"only one of {first.rows[0].captioner} and {other.rows[0].captioner} has them"
                )


def _decision(
    first: Result,
    other: Result,
    headline: str,
    draws: Mapping[str, Mapping[str, Draws]],
    margin: float | None,
    limits: Limits,
) -> Decision:
    reading = conclusion_checks.evidence_rules(first, other).get(headline)
    part = reading.part if reading else headline
    difference = _difference((first, other), part, draws)
    return _decision_by(first, other, headline, reading, difference, margin, limits)


def _decision_by(
    first: Result,
    other: Result,
    headline: str,
    reading: EvidenceRule | None,
    difference: Estimate,
    margin: float | None,
    limits: Limits,
) -> Decision:
    """The decision by the part that the headline's rule names, or a doubt without a rule."""
    low, high = first.facts.metric.range.get(headline, (None, None))
    if low is not None and high is not None:
        _check_reach(margin, first.rows[0].metric, low, high)
    pair = (first, other)
    part = reading.part if reading else headline
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
        doubts=tuple(_doubts(pair, headline, reading, difference, limits)),
        quality=higher_is_better(first),
        settings=label(first),
        question=first.facts.metric.question,
        values=_values(pair, part),
        distances=_distances(pair, part),
    )


def _values(pair: tuple[Result, Result], part: str) -> tuple[float, float]:
    """Both captioners' numbers, minus annotators' numbers if they are known (not for quality)."""
    names = [MODEL] if higher_is_better(pair[0]) else [sibling_name(part, "increase")]
    for name in (*names, part):
        first, other = (_row(result, name) for result in pair)
        if first and other:
            return first.value, other.value
    return math.nan, math.nan


def _distances(pair: tuple[Result, Result], part: str) -> tuple[float, float] | None:
    """``Decision.distances`` of a pair, or None if lower or higher values are better."""
    rows = [_row(result, part) for result in pair]
    if pair[0].facts.metric.direction.startswith(("lower", "higher")) or None in rows:
        return None
    first, other = (
        float(ranking_values(result, part, np.array(row.value)))
        for result, row in zip(pair, rows, strict=True)
        if row is not None
    )
    return first, other


def _difference(
    pair: tuple[Result, Result],
    part: str,
    draws: Mapping[str, Mapping[str, Draws]],
) -> Estimate:
    """The first captioner minus the other, in a ranked part, or NaN unless both have draws."""
    one, two = (draws[result.run_id].get(part) for result in pair)
    if one is None or two is None:
        return Estimate(math.nan)
    first, other = pair
    return paired_difference(draws_ranked(first, part, one), draws_ranked(other, part, two))


def _row(result: Result, part: str) -> Row | None:
    return next((row for row in result.rows if row.part == part), None)


def check_margin(margin: float | None, metric: Metric) -> None:
    """Refuse a margin above all differences of a metric, before anything is computed."""
    _check_reach(margin, metric.info.name, *metric.headline_range)


def _check_reach(margin: float | None, metric: str, low: float, high: float) -> None:
    if margin is not None and margin >= high - low:
        raise UsageError(
            f"margin {margin:g}: no difference of {metric} can be larger, since it lies between "
            f"{low:g} and {high:g}; give a fraction, 0.01 for one point"
        )


def _doubts(
    pair: tuple[Result, Result],
    headline: str,
    reading: EvidenceRule | None,
    difference: Estimate,
    limits: Limits,
) -> list[str]:
    """The reasons why a headline cannot decide between two captioners."""
    if any(result.facts.metric.readings is None for result in pair):
        return ["these results are of an earlier version; run their cells again"]
    if reading is None:
        empty = [
            f"{row.captioner}: {conclusion_checks.NO_VALUE}"
            for result in pair
            if (row := _row(result, headline)) and math.isnan(row.value)
        ]
        if empty:
            return empty
        judged = pair[0].facts.metric.question in BY_RULES
        return [conclusion_checks.NO_RULE if judged else conclusion_checks.NOT_JUDGED]
    rows = [(result, _row(result, reading.part)) for result in pair]
    if foreign := _foreign(pair) or _reasons_without_answer(pair):
        return foreign
    reasons = [
        f"{result.rows[0].captioner}: {text}"
        for result, row in rows
        if (
            text := conclusion_checks.lacks_evidence(result, row, reading, limits)
            if row
            else "it is absent"
        )
    ]
    reasons += [
        f"{result.rows[0].captioner}: {text}"
        for result in pair
        if (text := conclusion_checks.beyond_reach(result, headline, limits))
    ]
    reasons += conclusion_checks.incomparable_reasons(*pair, reading, limits)
    if not reasons and math.isnan(difference.value):
        reasons = [
            "it was made without resampling, or by an earlier version; run the jobs again"
            if all(row.value or row.ci_low for _, row in rows if row)
            else "hardly any caption shows it"
        ]
    if not higher_is_better(pair[0]):
        fairer, worse = pair if difference.value < 0 else pair[::-1]
        reasons += filter(None, [conclusion_checks.wins_by_silence(fairer, worse, limits)])
    return reasons


def _foreign(results: Sequence[Result]) -> list[str]:
    """A clause on each captioner whose captions and labels test nothing."""
    reasons = ((r.rows[0].captioner, conclusion_checks.untestable_data(r)) for r in results)
    return [*dict.fromkeys(f"{captioner} {reason}" for captioner, reason in reasons if reason)]


def _reasons_without_answer(results: Sequence[Result]) -> list[str]:
    """A clause on each captioner for which a metric cannot answer its own question."""
    answers = ((result.rows[0].captioner, OwnAnswer.of_result(result)) for result in results)
    return [
        f"{captioner}: {answer.why_unanswered}"
        for captioner, answer in answers
        if answer and answer.why_unanswered
    ]


@dataclass(frozen=True)
class Comparison:
    """The comparison of the first captioner with the other captioners."""

    leaderboards: Sequence[Leaderboard]  # one for each headline
    decisions: Sequence[Decision]  # who is fairer by each headline, or why nothing is decided
    namesakes: Sequence[str] = ()  # a sentence on each name that two captioners shared
    # Metric and captioner, such as `metric=lic captioner=new`, to why the metric does not apply
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()  # notes of the runs, each after the captioner's name
    # The compared results, beginning with the first captioner's
    results: Sequence[Result] = field(default=(), repr=False)

    @property
    def decided(self) -> list[Decision]:
        return [decision for decision in self.decisions if not decision.doubts]

    @property
    def lost(self) -> list[Decision]:
        """The decisions by which the first captioner is worse by more than the margin."""
        return [decision for decision in self.decided if decision.outcome == "worse"]

    @property
    def undecided(self) -> list[Decision]:
        """The decisions whose interval includes the margin."""
        return [decision for decision in self.decided if decision.outcome == "undecided"]

    @property
    def outcome(self) -> Literal["passed", "worse", "undecided"]:
        """The outcome of a gate: ``passed`` if decisions exist and all passed without doubts."""
        if self.lost:
            return "worse"
        return "undecided" if self.undecided or not self.decided else "passed"

    def __repr__(self) -> str:
        """A sentence for each decision, for each metric that does not apply, and for each note."""
        skipped = [f"skipped: {cell}: {reason}" for cell, reason in self.skipped.items()]
        sentences = (decision.sentence() for decision in self.decisions)
        return "\n".join([*sentences, *skipped, *self.notes])

    def lines(self) -> list[dict[str, object]]:
        return [decision.line() for decision in self.decisions]

    def frame(self) -> DataFrame:
        from pandas import DataFrame

        return DataFrame(self.lines())

    def arrow(self) -> Table:
        """The decisions as an Arrow table, in which absent numbers are null."""
        from pyarrow import Table

        return Table.from_pandas(self.frame(), preserve_index=False)


def compare_results(
    results: Sequence[Result],
    *,
    margin: float | None = None,
    limits: Limits = LIMITS,
    skipped: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare results, where the first captioner's results come first."""
    skipped = skipped or {}
    apart, namesakes = resolve_name_collisions(results)
    apart = with_settings(apart)
    draws = {result.run_id: result.draws for result in apart}
    tables = rank_captioners(apart, draws)
    if skipped and not any(others for _, *others in group_by_cell(apart)):
        reasons = "; ".join(": ".join(filter(None, one)) for one in skipped.items())
        raise NotApplicableError(f"no metric can be compared ({reasons}); choose another metric")
    made = decisions(apart, draws, margin=margin, limits=limits)
    paired = any(not math.isnan(one.difference.value) for one in made)
    if not tables and not paired and not _lacks_score(apart):
        raise DataError(_nothing_to_compare(apart))
    notes = dict.fromkeys(f"{r.rows[0].captioner}: {note}" for r in apart for note in r.notes)
    notes |= dict.fromkeys(_notes_on_sets(apart))
    return Comparison(tables, made, namesakes, skipped, [*notes], apart)


def _lacks_score(results: Sequence[Result]) -> bool:
    """Whether a headline has no value for a captioner although its cells are equal."""
    pairs = (result for group in group_by_cell(results) if len(group) > 1 for result in group)
    return any(row.part in HEADLINES and math.isnan(row.value) for r in pairs for row in r.rows)


def _nothing_to_compare(results: Sequence[Result]) -> str:
    """A message on why no two results can be compared."""
    without = [group[0].rows[0].metric for group in group_by_cell(results) if len(group) > 1]
    if without:
        return (
            f"no two captioners have a score of {', '.join(dict.fromkeys(without))}; "
            f"{NAME_HUMAN_CAPTIONS} where the score needs them"
        )
    return (
        "no two of these results have a score and differ only in the captioner"
        f"{_differences(results)}; compare cells of one metric, attribute and configuration, and "
        f"{NAME_HUMAN_CAPTIONS} where the score needs them"
    )


def _differences(results: Sequence[Result]) -> str:
    """The end of a clause, with the settings in which results differ; empty without differences."""
    values: dict[str, dict[str, None]] = {}
    for result in results:
        row = result.rows[0]
        facts = {"metric": row.metric, "attribute": row.attribute, "dataset": row.dataset}
        for key, value in {**facts, **result.settings}.items():
            values.setdefault(key, {})[value] = None
    differing = [
        f"{key} ({', '.join(several)})" for key, several in values.items() if len(several) > 1
    ]
    return f": they differ in {', '.join(differing)}" if differing else ""
