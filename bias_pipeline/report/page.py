"""The content of a report, and the report as one HTML file that loads no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline import __version__
from bias_pipeline.data.photos import SIDE
from bias_pipeline.errors import DataError, ResourceError, inflect
from bias_pipeline.io.files import replace_file
from bias_pipeline.io.terminal import printable
from bias_pipeline.metrics.base import QUESTIONS
from bias_pipeline.metrics.catalogue import bibtex
from bias_pipeline.report.compare import rank_captioners
from bias_pipeline.report.concepts import concept_sections
from bias_pipeline.report.conclusion_checks import LIMITS, Limits
from bias_pipeline.report.corrected import correction_sections
from bias_pipeline.report.described import description_sections
from bias_pipeline.report.examples import NOTHING, ScreenExamples, examples_of
from bias_pipeline.report.name_collisions import resolve_name_collisions
from bias_pipeline.report.section import Section
from bias_pipeline.report.sections import (
    answer_sections,
    directions,
    front_sections,
    leaderboard_sections,
    overviews,
)
from bias_pipeline.report.summary import Summary, summaries
from bias_pipeline.report.table import STRONG, STRONGEST, cell_text, shareable, without_places
from bias_pipeline.report.tables import captioners, training_of
from bias_pipeline.report.verdict import JUDGED
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import RESULT, ResultStore
from bias_pipeline.stats.bootstrap import Draws

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

    from bias_pipeline.report.explain.words import RevealingWords


@dataclass(frozen=True)
class Report:
    title: str  # the report's title
    described: str  # a sentence on how many captioners, runs and numbers there are
    sections: Sequence[Section]  # in the order of reading
    caveats: Sequence[str]  # what the numbers cannot say
    runs: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # manifests by run id
    # By run id, the settings in which the run differs from others of its metric
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rows: Sequence[Row] = ()  # every number of every run
    bibtex: str = ""  # the sources of the metrics
    summaries: Sequence[Summary] = ()  # the first screen, a summary for each attribute and data set

    def chapters(self) -> list[tuple[str, list[Section]]]:
        """Sections under their headings, in the order of reading.

        Example:
            >>> report = Report("t", "", [Section("a", chapter="c"), Section("b", chapter="c")], [])
            >>> [(name, len(sections)) for name, sections in report.chapters()]
            [('c', 2)]
        """
        chapters: dict[str, list[Section]] = {}
        for part in self.sections:
            chapters.setdefault(part.chapter or part.title, []).append(part)
        return list(chapters.items())

    def answers_beside(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The tone and the text of each question's answer in every summary."""
        rows = [
            (QUESTIONS[question], [summary.answer_in_short(question) for summary in self.summaries])
            for question in JUDGED
        ]
        return [row for row in rows if any(answer for _, answer in row[1])]


log = logging.getLogger(__name__)

CAVEATS = (
    "Labels of gender, race and age are what annotators saw in a picture, not how people identify, "
    "and have only two or three groups; labels of emotion are what annotators felt.",
    "Word lists and tokens are English; a caption in another language counts as a caption that "
    "names no group.",
    "A captioner that names no group cannot name the wrong one: read every number together with "
    "the "
    "share of captions that name no group.",
    "An attacker's score says how much captions leak to that attacker. Another attacker may "
    "find more; intervals cover training and the choice of images, not the choice of attacker.",
)
UNTRAINED = (
    "† A captioner that is not known to be trained on captions of this data set: read a bias "
    "difference, not an amplification."
)


def finished_results(folder: Path) -> list[Result]:
    """All complete results of a folder; warns of results that cannot be read."""
    results, skipped = read_results(folder)
    for sentence in skipped:
        log.warning("%s", sentence)
    return results


def read_results(folder: Path, made: Sequence[Result] = ()) -> tuple[list[Result], list[str]]:
    """All complete results of a folder, and a sentence on each result that cannot be read.

    Results in ``made`` are not read from files, since this process computed them.
    """
    require_runs_folder(folder)
    store, results, skipped = ResultStore(folder), [], []
    known = {result.run_id: result for result in made}
    for path in sorted(folder.glob("[!.]*")):
        try:
            result = known.get(path.name) or store.read(path.name)
        except DataError as error:
            skipped.append(str(error))
            continue
        if result and result.rows:
            results.append(result)
    if not results:
        count = f" that can be read ({len(skipped)} cannot: {skipped[0]})" if skipped else ""
        raise DataError(f"{folder} contains no finished run{count}; run one first")
    return results, skipped


def require_runs_folder(folder: Path) -> None:
    """Refuse a missing folder, the folder of a single run, and a folder above the runs."""
    if not folder.is_dir():
        raise ResourceError(f"{folder} is not a folder; name the folder that runs were written to")
    if (folder / RESULT).is_file():
        raise DataError(f"{folder} is the folder of one run; name the folder that contains it")
    below = next(folder.glob(f"*/*/{RESULT}"), None)
    if below is not None and not any(folder.glob(f"*/{RESULT}")):
        raise DataError(f"{folder} contains no run, but {below.parents[1]} does; name that folder")


def finished_runs(folder: Path) -> tuple[list[Result], dict[str, dict[str, Draws]]]:
    """All complete results of a folder, and their draws; warns of files that cannot be read."""
    results = finished_results(folder)
    draws, damaged = _read_draws(folder, results)
    for sentence in damaged:
        log.warning("%s", sentence)
    return results, draws


def _read_draws(
    folder: Path, results: Sequence[Result]
) -> tuple[dict[str, dict[str, Draws]], list[str]]:
    """The draws by run id, and a sentence on each run whose draws cannot be read."""
    store, draws, damaged = ResultStore(folder), {}, []
    for result in results:
        try:
            draws[result.run_id] = store.draws(result)
        except DataError as error:
            damaged.append(f"{error}. Its numbers are shown, but not compared")
    return draws, damaged


def report_of_folder(folder: Path, limits: Limits = LIMITS, made: Sequence[Result] = ()) -> Report:
    """The report of a folder's finished runs; it also lists the files that cannot be read."""
    results, skipped = read_results(folder, made)
    draws, damaged = _read_draws(folder, results)
    words, further, unread = _words_of(folder)
    behind, unshown = examples_of(ResultStore(folder), results, words)
    queries, lost = concept_sections(ResultStore(folder), results)
    described, undescribed = description_sections(ResultStore(folder), results)
    faults = [*skipped, *damaged, *unshown, *unread, *lost, *undescribed]
    if skipped:
        faults.insert(
            0, f"{inflect(len(skipped), f'of {len(results) + len(skipped)} runs cannot')} be read."
        )
    for sentence in faults:
        log.warning("%s", sentence)
    return report_of(results, draws, [*described, *queries, *further], faults, behind, limits)


def _words_of(folder: Path) -> tuple[list[RevealingWords], list[Section], list[str]]:
    """The words that ``analysis words`` wrote, their sections, and what cannot be read."""
    if not any(folder.glob("words-*.csv")):
        return [], [], []
    from bias_pipeline.report.word_attribution import section, word_files  # imports the attackers

    words, unread = word_files(folder)
    return words, [*map(section, words)], unread


def report_of(
    results: Sequence[Result],
    draws: Mapping[str, Mapping[str, Draws]],
    further: Sequence[Section] = (),
    faults: Sequence[str] = (),
    behind: ScreenExamples = NOTHING,
    limits: Limits = LIMITS,
) -> Report:
    apart, namesakes = resolve_name_collisions(results)
    results = with_settings(apart)
    known = {r.run_id: draws.get(r.run_id, {}) for r in results}
    leaderboards = rank_captioners(results, known, least=1)
    rows = [row for result in results for row in result.rows]
    names = captioners(results)
    first_screens = summaries(results, behind, limits)
    sections = [
        *([Section(title="Left out", texts=faults)] if faults else []),
        *([Section(title="Of one name", texts=namesakes)] if namesakes else []),
        *answer_sections(first_screens),
        *correction_sections(results),
        *overviews(results, leaderboards, limits),
        *front_sections(results, known),
        *directions(results),
        *leaderboard_sections(results, leaderboards),
        *further,
    ]
    return Report(
        title=f"Bias of {names[0] if len(names) == 1 else f'{len(names)} captioners'}",
        described=f"{inflect(len(names), 'captioners')}, {inflect(f'{len(results):,}', 'runs')}, "
        f"{inflect(f'{len(rows):,}', 'numbers')}. Written by bias_pipeline {__version__}.",
        sections=sections,
        caveats=CAVEATS if all(map(training_of, results)) else (*CAVEATS, UNTRAINED),
        runs={r.run_id: {**r.manifest, "notes": r.notes} for r in results},
        settings={r.run_id: r.settings for r in results},
        rows=rows,
        bibtex=bibtex(dict.fromkeys(row.metric for row in rows)),
        summaries=first_screens,
    )


MOST_RUNS = 200  # of more runs the page does not list settings


def write_page(
    folder: Path, out: Path, limits: Limits = LIMITS, made: Sequence[Result] = ()
) -> None:
    save_page(report_of_folder(folder, limits, made), out)


def save_page(report: Report, out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, html(report).encode("utf-8", "replace"))
    except OSError as error:
        raise ResourceError(
            f"cannot write {out}: {error.strerror}; choose another --out"
        ) from error


def page(results: Sequence[Result], draws: Mapping[str, Mapping[str, Draws]]) -> str:
    return html(report_of(results, draws))


class _Pictures:
    """Thumbnails as HTML; a thumbnail that the page already has is only referred to."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}  # base64 of a JPEG to its number on the page

    def __call__(self, jpeg: str) -> Markup:
        from markupsafe import Markup

        known = jpeg in self.places
        number = self.places.setdefault(jpeg, len(self.places))
        size = Markup('width="{0}" height="{0}"').format(SIDE)
        drawn = Markup('<image id="p{}" {} href="data:image/jpeg;base64,{}"/>')
        inner = (
            Markup('<use href="#p{}"/>').format(number)
            if known
            else drawn.format(number, size, jpeg)
        )
        return Markup('<svg class="picture" {} aria-hidden="true">{}</svg>').format(size, inner)


@cache
def _template() -> Template:
    """The template of a page, compiled once."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bias_pipeline.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["text"] = lambda cell: without_places(printable(cell_text(cell)))
    return environment.get_template("page.html.j2")


def html(report: Report) -> str:
    """A report as HTML, in which all text from data is escaped."""
    script = files("bias_pipeline.report").joinpath("page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = _template().render(
        report=report,
        runs=_runs(report),
        metrics=sorted({row.metric for row in report.rows}),
        names={without_places(printable(row.captioner)) for row in report.rows},
        picture=_Pictures(),
        source=f"'sha256-{digest}'",  # the only script that the page's policy permits
        strong=STRONG,
        strongest=STRONGEST,
    )
    # The script is inserted last, so that its hash stays right.
    before, _, after = _inert(text).rpartition("<!-- script -->")
    return f"{before}<script>{script}</script>{after}"


def _inert(text: str) -> str:
    """A page in which control characters and direction marks are spelled out."""
    hidden = {sign for sign in set(text) - set("\n\t") if not sign.isprintable()}
    return text.translate({ord(sign): ascii(sign)[1:-1] for sign in hidden}) if hidden else text


def _runs(report: Report) -> list[dict[str, str]]:
    """The name and the manifest of each run; empty if there are too many runs."""
    if len(report.runs) > MOST_RUNS:
        return []
    return [{"name": name, "manifest": _json(manifest)} for name, manifest in report.runs.items()]


def _json(manifest: Mapping[str, object]) -> str:
    content = shareable({key: value for key, value in manifest.items() if key != "image_std"})
    return json.dumps(content, indent=1, ensure_ascii=False)
