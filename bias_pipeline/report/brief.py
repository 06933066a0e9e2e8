"""A verdict in about two sentences: what is found, what is not, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bias_pipeline.analysis.verdict import Finding, Verdict
from bias_pipeline.report.plain import DEEDS, rank
from bias_pipeline.report.tables import headline_name, number, p_cell, percent

MOST_NAMED = 4  # captioners who are named in a sentence; of more it is told how many they are


def brief(found: Verdict, attribute: str, captioner: str) -> list[str]:
    """What is concluded of one captioner: first what is found, then what is not.

    Args:
        found: of the captioner.
        attribute: whose groups.
        captioner: its name.
    """
    answers = {question: found.answer(question, attribute) for question in DEEDS}
    more, none, unknown = (
        [question for question, own in answers.items() if own == answer]
        for answer in ("more", "none", "unknown")
    )
    sentences = []
    if more:
        sentences.append(f"{captioner} {_deeds(more, 0, attribute, found)}.")
    elif none and unknown:
        questions = len(none) + len(unknown)
        sentences.append(
            f"Of {questions} questions on {captioner}, {len(none)} can be answered and "
            f"{len(unknown)} cannot."
        )
    elif none:
        sentences.append(f"No bias beyond chance was found in {captioner}.")
    if none:
        sentences.append(f"It does not, beyond chance, {_deeds(none, 1, attribute, found)}.")
    if unknown:
        whether = joined((_deed(own, 0, attribute) for own in unknown), "or")
        sentences.append(f"Whether it {whether} cannot be told.")
    return sentences or [f"Nothing here says whether {captioner} is biased: no run asks."]


def brief_of_all(found: Mapping[str, Verdict], attribute: str) -> list[str]:
    """What is concluded of several captioners, a sentence a question that is answered.

    Args:
        found: captioner to its verdict.
        attribute: whose groups.
    """
    told = []
    for question in DEEDS:
        answers = {name: own.answer(question, attribute) for name, own in found.items()}
        asked = [name for name, answer in answers.items() if answer]
        if not asked:
            continue
        more, none, unknown = (
            [name for name in asked if answers[name] == answer]
            for answer in ("more", "none", "unknown")
        )
        if len(unknown) == len(asked):
            deed = _deed(question, 1, attribute)
            told.append(f"Whether they {deed} cannot be told of any.")
            continue
        rest = [
            *([f"of {_who(none, asked)} not beyond chance"] if none and more else []),
            *([f"of {_who(unknown, asked)} it cannot be told"] if unknown else []),
        ]
        deed = _deed(question, int(len(more) > 1), attribute)
        leads = [lead(found[name].decided(question, attribute)) for name in more]
        told.append("; ".join([f"{_who(more, asked)} {deed}{_between(leads)}", *rest]) + ".")
    return told or ["Nothing here says whether they are biased: no run asks."]


def _between(leads: Sequence[Finding]) -> str:
    """The least and the most of captioners, where one reading speaks for all of them."""
    if len(leads) < 2 or len({named(own) for own in leads}) > 1:
        return f" ({evidence(leads[0])})" if len(leads) == 1 else ""
    ends = [pick(leads, key=lambda own: own.row.value) for pick in (min, max)]
    told = " to ".join(f"{own.row.captioner} {_value(own, own.row.value)}" for own in ends)
    people = ends[0].people
    beside = "" if math.isnan(people) else f", people {_value(ends[0], people)}"
    worst = max(own.p_value for own in leads)
    return f" ({reading_name(leads[0])}: {told}{beside}; largest {_sure(worst)})"


def _value(finding: Finding, value: float) -> str:
    """A value of a finding's reading, with its unit if that is short."""
    return f"{percent(value)} %" if finding.row.unit == "fraction" else number(value)


def _who(names: Sequence[str], asked: Sequence[str]) -> str:
    """Some of the captioners that were asked about."""
    if not names:
        return "None, beyond chance,"
    if len(names) == len(asked) > 1:
        return f"All {len(asked)}"
    if len(names) <= MOST_NAMED:
        return joined(names)
    return f"{len(names)} of {len(asked)}"


def joined(texts: Iterable[str], last: str = "and") -> str:
    """Texts as an enumeration.

    Example:
        >>> joined(["a", "b", "c"])
        'a, b and c'
    """
    *most, final = texts
    return f"{', '.join(most)} {last} {final}" if most else final


def _deed(question: str, form: int, attribute: str) -> str:
    return DEEDS[question][form].format(attribute=attribute)


def _deeds(questions: Sequence[str], form: int, attribute: str, found: Verdict) -> str:
    """Deeds, each with the reading that speaks for it; those that are not done with "or"."""
    leads = (lead(found.decided(question, attribute)) for question in questions)
    told = [
        f"{_deed(question, form, attribute)} ({evidence(own)})"
        for question, own in zip(questions, leads, strict=True)
    ]
    return joined(told, "or" if form else "and")


def lead(findings: Sequence[Finding]) -> Finding:
    """The finding that speaks for several: one of more bias, then the best known metric."""
    return min(findings, key=lambda own: (not own.more, rank(own.row.metric)))


def evidence(finding: Finding) -> str:
    """The number that a conclusion rests on, people's beside it; its p, or what is possible."""
    row = finding.row
    fraction = row.unit == "fraction"
    value, low, high, people = (
        percent(round(x, 3) + 0.0) if fraction else number(round(x, 2) + 0.0)  # no minus at zero
        for x in (row.value, row.ci_low, row.ci_high, finding.people)
    )
    ends = f"[{low}, {high}]"
    if (row.metric, row.part) == ("gender_error", "named"):
        found = f"in {value} % {ends} of the captions that name one"
    else:
        found = f"{reading_name(finding)}: {value} {'points' if fraction else row.unit} {ends}"
    beside = "" if math.isnan(finding.people) else f", people {people}{' %' * fraction}"
    return f"{found}{beside}; {_sure(finding.p_value) if finding.more else possible(finding)}"


def possible(finding: Finding) -> str:
    """How much more than neutral the interval does not exclude."""
    row = finding.compared
    excess = row.ci_high - finding.neutral
    if math.isnan(excess):
        return "how much more is possible is not known"
    if excess <= 0:
        return "more is not possible"
    amount = f"{percent(excess)} points" if row.unit == "fraction" else f"{number(excess)}"
    return f"up to {amount} more is possible"


def _sure(p_value: float) -> str:
    p = p_cell(p_value)
    return f"p {p}" if p.startswith("<") else f"p = {p}"


def reading_name(finding: Finding) -> str:
    """The same with the part that was read, where that is not the headline."""
    part = finding.row.part
    if part == finding.headline:
        return named(finding)
    return f"{named(finding)} ({part.removeprefix(f'{finding.headline}:')})"


def named(finding: Finding) -> str:
    """Metric, direction and settings of what a finding stands for."""
    return headline_name(replace(finding.row, part=finding.headline), finding.settings)
