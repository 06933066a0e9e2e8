"""Makes the sections of a report. Each function turns results into one kind of section."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.value_names import direction_of
from bias_pipeline.report.answer_table import answers_table, captioners_table
from bias_pipeline.report.compare import Leaderboard
from bias_pipeline.report.conclusion_checks import LIMITS, Limits
from bias_pipeline.report.figures import forest, scatter
from bias_pipeline.report.panels import corrected_arrow, tone_of
from bias_pipeline.report.pareto import Front, fronts, joined_names
from bias_pipeline.report.section import Section
from bias_pipeline.report.summary import Summary
from bias_pipeline.report.table import Cell, NumberCell, PCell, Table
from bias_pipeline.report.tables import (
    attributed_notes,
    headline_name,
    latest_results,
    legend,
    marks,
    pointing,
    training_of,
)
from bias_pipeline.report.verdict import JUDGED, verdict
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import ANNOTATOR, label
from bias_pipeline.stats.bootstrap import Draws

MOST_PARTS = 40
MOST_DRAWN = 20  # most captioners in a figure or table; more names would hide one another
MARKED = (
    "↑ above the no-bias value, ↓ below, ≈ neither beyond chance (by the corrected p of "
    "the answers)"
)
UNUSED = (
    "not used, because it changes with longer or shorter captions, or because another part decides"
)
BOLD = "Bold: fairer, or better, than every other captioner beyond chance (paired test, Holm)."


def answer_sections(summaries: Sequence[Summary]) -> Iterable[Section]:
    """Sections with the answers to all questions, and then all numbers on each question."""
    for summary in summaries:
        if all(math.isnan(a.value) for answers in summary.answers.values() for a in answers):
            continue
        several = len(summary.answers) > 1
        tables = []
        if several:
            tables = [captioners_table(summary.answers, summary.unsure, summary.made)]
        for captioner, answers in [*summary.answers.items()][:MOST_DRAWN]:
            table = answers_table(answers, summary.made)
            name = f"{captioner}: {table.caption}" if several else table.caption
            tables.append(replace(table, caption=name, folded=several))
        yield Section(
            title=f"Answers on {summary.title}",
            tables=tables,
            chapter="Answers",
        )
        for captioner, numbers in [*summary.numbers.items()][:MOST_DRAWN]:
            yield Section(
                title=f"Numbers on {summary.title}" + f", {captioner}" * several,
                texts=["The number that decides a question first, each with its own images."],
                tables=numbers,
                captioner=captioner,
                chapter="Answers",
            )


def overviews(
    results: Sequence[Result], leaderboards: Sequence[Leaderboard], limits: Limits = LIMITS
) -> Iterable[Section]:
    """A section for each data set and attribute: a table of captioners by metrics."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in latest_results(results):
        groups.setdefault((result.rows[0].dataset, result.rows[0].attribute), []).append(result)
    best = {name for leaderboard in leaderboards for name in _best(leaderboard)}
    for (dataset, attribute), dataset_results in groups.items():
        matrix = _Matrix(dataset_results, best, limits)
        yield Section(
            title=f"{attribute}, data set {dataset}",
            texts=[
                f"Headlines with their intervals; fractions are in per cent. {MARKED}. {BOLD} "
                f"Grey, in files italic: {UNUSED}."
            ],
            tables=[matrix.table()],
            notes=[*attributed_notes(dataset_results), *legend(dataset_results)],
            chapter="All headlines",
        )


def _best(leaderboard: Leaderboard) -> list[tuple[str, str]]:
    """The fairest captioner's run and part; empty unless it is significantly the fairest."""
    first, *others = leaderboard.ranks
    alone = others and not any(set(first.letters) & set(other.letters) for other in others)
    return [(first.row.run_id, first.row.part)] if alone else []


_EXTENT = ("images", "coverage", "no group")


def _extent(row: Row, result: Result) -> list[Cell]:
    """Cells with the number of images, the coverage, and the share of captions without a group."""
    covered = NumberCell(row.coverage, fraction=True, digits=0, mark=marks(row, result))
    silent = NumberCell(row.neutral_rate, fraction=True, digits=0)
    return [NumberCell(row.n_images, digits=0), covered, silent]


class _Matrix:
    """A table of headline numbers: captioners are lines, metrics are columns."""

    def __init__(
        self, results: Sequence[Result], best: Iterable[tuple[str, str]], limits: Limits
    ) -> None:
        self.best = frozenset(best)
        by_captioner: dict[str, list[Result]] = {}
        for result in results:
            by_captioner.setdefault(result.rows[0].captioner, []).append(result)
        self.findings = {
            (finding.row.run_id, finding.headline): finding
            for scored in by_captioner.values()
            for finding in verdict(scored, limits).findings
        }
        self.cells: dict[str, dict[str, tuple[Row, Result]]] = {}
        self.columns: dict[str, str] = {}  # metrics by name of column
        for result in results:
            for row in result.rows:
                if row.part in HEADLINES:
                    name = headline_name(row, label(result))
                    self.columns.setdefault(name, row.metric)
                    self.cells.setdefault(row.captioner, {})[name] = (row, result)

    def table(self) -> Table:
        """The table. If there is only one captioner, each line is a headline number."""
        if len(self.cells) == 1:
            ((captioner, headlines),) = self.cells.items()
            _, first = next(iter(headlines.values()))
            mark = "" if training_of(first) else " †"
            lines: list[list[Cell]] = [
                [name, self._headline(row, result), *_extent(row, result)]
                for name, (row, result) in headlines.items()
            ]
            return Table("Headlines", ["headline", captioner + mark, *_EXTENT], lines)
        head = ["captioner", *self.columns, *_EXTENT]
        metrics = ["", *self.columns.values(), "", "", ""]
        lines = [self._line(name) for name in self.cells]
        return Table("Headlines", head, lines, metrics=metrics)

    def _line(self, captioner: str) -> list[Cell]:
        by_metric = self.cells[captioner]
        row, result = max(by_metric.values(), key=lambda of_metric: of_metric[0].n_images)
        mark = "" if training_of(result) else " †"
        cells = [
            self._headline(*by_metric[name]) if name in by_metric else None for name in self.columns
        ]
        return [captioner + mark, *cells, *_extent(row, result)]

    def _headline(self, row: Row, result: Result) -> NumberCell:
        best = (row.run_id, row.part) in self.best
        mark = pointing(row, result)
        finding = self.findings.get((row.run_id, row.part))
        if finding is None:
            return NumberCell.of_row(row, mark, "", best)
        if finding.question in JUDGED and finding.row.part != row.part:
            return NumberCell.of_row(row, mark, "doubt", best)
        mark = corrected_arrow(mark, finding)
        return NumberCell.of_row(row, mark, tone_of(finding, mark), best)


_DIRECTIONS = ("attribute to task", "task to attribute")


def directions(results: Sequence[Result]) -> Iterable[Section]:
    """A section for every metric that has both directions; it compares A→T with T→A."""
    groups: dict[tuple[str, str, str, str], list[tuple[Row, Row]]] = {}
    neutrals = _neutrals(results)
    for result in results:
        parts = {row.part: row for row in result.rows if row.part in HEADLINES}
        if {"a_to_t", "t_to_a"} <= parts.keys():
            first = parts["a_to_t"]
            key = (first.metric, label(result), first.attribute, first.dataset)
            groups.setdefault(key, []).append((first, parts["t_to_a"]))
    for (metric, settings, attribute, dataset), pairs in groups.items():
        if len(pairs) == 1:  # the first screen shows them
            continue
        name = f"{metric} {settings}".strip()
        title = f"{name}: directions, {attribute}, {dataset}"
        neutral = (neutrals[_key(pairs[0][0])], neutrals[_key(pairs[0][1])])
        yield Section(
            title=title,
            texts=[
                "Further right: more amplification from attribute to task. Further up: from task "
                "to attribute."
            ],
            figures=[scatter(pairs, title, _DIRECTIONS, neutral)]
            if len(pairs) <= MOST_DRAWN
            else [],
            tables=[
                Table(
                    "The numbers of the figure",
                    ["captioner", "A→T", "T→A"],
                    [[a.captioner, NumberCell.of_row(a), NumberCell.of_row(b)] for a, b in pairs],
                    folded=True,
                )
            ],
            metrics=[metric],
            chapter="Directions",
        )


def _neutrals(results: Iterable[Result]) -> dict[tuple[str, str], float]:
    """The no-bias value of each number, by run and part."""
    return {_key(row): result.neutral(row.part) for result in results for row in result.rows}


def _key(row: Row) -> tuple[str, str]:
    return row.run_id, row.part


def leaderboard_sections(
    results: Sequence[Result], leaderboards: Sequence[Leaderboard]
) -> Iterable[Section]:
    """A section for each headline number: a ranking of captioners, and further numbers."""
    by_id = {result.run_id: result for result in results}
    for leaderboard in leaderboards:
        rows = [rank.row for rank in leaderboard.ranks]
        metric = by_id[rows[0].run_id].facts.metric
        neutral = by_id[rows[0].run_id].neutral(leaderboard.part)
        name = headline_name(rows[0], label(by_id[rows[0].run_id]))
        title = f"{name}, {rows[0].attribute}, {rows[0].dataset}"
        several, many = len(rows) > 1, len(rows) > MOST_DRAWN
        yield Section(
            title=title,
            texts=[f"{metric.title or leaderboard.metric}: {metric.direction}."],
            figures=[forest(rows, neutral, title)] if several and not many else [],
            tables=[
                *([_ranking(leaderboard)] if several else []),
                *([] if many else _parts(leaderboard, by_id)),
            ],
            notes=[f"More than {MOST_DRAWN} captioners are not drawn; their parts are in rows.csv"]
            * many,
            metrics=[leaderboard.metric],
            chapter="Leaderboards" if several else "Parts of each metric",
        )


def _ranking(leaderboard: Leaderboard) -> Table:
    """A table of captioners, fairest first. Equal letters mean: no significant difference."""
    best = _best(leaderboard)
    lines: list[list[Cell]] = [
        [
            s.row.captioner,
            NumberCell.of_row(s.row, best=(s.row.run_id, s.row.part) in best),
            s.letters if len(leaderboard.ranks) > 1 else None,
            PCell(s.row.p_value),
            NumberCell(s.row.n_images, digits=0),
            NumberCell(s.row.n_seeds, digits=0),
        ]
        for s in leaderboard.ranks
    ]
    head = ["captioner", "value", "letters", "p", "images", "seeds"]
    order = "Best" if leaderboard.quality else "Fairest"
    letters = "captioners that share a letter do not differ significantly"
    if leaderboard.against_first:
        letters = (
            f"a: no significant difference from the first; {len(lines)} are tested against it only"
        )
    return Table(f"{order} first; {letters}", head, lines)


def _parts(leaderboard: Leaderboard, results: Mapping[str, Result]) -> Iterable[Table]:
    """A table of the further numbers behind a headline; captioners are columns."""
    names: dict[str, bool] = {}  # whether each part has a value
    parts_by_captioner: dict[str, dict[str, Row]] = {}
    for rank in leaderboard.ranks:
        rows = results[rank.row.run_id].rows
        parts = {row.part: row for row in rows if _belongs(row.part, leaderboard.part)}
        parts_by_captioner[rank.row.captioner] = parts
        for name, row in parts.items():
            names[name] = names.get(name, False) or not math.isnan(row.value)
    chosen = [name for name, valued in names.items() if valued][:MOST_PARTS]
    if not chosen:
        return
    lines: list[list[Cell]] = [
        [
            name,
            *(
                NumberCell.of_row(parts[name]) if name in parts else None
                for parts in parts_by_captioner.values()
            ),
        ]
        for name in chosen
    ]
    more = len(names) - len(chosen)
    left = f"; {more} more in rows.csv" if more else ""
    head = ["part", *parts_by_captioner]
    yield Table(
        f"Parts beside the headline{left}", head, lines, True, captioners=["", *parts_by_captioner]
    )


def _belongs(part: str, headline: str) -> bool:
    """Whether a part belongs to a headline, that is, has the headline's direction or none."""
    return part not in HEADLINES and direction_of(part) in ("", headline)


_IN_SENTENCE = ("metric", "attribute", "dataset", "captioner")  # named by a sentence


@dataclass(frozen=True)
class Bounds:
    """A captioner's headline number, computed with the labels of each of several annotators."""

    rows: Mapping[str, Row]  # annotator, or `majority`, to the headline under their labels
    # The settings in which these cells differ from others of the sweep, as part of a name
    settings: str = ""

    @property
    def lowest(self) -> str:
        return min(self.rows, key=lambda who: self.rows[who].value)

    @property
    def highest(self) -> str:
        return max(self.rows, key=lambda who: self.rows[who].value)

    @property
    def sampled_ends(self) -> tuple[float, float]:
        """The lowest lower end, and the highest upper end, of all intervals."""
        return (
            min(row.ci_low for row in self.rows.values()),
            max(row.ci_high for row in self.rows.values()),
        )

    def sentence(self) -> str:
        """A sentence that names the bounds; fractions are in per cent."""
        first = next(iter(self.rows.values()))
        low, high = (
            f"{NumberCell.in_unit(first.unit, self.rows[who].value).text} ({who})"
            for who in (self.lowest, self.highest)
        )
        ends = " to ".join(NumberCell.in_unit(first.unit, end).text for end in self.sampled_ends)
        return (
            f"{first.captioner}: {headline_name(first, self.settings)} lies between {low} and "
            f"{high}, depending on whose labels of {first.attribute} are used; with sampling, "
            f"{ends}"
        )


def bounds(results: Sequence[Result], swept: Sequence[Mapping[str, str]]) -> list[Bounds]:
    """The bounds of headline numbers in a sweep over annotators; empty in any other sweep."""
    rows_by_setting: dict[tuple[str, ...], dict[str, Row]] = defaultdict(dict)
    for result, overrides in zip(results, swept, strict=True):
        settings = " ".join(
            f"{k}={v}" for k, v in overrides.items() if k not in (ANNOTATOR, *_IN_SENTENCE)
        )
        for row in result.rows:
            if ANNOTATOR in overrides and row.part in HEADLINES and row.value == row.value:
                names = (getattr(row, name) for name in _IN_SENTENCE)
                rows_by_setting[settings, *names, row.part][overrides[ANNOTATOR]] = row
    return [
        Bounds(rows, settings) for (settings, *_), rows in rows_by_setting.items() if len(rows) > 1
    ]


def front_sections(
    results: Sequence[Result], draws: Mapping[str, Mapping[str, Draws]]
) -> Iterable[Section]:
    """A section for each front: captioners by one measure of quality and one of bias."""
    neutrals = _neutrals(results)
    for front in fronts(results, draws):
        first = front.places[0]
        quality, bias = front.settings
        names = (headline_name(first.quality, quality), headline_name(first.bias, bias))
        title = f"{names[0]} and {names[1]}, {first.bias.attribute}, {first.bias.dataset}"
        pairs = [(place.quality, place.bias) for place in front.places]
        neutral = (neutrals[_key(first.quality)], neutrals[_key(first.bias)])
        yield Section(
            title=title,
            texts=[f"{front.verdict()}."],
            figures=[scatter(pairs, title, names, neutral)] if len(pairs) <= MOST_DRAWN else [],
            tables=[_places(front, names)],
            metrics=[first.quality.metric, first.bias.metric],
            chapter="Quality against bias",
        )


def _places(front: Front, names: Sequence[str]) -> Table:
    lines: list[list[Cell]] = [
        [
            place.bias.captioner,
            NumberCell.of_row(place.quality),
            NumberCell.of_row(place.bias),
            joined_names(place.beaten_by) or None,
            NumberCell(place.share, fraction=True, digits=0),
        ]
        for place in front.places
    ]
    head = ["captioner", *names, "beaten by", "share of resamplings in which none is better"]
    return Table(
        "Best first. A captioner is beaten by one that is at least as good and as fair, and "
        "better or fairer",
        head,
        lines,
    )
