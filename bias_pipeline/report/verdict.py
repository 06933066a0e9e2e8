"""A verdict in sentences: an answer to each question, and what nothing is concluded from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from bias_pipeline.analysis.verdict import JUDGED, WRONG_IF, Finding, Verdict
from bias_pipeline.metrics.base import QUESTIONS
from bias_pipeline.report.brief import named, possible, reading_name
from bias_pipeline.report.tables import interval, number, percent


def sentences(found: Verdict) -> list[str]:
    """One line for each question that was asked, then one of what is left out."""
    judged = [own for question in JUDGED for own in found.on(question)]
    return [
        *(_answered(found, question) for question in JUDGED if found.on(question)),
        *_mentioned(found.on("mentions")),
        *_left_out([own for own in judged if own.doubt]),
    ]


def _answered(found: Verdict, question: str) -> str:
    by: dict[str, list[str]] = {}
    for attribute in found.attributes:
        by.setdefault(found.answer(question, attribute), []).append(attribute)
    told = []
    decided = found.decided(question)
    if "more" in by:
        more = [own for own in decided if own.more]
        told.append(f"Yes, beyond chance: {_by_metric(more, _value)}")
    if "none" in by:
        none = [own for own in decided if own.row.attribute in by["none"]]
        told.append(
            f"Not beyond chance on {', '.join(by['none'])}: {_by_metric(none, _value_and_possible)}"
        )
    if "unknown" in by:
        told.append(f"It cannot be told on {', '.join(by['unknown'])}")
    wrong = [f"Wrong if {WRONG_IF[question]}"] if "more" in by else []
    return " ".join([QUESTIONS[question], *(f"{text}." for text in [*told, *wrong])])


def _mentioned(findings: Sequence[Finding]) -> list[str]:
    known = [own for own in findings if not math.isnan(own.row.value)]
    if not known:
        return []
    return [f"{QUESTIONS['mentions']} {_by_metric(known, _beside_labels)}."]


def _left_out(findings: Sequence[Finding]) -> list[str]:
    """What nothing is concluded from, by reason."""
    reasons = dict.fromkeys(own.doubt for own in findings)
    told = "; ".join(
        f"{_by_metric([own for own in findings if own.doubt == reason], _plain_value)}: {reason}"
        for reason in reasons
    )
    return [f"Nothing is concluded from {told}."] if told else []


def _by_metric(findings: Iterable[Finding], tell: Callable[[Finding], str]) -> str:
    """Attributes and values, those of one headline together."""
    names: dict[str, list[str]] = {}
    for own in findings:
        name = reading_name(own) if own.question in JUDGED else named(own)
        names.setdefault(name, []).append(f"{own.row.attribute} {tell(own)}")
    return "; ".join(f"{name} ({', '.join(own)})" for name, own in names.items())


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
