"""The answer to each question about one attribute, and the screen that shows them."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bias_pipeline.metrics.base import NOT_SHOWN, QUESTIONS
from bias_pipeline.metrics.value_names import direction_of
from bias_pipeline.report.conclusion_checks import NO_RULE, NO_VALUE
from bias_pipeline.report.headline import headline
from bias_pipeline.report.table import number, percent
from bias_pipeline.report.tables import ARROWS
from bias_pipeline.report.verdict import JUDGED, Finding, Verdict
from bias_pipeline.report.verdict_sentences import PANELS, lead, one_direction
from bias_pipeline.results.rows import Row

WIDTH = 80  # columns of the screen
_HEADLINE_LINES = 5
_REASON_WORDS = 8
_GROUPS = 4  # of more only the lowest and the highest are shown
_PARTS = 6  # concepts or objects that are named
# The names of questions in a file of answers, where they differ from those in the package.
_WRITTEN = {"misgendering": "naming"}
_UNTESTED = "not tested: "  # how a doubt begins where data lack what a metric needs
_ONE_WAY = "A→T alone; nothing is known of T→A"
_SHOWN = {"yes": "Yes", "no": "No", "cannot_tell": "Cannot tell", "not_tested": "Not tested"}


@dataclass(frozen=True)
class Answer:
    """What one question about one attribute comes to, and the number that decides it.

    Attributes:
        question: as a file of answers names it, such as ``naming``.
        answer: ``yes``, ``no``, ``cannot_tell`` or ``not_tested``. ``no`` means that the interval
            excludes more than negligible bias.
        metric: and ``part``: the row of the number; empty if there is none.
        value: what is tested, with its interval: a difference from annotators where they are known.
            Fractions, not per cent; NaN if there is none.
        at_most: how far above no bias the interval ends; NaN where nothing is tested.
        annotators: their own number; for ``mentions`` that of the labels.
        unit: ``fraction``, ``nat`` and the like, as rows have it.
        by_group: group to the model's number with its interval.
        reason: why nothing can be told, or what limits a Yes.
        named: what a Yes is about, such as concepts.
        limits: the part of the words, or the one direction, that the number is about; empty if it
            is about all that was asked.
    """

    attribute: str
    question: str
    answer: str
    metric: str = ""
    part: str = ""
    value: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    at_most: float = math.nan
    annotators: float = math.nan
    unit: str = ""
    by_group: Mapping[str, Row] = field(default_factory=dict)
    reason: str = ""
    named: Sequence[str] = ()
    limits: str = ""

    def stored(self) -> dict[str, Any]:
        """The answer as plain data."""
        ends = ("value", "ci_low", "ci_high")
        groups = {
            name: {end: getattr(row, end) for end in ends} for name, row in self.by_group.items()
        }
        return {**vars(self), "by_group": groups, "named": [*self.named]}

    def lines(self) -> list[str]:
        """What the screen says below the question."""
        if self.answer == "not_tested" and math.isnan(self.value):
            return [f"Not tested: {self.reason}"]
        verdict = _SHOWN[self.answer]
        if self.answer == "not_tested":
            verdict = ""  # a number that no verdict is given on
        elif self.answer == "cannot_tell" and self.reason == NOT_SHOWN:
            verdict = f"Not shown: at most {self._amount(self.at_most)}; "
        elif self.answer == "no":
            verdict = f"No: at most {self._amount(max(self.at_most, 0.0))}; "
        elif self.reason:
            verdict = f"{verdict}{',' if self.answer == 'yes' else ':'} {self.reason}; "
        else:
            verdict = f"{verdict}: "
        named = ", ".join(self.named[:_PARTS])
        if len(self.named) > _PARTS:
            named += f" and {len(self.named) - _PARTS} more"
        further = filter(None, (self._groups(), self.limits, named))
        return [f"{verdict}{self._numbers()}".removesuffix("; "), *further]

    def _numbers(self) -> str:
        """The deciding number, and the two that it is the difference of."""
        if math.isnan(self.value):
            return ""
        if self.question == "declining":
            number_text = self._rate(self.value)
        elif self.answer == "yes":
            number_text = self._amount(self.value)
        else:
            number_text = self._plain(self.value)  # its unit stands before
        if not math.isnan(self.ci_low):
            number_text += f" [{self._plain(self.ci_low)}, {self._plain(self.ci_high)}]"
        name = " ".join(filter(None, [self.metric, ARROWS.get(direction_of(self.part), "")]))
        if math.isnan(self.annotators):
            return f"{name} {number_text}"
        others = "labels" if self.question == "mentions" else "annotators"
        return f"{name} {number_text} ({others} {self._plain(self.annotators)})"

    def _groups(self) -> str:
        rows = sorted(self.by_group.items(), key=lambda item: item[1].value)
        if len(rows) <= _GROUPS:
            return ", ".join(f"{n} {self._rate(row.value)}" for n, row in self.by_group.items())
        ends = ", ".join(f"{name} {self._rate(row.value)}" for name, row in (rows[0], rows[-1]))
        return f"{ends}; {len(rows) - 2} more in the report"

    def _plain(self, value: float) -> str:
        if self.unit == "fraction":
            return percent(round(value, 3) + 0.0)  # no minus at zero
        return number(round(value, 2) + 0.0)

    def _rate(self, value: float) -> str:
        return self._plain(value) + " %" * (self.unit == "fraction")

    def _amount(self, value: float) -> str:
        unit = {"fraction": " points", "nat": " nat", "bits": " bits"}.get(self.unit, "")
        return f"{self._plain(value)}{unit}"


def answers_of(
    verdict: Verdict, attribute: str, negligible: float, skipped: Mapping[str, str]
) -> list[Answer]:
    """An answer to every question, in the order of asking.

    Args:
        verdict: on one captioner.
        attribute: one of those audited.
        negligible: the largest bias that counts as none.
        skipped: question to why its metrics did not run.
    """
    return [
        answer
        for question in QUESTIONS
        for answer in (
            [_judged(verdict, question, attribute, negligible, skipped)]
            if question in JUDGED
            else _beside(verdict, question, attribute)
        )
    ]


def _judged(
    verdict: Verdict, question: str, attribute: str, negligible: float, skipped: Mapping[str, str]
) -> Answer:
    name = _WRITTEN.get(question, question)
    given, decided = verdict.answer(question, attribute), verdict.decided(question, attribute)
    if not given:
        reason = shortened(skipped.get(question, "")) or "no run tests it"
        return Answer(attribute, name, "not_tested", reason=reason)
    if given == "unknown":
        if alone := verdict.alone(question, attribute):
            reason = "no annotators' captions"
            number_alone = _with_number(lead(alone), name, "cannot_tell", reason)
            return replace(number_alone, at_most=math.nan)
        reason = _why_unknown(verdict, question, attribute)
        kind = "not_tested" if reason.startswith(_UNTESTED) else "cannot_tell"
        return Answer(attribute, name, kind, reason=shortened(reason.removeprefix(_UNTESTED)))
    one_way = bool(one_direction(verdict.about(attribute), question))
    if given == "more":
        strongest = lead([finding for finding in decided if finding.more])
        alone_yes = not verdict.sure(question, attribute) and len(verdict.overall) > 1
        limit = f"but not after Holm over all {len(verdict.overall)} answers" if alone_yes else ""
        answer = _with_number(strongest, name, "yes", limit)
        return replace(answer, limits=_ONE_WAY) if one_way else answer
    # Numbers of other units cannot be compared; a metric that leads then decides.
    fractions = [finding for finding in decided if finding.compared.unit == "fraction"]
    widest = max(fractions, key=_excess) if fractions else lead(decided)
    excluded = widest.compared.unit == "fraction" and _excess(widest) <= negligible
    if widest.answered:
        excluded = widest.no
    if excluded and not (one_way or widest.of_few_words or widest.only):
        return _with_number(widest, name, "no", "")
    answer = _with_number(widest, name, "cannot_tell", NOT_SHOWN)
    return replace(answer, limits=_ONE_WAY) if one_way else answer


def _excess(finding: Finding) -> float:
    """How far above no bias the interval ends; infinity for an interval that is not known."""
    excess = finding.compared.ci_high - finding.neutral
    return math.inf if math.isnan(excess) else excess


def _why_unknown(verdict: Verdict, question: str, attribute: str) -> str:
    if withheld := verdict.withheld(question, attribute):
        return withheld.partition(": ")[2]
    doubts = [finding.doubt for finding in verdict.on(question, attribute)]
    doubts.sort(key=lambda doubt: (not doubt.startswith(_UNTESTED), doubt == NO_RULE))
    hardly = question == "misgendering" and doubts[0] == NO_VALUE
    return f"hardly any caption names one {attribute}" if hardly else doubts[0]


def _with_number(finding: Finding, question: str, answer: str, reason: str) -> Answer:
    row = finding.compared
    return Answer(
        attribute=row.attribute,
        question=question,
        answer=answer,
        metric=row.metric,
        part=row.part,
        value=row.value,
        ci_low=row.ci_low,
        ci_high=row.ci_high,
        at_most=row.ci_high - finding.neutral,
        annotators=finding.people,
        unit=row.unit,
        by_group=finding.by_group,
        reason=reason,
        named=finding.answered.named if finding.answered and finding.more else (),
        limits=_part_of_words(finding),
    )


def _part_of_words(finding: Finding) -> str:
    unit = finding.only.partition(" in ")[2]
    within = f" in {unit}" if unit else ""
    if finding.of_few_words:
        share = percent(finding.retained, 0)
        return f"on the {share} % of its words{within} that annotators use as often"
    return f"on {finding.only}" if finding.only else ""


def _beside(verdict: Verdict, question: str, attribute: str) -> Iterator[Answer]:
    """Numbers on a question that no verdict is given on."""
    for finding in verdict.on(question, attribute):
        if not finding.withheld and not math.isnan(finding.row.value):
            yield _with_number(finding, question, "not_tested", "no verdict is given")


def shortened(reason: str) -> str:
    """The first clause of a reason, in a few words.

    Example:
        >>> shortened("12 images are too few; caption 500, or better 1,500")
        '12 images are too few'
    """
    itself = re.sub(r"^((dataset|captioner) '[^']*'|the data): ", "", reason)
    itself = re.sub(r"^dataset '[^']*' has ", "the data have ", itself)
    first = re.split(r"[:;,(]\s", itself, maxsplit=1)[0].strip()
    words = first.split()
    return first if len(words) <= _REASON_WORDS else f"{' '.join(words[:_REASON_WORDS])} …"


def question_text(question: str, attribute: str) -> str:
    """A question as the screen asks it."""
    text = PANELS["directions"] if question == "tasks" else PANELS.get(question)
    return (text or QUESTIONS[question]).format(attribute=attribute)


def screen(verdict: Verdict, attribute: str, answers: Sequence[Answer]) -> list[str]:
    """The answers about one attribute in lines of at most :data:`WIDTH` columns."""
    text = " ".join(headline(verdict, attribute))
    lines = [*textwrap.wrap(text, WIDTH, max_lines=_HEADLINE_LINES, placeholder=" …"), ""]
    questions = {_WRITTEN.get(question, question): question for question in QUESTIONS}
    for answer in answers:
        question = question_text(questions[answer.question], attribute)
        first, *further = answer.lines()
        if len(f"{question} {first}") <= WIDTH:
            lines.append(f"{question} {first}")
        else:
            lines += [question, *_indented(first)]
        lines += [line for text in further for line in _indented(text)]
    return lines


def fold(text: str) -> list[str]:
    """A text in lines of at most :data:`WIDTH` columns."""
    return textwrap.wrap(text, WIDTH)


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
