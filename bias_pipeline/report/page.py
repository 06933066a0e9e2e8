"""``report``: finished runs as one HTML file that needs nothing else, and as tables for papers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bias_pipeline import __version__
from bias_pipeline.analysis.compare import Contest, contests
from bias_pipeline.cache import replace_file
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.report.bibliography import bibtex
from bias_pipeline.report.figures import forest, quadrants
from bias_pipeline.report.fronts import front_sections
from bias_pipeline.report.sections import Section, Sheet
from bias_pipeline.report.tables import (
    headline_cell,
    headline_name,
    interval,
    neutral_of,
    percent,
    printable,
    reading,
)
from bias_pipeline.results import Result, ResultStore, Row
from bias_pipeline.stats.bootstrap import Draws

MOST_PARTS = 40
FEWEST_RANKED = 4

LIMITS = (
    "Labels of gender, race, age and emotion are what annotators saw in a picture, not what people "
    "say of themselves. Two or three groups are what the data sets carry.",
    "Word lists and tokens are English; a caption in another language reads as one that names no "
    "group.",
    "A captioner that names no group cannot be caught naming the wrong one: read the neutral rate "
    "beside every number.",
    "An attacker's score says how much captions give away to that attacker. Another attacker may "
    "find more; intervals cover its training and the choice of images, not the choice of attacker.",
    "† not known to be trained on captions of this data set: read a bias difference, not an "
    "amplification.",
)


def finished_runs(folder: Path) -> tuple[list[Result], dict[str, dict[str, Draws]]]:
    """All whole results of a folder, with their draws.

    Raises:
        ResourceError: if the folder is absent.
        DataError: if it holds no finished run.
    """
    if not folder.is_dir():
        raise ResourceError(f"{folder} is not a folder; name the one that runs were written to")
    store = ResultStore(folder)
    paths = sorted(folder.glob("[!.]*/result.json"))
    results = [found for path in paths if (found := store.load(path.parent.name))]
    if not results:
        raise DataError(f"{folder} holds no finished run; run one first")
    return results, {r.run_id: store.draws(r.run_id) for r in results}


def write_page(folder: Path, out: Path) -> None:
    """Write the report of all finished runs of a folder.

    Args:
        folder: of results.
        out: the HTML file.

    Raises:
        BiasPipelineError: if there is nothing to report or it cannot be written.
    """
    results, draws = finished_runs(folder)
    text = page(results, draws)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, text.encode("utf-8", "replace"))
    except OSError as error:
        raise ResourceError(
            f"cannot write {out}: {error.strerror}; choose another --out"
        ) from error


def page(results: Sequence[Result], draws: Mapping[str, Mapping[str, Draws]]) -> str:
    """The report as HTML; all text that comes from data is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bias_pipeline.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    known = {r.run_id: draws.get(r.run_id, {}) for r in results}
    found = contests(results, known, least=1)
    rows = [row for result in results for row in result.rows]
    captioners = dict.fromkeys(row.captioner for row in rows)
    text = environment.get_template("page.html.j2").render(
        title="Bias amplification of image captioners",
        described=f"{len(captioners)} captioners, {len(results)} runs, {len(rows)} numbers. "
        f"Written by bias_pipeline {__version__}.",
        sections=[
            *_overviews(results),
            *front_sections(results, known),
            *_directions(results),
            *_metrics(results, found),
        ],
        limits=LIMITS,
        runs=[{"name": r.run_id, "manifest": _manifest(r)} for r in results],
        bibtex=bibtex(dict.fromkeys(row.metric for row in rows)),
    )
    return _inert(text)


def _inert(text: str) -> str:
    """A page without control characters and direction marks, wherever they came from."""
    return "".join(
        sign if sign in "\n\t" or sign.isprintable() else ascii(sign)[1:-1] for sign in text
    )


def _manifest(result: Result) -> str:
    return json.dumps(dict(result.manifest), indent=1, ensure_ascii=False)


def _overviews(results: Sequence[Result]) -> Iterable[Section]:
    """One table for each data set and attribute: captioners against metrics."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(results, key=_started):  # of two runs of a cell the later one is shown
        groups.setdefault((result.rows[0].dataset, result.rows[0].attribute), []).append(result)
    for (dataset, attribute), own in groups.items():
        table = _Matrix(own)
        yield Section(
            title=f"{attribute}, {dataset}",
            texts=[
                "Headlines with their intervals, in per cent where they are fractions. "
                "↑ above the value that means no bias, ↓ below, ≈ the interval holds it."
            ],
            sheets=[table.sheet(), *table.agreement()],
            notes=_notes(own),
        )


class _Matrix:
    """Headlines of captioners (lines) under metrics (columns)."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.cells: dict[str, dict[str, tuple[Row, Result]]] = {}
        self.columns: dict[str, None] = {}
        several = _several(results)
        for result in results:
            for row in result.rows:
                if row.part in HEADLINES:
                    name = " ".join([headline_name(row), *(getattr(row, key) for key in several)])
                    self.columns.setdefault(name.strip())
                    self.cells.setdefault(row.captioner, {})[name.strip()] = (row, result)

    def sheet(self) -> Sheet:
        """As a table, with what each captioner's captions cover."""
        head = ["captioner", *self.columns, "images", "coverage", "neutral"]
        return Sheet("Headlines", head, [self._line(name) for name in self.cells])

    def _line(self, captioner: str) -> list[str]:
        own = self.cells[captioner]
        row, result = next(iter(own.values()))
        mark = "" if _trained(result) else " †"
        cells = [headline_cell(*own[name]) if name in own else "–" for name in self.columns]
        shares = (percent(row.coverage, 0), percent(row.neutral_rate, 0))
        return [printable(captioner) + mark, *cells, str(row.n_images), *shares]

    def agreement(self) -> list[Sheet]:
        """How alike metrics rank captioners, where there are enough of both."""
        import pandas as pd

        absent = float("nan")
        values = pd.DataFrame(
            [
                [own[name][0].value if name in own else absent for name in self.columns]
                for own in self.cells.values()
            ],
            columns=list(self.columns),
        ).dropna(axis=1)
        if len(values) < FEWEST_RANKED or values.shape[1] < 2:
            return []
        ranks = values.corr(method="spearman")
        lines = zip(ranks, ranks.to_numpy(), strict=True)
        rows = [[str(name), *(f"{value:.2f}" for value in line)] for name, line in lines]
        caption = f"Rank correlation (Spearman) of headlines over {len(values)} captioners"
        return [Sheet(caption, ["", *map(str, ranks)], rows, folded=True)]


def _several(results: Sequence[Result]) -> list[str]:
    """Settings in which cells of one metric and captioner differ."""
    found = []
    for key in ("encoder", "head", "masking", "alignment", "scoring"):
        seen: dict[tuple[str, str], set[object]] = {}
        for result in results:
            row = result.rows[0]
            seen.setdefault((row.metric, row.captioner), set()).add(getattr(row, key))
        if any(len(values) > 1 for values in seen.values()):
            found.append(key)
    return found


def _started(result: Result) -> str:
    return str(result.manifest.get("started", ""))


def _trained(result: Result) -> bool:
    corpus = result.manifest.get("corpus", {})
    return isinstance(corpus, Mapping) and corpus.get("trained_on_reference") is True


def _directions(results: Sequence[Result]) -> Iterable[Section]:
    """A->T against T->A for every metric that tells them apart."""
    groups: dict[tuple[str, str, str], list[tuple[Row, Row]]] = {}
    for result in results:
        parts = {row.part: row for row in result.rows if row.part in HEADLINES}
        if {"a_to_t", "t_to_a"} <= parts.keys():
            first = parts["a_to_t"]
            key = (first.metric, first.attribute, first.dataset)
            groups.setdefault(key, []).append((first, parts["t_to_a"]))
    for (metric, attribute, dataset), pairs in groups.items():
        title = f"{metric}: directions, {attribute}, {dataset}"
        yield Section(
            title=title,
            texts=["Right: attribute to task is amplified. Up: task to attribute is."],
            figures=[quadrants(pairs, title)],
            sheets=[
                Sheet(
                    "The numbers of the figure",
                    ["captioner", "A→T", "T→A"],
                    [[printable(a.captioner), interval(a), interval(b)] for a, b in pairs],
                    folded=True,
                )
            ],
        )


def _metrics(results: Sequence[Result], found: Sequence[Contest]) -> Iterable[Section]:
    by_id = {result.run_id: result for result in results}
    for contest in found:
        rows = [standing.row for standing in contest.standings]
        told = reading(by_id[rows[0].run_id])
        neutral = neutral_of(by_id[rows[0].run_id], contest.part)
        title = f"{headline_name(rows[0])}, {rows[0].attribute}, {rows[0].dataset}"
        yield Section(
            title=title,
            texts=[f"{told.get('title', contest.metric)}: {told.get('direction', '')}."],
            figures=[forest(rows, neutral, title)],
            sheets=[_standings(contest), *_parts(contest, by_id)],
        )


def _standings(contest: Contest) -> Sheet:
    """The fairest first; one letter: cannot be told apart."""
    lines = [
        [
            printable(s.row.captioner),
            interval(s.row),
            s.letters if len(contest.standings) > 1 else "–",
            "–" if s.row.p_value != s.row.p_value else f"{s.row.p_value:.3f}",
            f"{s.row.n_images}",
            f"{s.row.n_seeds}",
        ]
        for s in contest.standings
    ]
    head = ["captioner", "value [interval]", "group", "p", "images", "seeds"]
    best = "Best" if contest.quality else "Fairest"
    return Sheet(f"{best} first; captioners that share a letter cannot be told apart", head, lines)


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
    lines = [
        [name, *(interval(told[name]) if name in told else "–" for told in own.values())]
        for name in chosen
    ]
    left = f"; {len(names) - MOST_PARTS} more in rows.csv" if len(names) > MOST_PARTS else ""
    head = ["part", *(printable(name) for name in own)]
    yield Sheet(f"Parts beside the headline{left}", head, lines, folded=True)


def _belongs(part: str, headline: str) -> bool:
    """Whether a part stands beside a headline: those of a direction beside it alone."""
    direction = next((h for h in ("a_to_t", "t_to_a") if part.startswith(f"{h}:")), None)
    return part not in HEADLINES and direction in (None, headline)


def _notes(results: Iterable[Result]) -> list[str]:
    said: dict[str, list[str]] = {}
    for result in results:
        notes = result.manifest.get("notes", [])
        for note in notes if isinstance(notes, list) else []:
            said.setdefault(str(note), []).append(result.rows[0].captioner)
    return [printable(f"{', '.join(dict.fromkeys(who))}: {note}") for note, who in said.items()]
