"""An answer in words: its question, its number with its interval, the values of the groups."""

from __future__ import annotations

import math

from bias_pipeline.metrics.base import NOT_SHOWN, QUESTIONS
from bias_pipeline.metrics.value_names import direction_of
from bias_pipeline.report.answers import Answer, stored_question
from bias_pipeline.report.table import NumberCell
from bias_pipeline.report.tables import ARROWS, metric_name
from bias_pipeline.report.verdict_sentences import PANELS

_MOST_GROUPS = 4  # of more only the lowest and the highest are shown
_MOST_NAMED = 6  # concepts or objects that are named
_WORDS = {"yes": "Yes", "no": "No", "cannot_tell": "Cannot tell", "not_tested": "Not tested"}


def question_text(question: str, attribute: str) -> str:
    """A question as the screen asks it."""
    stored = stored_question(question)
    text = PANELS["directions"] if stored == "tasks" else PANELS.get(stored)
    return (text or QUESTIONS[stored]).format(attribute=attribute)


def answer_lines(answer: Answer) -> list[str]:
    """The answer with its number, the values of the groups, and what it is about."""
    named = ", ".join(answer.named[:_MOST_NAMED])
    if len(answer.named) > _MOST_NAMED:
        named += f" and {len(answer.named) - _MOST_NAMED} more"
    text = answer_text(answer)
    between = ": " if text in _WORDS.values() else "; "
    first = between.join(filter(None, (text, deciding_number(answer))))
    return [first, *filter(None, (_groups(answer), answer.limits, named))]


def answer_text(answer: Answer) -> str:
    """The answer with its reason, or with how much bias its interval allows."""
    word = _WORDS[answer.answer]
    if answer.answer == "no":
        most, none = (amount(answer, x) for x in (max(answer.at_most, 0.0), answer.negligible))
        return f"{word}: at most {most} ({none} count as none)"
    if answer.answer == "cannot_tell" and answer.reason == NOT_SHOWN:
        return f"Not shown: at most {amount(answer, answer.at_most)}"
    if answer.answer == "not_tested" and not math.isnan(answer.value):
        return ""  # a number that no verdict is given on
    if not answer.reason:
        return word
    return f"{word}{',' if answer.answer == 'yes' else ':'} {answer.reason}"


def deciding_number(answer: Answer) -> str:
    """The deciding number with its interval, and annotators' own; empty if there is none."""
    if math.isnan(answer.value):
        return ""
    if answer.question == "declining":
        value = rate(answer, answer.value)
    elif answer.answer == "yes":
        value = amount(answer, answer.value)
    else:
        value = plain(answer, answer.value)  # its unit stands before
    value += interval(answer)
    if not math.isnan(answer.annotators):
        value += f" ({others_of(answer)} {plain(answer, answer.annotators)})"
    return f"{name_of_number(answer)} {value}"


def others_of(answer: Answer) -> str:
    """Whose number stands beside the model's."""
    return "labels" if answer.question == "mentions" else "annotators"


def interval(answer: Answer) -> str:
    """The interval after a value; empty without one."""
    if math.isnan(answer.ci_low):
        return ""
    return f" [{plain(answer, answer.ci_low)}, {plain(answer, answer.ci_high)}]"


def name_of_number(answer: Answer) -> str:
    """The metric of the deciding number, with its direction; empty if there is none."""
    name = metric_name(answer.metric, answer.attribute)
    return " ".join(filter(None, [name, ARROWS.get(direction_of(answer.part), "")]))


def _groups(answer: Answer) -> str:
    rows = sorted(answer.by_group.items(), key=lambda item: item[1].value)
    if len(rows) <= _MOST_GROUPS:
        return ", ".join(f"{n} {rate(answer, r.value)}" for n, r in answer.by_group.items())
    ends = ", ".join(f"{name} {rate(answer, row.value)}" for name, row in (rows[0], rows[-1]))
    return f"{ends}; {len(rows) - 2} more in the report"


def plain(answer: Answer, value: float) -> str:
    """A value of an answer, a fraction in per cent."""
    return NumberCell.in_unit(answer.unit, value).text


def rate(answer: Answer, value: float) -> str:
    """A value of an answer with a sign for per cent."""
    return plain(answer, value) + " %" * (answer.unit == "fraction")


def amount(answer: Answer, value: float) -> str:
    """A value of an answer with the unit of a difference."""
    unit = {"fraction": " points", "nat": " nat", "bits": " bits"}.get(answer.unit, "")
    return f"{plain(answer, value)}{unit}"
