"""The first screen of a report, with a card for each question that has a number.

Positions are shares of a bar's width. So a page draws bars without a script, and text stays text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bias_pipeline.report.answer_texts import (
    amount,
    answer_text,
    deciding_number,
    interval,
    others_of,
    question_text,
    rate,
    value_text,
    what_is_needed,
)
from bias_pipeline.report.answers import Answer, stored_question
from bias_pipeline.report.examples import ScreenExamples
from bias_pipeline.report.table import Table
from bias_pipeline.report.verdict import JUDGED, Verdict
from bias_pipeline.report.verdict_sentences import clause_of
from bias_pipeline.results.rows import Result

TONES = {"yes": "worse", "no": "better", "cannot_tell": "level", "not_tested": "level"}
_MOST_DETAILS = 5  # how many concepts or objects a card lists


@dataclass(frozen=True)
class Bar:
    """A number with its interval, both as shares of the width in per cent."""

    name: str  # the group, or whose number the bar is
    text: str  # the value with its interval
    zero: float
    start: float  # left end of the bar: zero, or a negative value
    width: float
    low: float | None  # left end of the interval
    high: float | None
    beside: bool = False  # whether the bar is of annotators or labels, not of captions


@dataclass(frozen=True)
class AnswerCard:
    question: str
    answer: str  # in a word, with how much bias is still possible
    tone: str  # `worse`, `better` or `level`
    sentence: str  # what was measured, without names of settings
    number: str  # the metric, its value and interval, annotators' value
    details: Sequence[str]  # concepts or objects with the groups' rates
    bars: Sequence[Bar]
    examples: Sequence[Table]  # captions behind the number, one caption of each kind


def cards(
    answers: Sequence[Answer],
    results: Mapping[str, Result],
    behind: ScreenExamples,
) -> list[AnswerCard]:
    """A card for each answer with a number, in the order of the questions.

    ``results`` are by run id.
    """
    return [
        AnswerCard(
            question=question_text(answer.question, answer.attribute),
            answer=answer_text(answer),
            tone=TONES[answer.answer],
            sentence=_sentence(answer),
            number=deciding_number(answer),
            details=answer.details[:_MOST_DETAILS],
            bars=_bars(answer),
            examples=behind.one_of_each(
                stored_question(answer.question), results[answer.run_id], answer.named
            ),
        )
        for answer in answers
        if not math.isnan(answer.value)
    ]


def lacking(verdict: Verdict, answers: Sequence[Answer]) -> list[str]:
    """A line for each question that was not tested, with the data that a test needs."""
    lines = []
    for answer in answers:
        missing = what_is_needed(verdict, answer)
        if missing or (math.isnan(answer.value) and answer.reason):
            question = question_text(answer.question, answer.attribute)
            lines.append(f"{question} {missing or f'{answer.reason}.'}")
    return lines


def _sentence(answer: Answer) -> str:
    question = stored_question(answer.question)
    limit = f" ({answer.limits})" if answer.limits else ""
    measured = f"{amount(answer, answer.value)}{interval(answer)}"
    if question not in JUDGED:
        return ""
    if answer.answer == "yes":
        clause = clause_of(question, 0, answer.attribute, answer.metric)
        return f"It {clause}, by {measured}{limit}."
    if answer.answer == "no":
        return f"The difference is {measured}{limit}: too small to count."
    if answer.is_bounded:
        most = amount(answer, max(answer.at_most, 0.0))
        return f"No bias beyond chance: {measured}{limit}. Up to {most} cannot be excluded."
    return f"Measured: {rate(answer, answer.value)}{interval(answer)}{limit}."


def _bars(answer: Answer) -> list[Bar]:
    """A bar for each group and for annotators; without groups, a bar for the deciding number."""
    judged = stored_question(answer.question) in JUDGED
    bars = [(name, row.value, row.ci_low, row.ci_high) for name, row in answer.by_group.items()]
    bars = [bar for bar in bars if not math.isnan(bar[1])]
    alone = not bars
    if alone:
        name = "difference" if judged else "captions"
        bars = [(name, answer.value, answer.ci_low, answer.ci_high)]
    if not math.isnan(answer.annotators) and not (alone and judged):
        bars.append((others_of(answer), answer.annotators, math.nan, math.nan))
    return _place_bars(answer, bars, signed=alone and judged)


def _place_bars(
    answer: Answer, values: Sequence[tuple[str, float, float, float]], *, signed: bool
) -> list[Bar]:
    ends = [end for _, *three in values for end in three if not math.isnan(end)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    if not high > low:  # all values are zero, so there is nothing to draw
        return []

    def place_of(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    write = value_text if signed else rate
    bars = []
    for name, value, start, end in values:
        known = not math.isnan(start)
        ends_text = f" [{value_text(answer, start)}, {value_text(answer, end)}]" if known else ""
        left, right = sorted((place_of(0.0), place_of(value)))
        bars.append(
            Bar(
                name=name,
                text=f"{write(answer, value)}{ends_text}",
                zero=place_of(0.0),
                start=left,
                width=round(right - left, 2),
                low=place_of(start) if known else None,
                high=place_of(end) if known else None,
                beside=name == others_of(answer),
            )
        )
    return bars
