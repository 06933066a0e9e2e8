"""The sections of a report: one function for each kind, from results to tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from bias_pipeline.analysis.compare import Contest
from bias_pipeline.analysis.verdict import JUDGED, verdict
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.parts import direction_of
from bias_pipeline.report.cells import latest, trained
from bias_pipeline.report.figures import forest, quadrants
from bias_pipeline.report.panels import tone_of
from bias_pipeline.report.sheets import Cell, Number, Section, Sheet
from bias_pipeline.report.tables import (
    headline_name,
    legend,
    marks,
    neutral_of,
    pointing,
    reading,
    said,
)
from bias_pipeline.results.settings import label
from bias_pipeline.results.store import Result, Row

MOST_PARTS = 40
MOST_DRAWN = 20  # captioners; names of more would hide one another, and parts fill no page
FEWEST_RANKED = 4
BOLD = "Bold: fairer, or better, than every other captioner beyond chance (paired test, Holm)."


def overviews(results: Sequence[Result], found: Sequence[Contest]) -> Iterable[Section]:
    """One table for each data set and attribute: captioners against metrics."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in latest(results):
        groups.setdefault((result.rows[0].dataset, result.rows[0].attribute), []).append(result)
    best = {name for contest in found for name in _best(contest)}
    for (dataset, attribute), own in groups.items():
        table = _Matrix(own, best)
        yield Section(
            title=f"{attribute}, data set {dataset}",
            texts=[
                "Headlines with their intervals, in per cent where they are fractions. "
                f"↑ above the value that means no bias, ↓ below, ≈ the interval holds it. {BOLD} "
                "Grey: it follows how much is said, or a part beside it decides; nothing is "
                "concluded from it."
            ],
            sheets=[table.sheet(), *table.agreement()],
            notes=[*said(own), *legend(own)],
            chapter="All headlines",
        )


def _best(contest: Contest) -> list[tuple[str, str]]:
    """Run and part of the captioner that is told apart from every other, and is the fairest."""
    first, *others = contest.standings
    alone = others and not any(set(first.letters) & set(other.letters) for other in others)
    return [(first.row.run_id, first.row.part)] if alone else []


class _Matrix:
    """Headlines of captioners (lines) under metrics (columns)."""

    def __init__(self, results: Sequence[Result], best: Iterable[tuple[str, str]]) -> None:
        self.best = frozenset(best)
        self.cells: dict[str, dict[str, tuple[Row, Result]]] = {}
        self.columns: dict[str, str] = {}  # its name to its metric
        for result in results:
            for row in result.rows:
                if row.part in HEADLINES:
                    name = headline_name(row, label(result))
                    self.columns.setdefault(name, row.metric)
                    self.cells.setdefault(row.captioner, {})[name] = (row, result)

    def sheet(self) -> Sheet:
        """As a table, with what each captioner's captions cover."""
        head = ["captioner", *self.columns, "images", "coverage", "neutral"]
        metrics = ["", *self.columns.values(), "", "", ""]
        lines = [self._line(name) for name in self.cells]
        return Sheet("Headlines", head, lines, metrics=metrics)

    def _line(self, captioner: str) -> list[Cell]:
        own = self.cells[captioner]
        row, result = next(iter(own.values()))
        mark = "" if trained(result) else " †"
        cells = [self._headline(*own[name]) if name in own else None for name in self.columns]
        covered = Number(row.coverage, fraction=True, digits=0, mark=marks(row, result))
        silent = Number(row.neutral_rate, fraction=True, digits=0)
        return [captioner + mark, *cells, Number(row.n_images, digits=0), covered, silent]

    def _headline(self, row: Row, result: Result) -> Number:
        mark = pointing(row, result)
        best = (row.run_id, row.part) in self.best
        return Number.of(row, mark, _tone(result, row.part, mark), best)

    def agreement(self) -> list[Sheet]:
        """How alike metrics rank captioners, where there are enough of both."""
        import pandas as pd

        values = pd.DataFrame(
            [
                [own[name][0].value if name in own else math.nan for name in self.columns]
                for own in self.cells.values()
            ],
            columns=list(self.columns),
        ).dropna(axis=1)
        if len(values) < FEWEST_RANKED or values.shape[1] < 2:
            return []
        ranks = values.corr(method="spearman")
        lines = zip(ranks, ranks.to_numpy(), strict=True)
        rows: list[list[Cell]] = [[str(name), *map(Number, line.tolist())] for name, line in lines]
        caption = f"Rank correlation (Spearman) of headlines over {len(values)} captioners"
        return [Sheet(caption, ["metric", *map(str, ranks)], rows, folded=True)]


def _tone(result: Result, headline: str, mark: str) -> str:
    """How a headline is coloured; nothing is concluded from one that another part decides for."""
    for finding in verdict([result]).findings:
        if finding.headline == headline:
            decides = finding.question not in JUDGED or finding.row.part == headline
            return tone_of(finding, mark) if decides else "doubt"
    return ""


def directions(results: Sequence[Result]) -> Iterable[Section]:
    """A->T against T->A for every metric that tells them apart."""
    groups: dict[tuple[str, str, str, str], list[tuple[Row, Row]]] = {}
    for result in results:
        parts = {row.part: row for row in result.rows if row.part in HEADLINES}
        if {"a_to_t", "t_to_a"} <= parts.keys():
            first = parts["a_to_t"]
            key = (first.metric, label(result), first.attribute, first.dataset)
            groups.setdefault(key, []).append((first, parts["t_to_a"]))
    for (metric, settings, attribute, dataset), pairs in groups.items():
        if len(pairs) == 1:  # the first screen has it, and one cross compares nothing
            continue
        name = f"{metric} {settings}".strip()
        title = f"{name}: directions, {attribute}, {dataset}"
        yield Section(
            title=title,
            texts=["Right: attribute to task is amplified. Up: task to attribute is."],
            figures=[quadrants(pairs, title)] if len(pairs) <= MOST_DRAWN else [],
            sheets=[
                Sheet(
                    "The numbers of the figure",
                    ["captioner", "A→T", "T→A"],
                    [[a.captioner, Number.of(a), Number.of(b)] for a, b in pairs],
                    folded=True,
                )
            ],
            metrics=[metric],
            chapter="Directions",
        )


def contested(results: Sequence[Result], found: Sequence[Contest]) -> Iterable[Section]:
    """One for each headline of each metric: who is fairer, and what stands beside it."""
    by_id = {result.run_id: result for result in results}
    for contest in found:
        rows = [standing.row for standing in contest.standings]
        told = reading(by_id[rows[0].run_id])
        neutral = neutral_of(by_id[rows[0].run_id], contest.part)
        name = headline_name(rows[0], label(by_id[rows[0].run_id]))
        title = f"{name}, {rows[0].attribute}, {rows[0].dataset}"
        several, many = len(rows) > 1, len(rows) > MOST_DRAWN
        yield Section(
            title=title,
            texts=[f"{told.get('title', contest.metric)}: {told.get('direction', '')}."],
            figures=[forest(rows, neutral, title)] if several and not many else [],
            sheets=[
                *([_standings(contest)] if several else []),
                *([] if many else _parts(contest, by_id)),
            ],
            notes=[f"Of more than {MOST_DRAWN} captioners nothing is drawn; parts: rows.csv"]
            * many,
            metrics=[contest.metric],
            chapter="Leaderboards" if several else "Parts of each metric",
        )


def _standings(contest: Contest) -> Sheet:
    """The fairest first; one letter: cannot be told apart."""
    best = _best(contest)
    lines: list[list[Cell]] = [
        [
            s.row.captioner,
            Number.of(s.row, best=(s.row.run_id, s.row.part) in best),
            s.letters if len(contest.standings) > 1 else None,
            Number(s.row.p_value, digits=3),
            Number(s.row.n_images, digits=0),
            Number(s.row.n_seeds, digits=0),
        ]
        for s in contest.standings
    ]
    head = ["captioner", "value", "group", "p", "images", "seeds"]
    order = "Best" if contest.quality else "Fairest"
    letters = "captioners that share a letter cannot be told apart"
    if contest.against_first:
        letters = (
            f"a: cannot be told apart from the first, the only one of {len(lines)} compared with"
        )
    return Sheet(f"{order} first; {letters}", head, lines)


def _parts(contest: Contest, results: Mapping[str, Result]) -> Iterable[Sheet]:
    """What stands beside the headline, captioners side by side."""
    names: dict[str, None] = {}
    own: dict[str, dict[str, Row]] = {}
    for standing in contest.standings:
        rows = results[standing.row.run_id].rows
        told = {row.part: row for row in rows if _belongs(row.part, contest.part)}
        own[standing.row.captioner] = told
        names |= dict.fromkeys(told)
    chosen = list(names)[:MOST_PARTS]
    if not chosen:
        return
    lines: list[list[Cell]] = [
        [name, *(Number.of(told[name]) if name in told else None for told in own.values())]
        for name in chosen
    ]
    left = f"; {len(names) - MOST_PARTS} more in rows.csv" if len(names) > MOST_PARTS else ""
    head = ["part", *own]
    yield Sheet(f"Parts beside the headline{left}", head, lines, True, captioners=["", *own])


def _belongs(part: str, headline: str) -> bool:
    """Whether a part stands beside a headline: those of a direction beside it alone."""
    return part not in HEADLINES and direction_of(part) in ("", headline)
