"""The figure on the first screen, with a panel for each question and the no-bias value.

Positions are shares of a line's width. So a page draws them without a script, and text stays text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.value_names import HUMAN, HUMAN_PAIRED, MODEL, MODEL_PAIRED
from bias_pipeline.report.conclusion_checks import people_part
from bias_pipeline.report.examples import ABSENT, NOTHING, ScreenExamples
from bias_pipeline.report.table import NumberCell, Table, percent
from bias_pipeline.report.tables import ARROWS, arrow, pointing
from bias_pipeline.report.verdict import JUDGED, Finding, Verdict
from bias_pipeline.report.verdict_sentences import PANELS, finding_name, panel_of, rank
from bias_pipeline.results.rows import Result, Row

MOST_LINES = 12  # most captioners in a panel; of more, the first and the last are shown
_ROOM = 0.06  # empty space beyond the outermost ends, as a share of the axis
_UNITS = {"fraction": "per cent", "quality": "CIDEr-D"}


@dataclass(frozen=True)
class PanelLine:
    name: str  # the metric's or the captioner's name
    meaning: str  # what the number says, in plain words
    number: NumberCell  # the drawn value: minus the annotators' value, if that is known
    beside: str  # the model's own value and the annotators'
    tone: str  # `worse`, `better`, `level`, or `doubt` if the number is not used
    note: str  # why the number is not used
    neutral: float  # the no-bias value
    unit: str  # the number's unit
    # The same number with one annotator as the model, at equal style; None if unknown
    people: NumberCell | None = None

    @property
    def ends(self) -> list[float]:
        """The values that an axis must include, in the unit of the row."""
        drawn = [self.number] if self.people is None else [self.number, self.people]
        numbers = [end for number in drawn for end in (number.low, number.value, number.high)]
        return [end for end in (*numbers, self.neutral) if end is not None and math.isfinite(end)]


@dataclass(frozen=True)
class Axis:
    """The axis below some lines."""

    low: float  # left end
    high: float  # right end
    fraction: bool  # whether ticks are in per cent
    ticks: Sequence[float]  # values that are written below the axis

    def place_of(self, value: float | None) -> float | None:
        """The place of a value in per cent of the width, or None without a value.

        Example:
            >>> Axis(-1.0, 1.0, False, ()).place_of(0.5)
            75.0
        """
        if value is None or not math.isfinite(value):
            return None
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    def labels(self) -> list[tuple[float, str]]:
        """The place and the text of each tick."""
        scale = 100 if self.fraction else 1
        return [(self.place_of(tick) or 0.0, f"{scale * tick:g}") for tick in self.ticks]


@dataclass(frozen=True)
class PanelBlock:
    """Lines that share an axis."""

    lines: Sequence[PanelLine]  # from top to bottom
    axis: Axis  # the axis below the lines
    unit: str  # written at the axis


@dataclass(frozen=True)
class Panel:
    kind: str  # of `PANELS`
    title: str  # the question
    answer: str  # `more`, `no`, `none`, `unknown`, or empty if nothing is judged
    chip: str  # the answer in a word or two
    meaning: str  # the meaning of all lines, if it is the same
    blocks: Sequence[PanelBlock]  # its lines
    left: str = ""  # a sentence on lines that are not shown, or on absent examples
    tables: Sequence[Table] = ()  # examples behind the numbers

    @property
    def has_people(self) -> bool:
        """Whether a line has a mark for the score of an annotator in the captioner's place."""
        return any(line.people is not None for block in self.blocks for line in block.lines)


_CHIPS = {
    "more": "Yes",
    "no": "No",
    "none": "Not beyond chance",
    "unknown": "Unknown",
    "": "",
}


def panels_of_one(
    verdict: Verdict,
    results: Mapping[str, Result],
    attribute: str,
    behind: ScreenExamples = NOTHING,
) -> list[Panel]:
    """The panels of one captioner, with a line for each metric."""
    panels = []
    for kind, findings in _by_panel(verdict.findings, attribute).items():
        answer = _answer(findings, attribute)
        lines = [
            _line(
                finding,
                results[finding.row.run_id],
                finding_name(finding),
                _meaning(finding, results[finding.row.run_id]),
            )
            for finding in findings
        ]
        title = PANELS[kind].format(attribute=attribute)
        tables = _behind(kind, findings, results, behind)
        lacking = ABSENT if kind == "misgendering" and not tables else ""
        panels.append(
            Panel(kind, title, answer, _chip(answer, findings), "", _blocks(lines), lacking, tables)
        )
    return panels


def _chip(answer: str, findings: Sequence[Finding]) -> str:
    """The answer in a few words, with the upper end of the interval at equal style."""
    ends = [
        finding.compared.ci_high - finding.neutral
        for finding in findings
        if finding.matched and not finding.doubt
    ]
    shares = {percent(f.retained, 0) for f in findings if f.of_few_words and not f.doubt}
    if answer == "none" and shares:
        return f"Not beyond chance on {', '.join(sorted(shares))} % of its words"
    if answer == "none" and ends:
        return f"Not above {percent(max(ends))} points"
    return _CHIPS[answer]


def panels_of_all(
    verdicts: Mapping[str, Verdict],
    results: Mapping[str, Result],
    attribute: str,
    behind: ScreenExamples = NOTHING,
) -> list[Panel]:
    """The panels of several captioners; a line has the number that answers for most captioners."""
    every = [finding for verdict in verdicts.values() for finding in verdict.findings]
    panels = []
    for kind, panel_findings in _by_panel(every, attribute).items():
        by_headline: dict[str, list[Finding]] = {}
        for finding in panel_findings:
            by_headline.setdefault(finding.headline, []).append(finding)
        for findings in (by_headline[name] for name in HEADLINES if name in by_headline):
            leading = _leading(findings)
            tables = _behind(kind, leading, results, behind)
            panels.append(replace(_of_all(kind, leading, results, attribute), tables=tables))
    return panels


def _behind(
    kind: str, findings: Sequence[Finding], results: Mapping[str, Result], behind: ScreenExamples
) -> list[Table]:
    """The examples of a panel, with captioners' names in titles if there are several."""
    several = len({finding.row.captioner for finding in findings}) > 1
    tables: dict[str, Table] = {}
    for finding in findings[:MOST_LINES] if several else findings:
        for table in behind.tables_behind(kind, results[finding.row.run_id]):
            name = f"{finding.row.captioner}: {table.caption}" if several else table.caption
            tables[name] = replace(table, caption=name)
    return list(tables.values())


def _of_all(
    kind: str, findings: Sequence[Finding], results: Mapping[str, Result], attribute: str
) -> Panel:
    first = findings[0]
    lines = [
        _line(finding, results[finding.row.run_id], finding.row.captioner, "")
        for finding in findings
    ]
    better = kind == "quality"
    lines.sort(key=lambda line: (math.isnan(line.number.value), _order(line, better)))
    answers = [_answer([finding], attribute) for finding in findings]
    given = [answer for answer in answers if answer]
    answer = next((known for known in ("more", "none", "no", "unknown") if known in given), "")
    chip = f"{given.count('more')} of {len(given)}: yes" if answer == "more" else _CHIPS[answer]
    shown = lines
    left = ""
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        shown = [*lines[:half], *lines[-half:]]
        left = f"The first {half} and the last {half} of {len(lines)}; all are below."
    meaning = f"{finding_name(first)}: {_meaning(first, results[first.row.run_id])}"
    if answer == "unknown":
        meaning += f". Not used: {lines[0].note.partition(': ')[0]}"
    title = f"{PANELS[kind].format(attribute=attribute)} {ARROWS.get(first.headline, '')}".rstrip()
    return Panel(kind, title, answer, chip, meaning, _blocks(shown), left)


def _order(line: PanelLine, better: bool) -> float:
    return -line.number.value if better else line.number.value


def _by_panel(findings: Iterable[Finding], attribute: str) -> dict[str, list[Finding]]:
    panels: dict[str, list[Finding]] = {kind: [] for kind in PANELS}
    for finding in findings:
        if finding.row.attribute == attribute:
            panels[panel_of(finding.question, finding.headline)].append(finding)
    for panel_findings in panels.values():
        panel_findings.sort(key=lambda finding: (bool(finding.doubt), rank(finding.row.metric)))
    return {kind: panel_findings for kind, panel_findings in panels.items() if panel_findings}


def _leading(findings: Sequence[Finding]) -> list[Finding]:
    """The findings by the one metric that shows bias, or gives an answer, for most captioners."""
    cells: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        cells.setdefault((finding.row.metric, finding.settings), []).append(finding)
    return min(
        cells.values(),
        key=lambda cell: (
            -sum(f.is_biased for f in cell),
            -sum(not f.doubt for f in cell),
            -len(cell),
            rank(cell[0].row.metric),
        ),
    )


def _answer(findings: Sequence[Finding], attribute: str) -> str:
    """The verdict's answer to a panel's question, from the panel's findings."""
    questions = [finding.question for finding in findings if finding.question in JUDGED]
    return Verdict(findings).answer(questions[0], attribute) if questions else ""


def _line(finding: Finding, result: Result, name: str, meaning: str) -> PanelLine:
    judged = finding.question in JUDGED
    rows = {row.part: row for row in result.rows}
    drawn = finding.compared if judged else rows[finding.headline]
    neutral = finding.neutral if judged else result.neutral(finding.headline)
    mark = corrected_arrow(arrow(drawn, neutral), finding) if judged else pointing(drawn, result)
    people = rows.get(people_part(finding.row.part))
    return PanelLine(
        name=name.strip(),
        meaning=meaning,
        number=NumberCell.of_row(drawn, mark),
        beside=_both_values(finding, rows),
        tone=tone_of(finding, mark),
        note=finding.doubt if judged else finding.withheld.partition(": ")[2],
        neutral=neutral,
        unit=drawn.unit,
        people=None if people is None else NumberCell.of_row(people),
    )


def _meaning(finding: Finding, result: Result) -> str:
    """A headline in plain words, or the metric's title."""
    metric = result.facts.metric
    text = metric.says.get(finding.headline) or metric.title
    return text.replace("{attribute}", finding.row.attribute)


def _both_values(finding: Finding, rows: Mapping[str, Row]) -> str:
    """The values of model and annotators as text; empty unless both values are known."""
    value, people = finding.row.value, finding.people
    unit = finding.row.unit
    for model, human in ((MODEL_PAIRED, HUMAN_PAIRED), (MODEL, HUMAN)):
        if math.isnan(people) and {model, human} <= rows.keys():
            value, people, unit = rows[model].value, rows[human].value, rows[model].unit
    if math.isnan(people):
        return ""
    whose = "labels" if finding.question == "mentions" else "annotators"
    texts = [NumberCell.in_unit(unit, number).text for number in (value, people)]
    return f"{texts[0]}, {whose} {texts[1]}"


def corrected_arrow(mark: str, finding: Finding) -> str:
    """The arrow of a headline, which is level unless the answer's corrected p is significant."""
    decides = finding.question in JUDGED and not finding.doubt
    return "≈" if mark and decides and not finding.significant else mark


def tone_of(finding: Finding, mark: str) -> str:
    """The tone of a finding: ``better``, ``worse``, ``doubt`` or ``level``."""
    if finding.question == "quality" and not finding.withheld:
        return {"↑": "better", "↓": "worse"}.get(mark, "level")
    if finding.question not in JUDGED and not finding.withheld:
        return "level"
    if finding.doubt:
        return "doubt"
    if finding.is_biased:
        return "worse"
    return "better" if mark == "↓" else "level"


def _blocks(lines: Sequence[PanelLine]) -> list[PanelBlock]:
    """A block of lines for each unit, with an axis that includes all its lines."""
    by_unit: dict[str, list[PanelLine]] = {}
    for line in lines:
        by_unit.setdefault(line.unit, []).append(line)
    return [
        PanelBlock(unit_lines, _axis(unit_lines, unit == "fraction"), _UNITS.get(unit, unit))
        for unit, unit_lines in by_unit.items()
    ]


def _axis(lines: Sequence[PanelLine], fraction: bool) -> Axis:
    from matplotlib.ticker import MaxNLocator

    ends = [end for line in lines for end in line.ends] or [0.0]
    low, high = min(ends), max(ends)
    room = _ROOM * (high - low) or 1.0
    low, high = low - room, high + room
    ticks = MaxNLocator(nbins=3).tick_values(low, high)
    return Axis(low, high, fraction, [float(tick) for tick in ticks if low <= tick <= high])
