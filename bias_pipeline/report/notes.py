"""What stands below the answers: other numbers on each question, those not used, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from bias_pipeline.metrics.base import QUESTIONS
from bias_pipeline.metrics.value_names import T_TO_A
from bias_pipeline.report.answers import Answer, stored_question, why_unknown
from bias_pipeline.report.conclusion_checks import doubt_about
from bias_pipeline.report.table import NumberCell, p_cell
from bias_pipeline.report.verdict import JUDGED, WRONG_IF, Finding, Verdict
from bias_pipeline.report.verdict_sentences import one_direction, reading_name

_ONE_WAY = "It is about A→T alone; nothing is known of T→A"
# What a question needs that no run tests.
_NEEDS: Mapping[str, str] = {
    "leakage": "human captions of the same images (--captions FILE, in Python human=...)",
    "assuming": "images of which annotators could not tell the {attribute}, labelled Unsure",
    "tasks": "the objects in the images (--objects FILE, in Python objects=...)",
    "inventing": "the objects in the images (--objects FILE, in Python objects=...)",
}


def notes(verdict: Verdict, answers: Sequence[Answer]) -> list[str]:
    """Sentences on one attribute: what is needed, when a Yes is wrong, other numbers."""
    attribute = answers[0].attribute
    lines = []
    for answer in answers:
        question = stored_question(answer.question)
        decided = verdict.decided(question, attribute)
        others = [finding for finding in decided if not answer.rests_on(finding)]
        further = [f"Further numbers: {_listed(map(_compared, others))}."] if others else []
        if answer.answer == "yes":
            further.append(f"The Yes is wrong if {WRONG_IF[question]}.")
        if further := [*filter(None, [needed(verdict, answer)]), *further]:
            lines.append(" ".join([QUESTIONS[question], *further]))
    judged = [finding for question in JUDGED for finding in verdict.on(question, attribute)]
    return lines + not_used([f for f in judged if f.doubt and not (f.alone or _is_answer(f))])


def needed(verdict: Verdict, answer: Answer) -> str:
    """Why a question has no answer, or half of one, and what would give it; empty if it has."""
    question, attribute = stored_question(answer.question), answer.attribute
    if question not in JUDGED:
        withheld = verdict.withheld(question, attribute).partition(": ")[2]
        return f"{withheld[0].upper()}{withheld[1:]}." if withheld else ""
    about = verdict.about(attribute)
    if one_direction(about, question):
        known = any(finding.headline == T_TO_A for finding in about.on(question))
        return f"{_ONE_WAY}." if known else f"{_ONE_WAY}, which needs {_NEEDS['tasks']}."
    given = verdict.answer(question, attribute)
    if not given:
        needs = _NEEDS.get(question, "").format(attribute=attribute)
        return f"It needs {needs}." if needs else ""
    if given != "unknown":
        return ""
    if verdict.alone(question, attribute):
        return f"To compare it with annotators, give {_NEEDS['leakage']}."
    reason = why_unknown(verdict, question, attribute)
    return f"{reason[0].upper()}{reason[1:]}."


def _is_answer(finding: Finding) -> bool:
    """Whether its doubt is the answer to its question."""
    return finding.answered is not None or finding.doubt == f"it {finding.withheld}"


def _compared(finding: Finding) -> str:
    """The number that is compared with no bias, as the answers show theirs."""
    people = finding.people
    beside = "" if math.isnan(people) else f", annotators {_plain(people, finding)}"
    value = NumberCell.of(finding.compared).text
    return f"{reading_name(finding)} {value}{beside}, p {p_cell(finding.p_value)}"


def not_used(findings: Iterable[Finding]) -> list[str]:
    """The numbers that are not used, a line for each reason."""
    doubted: dict[str, list[Finding]] = {}
    for finding in findings:
        doubted.setdefault(finding.doubt, []).append(finding)
    return [
        f"Not used: {_listed(f'{reading_name(f)} {_plain(f.row.value, f)}' for f in some)}: "
        f"{doubt_about(set(map(reading_name, some)), doubt)}."
        for doubt, some in doubted.items()
    ]


def _listed(texts: Iterable[str]) -> str:
    return "; ".join(texts)


def _plain(value: float, finding: Finding) -> str:
    return NumberCell.in_unit(finding.row.unit, value).text
