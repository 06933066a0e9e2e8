"""What a report of finished runs holds; how it is written is for ``page.py`` and ``export.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bias_pipeline import __version__
from bias_pipeline.analysis.compare import contests
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.report.bibliography import bibtex
from bias_pipeline.report.fronts import front_sections
from bias_pipeline.report.sections import contested, directions, overviews
from bias_pipeline.report.sheets import Report, Section
from bias_pipeline.report.words import word_sections
from bias_pipeline.results import Result, ResultStore
from bias_pipeline.stats.bootstrap import Draws

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


def finished_results(folder: Path) -> list[Result]:
    """All whole results of a folder.

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
    return results


def finished_runs(folder: Path) -> tuple[list[Result], dict[str, dict[str, Draws]]]:
    """All whole results of a folder, with their draws.

    Raises:
        BiasPipelineError: see :func:`finished_results`.
    """
    results, store = finished_results(folder), ResultStore(folder)
    return results, {r.run_id: store.draws(r.run_id) for r in results}


def report_of_folder(folder: Path) -> Report:
    """All that is told of a folder's finished runs.

    Raises:
        BiasPipelineError: if there is nothing to report.
    """
    return report_of(*finished_runs(folder), word_sections(folder))


def report_of(
    results: Sequence[Result],
    draws: Mapping[str, Mapping[str, Draws]],
    further: Sequence[Section] = (),
) -> Report:
    """All that is told of some results.

    Args:
        results: of any metrics, data sets and attributes.
        draws: run id to the headlines under resampling; without them nothing is compared.
        further: sections that rest on other files than the runs'.
    """
    known = {r.run_id: draws.get(r.run_id, {}) for r in results}
    found = contests(results, known, least=1)
    rows = [row for result in results for row in result.rows]
    captioners = dict.fromkeys(row.captioner for row in rows)
    sections = [
        *overviews(results, found),
        *front_sections(results, known),
        *directions(results),
        *contested(results, found),
        *further,
    ]
    return Report(
        title="Bias amplification of image captioners",
        described=f"{len(captioners)} captioners, {len(results)} runs, {len(rows)} numbers. "
        f"Written by bias_pipeline {__version__}.",
        sections=sections,
        limits=LIMITS,
        runs={r.run_id: r.manifest for r in results},
        rows=rows,
        bibtex=bibtex(dict.fromkeys(row.metric for row in rows)),
    )
