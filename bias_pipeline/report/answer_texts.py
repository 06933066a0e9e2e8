"""Puts answers into words: a screen of an audit, its headline, and the notes below it.

The headline contains a Yes only if it is still a Yes after a correction for all questions and
attributes (Holm). If no bias was found, the headline says how much bias is still possible and on
which questions. The headline also says how many of the captioner's words could not be compared.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from bias_pipeline.errors import inflect, join_words
from bias_pipeline.metrics.base import HEADLINES, NOT_SHOWN, QUESTIONS
from bias_pipeline.metrics.repeated_scores import NOISE
from bias_pipeline.metrics.value_names import T_TO_A, direction_of
from bias_pipeline.report.answers import Answer, stored_question, why_unknown
from bias_pipeline.report.conclusion_checks import doubt_about
from bias_pipeline.report.table import NumberCell, p_cell, percent
from bias_pipeline.report.tables import ARROWS, headline_name, metric_name
from bias_pipeline.report.verdict import JUDGED, WRONG_IF, Finding, Verdict
from bias_pipeline.report.verdict_sentences import (
    PANELS,
    clause_of,
    one_direction,
    reading_name,
)
from bias_pipeline.results.rows import Result, Row, mapping_in
from bias_pipeline.results.settings import label

_MOST_GROUPS = 4  # if there are more groups, only the lowest and the highest are shown
_MOST_NAMED = 6  # how many concepts or objects are named
_WORDS = {"yes": "Yes", "no": "No", "cannot_tell": "Cannot tell", "not_tested": "Not tested"}


def question_text(question: str, attribute: str) -> str:
    """A question in the words of the screen."""
    stored = stored_question(question)
    text = PANELS["directions"] if stored == "tasks" else PANELS.get(stored)
    return (text or QUESTIONS[stored]).format(attribute=attribute)


def answer_lines(answer: Answer) -> list[str]:
    """Lines with the answer, its number, the groups' values, and which part of captions counts."""
    named = ", ".join(answer.named[:_MOST_NAMED])
    if len(answer.named) > _MOST_NAMED:
        named += f" and {len(answer.named) - _MOST_NAMED} more"
    text = answer_text(answer)
    between = ": " if text in _WORDS.values() else "; "
    first = between.join(filter(None, (text, deciding_number(answer))))
    return [first, *filter(None, (_groups(answer), answer.limits, named))]


def answer_text(answer: Answer) -> str:
    """The answer, with its reason or with the largest bias that the interval allows."""
    word = _WORDS[answer.answer]
    if answer.answer == "no":
        most, none = (amount(answer, x) for x in (max(answer.at_most, 0.0), answer.negligible))
        return f"{word}: at most {most} ({none} count as none)"
    if answer.answer == "cannot_tell" and answer.reason == NOT_SHOWN:
        return f"Not shown: at most {amount(answer, answer.at_most)}"
    if answer.answer == "not_tested" and not math.isnan(answer.value):
        return ""  # a number on which no verdict is given
    if not answer.reason:
        return word
    return f"{word}{',' if answer.answer == 'yes' else ':'} {answer.reason}"


def deciding_number(answer: Answer) -> str:
    """The number that decides, its interval, and the annotators' number; may be empty."""
    if math.isnan(answer.value):
        return ""
    if answer.question == "declining":
        value = rate(answer, answer.value)
    elif answer.answer == "yes":
        value = amount(answer, answer.value)
    else:
        value = value_text(answer, answer.value)  # the answer's first words have the unit
    value += interval(answer)
    if not math.isnan(answer.annotators):
        value += f" ({others_of(answer)} {value_text(answer, answer.annotators)})"
    return f"{name_of_number(answer)} {value}"


def others_of(answer: Answer) -> str:
    """What the model's number is compared with: ``labels`` or ``annotators``."""
    return "labels" if answer.question == "mentions" else "annotators"


def interval(answer: Answer) -> str:
    """The interval as text for the place behind a value; empty without an interval."""
    if math.isnan(answer.ci_low):
        return ""
    return f" [{value_text(answer, answer.ci_low)}, {value_text(answer, answer.ci_high)}]"


def name_of_number(answer: Answer) -> str:
    """The metric of the number that decides, with its direction; empty without a number."""
    name = metric_name(answer.metric, answer.attribute)
    return " ".join(filter(None, [name, ARROWS.get(direction_of(answer.part), "")]))


def _groups(answer: Answer) -> str:
    rows = sorted(answer.by_group.items(), key=lambda item: item[1].value)
    if len(rows) <= _MOST_GROUPS:
        return ", ".join(f"{n} {rate(answer, r.value)}" for n, r in answer.by_group.items())
    ends = ", ".join(f"{name} {rate(answer, row.value)}" for name, row in (rows[0], rows[-1]))
    return f"{ends}; {len(rows) - 2} more in the report"


def value_text(answer: Answer, value: float) -> str:
    """A value of an answer as text, in which fractions are in per cent."""
    return NumberCell.in_unit(answer.unit, value).text


def rate(answer: Answer, value: float) -> str:
    """A value of an answer as text, in which fractions have a per cent sign."""
    return value_text(answer, value) + " %" * (answer.unit == "fraction")


def amount(answer: Answer, value: float) -> str:
    """A value of an answer, with the unit for differences."""
    unit = {"fraction": " points", "nat": " nat", "bits": " bits"}.get(answer.unit, "")
    return f"{value_text(answer, value)}{unit}"


WIDTH = 80  # columns of the screen
_HEADLINE_LINES = 5


def screen(verdict: Verdict, answers: Sequence[Answer]) -> list[str]:
    """The headline and the answers on one attribute, in lines of at most :data:`WIDTH` columns."""
    text = " ".join(headline(verdict, answers))
    lines = [*textwrap.wrap(text, WIDTH, max_lines=_HEADLINE_LINES, placeholder=" …"), ""]
    for answer in answers:
        question = question_text(answer.question, answer.attribute)
        first, *further = answer_lines(answer)
        if len(f"{question} {first}") <= WIDTH:
            lines.append(f"{question} {first}")
        else:
            lines += [question, *indented_lines(first)]
        lines += [line for text in further for line in indented_lines(text)]
    return lines


def fold(text: str) -> list[str]:
    """A text, wrapped into lines of at most :data:`WIDTH` columns."""
    return textwrap.wrap(text, WIDTH)


def indented_lines(text: str) -> list[str]:
    """A text, wrapped into lines that are indented below a question."""
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


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
_MOST = 3  # how many concepts or objects are named
_SHOWN = 0.005  # a share of words that is not compared and shown


def headline(verdict: Verdict, answers: Sequence[Answer]) -> list[str]:
    """The sentences on one attribute; empty if no run tests a question about it."""
    attribute = answers[0].attribute
    biased = [answer for answer in answers if answer.answer == "yes"]
    sure = [
        answer for answer in biased if verdict.is_sure(stored_question(answer.question), attribute)
    ]
    if sure:
        return [f"BIAS: it {'; it '.join(_bias_clause(answer) for answer in sure)}."]
    findings = [f for question in JUDGED for f in verdict.findings_on(question, attribute)]
    if not findings:
        return []
    if len(reasons := {f.withheld.partition(": ")[2] for f in findings}) == 1 and all(reasons):
        return [f"Cannot tell: {reasons.pop()}."]
    sentences = [_undecided_sentence(verdict, answer) for answer in biased]
    return sentences + _not_found(verdict, answers)


def _bias_clause(answer: Answer) -> str:
    """A clause that says what the captioner does, how much, and to whom."""
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
    """A sentence on a Yes that may be chance among many questions, or that is about few words."""
    key = (stored_question(answer.question), answer.attribute)
    p_value = verdict.overall.get(key, math.nan)
    clause = _bias_clause(answer)
    if math.isnan(p_value):
        return f"Undecided: {answer.limits} it {clause}."
    return (
        f"Undecided: it {clause}, but one of {len(verdict.overall)} questions may show this "
        f"by chance (p {p_cell(p_value)} after Holm)."
    )


def _not_found(verdict: Verdict, answers: Sequence[Answer]) -> list[str]:
    """Sentences on how much bias is possible, and on what was not tested or not explained."""
    attribute = answers[0].attribute
    differing = [
        sentence
        for finding in verdict.findings_on("describing", attribute)
        if finding.answered and not finding.is_biased
        for sentence in finding.answered.differing
    ]
    searched = [answer for answer in answers if answer.is_bounded]
    if differing:
        searched = [answer for answer in searched if answer.question != "describing"]
    rest = _share_not_compared(verdict, attribute)
    sentences = [f"{_possible(searched)}{rest}."] if searched else []
    untested: dict[bool, list[str]] = {}
    for answer in answers:
        if answer.question in _UNTESTED and not answer.is_bounded and answer.answer != "yes":
            lacks_people = not math.isnan(answer.value)
            text = _UNTESTED[answer.question].format(attribute=attribute)
            untested.setdefault(lacks_people, []).append(text)
    if alone := untested.get(True, []):
        sentences.append(f"Cannot tell without annotators' captions: {join_words(alone)}.")
    if others := untested.get(False, []):
        sentences.append(f"Not tested: {join_words(others)}.")
    if rest and not searched:
        sentences.append(f"{rest.removeprefix('; ').capitalize()}.")
    unknown = verdict.answer("describing", attribute) == "unknown"
    reason = verdict.withheld("describing", attribute)
    return [*sentences, *_differing_sentences(differing, unknown, reason)]


def _possible(searched: Sequence[Answer]) -> str:
    """A sentence on the bias that the widest interval allows, and where no bias was found."""
    widest = max(searched, key=lambda answer: answer.at_most)
    most = amount(widest, max(widest.at_most, 0.0))
    where = join_words(_noun(answer) for answer in searched)
    if all(answer.answer == "no" for answer in searched):
        return (
            f"At most {most} of bias in {where} ({amount(widest, widest.negligible)} count as none)"
        )
    of = f" in {_NOUNS[widest.question]}" if len(searched) > 1 else ""
    return f"Bias of up to {most}{of} cannot be excluded; none was found in {where}"


def _noun(answer: Answer) -> str:
    return _NOUNS[answer.question] + f" ({answer.limits})" * bool(answer.limits)


def _share_not_compared(verdict: Verdict, attribute: str) -> str:
    """A clause on the share of words that was not compared; empty if it is unknown or too small."""
    share = 1 - verdict.covered.get(attribute, math.nan)
    if not share >= _SHOWN:
        return ""
    return f"; {percent(share, 0)} % of its words could not be compared"


def _differing_sentences(sentences: Sequence[str], unknown: bool, reason: str) -> list[str]:
    """Sentences on large differences that are not called bias, and on their possible causes."""
    if not sentences:
        return []
    shown = "; ".join(sentences[:_MOST])
    if not unknown:
        return [f"It describes the groups differently, as annotators might: {shown}."]
    who = "Without annotators' captions we" if "without annotators" in reason else "We"
    return [f"{shown}. {who} cannot tell whether pictures and habit explain it."]


_ONE_WAY = "This answer is about A→T alone; nothing is known of T→A"
# By question, the data without which no run can test it.
_NEEDS: Mapping[str, str] = {
    "leakage": "human captions of the same images (--captions FILE, in Python human=...)",
    "assuming": "images of which annotators could not tell the {attribute}, labelled Unsure",
    "tasks": "the objects in the images (--objects FILE, in Python objects=...)",
    "inventing": "the objects in the images (--objects FILE, in Python objects=...)",
}


def notes(verdict: Verdict, answers: Sequence[Answer]) -> list[str]:
    """Sentences on one attribute: missing data, reasons for a wrong Yes, and further numbers."""
    attribute = answers[0].attribute
    lines = []
    for answer in answers:
        question = stored_question(answer.question)
        decided = verdict.findings_used(question, attribute)
        others = [finding for finding in decided if not answer.rests_on(finding)]
        listed = "; ".join(map(_comparison_text, others))
        further = [f"Further numbers: {listed}."] if others else []
        if answer.answer == "yes":
            further.append(f"The Yes is wrong if {WRONG_IF[question]}.")
        if further := [*filter(None, [what_is_needed(verdict, answer)]), *further]:
            lines.append(" ".join([QUESTIONS[question], *further]))
    judged = [
        finding for question in JUDGED for finding in verdict.findings_on(question, attribute)
    ]
    return lines + not_used(
        [f for f in judged if f.doubt and not (f.lacks_annotators or _is_answer(f))]
    )


def what_is_needed(verdict: Verdict, answer: Answer) -> str:
    """Why a question lacks a full answer, and which data it needs; empty if the answer is full."""
    question, attribute = stored_question(answer.question), answer.attribute
    if question not in JUDGED:
        withheld = verdict.withheld(question, attribute).partition(": ")[2]
        return f"{withheld[0].upper()}{withheld[1:]}." if withheld else ""
    about = verdict.about(attribute)
    if one_direction(about, question):
        known = any(finding.headline == T_TO_A for finding in about.findings_on(question))
        return f"{_ONE_WAY}." if known else f"{_ONE_WAY}, which needs {_NEEDS['tasks']}."
    given = verdict.answer(question, attribute)
    if not given:
        needs = _NEEDS.get(question, "").format(attribute=attribute)
        return f"It needs {needs}." if needs else ""
    if given != "unknown":
        return ""
    if verdict.findings_without_annotators(question, attribute):
        return f"To compare it with annotators, give {_NEEDS['leakage']}."
    reason = why_unknown(verdict, question, attribute)
    return f"{reason[0].upper()}{reason[1:]}."


def _is_answer(finding: Finding) -> bool:
    """Whether the answer already shows the doubt of the finding."""
    return finding.answered is not None or finding.doubt == f"it {finding.withheld}"


def _comparison_text(finding: Finding) -> str:
    """The number that is compared with the no-bias value, in the form of answers."""
    people = finding.people
    beside = "" if math.isnan(people) else f", annotators {_number_text(people, finding)}"
    value = NumberCell.of_row(finding.compared).text
    return f"{reading_name(finding)} {value}{beside}, p {p_cell(finding.p_value)}"


def not_used(findings: Iterable[Finding]) -> list[str]:
    """A line for each reason not to use a number, with the numbers to which it applies."""
    doubted: dict[str, list[Finding]] = {}
    for finding in findings:
        doubted.setdefault(finding.doubt, []).append(finding)
    lines = []
    for doubt, some in doubted.items():
        numbers = "; ".join(f"{reading_name(f)} {_number_text(f.row.value, f)}" for f in some)
        lines.append(f"Not used: {numbers}: {doubt_about(set(map(reading_name, some)), doubt)}.")
    return lines


def _number_text(value: float, finding: Finding) -> str:
    return NumberCell.in_unit(finding.row.unit, value).text


_NAMED = 4  # how many headlines the sentence names


def noise_sentences(results: Sequence[Result]) -> list[str]:
    """A sentence for each attribute whose label noise was tested.

    The sentence names the headlines that would leave their interval, with the largest change first.
    """
    by_attribute: dict[str, list[Result]] = {}
    for result in results:
        if _wrong_shares(result):
            by_attribute.setdefault(result.rows[0].attribute, []).append(result)
    return [_sentence(name, noisy) for name, noisy in by_attribute.items()]


def _sentence(attribute: str, results: Sequence[Result]) -> str:
    rates = ", ".join(
        f"{share:.1%} of {group}" for group, share in _wrong_shares(results[0]).items()
    )
    moved: list[tuple[float, str]] = []
    n_tested = 0
    for result in results:
        rows = {row.part: row for row in result.rows}
        for name in HEADLINES:
            row, move = rows.get(name), rows.get(NOISE if name == "score" else f"{name}:{NOISE}")
            if row is None or move is None or math.isnan(row.ci_low + move.value):
                continue
            n_tested += 1
            wide = max(row.ci_high - row.value, row.value - row.ci_low)
            if not row.ci_low <= row.value + move.value <= row.ci_high:
                what = f"{headline_name(row, label(result))} by {_amount(move)}"
                moved.append((abs(move.value) / wide if wide else math.inf, what))
    first = f"If more {attribute} labels were wrong (a further {rates})"
    if not moved:
        return f"{first}, none of {inflect(n_tested, 'headlines')} would leave its interval."
    names = [what for _, what in sorted(moved, key=lambda one: -one[0])]
    more = f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
    intervals = "its interval" if len(names) == 1 else "their intervals"
    return (
        f"{first}, {len(names)} of {inflect(n_tested, 'headlines')} would leave {intervals}: "
        f"{', '.join(names[:_NAMED])}{more}."
    )


def _amount(move: Row) -> str:
    if move.unit != "fraction":
        return f"{move.value:+.3g}"
    sign = "+" if move.value > 0 else ""
    return f"{sign}{percent(move.value)} points"


def _wrong_shares(result: Result) -> Mapping[str, float]:
    """The additional share of wrong labels that was tested, by group; empty without such a test."""
    return mapping_in(result.facts.audit, NOISE, "wrong")
