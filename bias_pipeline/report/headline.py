"""The answers on one attribute in a sentence or two: what was found, or what cannot be excluded.

A Yes stands here only if it remains one after a correction for all questions and attributes
(Holm). Of what was not found it is said how much is still possible, in which question, and how many
of the captioner's words nobody could compare.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bias_pipeline.report.answer_texts import amount, interval, name_of_number, rate
from bias_pipeline.report.answers import Answer, stored_question
from bias_pipeline.report.table import p_cell, percent
from bias_pipeline.report.verdict import JUDGED, Verdict
from bias_pipeline.report.verdict_sentences import clause_of, join_sentences

# Where each question looks for bias, as nouns.
_NOUNS: Mapping[str, str] = {
    "leakage": "leaks",
    "naming": "naming",
    "describing": "describing",
    "assuming": "assuming",
    "tasks": "links with objects",
    "inventing": "invented objects",
    "changing": "changes between persons",
}
_UNTESTED: Mapping[str, str] = {
    "naming": "whether it names the wrong {attribute}",
    "assuming": "whether it assumes {attribute}",
    "describing": "how it describes people",
}
_MOST = 3  # concepts or objects that are named
_SHOWN = 0.005  # a share of words that is not compared and shown


def headline(verdict: Verdict, answers: Sequence[Answer]) -> list[str]:
    """The sentences on one attribute; none where nothing was asked."""
    attribute = answers[0].attribute
    biased = [answer for answer in answers if answer.answer == "yes"]
    sure = [
        answer for answer in biased if verdict.sure(stored_question(answer.question), attribute)
    ]
    if sure:
        return [f"BIAS: it {'; it '.join(_bias_clause(answer) for answer in sure)}."]
    if not any(verdict.on(question, attribute) for question in JUDGED):
        return []
    sentences = [_undecided_sentence(verdict, answer) for answer in biased]
    return sentences + _not_found(verdict, answers)


def _bias_clause(answer: Answer) -> str:
    """What it does, by how much, and to whom."""
    question = stored_question(answer.question)
    clause = clause_of(question, 0, answer.attribute, answer.metric)
    parts = [*answer.details[:_MOST]]
    if len(answer.details) > _MOST:
        parts.append(f"and {len(answer.details) - _MOST} more")
    if answer.question in ("naming", "assuming") and answer.by_group:
        rates = {name: row.value for name, row in answer.by_group.items()}
        rates["annotators"] = answer.annotators
        parts = [", ".join(f"{name} {rate(answer, value)}" for name, value in rates.items())]
    number = f"{name_of_number(answer)} {amount(answer, answer.value)}{interval(answer)}"
    details = f": {'; '.join(parts)}" if parts else ""
    return f"{clause} ({number}){details}"


def _undecided_sentence(verdict: Verdict, answer: Answer) -> str:
    """A Yes that many questions may have made by chance, or that is about a part of the words."""
    key = (stored_question(answer.question), answer.attribute)
    p_value = verdict.overall.get(key, math.nan)
    clause = _bias_clause(answer)
    if math.isnan(p_value):
        return f"Undecided: {answer.limits} it {clause}."
    return (
        f"Undecided: it {clause}; of {len(verdict.overall)} questions one may say so by chance (p "
        f"{p_cell(p_value)} after Holm)."
    )


def _not_found(verdict: Verdict, answers: Sequence[Answer]) -> list[str]:
    """How much bias is possible, what was not tested, and what differs for a reason unknown."""
    attribute = answers[0].attribute
    differing = [
        sentence
        for finding in verdict.on("describing", attribute)
        if finding.answered and not finding.more
        for sentence in finding.answered.differing
    ]
    searched = [answer for answer in answers if answer.bounded]
    if differing:
        searched = [answer for answer in searched if answer.question != "describing"]
    rest = _share_not_compared(verdict, attribute)
    sentences = [f"{_possible(searched)}{rest}."] if searched else []
    untested: dict[bool, list[str]] = {}
    for answer in answers:
        if answer.question in _UNTESTED and not answer.bounded and answer.answer != "yes":
            lacks_people = not math.isnan(answer.value)
            text = _UNTESTED[answer.question].format(attribute=attribute)
            untested.setdefault(lacks_people, []).append(text)
    if alone := untested.get(True, []):
        sentences.append(f"Cannot tell without annotators' captions: {join_sentences(alone)}.")
    if others := untested.get(False, []):
        sentences.append(f"Not tested: {join_sentences(others)}.")
    if rest and not searched:
        sentences.append(f"{rest.removeprefix('; ').capitalize()}.")
    unknown = verdict.answer("describing", attribute) == "unknown"
    reason = verdict.withheld("describing", attribute)
    return [*sentences, *_differing_sentences(differing, unknown, reason)]


def _possible(searched: Sequence[Answer]) -> str:
    """How much bias the widest interval allows, and where none was found."""
    widest = max(searched, key=lambda answer: answer.at_most)
    most = amount(widest, max(widest.at_most, 0.0))
    where = join_sentences(_noun(answer) for answer in searched)
    if all(answer.answer == "no" for answer in searched):
        return (
            f"At most {most} of bias in {where} ({amount(widest, widest.negligible)} count as none)"
        )
    of = f" in {_NOUNS[widest.question]}" if len(searched) > 1 else ""
    return f"Bias of up to {most}{of} cannot be excluded; none was found in {where}"


def _noun(answer: Answer) -> str:
    return _NOUNS[answer.question] + f" ({answer.limits})" * bool(answer.limits)


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
