"""Tables of answers, with a line for each question or for each captioner."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from bias_pipeline.errors import join_words
from bias_pipeline.report.answer_texts import answer_text, name_of_number, question_text
from bias_pipeline.report.answers import Answer, stored_question
from bias_pipeline.report.table import Cell, NumberCell, PCell, Table
from bias_pipeline.report.verdict import JUDGED, Finding, Verdict
from bias_pipeline.report.verdict_sentences import reading_name
from bias_pipeline.results.rows import Result, mapping_in

_TONES = {"yes": "worse"}


def answers_table(answers: Sequence[Answer], made: str = "") -> Table:
    """A table of the answers on one attribute, with the images of each number.

    ``made`` is the text of :func:`how_made`, with which the caption ends.
    """
    groups = list(dict.fromkeys(name for answer in answers for name in answer.by_group))
    head = ["question", "answer", "number", "value", "annotators", *groups, "images", "coverage"]
    rows: list[list[Cell]] = [
        [
            question_text(answer.question, answer.attribute),
            answer_text(answer) or None,
            name_of_number(answer) or None,
            value_cell(answer),
            _cell(answer, answer.annotators),
            *(_group(answer, name) for name in groups),
            NumberCell(answer.n_images, digits=0) if answer.n_images else None,
            None
            if math.isnan(answer.coverage)
            else NumberCell(answer.coverage, fraction=True, digits=0),
        ]
        for answer in answers
    ]
    return Table(_caption("Answers", made), head, rows)


def value_cell(answer: Answer) -> NumberCell | None:
    """The number that decides, with its interval, or None if there is no number."""
    if math.isnan(answer.value):
        return None
    ends = (answer.ci_low, answer.ci_high)
    low, high = (None if math.isnan(end) else end for end in ends)
    cell = NumberCell.in_unit(answer.unit, answer.value, low, high)
    return replace(cell, tone=_TONES.get(answer.answer, ""))


def _cell(answer: Answer, value: float) -> NumberCell | None:
    return None if math.isnan(value) else NumberCell.in_unit(answer.unit, value)


def _group(answer: Answer, name: str) -> NumberCell | None:
    row = answer.by_group.get(name)
    return None if row is None else NumberCell.of_row(row)


def numbers_tables(verdict: Verdict, answers: Sequence[Answer]) -> Iterator[Table]:
    """A table of all numbers on each question; the number that decides comes first."""
    head = ["number", "use", "value", "annotators", "p", "images", "coverage"]
    for answer in answers:
        findings = verdict.findings_on(stored_question(answer.question), answer.attribute)
        lines = [(_use(finding, answer), finding) for finding in findings]
        lines.sort(key=lambda line: _USES.index(line[0]))
        if lines:
            rows = [_line(use, finding) for use, finding in lines]
            yield Table(question_text(answer.question, answer.attribute), head, rows)


_USES = ("decides", "supports", "shown", "not used")


def _use(finding: Finding, answer: Answer) -> str:
    if finding.question not in JUDGED:
        return "shown"
    if answer.rests_on(finding):
        return "decides"
    return "not used" if finding.doubt else "supports"


def _line(use: str, finding: Finding) -> list[Cell]:
    row, people = finding.compared, finding.people
    number = NumberCell.of_row(row)
    if math.isnan(row.ci_low):
        number = replace(number, low=None, high=None)
    return [
        reading_name(finding),
        use,
        replace(number, tone="doubt" if use == "not used" else ""),
        None if math.isnan(people) else NumberCell.in_unit(finding.row.unit, people),
        PCell(finding.p_value),
        NumberCell(row.n_images, digits=0),
        NumberCell(row.coverage, fraction=True, digits=0),
    ]


def captioners_table(
    answers: Mapping[str, Sequence[Answer]], unsure: Collection[str], made: str = ""
) -> Table:
    """Each captioner's number for each question that has a number.

    ``unsure`` has the captioners that may or may not have learnt from captions of the data set.
    """
    questions = dict.fromkeys(
        question_text(answer.question, answer.attribute)
        for each in answers.values()
        for answer in each
        if not math.isnan(answer.value)
    )
    rows: list[list[Cell]] = []
    for captioner, each in answers.items():
        cells = {
            question_text(answer.question, answer.attribute): value_cell(answer) for answer in each
        }
        mark = " †" if captioner in unsure else ""
        rows.append([captioner + mark, *(cells.get(question) for question in questions)])
    return Table(_caption("Numbers that decide", made), ["captioner", *questions], rows)


def _caption(title: str, made: str) -> str:
    return f"{title}. {made}" if made else title


def how_made(results: Sequence[Result]) -> str:
    """A text for a table's caption: seeds, splits, attackers and corrections behind its numbers."""
    attacked = [result for result in results if result.facts.attackers]
    texts = ["Intervals of 95 % over images" + (", attackers and splits" if attacked else "")]
    if attacked:
        encoders = dict.fromkeys(result.rows[0].encoder for result in attacked)
        splits = dict.fromkeys(map(_split, attacked))
        seeds = dict.fromkeys(f"{len(result.rows[0].seeds)} seeds" for result in attacked)
        texts.append(
            f"attackers read captions with {join_words(encoders)}, {join_words(seeds)}, "
            f"splits {join_words(splits)}"
        )
    texts.append("p values after Holm within a question, a Yes also over all questions")
    return "; ".join(texts)


def _split(result: Result) -> str:
    target = str(mapping_in(result.facts.config, "split").get("_target_", ""))
    return target.rpartition(".")[2] or "unknown"
