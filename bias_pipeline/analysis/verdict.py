"""What finished results of one captioner come to: an answer to each question, and what it rests on.

A conclusion rests on readings that a captioner cannot move by merely saying more or less, for all
groups alike (:class:`~bias_pipeline.metrics.base.Reading`). All other headlines are told, and
nothing is concluded from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bias_pipeline.analysis import doubts
from bias_pipeline.analysis.doubts import LIMITS, Limits
from bias_pipeline.metrics.base import HEADLINES, QUESTIONS, Reading
from bias_pipeline.metrics.parts import beside, direction_of
from bias_pipeline.results.settings import label
from bias_pipeline.results.store import Result, Row
from bias_pipeline.stats.compare import holm, p_of_interval

JUDGED = ("leakage", "misgendering", "tasks")  # the others are told
# What would make an answer wrong although its numbers are right.
WRONG_IF: Mapping[str, str] = {
    "leakage": "captions differ from people's in a habit that attackers use and that is no bias",
    "misgendering": "labels, which are what annotators saw, err where the captioner does",
    "tasks": "word lists miss how this captioner names groups or objects",
}


_ALPHA = 0.05


@dataclass(frozen=True)
class Finding:
    """One headline of one metric.

    Attributes:
        question: of :data:`~bias_pipeline.metrics.base.QUESTIONS`.
        row: what was read: the part that may decide, else the headline.
        headline: which headline it stands for.
        people: people's value of what was read; NaN where the reading is against people already.
            Of ``mentions``, what the labels have.
        compared: the row that is held against neutral: people's share taken off, where known.
        neutral: the value that means no bias.
        p_value: that ``compared`` is neutral, adjusted for all findings that answer the same
            question on the same attribute (Holm); NaN where nothing is decided.
        doubt: why nothing is concluded; empty if something may be.
        settings: what tells its run from others of the metric, as part of its name.
    """

    question: str
    row: Row
    headline: str
    people: float
    compared: Row
    neutral: float
    p_value: float
    doubt: str = ""
    settings: str = ""

    @property
    def more(self) -> bool:
        """Whether there is more bias than neutral beyond chance and doubt."""
        return not self.doubt and self.p_value < _ALPHA and self.compared.value > self.neutral


@dataclass(frozen=True)
class Verdict:
    """All that is found, by question in the order of asking.

    Attributes:
        findings: every headline, those of one question together.
    """

    findings: Sequence[Finding]

    @property
    def attributes(self) -> list[str]:
        """Whose groups were looked at, in the order of the results."""
        return list(dict.fromkeys(own.row.attribute for own in self.findings))

    def on(self, question: str, attribute: str | None = None) -> list[Finding]:
        """The findings on a question, on one attribute or on all."""
        return [
            own
            for own in self.findings
            if own.question == question and attribute in (None, own.row.attribute)
        ]

    def decided(self, question: str, attribute: str | None = None) -> list[Finding]:
        """Those that a conclusion may rest on."""
        return [own for own in self.on(question, attribute) if not own.doubt]

    def answer(self, question: str, attribute: str) -> str:
        """``more`` bias than neutral, ``none`` beyond chance, ``unknown``; empty if not asked."""
        decided = self.decided(question, attribute)
        if any(own.more for own in decided):
            return "more"
        if decided:
            return "none"
        return "unknown" if self.on(question, attribute) else ""


def verdict(results: Sequence[Result], limits: Limits = LIMITS) -> Verdict:
    """The answers that results of one captioner give.

    Args:
        results: of any metrics and attributes.
        limits: what a conclusion needs.
    """
    found = [
        replace(own, settings=label(result))
        for result in results
        for own in _findings(result, limits)
    ]
    ordered = sorted(found, key=lambda own: list(QUESTIONS).index(own.question))
    return Verdict(_adjusted(ordered))


def _adjusted(findings: Sequence[Finding]) -> list[Finding]:
    """The same with p adjusted among those that decide one question on one attribute."""
    families: dict[tuple[str, str], list[int]] = {}
    for number, own in enumerate(findings):
        if not own.doubt:
            families.setdefault((own.question, own.row.attribute), []).append(number)
    adjusted = list(findings)
    for members in families.values():
        p_values = holm([findings[number].p_value for number in members])
        for number, p_value in zip(members, p_values, strict=True):
            adjusted[number] = replace(findings[number], p_value=p_value)
    return adjusted


def _told(question: str, rows: Mapping[str, Row], headline: str) -> Finding:
    """What is told and never judged: the captioner's value beside that of the labels."""
    row = rows.get("model", rows[headline])
    people = rows["human"].value if "human" in rows else math.nan
    doubt = "it is told and not judged"
    return Finding(question, row, headline, people, row, math.nan, math.nan, doubt)


def _findings(result: Result, limits: Limits) -> Iterable[Finding]:
    rows = {row.part: row for row in result.rows}
    told = result.manifest.get("metric", {})
    question = str(told.get("question", "")) if isinstance(told, Mapping) else ""
    readings = doubts.readings_of(result)
    for headline in HEADLINES:
        if headline not in rows or question not in QUESTIONS:
            continue
        if question in JUDGED:
            yield _finding(result, rows, question, headline, readings.get(headline), limits)
        else:
            yield _told(question, rows, headline)


def _finding(
    result: Result,
    rows: Mapping[str, Row],
    question: str,
    headline: str,
    reading: Reading | None,
    limits: Limits,
) -> Finding:
    part = reading.part if reading else headline
    row = rows[part]
    people = beside(part, "human")
    compared = rows.get(beside(part, "increase"), row)
    neutral, lowest = _neutral(result, part), _lowest(result, part)
    doubt = _doubt(result, compared, reading, limits)
    if not doubt and not lowest < neutral and compared is row:
        doubt = "without people's captions there is nothing to hold it against"
    return Finding(
        question=question,
        row=row,
        headline=headline,
        people=rows[people].value if people in rows else math.nan,
        compared=compared,
        neutral=neutral,
        p_value=math.nan if doubt else _p_value(compared, neutral),
        doubt=doubt,
    )


def _doubt(result: Result, row: Row, reading: Reading | None, limits: Limits) -> str:
    if reading is None:
        return "moved by how much it says"
    unsupported = doubts.unsupported(row, reading, limits)
    unlike = doubts.unlike_people(result, reading, limits) if not unsupported else ""
    return unsupported or (f"moved by how it speaks: {unlike}" if unlike else "")


def _neutral(result: Result, part: str) -> float:
    """The value that means no bias: a headline's own; other parts are read against 0."""
    told = result.manifest.get("metric", {})
    neutrals = told.get("neutral", {}) if isinstance(told, Mapping) else {}
    return float(neutrals.get(part, 0.0)) if isinstance(neutrals, Mapping) else 0.0


def _lowest(result: Result, part: str) -> float:
    """The lowest possible value; what cannot be below neutral is above it by chance alone."""
    told = result.manifest.get("metric", {})
    ranges = told.get("range", {}) if isinstance(told, Mapping) else {}
    headline = part if part in ranges else direction_of(part)
    bounds = ranges.get(headline) or ranges.get("score") if isinstance(ranges, Mapping) else None
    low = bounds[0] if isinstance(bounds, Sequence) and bounds else None
    return -math.inf if low is None else float(low)


def _p_value(row: Row, neutral: float) -> float:
    """Two-sided, from the interval's half that faces neutral, so that the two agree."""
    above = row.value > neutral
    half = row.value - row.ci_low if above else row.ci_high - row.value
    if not half > 0:
        return float(row.value == neutral) if half == 0 else math.nan
    return p_of_interval(row.value - neutral, half, 1 - _ALPHA)
