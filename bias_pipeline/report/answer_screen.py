"""The screen of an audit: a headline, and below each question its answer."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from bias_pipeline.report.answer_texts import answer_lines, question_text
from bias_pipeline.report.answers import Answer
from bias_pipeline.report.headline import headline
from bias_pipeline.report.verdict import Verdict

WIDTH = 80  # columns of the screen
_HEADLINE_LINES = 5


def screen(verdict: Verdict, answers: Sequence[Answer]) -> list[str]:
    """The answers about one attribute in lines of at most :data:`WIDTH` columns."""
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
    """A text in lines of at most :data:`WIDTH` columns."""
    return textwrap.wrap(text, WIDTH)


def indented_lines(text: str) -> list[str]:
    """A text below its question."""
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
