"""Two captioners in the language of an audit: a row for each question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bias_pipeline.metrics.base import QUESTIONS
from bias_pipeline.report.answers import WRITTEN
from bias_pipeline.report.gate import Comparison, Decision
from bias_pipeline.report.table import Cell, NumberCell, PCell, Table
from bias_pipeline.report.tables import metric_name
from bias_pipeline.report.verdict_sentences import rank


@dataclass(frozen=True)
class ComparedQuestion:
    """One question about one attribute, by the number that decides it."""

    question: str  # as answers name it, such as `naming`
    decision: Decision

    @property
    def result(self) -> Literal["worse", "better", "not worse", "cannot tell"]:
        """What the first captioner is; without a margin a difference by chance tells nothing."""
        decision = self.decision
        if decision.doubts or (decision.outcome == "undecided"):
            return "cannot tell"
        if decision.outcome == "worse":
            return "worse"
        if decision.winner == "first":
            return "better"
        return "cannot tell" if decision.margin is None else "not worse"

    def line(self) -> dict[str, object]:
        """The row as plain data, in the fields of answers."""
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
        """The row in words, with the reason where nothing can be told."""
        return f"{self.question} ({self.decision.attribute}): {self.result}. " + (
            self.decision.sentence()
        )


def compared_questions(comparison: Comparison) -> list[ComparedQuestion]:
    """A row for each attribute and question; a number by which the first is worse comes first.

    Of the others the best known metric that decides something leads.
    """
    families: dict[tuple[str, str, str], list[Decision]] = {}
    for decision in comparison.decisions:
        key = (decision.attribute, decision.other, decision.question)
        families.setdefault(key, []).append(decision)
    pairs = dict.fromkeys((attribute, other) for attribute, other, _ in families)
    return [
        ComparedQuestion(WRITTEN.get(question, question), min(family, key=_order))
        for attribute, other in pairs
        for question in QUESTIONS
        if (family := families.get((attribute, other, question)))
    ]


def _order(decision: Decision) -> tuple[bool, bool, int, bool]:
    worse = not decision.doubts and decision.outcome == "worse"
    equal_style = "matched" in decision.settings
    return not worse, bool(decision.doubts), rank(decision.metric), not equal_style


def outcome_of(rows: Sequence[ComparedQuestion]) -> Literal["passed", "worse", "undecided"]:
    """What a gate says of these questions; those in doubt do not count."""
    decided = [row for row in rows if not row.decision.doubts]
    outcomes = {row.decision.outcome for row in decided}
    if "worse" in outcomes:
        return "worse"
    return "undecided" if not decided or "undecided" in outcomes else "passed"


def questions_table(rows: Sequence[ComparedQuestion]) -> Table:
    """Both numbers, their difference with its interval, p after Holm, and what that says.

    A number that is biased on either side of its no-bias value is shown as its distance from it.
    """
    first, other = rows[0].decision.first, rows[0].decision.other
    head = ["question", "number", "A", "B", "A - B", "p", "A is"]
    caption = f"{rows[0].decision.attribute}: A {first}, B {other}"
    return Table(caption, head, [*map(_line, rows)])


def _line(row: ComparedQuestion) -> list[Cell]:
    decision = row.decision
    difference = decision.difference
    sign = -1 if decision.quality else 1
    ends = sorted((sign * difference.ci_low, sign * difference.ci_high))
    known = not math.isnan(difference.ci_low)
    value = NumberCell.in_unit(
        decision.unit, sign * difference.value, *(ends if known else (None, None))
    )
    return [
        row.question,
        metric_name(decision.metric, decision.attribute),
        *(NumberCell.in_unit(decision.unit, one) for one in decision.distances or decision.values),
        None if math.isnan(difference.value) else value,
        None if decision.doubts else PCell(difference.p_value),
        row.result,
    ]
