"""Results of one captioner to an answer for each question.

An answer uses only readings that stay the same when a captioner says more or less for all groups
alike (:class:`~bias_pipeline.metrics.base.EvidenceRule`). All other headlines are only shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bias_pipeline.analysis import conclusion_checks
from bias_pipeline.analysis.conclusion_checks import LIMITS, Limits, scored_part
from bias_pipeline.metrics.base import HEADLINES, QUESTIONS, EvidenceRule
from bias_pipeline.metrics.value_names import direction_of, paired_names, sibling_name
from bias_pipeline.results.rows import Result, Row, mapping_in, neutral_of
from bias_pipeline.results.settings import label
from bias_pipeline.stats.compare import holm, p_of_interval

JUDGED = ("leakage", "misgendering", "assuming", "tasks")  # the others are only shown
# When an answer is wrong although its numbers are right.
WRONG_IF: Mapping[str, str] = {
    "leakage": "attackers use a harmless habit in which the captions differ from people's",
    "misgendering": "the annotators' labels are wrong in the same images",
    "assuming": "people can see the group where annotators could not, and mention it less often",
    "tasks": "the word lists miss words that this captioner uses for groups or objects",
}


_ALPHA = 0.05


# Doubts.
ALONE = "there are no captions by people to compare it with"
UNNAMED = "people's captions name a group too rarely to compare it with them"
# Questions that are not answered where captioner and people write too differently.
_LIKE_PEOPLE = ("leakage", "assuming")


@dataclass(frozen=True)
class Finding:
    """One headline of one metric."""

    question: str  # of `QUESTIONS`
    row: Row  # the part that may decide, else the headline
    headline: str  # the headline that it is about
    # People's value of `row`; NaN where `row` already is a difference from people. For `mentions`
    # the value of the labels.
    people: float
    compared: Row  # the row that is compared with neutral: less people's share, where known
    neutral: float  # the value that means no bias
    # That `compared` is neutral, adjusted for all findings that answer the same question on the
    # same attribute (Holm); NaN where nothing is decided
    p_value: float
    doubt: str = ""  # why it is not used; empty if it is
    # Why these captions allow no answer to its question, as `cannot tell: REASON` or `cannot be
    # tested: REASON`; empty if they allow one
    withheld: str = ""
    settings: str = ""  # in which its run differs from others of the metric, as part of its name
    matched: bool = False  # whether people were compared at equal speech
    any_length: bool = False  # whether it compares captions of any length
    only: str = ""  # the part of the captions that it is about, in words; empty if it is all
    negligible: float = LIMITS.negligible  # bias up to this above neutral counts as none

    @property
    def no(self) -> bool:
        """Whether the interval at equal speech rules out more than negligible bias.

        A part of the captions cannot: the rest may contain more.
        """
        whole = self.matched and not self.only
        excess = self.compared.ci_high - self.neutral
        return whole and not self.doubt and excess <= self.negligible

    @property
    def alone(self) -> bool:
        """Whether there is a number but none of people to compare it with."""
        return self.doubt == ALONE and not math.isnan(self.row.value)

    @property
    def significant(self) -> bool:
        """Whether the number differs from neutral, by the adjusted p."""
        return self.p_value < _ALPHA

    @property
    def more(self) -> bool:
        """Whether there is significantly more bias than neutral, without a doubt."""
        return not self.doubt and self.significant and self.compared.value > self.neutral


@dataclass(frozen=True)
class Verdict:
    """All findings, by question in the order of asking."""

    findings: Sequence[Finding]  # every headline, those of one question together
    # Attribute to why what captions give away or assume was not compared with people's, if so
    unlike_people: Mapping[str, str] = field(default_factory=dict)

    @property
    def attributes(self) -> list[str]:
        """The attributes of the findings, in the order of the results."""
        return list(dict.fromkeys(finding.row.attribute for finding in self.findings))

    def on(self, question: str, attribute: str | None = None) -> list[Finding]:
        """The findings on a question, on one attribute or on all."""
        return [
            finding
            for finding in self.findings
            if finding.question == question and attribute in (None, finding.row.attribute)
        ]

    def decided(self, question: str, attribute: str | None = None) -> list[Finding]:
        """The findings without a doubt."""
        return [finding for finding in self.on(question, attribute) if not finding.doubt]

    def alone(self, question: str, attribute: str) -> list[Finding]:
        """The findings that lack only people's captions."""
        return [finding for finding in self.on(question, attribute) if finding.alone]

    def withheld(self, question: str, attribute: str) -> str:
        """See :class:`Finding`."""
        return next((f.withheld for f in self.on(question, attribute) if f.withheld), "")

    def answer(self, question: str, attribute: str) -> str:
        """The answer to a question.

        Returns:
            ``more`` bias than neutral; ``no``: more than a little is ruled out; ``none`` beyond
            chance; ``unknown``; empty if not asked.
        """
        decided = self.decided(question, attribute)
        if any(finding.more for finding in decided):
            return "more"
        if decided and all(finding.no for finding in decided):
            return "no"
        if decided:
            return "none"
        return "unknown" if self.on(question, attribute) else ""


def verdict(results: Sequence[Result], limits: Limits = LIMITS) -> Verdict:
    """Results of one captioner to a verdict."""
    findings = [
        replace(finding, settings=label(result), only=scored_part(result, finding.headline))
        for result in results
        for finding in _findings(result, limits)
    ]
    by_attribute: dict[str, list[Result]] = {}
    for result in results:
        by_attribute.setdefault(result.rows[0].attribute, []).append(result)
    unlike = {
        attribute: reason
        for attribute, of_attribute in by_attribute.items()
        if (reason := conclusion_checks.written_unlike_people(of_attribute, limits))
    }
    withheld = [_withheld(finding, unlike.get(finding.row.attribute, "")) for finding in findings]
    ordered = sorted(withheld, key=lambda finding: list(QUESTIONS).index(finding.question))
    return Verdict(_adjusted(_superseded(ordered)), unlike)


def _withheld(finding: Finding, reason: str) -> Finding:
    """The finding as one that answers nothing, if captions are unlike people's for that reason."""
    if not reason or finding.withheld or finding.any_length or finding.question not in _LIKE_PEOPLE:
        return finding
    doubt = finding.doubt or f"it cannot be compared with people's: {reason.partition(': ')[2]}"
    return replace(finding, withheld=reason, doubt=doubt, p_value=math.nan)


def _superseded(findings: Sequence[Finding]) -> list[Finding]:
    """The same findings; a score at equal speech replaces the plain score of its metric."""

    def key(finding: Finding) -> tuple[str, str, str]:
        return finding.row.metric, finding.row.attribute, finding.headline

    decided = {key(finding) for finding in findings if finding.matched and not finding.doubt}
    return [
        replace(finding, doubt="the score at equal speech is used instead", p_value=math.nan)
        if key(finding) in decided and not finding.matched and not finding.doubt
        else finding
        for finding in findings
    ]


def _adjusted(findings: Sequence[Finding]) -> list[Finding]:
    """The same findings, p adjusted (Holm) within one question and attribute."""
    families: dict[tuple[str, str], list[int]] = {}
    for index, finding in enumerate(findings):
        if not finding.doubt:
            families.setdefault((finding.question, finding.row.attribute), []).append(index)
    adjusted = list(findings)
    for members in families.values():
        p_values = holm([findings[index].p_value for index in members])
        for index, p_value in zip(members, p_values, strict=True):
            adjusted[index] = replace(findings[index], p_value=p_value)
    return adjusted


def _unjudged(question: str, rows: Mapping[str, Row], headline: str) -> Finding:
    """A finding that is shown and never judged: the captioner's value and that of the labels.

    Of descriptions it is the score: how often a side describes anybody is no answer.
    """
    nan = math.nan
    if question == "describing":
        row, people = rows[headline], nan
    else:
        row = rows.get("model", rows[headline])
        people = rows["human"].value if "human" in rows else nan
    return Finding(question, row, headline, people, row, nan, nan, conclusion_checks.NOT_JUDGED)


def _untestable(finding: Finding, result: Result) -> Finding:
    """The finding as one that answers nothing, if the word lists are in another language."""
    foreign = conclusion_checks.foreign_to_lists(result)
    if not foreign:
        return finding
    return replace(finding, doubt=f"it {foreign}", withheld=foreign, p_value=math.nan)


def _findings(result: Result, limits: Limits) -> Iterable[Finding]:
    rows = {row.part: row for row in result.rows}
    question = str(mapping_in(result.manifest, "metric").get("question", ""))
    readings = conclusion_checks.evidence_rules(result)
    for headline in HEADLINES:
        if headline not in rows or question not in QUESTIONS:
            continue
        finding = (
            _finding(result, rows, question, headline, readings.get(headline), limits)
            if question in JUDGED
            else _unjudged(question, rows, headline)
        )
        yield _untestable(finding, result)
        if rule := readings.get(headline):
            for part in rule.also:
                if part in rows:
                    name, further = sibling_name(part, "increase"), replace(rule, part=part)
                    also = _finding(result, rows, question, name, further, limits)
                    yield _untestable(also, result)


def _finding(
    result: Result,
    rows: Mapping[str, Row],
    question: str,
    headline: str,
    reading: EvidenceRule | None,
    limits: Limits,
) -> Finding:
    part = reading.part if reading else headline
    row = rows[part]
    matched = reading is not None and reading.matched
    people = conclusion_checks.people_part(part) if matched else sibling_name(part, "human")
    compared = rows.get(sibling_name(part, "increase"), row)
    neutral, lowest = neutral_of(result, part), _lowest(result, part)
    doubt = _doubt(result, compared, reading, headline, limits)
    alone = people not in rows if compared is not row else not (doubt or lowest < neutral)
    if alone:
        doubt = ALONE
    elif math.isnan(compared.value) and not math.isnan(row.value):
        doubt = UNNAMED
    paired, people_paired = paired_names(part)
    if compared is not row and people_paired in rows:
        tested = (rows[paired].n_images, rows[people_paired].n_images)
        if tested != (row.n_images, rows[people].n_images):  # not all of a side's images
            row, people = rows[paired], people_paired
    return Finding(
        question=question,
        row=row,
        headline=headline,
        people=rows[people].value if people in rows else math.nan,
        compared=compared,
        neutral=neutral,
        p_value=math.nan if doubt else _p_value(compared, neutral),
        doubt=doubt,
        matched=matched,
        any_length=reading is not None and any(name in rows for name in reading.also),
        negligible=limits.negligible,
    )


def _doubt(
    result: Result, row: Row, reading: EvidenceRule | None, headline: str, limits: Limits
) -> str:
    if reading is None:
        no_value = math.isnan(row.value)
        return conclusion_checks.NO_VALUE if no_value else conclusion_checks.NO_RULE
    unsupported = (
        conclusion_checks.lacks_evidence(row, reading, limits)
        or conclusion_checks.rests_on_unknown(result, headline, limits)
        or conclusion_checks.beyond_reach(result, headline, limits)
    )
    unlike = (
        conclusion_checks.differs_from_humans(result, reading, limits) if not unsupported else ""
    )
    return unsupported or (f"it changes with the style of captions: {unlike}" if unlike else "")


def _lowest(result: Result, part: str) -> float:
    """The lowest possible value; a number that cannot be below neutral is above it by chance."""
    ranges = mapping_in(result.manifest, "metric", "range")
    headline = part if part in ranges else direction_of(part)
    bounds = ranges.get(headline) or ranges.get("score")
    low = bounds[0] if isinstance(bounds, Sequence) and bounds else None
    return -math.inf if low is None else float(low)


def _p_value(row: Row, neutral: float) -> float:
    """The row's; else two-sided, from the interval's half that faces neutral, as both agree."""
    if not math.isnan(row.p_value):
        return row.p_value
    above = row.value > neutral
    half = row.value - row.ci_low if above else row.ci_high - row.value
    if not half > 0:
        return float(row.value == neutral) if half == 0 else math.nan
    return p_of_interval(row.value - neutral, half, 1 - _ALPHA)
