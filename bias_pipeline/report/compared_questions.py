"""Makes the screens of ``compare``: a row for each question of an audit, or leaderboards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from bias_pipeline.io.terminal import print_out, print_text
from bias_pipeline.metrics.base import QUESTIONS
from bias_pipeline.metrics.value_names import direction_of
from bias_pipeline.report.answer_texts import fold, indented_lines, question_text
from bias_pipeline.report.answers import WRITTEN, answers_of, stored_question
from bias_pipeline.report.compare import ALL_PAIRS, Leaderboard
from bias_pipeline.report.gate import Comparison, Decision
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, Table, p_cell
from bias_pipeline.report.tables import ARROWS, captioners, metric_name
from bias_pipeline.report.verdict import JUDGED, OF_SETS, verdict
from bias_pipeline.report.verdict_sentences import rank
from bias_pipeline.results.rows import Result


@dataclass(frozen=True)
class ComparedQuestion:
    """The comparison on one question about one attribute, by the number that decides."""

    question: str  # its name in answers, such as `naming`
    decision: Decision

    @property
    def result(self) -> Literal["worse", "better", "not worse", "cannot tell"]:
        """How the first captioner compares; ``not worse`` needs a margin."""
        decision = self.decision
        if decision.doubts or (decision.outcome == "undecided"):
            return "cannot tell"
        if decision.outcome == "worse":
            return "worse"
        if decision.winner == "first":
            return "better"
        return "cannot tell" if decision.margin is None else "not worse"

    def line(self) -> dict[str, object]:
        """The row as plain data; its fields have the names of fields in answers."""
        decision = self.decision
        return {
            "attribute": decision.attribute,
            "question": self.question,
            "result": self.result,
            "metric": decision.metric,
            "part": decision.part,
            "values": list(decision.values),
            "unit": decision.unit,
            "reason": "; ".join(decision.doubts),
        }

    def sentence(self) -> str:
        return f"{self.question} ({self.decision.attribute}): {self.decision.sentence()}"

    @property
    def has_answer(self) -> bool:
        """Whether the question can have an answer, and not only numbers."""
        return stored_question(self.question) in (*JUDGED, "quality")

    @property
    def verdict(self) -> str:
        """A phrase on how captioner A compares with B; empty if there can be no answer."""
        if not self.has_answer:
            return ""
        return "Cannot tell" if self.result == "cannot tell" else f"A is {self.result}"

    @property
    def reason(self) -> str:
        """Why there is no answer, or how large a difference would have been found."""
        decision = self.decision
        if not self.has_answer or self.result != "cannot tell":
            return ""
        if decision.doubts:
            return "; ".join(decision.doubts)
        missed = decision.smallest_found
        return f"differences below {missed} are usually missed" if missed else ""

    @property
    def numbers(self) -> str:
        """Both captioners' numbers, and their difference with its interval and its p after Holm.

        If a number may be biased in both directions from its no-bias value, the row shows its
        distance from this value.
        """
        decision, difference = self.decision, self.decision.difference
        one, two = (self._cell(value) for value in decision.distances or decision.values)
        name = f"{metric_name(decision.metric, decision.attribute)} "
        name += ARROWS.get(direction_of(decision.part), "")
        name += f" {decision.part}" if decision.question in OF_SETS else ""
        distance = "distance from the no-bias value, " if decision.distances else ""
        text = f"{name.strip()} {distance}A {one}, B {two}"
        if math.isnan(difference.ci_low):
            return text
        sign = -1 if decision.quality else 1
        low, high = sorted((sign * difference.ci_low, sign * difference.ci_high))
        text += f"; A - B {self._cell(sign * difference.value, low, high)}"
        return text if decision.doubts else f"{text}, p {p_cell(difference.p_value)}"

    def _cell(self, value: float, *ends: float) -> str:
        cell = NumberCell.in_unit(self.decision.unit, value, *ends)
        return (cell if cell.fraction else replace(cell, digits=3)).text


def compared_questions(comparison: Comparison) -> list[ComparedQuestion]:
    """A row for each attribute and question.

    The row has the number that decides the first captioner's audit.

    The row has another number if the first captioner is worse by it, or if only this number can be
    compared.
    """
    deciding = _deciding(comparison.results)
    families: dict[tuple[str, str, str], list[Decision]] = {}
    for decision in comparison.decisions:
        key = (decision.attribute, decision.other, decision.question)
        families.setdefault(key, []).append(decision)
    pairs = dict.fromkeys((attribute, other) for attribute, other, _ in families)
    return [
        ComparedQuestion(
            WRITTEN.get(question, question), min(family, key=partial(_order, deciding))
        )
        for attribute, other in pairs
        for question in QUESTIONS
        if (family := families.get((attribute, other, question)))
    ]


_Number = tuple[str, str, str, str]  # attribute, metric, settings, headline


def _deciding(results: Sequence[Result]) -> list[_Number]:
    """The numbers that decide each captioner's audit, beginning with the first captioner."""
    numbers: list[_Number] = []
    for captioner in captioners(results):
        scored = verdict([r for r in results if r.rows[0].captioner == captioner])
        answers = [answer for name in scored.attributes for answer in answers_of(scored, name)]
        numbers += [
            (finding.row.attribute, finding.row.metric, finding.settings, finding.headline)
            for answer in answers
            for finding in scored.findings_on(stored_question(answer.question), answer.attribute)
            if answer.rests_on(finding)
        ]
    return numbers


def _order(deciding: Sequence[_Number], decision: Decision) -> tuple[bool, bool, int, int, bool]:
    worse = not decision.doubts and decision.outcome == "worse"
    number = (decision.attribute, decision.metric, decision.settings, decision.headline)
    place = deciding.index(number) if number in deciding else len(deciding)
    equal_style = "matched" in decision.settings
    return not worse, bool(decision.doubts), place, rank(decision.metric), not equal_style


def outcome_of(rows: Sequence[ComparedQuestion]) -> Literal["passed", "worse", "undecided"]:
    """The outcome of a gate on these questions, without questions in doubt."""
    decided = [row for row in rows if not row.decision.doubts]
    outcomes = {row.decision.outcome for row in decided}
    if "worse" in outcomes:
        return "worse"
    return "undecided" if not decided or "undecided" in outcomes else "passed"


def compared_screen(rows: Sequence[ComparedQuestion]) -> list[str]:
    """Lines on the questions about one attribute: how A compares with B, and the reason."""
    decision = rows[0].decision
    lines = [*fold(f"{decision.attribute}: A {decision.first}, B {decision.other}"), ""]
    for row in rows:
        lines += fold(question_text(row.question, decision.attribute))
        lines += indented_lines(f"{row.verdict}: {row.numbers}" if row.verdict else row.numbers)
        lines += indented_lines(row.reason) if row.reason else []
    return lines


def print_leaderboards(leaderboards: Sequence[Leaderboard], decisions: Sequence[Decision]) -> None:
    """Print each leaderboard, and then the decisions on the first captioner."""
    several = len({decision.attribute for decision in decisions}) > 1
    for leaderboard in leaderboards:
        of = f"({leaderboard.ranks[0].row.attribute})" if several else ""
        parts = (leaderboard.metric, leaderboard.part, leaderboard.settings, of)
        title = " ".join(filter(None, parts))
        head = ["captioner", leaderboard.part, "letters"]
        rows: list[list[Cell]] = [
            [rank.row.captioner, NumberCell.of_row(rank.row), rank.letters]
            for rank in leaderboard.ranks
        ]
        print_table(Table(title, head, rows, texts=True))
        print_out()
    every_pair = [one for one in leaderboards if not one.against_first]
    if every_pair:
        print_text(
            "captioners that share a letter do not differ significantly; fairest (or best) first"
        )
    if len(every_pair) < len(leaderboards):
        print_text(
            f"with more than {ALL_PAIRS} captioners each is tested against the first only: "
            "captioners with the letter a do not differ significantly from it; fairest (or "
            "best) first"
        )
    print_out()
    for decision in decisions:
        whose = f"{decision.attribute}: " if several else ""
        print_text(whose + decision.sentence())
