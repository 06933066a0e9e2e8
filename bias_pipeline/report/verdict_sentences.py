"""A verdict in sentences: an answer to each question, then the numbers that are not used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from bias_pipeline.analysis.verdict import JUDGED, WRONG_IF, Finding, Verdict
from bias_pipeline.metrics.base import QUESTIONS
from bias_pipeline.report.short_verdict import finding_name, possible, reading_name
from bias_pipeline.report.tables import interval, number, percent


def sentences(verdict: Verdict) -> list[str]:
    """One line for each question that was asked, then one for the numbers that are not used."""
    judged = [finding for question in JUDGED for finding in verdict.on(question)]
    return [
        *(_answered(verdict, question) for question in JUDGED if verdict.on(question)),
        *_mentioned(verdict.on("mentions")),
        *_left_out([finding for finding in judged if finding.doubt and not finding.alone]),
    ]


def _answered(verdict: Verdict, question: str) -> str:
    by: dict[str, list[str]] = {}
    for attribute in verdict.attributes:
        by.setdefault(verdict.answer(question, attribute), []).append(attribute)
    clauses = []
    decided = verdict.decided(question)
    if "more" in by:
        more = [reading for reading in decided if reading.more]
        clauses.append(f"Yes, beyond chance: {_by_metric(more, _value)}")
    for answer, words in (("no", "No"), ("none", "Not beyond chance")):
        if answer in by:
            findings = [reading for reading in decided if reading.row.attribute in by[answer]]
            values = _by_metric(findings, _value_and_possible)
            clauses.append(f"{words} on {', '.join(by[answer])}: {values}")
    if any(reading.close for reading in decided):
        clauses.append("It is compared with people who use each word as often as it does")
    alone = {name: verdict.alone(question, name) for name in by.get("unknown", ())}
    if any(alone.values()):
        unanswered = [finding for findings in alone.values() for finding in findings]
        clauses.append(
            f"{_by_metric(unanswered, _value)}; to compare this with people, give their captions "
            "(--captions FILE)"
        )
    unknown = [name for name, findings in alone.items() if not findings]
    if unknown:
        clauses.append(f"There is no answer on {', '.join(unknown)}")
    wrong = [f"This is wrong if {WRONG_IF[question]}"] if "more" in by else []
    return " ".join([QUESTIONS[question], *(f"{text}." for text in [*clauses, *wrong])])


def _mentioned(findings: Sequence[Finding]) -> list[str]:
    known = [finding for finding in findings if not math.isnan(finding.row.value)]
    if not known:
        return []
    return [f"{QUESTIONS['mentions']} {_by_metric(known, _beside_labels)}."]


def _left_out(findings: Sequence[Finding]) -> list[str]:
    """The numbers that are not used, by reason."""
    reasons = dict.fromkeys(finding.doubt for finding in findings)
    parts = "; ".join(
        f"{_by_metric([f for f in findings if f.doubt == reason], _plain_value)}: {reason}"
        for reason in reasons
    )
    return [f"Not used: {parts}."] if parts else []


def _by_metric(findings: Iterable[Finding], describe: Callable[[Finding], str]) -> str:
    """Attributes and values, those of one headline together."""
    names: dict[str, list[str]] = {}
    for finding in findings:
        name = reading_name(finding) if finding.question in JUDGED else finding_name(finding)
        names.setdefault(name, []).append(f"{finding.row.attribute} {describe(finding)}")
    return "; ".join(f"{name} ({', '.join(values)})" for name, values in names.items())


def _value(finding: Finding) -> str:
    if math.isnan(finding.people):
        return interval(finding.row)
    return f"{interval(finding.row)} against people's {_plain(finding.people, finding.row.unit)}"


def _value_and_possible(finding: Finding) -> str:
    return f"{_value(finding)}; {possible(finding)}"


def _beside_labels(finding: Finding) -> str:
    row = finding.row
    return f"{_plain_value(finding)} in captions and {_plain(finding.people, row.unit)} in labels"


def _plain_value(finding: Finding) -> str:
    return _plain(finding.row.value, finding.row.unit)


def _plain(value: float, unit: str) -> str:
    return percent(value) if unit == "fraction" else number(value)
