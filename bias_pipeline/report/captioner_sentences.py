"""The answers on several captioners, one sentence for each question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from bias_pipeline.report.answer_texts import amount, deciding_number, name_of_number, rate
from bias_pipeline.report.answers import Answer, stored_question
from bias_pipeline.report.conclusion_checks import doubt_about
from bias_pipeline.report.table import p_cell
from bias_pipeline.report.verdict import JUDGED, Finding, Verdict
from bias_pipeline.report.verdict_sentences import (
    ANSWER_CLAUSES,
    clause_of,
    finding_name,
    join_sentences,
)

_MOST_NAMED = 4  # captioners that a sentence names; for more it gives their number


def sentences_on_all(
    verdicts: Mapping[str, Verdict], answers: Mapping[str, Sequence[Answer]], attribute: str
) -> list[str]:
    """The answers on one attribute, of each captioner."""
    sentences = []
    for question in (question for question in ANSWER_CLAUSES if question in JUDGED):
        on_question = {
            captioner: next(
                a for a in answers[captioner] if stored_question(a.question) == question
            )
            for captioner, verdict in verdicts.items()
            if verdict.answer(question, attribute)
        }
        if on_question:
            sentences.append(_sentence(question, on_question, list(verdicts)))
    return sentences


def _sentence(question: str, answers: Mapping[str, Answer], everyone: Sequence[str]) -> str:
    attribute = next(iter(answers.values())).attribute
    given = {name: _kind(answer) for name, answer in answers.items()}
    more, no, chance, unknown = (
        [name for name, kind in given.items() if kind == one]
        for one in ("more", "no", "chance", "unknown")
    )
    rest = []
    if no and more:
        rest.append(f"{_named(no, everyone)} {'do' if len(no) > 1 else 'does'} not")
    if chance and more:
        rest.append(f"for {_named(chance, everyone)} not beyond chance")
    if len(unknown) == len(answers):
        whom = "they" if unknown == everyone else _named(unknown, everyone)
        first = f"It is unknown whether {whom} {clause_of(question, len(unknown) > 1, attribute)}"
    else:
        if unknown:
            rest.append(f"for {_named(unknown, everyone)} it is unknown")
        leads = [answers[name] for name in more]
        clause = clause_of(question, len(more) > 1, attribute, leads[0].metric if leads else "")
        first = f"{_named(more, everyone)} {clause}{_between(more, leads)}"
    if unasked := [name for name in everyone if name not in answers]:
        rest.append(f"no run tests it for {_named(unasked, everyone)}")
    return f"{'; '.join([first, *rest])}."


def _kind(answer: Answer) -> str:
    if answer.answer in ("yes", "no"):
        return {"yes": "more", "no": "no"}[answer.answer]
    return "chance" if answer.bounded or not math.isnan(answer.at_most) else "unknown"


def _between(names: Sequence[str], leads: Sequence[Answer]) -> str:
    """The captioners with the lowest and highest value, if one number decides for all."""
    if len(leads) == 1:
        return f" ({deciding_number(leads[0])})"
    if not leads or len({(lead.metric, lead.part) for lead in leads}) > 1:
        return ""
    ends = [pick(range(len(leads)), key=lambda i: leads[i].value) for pick in (min, max)]
    span = " to ".join(f"{names[i]} {amount(leads[i], leads[i].value)}" for i in ends)
    # Annotators' number may differ too: they are read with each captioner's words, on its images.
    known = sorted(lead.annotators for lead in leads if not math.isnan(lead.annotators))
    people = dict.fromkeys(rate(leads[0], value) for value in (known[:1] + known[-1:]))
    beside = f", annotators {' to '.join(people)}" if people else ""
    p_value = p_cell(max(lead.p_value for lead in leads))
    p_text = f"p {p_value}" if p_value.startswith("<") else f"p = {p_value}"
    return f" ({name_of_number(leads[0])}: {span}{beside}; largest {p_text})"


def _named(names: Sequence[str], captioners: Sequence[str]) -> str:
    """Some captioners by name, or their number out of all."""
    if not names:
        return "None, beyond chance,"
    if len(names) == len(captioners) > 1:
        return f"All {len(captioners)}"
    if len(names) <= _MOST_NAMED:
        return join_sentences(names)
    return f"{len(names)} of {len(captioners)}"


def not_used_by_all(findings: Iterable[Finding]) -> list[str]:
    """The numbers that are not used, by reason; those of captioners differ only in numbers."""
    stems: dict[tuple[str, str], dict[str, str]] = {}
    for finding in findings:
        stem, _, detail = finding.doubt.partition(": ")
        stems.setdefault((finding_name(finding), stem), {})[finding.row.captioner] = detail
    by_reason: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}
    metrics: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (metric, stem), details in stems.items():
        key = (stem, tuple(details))
        by_reason.setdefault(key, details)
        metrics.setdefault(key, []).append(metric)
    return [_not_used(metrics[key], key[0], details) for key, details in by_reason.items()]


def _not_used(metrics: Sequence[str], stem: str, details: Mapping[str, str]) -> str:
    name, detail = next(iter(details.items()))
    whom = f"for {len(details)} captioners " if len(details) > 1 else f"for {name} "
    such = f" ({'such as ' * (len(details) > 1)}{name}: {detail})" if detail else ""
    return f"{join_sentences(metrics)}: {whom}{doubt_about(metrics, stem)}{such}."
