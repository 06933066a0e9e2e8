"""Answers each question about one attribute with one number, which is the same everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from bias_pipeline.metrics.base import NOT_SHOWN, QUESTIONS
from bias_pipeline.metrics.value_names import MODEL
from bias_pipeline.report.conclusion_checks import LIMITS, NO_RULE, NO_VALUE
from bias_pipeline.report.table import percent
from bias_pipeline.report.verdict import JUDGED, OF_SETS, Finding, Verdict
from bias_pipeline.report.verdict_sentences import lead, named_parts, one_direction
from bias_pipeline.results.rows import Row

_REASON_WORDS = 8
# The name that users read, by the name of a question in rows, if these differ.
WRITTEN = {"misgendering": "naming"}


def stored_question(question: str) -> str:
    """The name of a question in rows, looked up by the name that users read."""
    return next((name for name, written in WRITTEN.items() if written == question), question)


_UNTESTED = "not tested: "  # how a doubt begins if data lack what a metric needs
_ONE_WAY = "A→T alone; nothing is known of T→A"


@dataclass(frozen=True)
class Answer:
    """The answer to one question about one attribute, and the number that decides it.

    Attributes:
        question: its name in files of answers, such as ``naming``.
        answer: ``yes``, ``no``, ``cannot_tell`` or ``not_tested``. ``no`` means that the interval
            excludes more than negligible bias.
        metric: with ``part`` and ``run_id``, names the row of the number; empty without a number.
        value: the tested number (with its interval): the difference from annotators if their number
            is known. A fraction, not per cent, or NaN without a number.
        at_most: how far above no bias the interval ends, or NaN if nothing is tested.
        negligible: the largest bias that counts as no bias.
        annotators: the annotators' number; for ``mentions`` the labels' number.
        unit: the unit as in rows, such as ``fraction`` or ``nat``.
        p_value: p of no bias, after Holm within the question, or NaN if nothing is tested.
        n_images: how many images the number is about.
        coverage: the share of these images among the images that the number might be about.
        by_group: the model's number with its interval, by group.
        reason: why there is no answer, or what limits a Yes.
        named: what a Yes is about, such as concepts.
        details: each named thing with the rates of the groups.
        limits: the part of the words or the only direction that the number is about, or what was
            found beside it; empty if the number is about the whole question.
    """

    attribute: str
    question: str
    answer: str
    metric: str = ""
    part: str = ""
    run_id: str = ""
    value: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    at_most: float = math.nan
    negligible: float = LIMITS.negligible
    annotators: float = math.nan
    unit: str = ""
    p_value: float = math.nan
    n_images: int = 0
    coverage: float = math.nan
    by_group: Mapping[str, Row] = field(default_factory=dict)
    reason: str = ""
    named: Sequence[str] = ()
    details: Sequence[str] = ()
    limits: str = ""

    def rests_on(self, finding: Finding) -> bool:
        row = finding.compared
        return (row.metric, row.part, row.run_id) == (self.metric, self.part, self.run_id)

    @property
    def is_bounded(self) -> bool:
        """Whether there is no Yes, and the interval shows in points how much bias is possible."""
        points = self.unit == "fraction" and not math.isnan(self.at_most)
        return points and self.answer in ("no", "cannot_tell")

    def as_plain_data(self) -> dict[str, Any]:
        ends = ("value", "ci_low", "ci_high")
        groups = {
            name: {end: getattr(row, end) for end in ends} for name, row in self.by_group.items()
        }
        return {
            **vars(self),
            "by_group": groups,
            "named": [*self.named],
            "details": [*self.details],
        }


def answers_of(
    verdict: Verdict, attribute: str, skipped: Mapping[str, str] = MappingProxyType({})
) -> list[Answer]:
    """An answer to every question, in the order in which questions are asked.

    ``skipped`` has the reason why a question's metrics did not run.
    """
    return [
        answer
        for question in QUESTIONS
        if question not in OF_SETS
        or question in skipped
        or verdict.findings_on(question, attribute)
        for answer in (
            [_answer_on(verdict, question, attribute, skipped)]
            if question in JUDGED
            else _unjudged_answers(verdict, question, attribute, skipped)
        )
    ]


def _answer_on(
    verdict: Verdict, question: str, attribute: str, skipped: Mapping[str, str]
) -> Answer:
    name = WRITTEN.get(question, question)
    given, decided = verdict.answer(question, attribute), verdict.findings_used(question, attribute)
    if not given:
        reason = shorten_reason(skipped.get(question, "")) or "no run tests it"
        return Answer(attribute, name, "not_tested", reason=reason)
    if given == "unknown":
        if alone := verdict.findings_without_annotators(question, attribute):
            reason = "no annotators' captions"
            number_alone = _with_number(lead(alone), name, "cannot_tell", reason)
            return replace(number_alone, at_most=math.nan)
        reason = why_unknown(verdict, question, attribute)
        kind = "not_tested" if reason.startswith(_UNTESTED) else "cannot_tell"
        return Answer(attribute, name, kind, reason=shorten_reason(reason.removeprefix(_UNTESTED)))
    one_way = one_direction(verdict.about(attribute), question)
    if given == "more":
        strongest = lead([finding for finding in decided if finding.is_biased])
        alone_yes = not verdict.is_sure(question, attribute) and len(verdict.overall) > 1
        limit = f"but not after Holm over all {len(verdict.overall)} answers" if alone_yes else ""
        answer = _with_number(strongest, name, "yes", limit)
        return replace(answer, limits=_ONE_WAY) if one_way else answer
    # Numbers of different units cannot be compared; then a leading metric decides.
    fractions = [finding for finding in decided if finding.compared.unit == "fraction"]
    widest = max(fractions, key=_excess) if fractions else lead(decided)
    excluded = widest.compared.unit == "fraction" and _excess(widest) <= widest.negligible
    if widest.answered:
        excluded = widest.no
    if excluded and not (one_way or widest.of_few_words or widest.only):
        return _with_number(widest, name, "no", "")
    answer = _with_number(widest, name, "cannot_tell", NOT_SHOWN)
    return replace(answer, limits=_ONE_WAY) if one_way else answer


def _excess(finding: Finding) -> float:
    """How far the interval reaches above no bias, which is infinity if it is unknown."""
    excess = finding.compared.ci_high - finding.neutral
    return math.inf if math.isnan(excess) else excess


def why_unknown(verdict: Verdict, question: str, attribute: str) -> str:
    """Why a question has no answer although finished runs test the question."""
    if withheld := verdict.withheld(question, attribute):
        return withheld.partition(": ")[2]
    doubts = [finding.doubt for finding in verdict.findings_on(question, attribute)]
    doubts.sort(key=lambda doubt: (not doubt.startswith(_UNTESTED), doubt == NO_RULE))
    hardly = question == "misgendering" and doubts[0] == NO_VALUE
    return f"hardly any caption names one {attribute}" if hardly else doubts[0]


def _with_number(finding: Finding, question: str, answer: str, reason: str) -> Answer:
    row = finding.compared
    return Answer(
        attribute=row.attribute,
        question=question,
        answer=answer,
        metric=row.metric,
        part=row.part,
        run_id=row.run_id,
        value=row.value,
        ci_low=row.ci_low,
        ci_high=row.ci_high,
        at_most=row.ci_high - finding.neutral,
        negligible=finding.negligible,
        annotators=finding.people,
        unit=row.unit,
        p_value=finding.p_value,
        n_images=row.n_images,
        coverage=row.coverage,
        by_group=finding.by_group,
        reason=reason,
        named=finding.answered.named if finding.answered and finding.is_biased else (),
        details=named_parts(finding),
        limits=_part_of_words(finding) or (finding.answered.beside if finding.answered else ""),
    )


def _part_of_words(finding: Finding) -> str:
    unit = finding.only.partition(" in ")[2]
    within = f" in {unit}" if unit else ""
    if finding.of_few_words:
        share = percent(finding.retained, 0)
        return f"on the {share} % of its words{within} that annotators use as often"
    return f"on {finding.only}" if finding.only else ""


def _unjudged_answers(
    verdict: Verdict, question: str, attribute: str, skipped: Mapping[str, str]
) -> Iterator[Answer]:
    """The answers to a question with numbers but no verdict, or why there is no number."""
    findings = verdict.findings_on(question, attribute)
    if not findings and question in skipped:
        yield Answer(attribute, question, "not_tested", reason=shorten_reason(skipped[question]))
    for finding in findings:
        if withheld := finding.withheld:
            kind = "cannot_tell" if withheld.startswith("cannot tell") else "not_tested"
            yield Answer(
                attribute, question, kind, reason=shorten_reason(withheld.partition(": ")[2])
            )
        elif math.isnan(finding.row.value):
            yield Answer(attribute, question, "cannot_tell", reason=_why_no_value(finding))
        else:
            yield _with_number(finding, question, "not_tested", "no verdict is given")


def _why_no_value(finding: Finding) -> str:
    row = finding.row
    if not math.isnan(row.ci_low):  # gold labels give only a range
        ends = [*dict.fromkeys(percent(end) for end in (row.ci_low, row.ci_high))]
        between = "between " * (len(ends) > 1)
        return f"{between}{' and '.join(ends)} % by gold labels"
    return f"hardly any caption names one {row.attribute}" if row.part == MODEL else NO_VALUE


def shorten_reason(reason: str) -> str:
    """The first clause of a reason, in a few words.

    Example:
        >>> shorten_reason("12 images are too few; caption 500, or better 1,500")
        '12 images are too few'
    """
    itself = re.sub(r"^(dataset '[^']*'|the data): ", "", reason)
    itself = re.sub(r"^dataset '[^']*' has ", "the data have ", itself)
    first = re.split(r"[:;,(]\s", itself, maxsplit=1)[0].strip()
    words = first.split()
    return first if len(words) <= _REASON_WORDS else f"{' '.join(words[:_REASON_WORDS])} …"
