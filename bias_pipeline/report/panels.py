"""The first screen's figure: readings in the panels of their questions, drawn against neutral.

Everything is placed in shares of a line's width, so that a page needs no script to draw it and
text stays text on any screen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bias_pipeline.analysis.verdict import JUDGED, Finding, Verdict
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.report.brief import named
from bias_pipeline.report.examples import ABSENT, NOTHING, Behind
from bias_pipeline.report.plain import PANELS, panel_of, rank
from bias_pipeline.report.sheets import Number, Sheet
from bias_pipeline.report.tables import arrow, neutral_of, pointing, reading
from bias_pipeline.results.store import Result, Row

MOST_LINES = 12  # of captioners in a panel; of more the first and the last are shown
_ROOM = 0.06  # beside the outermost ends, as a share of the axis
_UNITS = {"fraction": "per cent", "quality": "CIDEr-D"}


@dataclass(frozen=True)
class Line:
    """One reading.

    Attributes:
        name: of the metric, or of the captioner.
        told: what it says, in plain words.
        number: what is drawn: people's share is off where it is known.
        beside: the captioner's own value and people's.
        tone: ``worse``, ``better``, ``level``, or ``doubt`` where nothing is concluded.
        note: why nothing is concluded.
        neutral: the value that means no bias.
        unit: of the number.
    """

    name: str
    told: str
    number: Number
    beside: str
    tone: str
    note: str
    neutral: float
    unit: str

    @property
    def ends(self) -> list[float]:
        """What an axis must hold, in the unit of the row."""
        own = (self.number.low, self.number.value, self.number.high, self.neutral)
        return [end for end in own if end is not None and math.isfinite(end)]


@dataclass(frozen=True)
class Axis:
    """Where numbers stand on a line.

    Attributes:
        low: left end.
        high: right end.
        fraction: whether ticks are in per cent.
        ticks: values that are written below it.
    """

    low: float
    high: float
    fraction: bool
    ticks: Sequence[float]

    def at(self, value: float | None) -> float | None:
        """The place of a value in per cent of the width; None for none.

        Example:
            >>> Axis(-1.0, 1.0, False, ()).at(0.5)
            75.0
        """
        if value is None or not math.isfinite(value):
            return None
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    def labels(self) -> list[tuple[float, str]]:
        """Ticks with what is written at them."""
        scale = 100 if self.fraction else 1
        return [(self.at(tick) or 0.0, f"{scale * tick:g}") for tick in self.ticks]


@dataclass(frozen=True)
class Block:
    """Lines that share an axis.

    Attributes:
        lines: from top to bottom.
        axis: below them.
        unit: written at it.
    """

    lines: Sequence[Line]
    axis: Axis
    unit: str


@dataclass(frozen=True)
class Panel:
    """The readings of one question.

    Attributes:
        kind: of :data:`~bias_pipeline.report.plain.PANELS`.
        title: the question.
        answer: ``more``, ``none``, ``unknown``, or empty where nothing is judged.
        chip: the answer in a word or two.
        told: what all of its lines say, where they say the same.
        blocks: its lines.
        left: how many lines are not shown.
        sheets: examples behind the numbers.
    """

    kind: str
    title: str
    answer: str
    chip: str
    told: str
    blocks: Sequence[Block]
    left: str = ""
    sheets: Sequence[Sheet] = ()


_CHIPS = {"more": "Yes", "none": "Not beyond chance", "unknown": "Cannot be told", "": ""}


def panels_of_one(
    found: Verdict, results: Mapping[str, Result], attribute: str, behind: Behind = NOTHING
) -> list[Panel]:
    """One captioner: metrics are lines.

    Args:
        found: its verdict.
        results: run id to result.
        attribute: whose groups.
        behind: examples for the numbers.
    """
    panels = []
    for kind, own in _by_panel(found.findings, attribute).items():
        answer = _answer(own, attribute)
        lines = [
            _line(
                finding,
                results[finding.row.run_id],
                named(finding),
                _meaning(finding, results[finding.row.run_id]),
            )
            for finding in own
        ]
        title = PANELS[kind].format(attribute=attribute)
        sheets = _behind(kind, own, results, behind)
        lacking = ABSENT if kind == "misgendering" and not sheets else ""
        panels.append(
            Panel(kind, title, answer, _CHIPS[answer], "", _blocks(lines), lacking, sheets)
        )
    return panels


def panels_of_all(
    found: Mapping[str, Verdict],
    results: Mapping[str, Result],
    attribute: str,
    behind: Behind = NOTHING,
) -> list[Panel]:
    """Several captioners are lines, a panel has the reading that answers for most of them.

    Args:
        found: captioner to its verdict.
        results: run id to result.
        attribute: whose groups.
        behind: examples for the numbers.
    """
    every = [finding for verdict in found.values() for finding in verdict.findings]
    panels = []
    for kind, own in _by_panel(every, attribute).items():
        by_headline: dict[str, list[Finding]] = {}
        for finding in own:
            by_headline.setdefault(finding.headline, []).append(finding)
        for findings in (by_headline[name] for name in HEADLINES if name in by_headline):
            leading = _leading(findings)
            sheets = _behind(kind, leading, results, behind)
            panels.append(replace(_of_all(kind, leading, results, attribute), sheets=sheets))
    return panels


def _behind(
    kind: str, findings: Sequence[Finding], results: Mapping[str, Result], behind: Behind
) -> list[Sheet]:
    """Examples of a panel, each captioner's once; of several they bear its name."""
    several = len({finding.row.captioner for finding in findings}) > 1
    found: dict[str, Sheet] = {}
    for finding in findings[:MOST_LINES] if several else findings:
        for sheet in behind.of(kind, results[finding.row.run_id]):
            name = f"{finding.row.captioner}: {sheet.caption}" if several else sheet.caption
            found[name] = replace(sheet, caption=name)
    return list(found.values())


def _of_all(
    kind: str, findings: Sequence[Finding], results: Mapping[str, Result], attribute: str
) -> Panel:
    first = findings[0]
    lines = [_line(own, results[own.row.run_id], own.row.captioner, "") for own in findings]
    better = kind == "quality"
    lines.sort(key=lambda line: (math.isnan(line.number.value), _order(line, better)))
    answers = [_answer([finding], attribute) for finding in findings]
    asked = [answer for answer in answers if answer]
    answer = next((own for own in ("more", "none", "unknown") if own in asked), "")
    chip = f"{asked.count('more')} of {len(asked)}: yes" if answer == "more" else _CHIPS[answer]
    shown = lines
    left = ""
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        shown = [*lines[:half], *lines[-half:]]
        left = f"The first {half} and the last {half} of {len(lines)}; all are below."
    told = f"{named(first)}: {_meaning(first, results[first.row.run_id])}"
    if answer == "unknown":
        told += f". Nothing is concluded: {lines[0].note.partition(': ')[0]}"
    title = PANELS[kind].format(attribute=attribute)
    return Panel(kind, title, answer, chip, told, _blocks(shown), left)


def _order(line: Line, better: bool) -> float:
    return -line.number.value if better else line.number.value


def _by_panel(findings: Iterable[Finding], attribute: str) -> dict[str, list[Finding]]:
    """Findings on an attribute by panel, in the order of the panels."""
    found: dict[str, list[Finding]] = {kind: [] for kind in PANELS}
    for finding in findings:
        if finding.row.attribute == attribute:
            found[panel_of(finding.question, finding.headline)].append(finding)
    for own in found.values():
        own.sort(key=lambda finding: (bool(finding.doubt), rank(finding.row.metric)))
    return {kind: own for kind, own in found.items() if own}


def _leading(findings: Sequence[Finding]) -> list[Finding]:
    """Those of the reading that answers for most captioners; of equals the best known."""
    cells: dict[tuple[str, str], list[Finding]] = {}
    for own in findings:
        cells.setdefault((own.row.metric, own.settings), []).append(own)
    return min(
        cells.values(),
        key=lambda own: (
            -sum(f.more for f in own),
            -sum(not f.doubt for f in own),
            -len(own),
            rank(own[0].row.metric),
        ),
    )


def _answer(findings: Sequence[Finding], attribute: str) -> str:
    """The verdict's own answer, from the findings of one panel."""
    questions = [own.question for own in findings if own.question in JUDGED]
    return Verdict(findings).answer(questions[0], attribute) if questions else ""


def _line(finding: Finding, result: Result, name: str, told: str) -> Line:
    judged = finding.question in JUDGED
    rows = {row.part: row for row in result.rows}
    drawn = finding.compared if judged else rows[finding.headline]
    neutral = finding.neutral if judged else neutral_of(result, finding.headline)
    mark = arrow(drawn, neutral) if judged else pointing(drawn, result)
    return Line(
        name=name.strip(),
        told=told,
        number=Number.of(drawn, mark),
        beside=_beside(finding, rows),
        tone=tone_of(finding, mark),
        note=finding.doubt if judged else "",
        neutral=neutral,
        unit=drawn.unit,
    )


def _meaning(finding: Finding, result: Result) -> str:
    """A headline in plain words; of a metric that has none its title."""
    told = reading(result)
    says = told.get("says")
    known = says.get(finding.headline) if isinstance(says, Mapping) else None
    return str(known or told.get("title", "")).replace("{attribute}", finding.row.attribute)


def _beside(finding: Finding, rows: Mapping[str, Row]) -> str:
    """The captioner's own value beside people's, where both are known."""
    own, people = finding.row.value, finding.people
    unit = finding.row.unit
    if math.isnan(people) and {"model", "human"} <= rows.keys():
        own, people, unit = rows["model"].value, rows["human"].value, rows["model"].unit
    if math.isnan(people):
        return ""
    fraction, whose = unit == "fraction", "labels" if finding.question == "mentions" else "people"
    texts = [Number(v, fraction=fraction, digits=1 if fraction else 2).text for v in (own, people)]
    return f"{texts[0]}, {whose} {texts[1]}"


def tone_of(finding: Finding, mark: str) -> str:
    """How a finding is coloured: by its question's own sense of better and worse.

    Args:
        finding: of any question.
        mark: where its number points.
    """
    if finding.question == "quality":
        return {"↑": "better", "↓": "worse"}.get(mark, "level")
    if finding.question not in JUDGED:
        return "level"
    if finding.doubt:
        return "doubt"
    if finding.more:
        return "worse"
    return "better" if mark == "↓" else "level"


def _blocks(lines: Sequence[Line]) -> list[Block]:
    """Lines by unit, each with an axis that holds all of them."""
    by_unit: dict[str, list[Line]] = {}
    for line in lines:
        by_unit.setdefault(line.unit, []).append(line)
    return [
        Block(own, _axis(own, unit == "fraction"), _UNITS.get(unit, unit))
        for unit, own in by_unit.items()
    ]


def _axis(lines: Sequence[Line], fraction: bool) -> Axis:
    from matplotlib.ticker import MaxNLocator

    ends = [end for line in lines for end in line.ends] or [0.0]
    low, high = min(ends), max(ends)
    room = _ROOM * (high - low) or 1.0
    low, high = low - room, high + room
    ticks = MaxNLocator(nbins=3).tick_values(low, high)
    return Axis(low, high, fraction, [float(tick) for tick in ticks if low <= tick <= high])
