"""The verdict on one attribute in a sentence or two: what was found, or what was not and how sure.

A Yes stands here only if it remains one after a correction for all questions and attributes
(Holm). Of what was not found it is said where it was looked for, how much is still possible, and
how many of the captioner's words nobody could compare.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bias_pipeline.report.table import p_cell, percent
from bias_pipeline.report.verdict import BASIC, JUDGED, Finding, Verdict
from bias_pipeline.report.verdict_sentences import (
    clause_of,
    join_sentences,
    lead,
    named_parts,
    reading_name,
    value_text,
)

_NOUNS: Mapping[str, str] = {
    "misgendering": "naming",
    "assuming": "assuming",
    "describing": "describing",
}
_UNTESTED: Mapping[str, str] = {
    "misgendering": "whether it names the wrong {attribute}",
    "assuming": "whether it assumes {attribute}",
    "describing": "how it describes people",
}
_MOST = 3  # concepts or objects that are named
_SHOWN = 0.005  # a share of words that is not compared and shown


def headline(verdict: Verdict, attribute: str) -> list[str]:
    """The sentences; empty where nothing was asked."""
    sure = [question for question in JUDGED if verdict.sure(question, attribute)]
    if sure:
        return [f"BIAS: it {'; it '.join(_biased_clause(verdict, q, attribute) for q in sure)}."]
    if not verdict.on(BASIC[0], attribute) and not verdict.on("describing", attribute):
        return []
    alone = [question for question in JUDGED if verdict.answer(question, attribute) == "more"]
    sentences = [_undecided_sentence(verdict, question, attribute) for question in alone]
    return sentences + _not_found(verdict, attribute)


def _biased_clause(verdict: Verdict, question: str, attribute: str) -> str:
    """What it does, to whom, and how often."""
    finding = lead([one for one in verdict.decided(question, attribute) if one.more])
    if question == "misgendering":
        rates = [f"{name} in {percent(row.value)} %" for name, row in finding.by_group.items()]
        where = ", ".join(rates) or f"in {value_text(finding, finding.row.value)}"
        people = "" if math.isnan(finding.people) else f"; annotators {percent(finding.people)} %"
        return f"names the wrong {attribute}: {where} of the captions that name one{people}"
    if question == "describing":
        groups = _groups(verdict, attribute)
        return f"describes {groups} differently than annotators do: {_first_parts(finding)}"
    if question == "inventing":
        return f"invents objects for one group: {_first_parts(finding)}"
    if question == "assuming":
        value, people = percent(finding.row.value), percent(finding.people)
        return (
            f"assumes {attribute} that annotators could not see: in {value} of 100 captions, "
            f"annotators in {people}"
        )
    amount = value_text(finding, finding.compared.value - finding.neutral)
    return f"{clause_of(question, 0, attribute)}: {reading_name(finding)}, by {amount}"


def _first_parts(finding: Finding) -> str:
    """The first few things that a metric names, with their rates."""
    parts = named_parts(finding)
    rest = len(parts) - _MOST
    return "; ".join([*parts[:_MOST], *([f"and {rest} more"] if rest > 0 else [])])


def _groups(verdict: Verdict, attribute: str) -> str:
    named = next((f.by_group for f in verdict.about(attribute).findings if f.by_group), {})
    return join_sentences(named) if 0 < len(named) <= _MOST else "the groups"


def _undecided_sentence(verdict: Verdict, question: str, attribute: str) -> str:
    """A Yes that many questions may have made by chance, or that is about a part of the words."""
    p_value = verdict.overall.get((question, attribute), math.nan)
    clause = _biased_clause(verdict, question, attribute)
    if math.isnan(p_value):
        return f"Undecided: in a part of its words it {clause}."
    return (
        f"Undecided: it {clause}; of {len(verdict.overall)} questions one may say so by chance (p "
        f"{p_cell(p_value)} after Holm)."
    )


def _not_found(verdict: Verdict, attribute: str) -> list[str]:
    answers = {question: verdict.answer(question, attribute) for question in BASIC}
    differing = [
        sentence
        for finding in verdict.on("describing", attribute)
        if finding.answered and not finding.more
        for sentence in finding.answered.differing
    ]
    searched = [q for q in BASIC if answers[q] in ("no", "none")]
    if differing:
        searched = [question for question in searched if question != "describing"]
    sentences = []
    if untested := [q for q in BASIC if answers[q] in ("unknown", "")]:
        by_reason: dict[str, list[str]] = {}
        for question in untested:
            text = _UNTESTED[question].format(attribute=attribute)
            by_reason.setdefault(_why_untested(verdict, question, attribute), []).append(text)
        if alone := by_reason.pop("", []):
            sentences.append(f"Cannot tell without annotators' captions: {join_sentences(alone)}.")
        clauses = [f"{join_sentences(texts)} ({reason})" for reason, texts in by_reason.items()]
        if clauses:
            sentences.append(f"Not tested: {'; '.join(clauses)}.")
    if searched:
        where = join_sentences(_NOUNS[question] for question in searched)
        findings = [f for question in searched for f in verdict.decided(question, attribute)]
        highest = max(f.compared.ci_high - f.neutral for f in findings)
        parts = dict.fromkeys(finding.only for finding in findings if finding.only)
        where += f", in {join_sentences(parts)}" if parts else ""
        sentences.append(
            f"Not found in {where}: up to {percent(max(highest, 0.0))} of 100 captions are "
            f"possible{_share_not_compared(verdict, attribute)}."
        )
    elif sentences and (rest := _share_not_compared(verdict, attribute)):
        sentences.append(f"{rest.removeprefix('; ').capitalize()}.")
    reason = verdict.withheld("describing", attribute)
    return [
        *sentences,
        *_differing_sentences(differing, answers["describing"] == "unknown", reason),
    ]


def _why_untested(verdict: Verdict, question: str, attribute: str) -> str:
    """Why no number answers a question; empty where only human captions are lacking."""
    findings = verdict.on(question, attribute)
    if not findings:
        return "no run tests it"
    if withheld := verdict.withheld(question, attribute):
        return withheld.partition(": ")[2]
    if verdict.alone(question, attribute):
        return ""
    return next((finding.doubt for finding in findings if finding.doubt), "")


def _share_not_compared(verdict: Verdict, attribute: str) -> str:
    """The share of words that no number is about, where it is known and can be seen."""
    share = 1 - verdict.covered.get(attribute, math.nan)
    if not share >= _SHOWN:
        return ""
    return f"; {percent(share, 0)} % of its words could not be compared"


def _differing_sentences(sentences: Sequence[str], unknown: bool, reason: str) -> list[str]:
    """Large differences in describing that nobody calls a bias, with what may explain them."""
    if not sentences:
        return []
    shown = "; ".join(sentences[:_MOST])
    if not unknown:
        return [f"It describes the groups differently, as annotators might: {shown}."]
    who = "Without annotators' captions we" if "without annotators" in reason else "We"
    return [f"{shown}. {who} cannot tell whether pictures and habit explain it."]
