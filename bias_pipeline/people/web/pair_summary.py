"""What raters say of pairs of captions, and how metrics' numbers go with it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bias_pipeline.errors import DataError, counted
from bias_pipeline.io.terminal import print_out
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.people.web.study import read_ratings
from bias_pipeline.report.caption_pairs import (
    FIRST,
    SECOND,
    CaptionPair,
    PairAnswers,
    PairShare,
    pair_answers,
    read_pairs,
)
from bias_pipeline.report.page import finished_results
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import NumberCell, Table
from bias_pipeline.report.tables import latest
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import label, with_settings
from bias_pipeline.stats.compare import FEWEST_CORRELATED, Correlation, pearson

PAIRS_FILE = "pairs.csv"  # of a study of pairs


class _Study(NamedTuple):
    """A folder of answers about pairs."""

    first: CaptionPair  # by which captioner, data set and attribute
    answers: PairAnswers | None  # None if nobody could tell anything


def _study_of(folder: Path) -> _Study | None:
    """The study of a folder; None if it has no pairs."""
    if not (folder / PAIRS_FILE).is_file():
        return None
    pairs = read_pairs(folder / PAIRS_FILE)
    ballots: defaultdict[str, list[str]] = defaultdict(list)
    for rating in read_ratings(folder):
        ballots[rating.image_id].append(rating.value)
    return _Study(pairs[0], pair_answers(pairs, ballots))


def pair_lines(folder: Path) -> list[str]:
    """What raters of a study of pairs say, a sentence a line; empty for another study."""
    study = _study_of(folder)
    if study is None:
        return []
    answers = study.answers
    if answers is None:
        return ["nobody could tell of any pair"]
    one, two = answers.groups
    return [
        f"{study.first.captioner}: in {_percent(answers.treated_differently)} of the answers one "
        f"caption treats its person differently, mean over {counted(len(answers.pairs), 'pairs')} "
        "with 95 % interval over pairs",
        f"the caption of {one} in {_percent(answers.of_group(0))}, of {two} in "
        f"{_percent(answers.of_group(1))}; {two} more often by {_points(answers.leaning)}",
        f"{FIRST} is chosen more often than {SECOND} by {_points(answers.by_place)}; each group is "
        "A in half of the pairs",
        "over pairs, raters' share with the number of concepts that one caption alone says of its "
        f"person: r = {_correlation(answers.with_concepts)}",
    ]


class NumberCorrelation(NamedTuple):
    """How a number goes with raters' share, over captioners."""

    name: tuple[str, str, str]  # metric, part, and settings in which its run differs
    correlation: Correlation


def number_correlations(
    folders: Sequence[Path], results: Iterable[Result]
) -> list[NumberCorrelation]:
    """Of each headline with raters' share, over the captioners that have both."""
    studies = {folder: study for folder in folders if (study := _study_of(folder)) is not None}
    shares = _shares(studies)
    if not shares:
        return []
    about = next(iter(studies.values())).first
    numbers: dict[tuple[str, str, str], dict[str, float]] = {}
    for result in latest(with_settings(results)):
        for row in result.rows:
            of_studies = (row.attribute, row.dataset) == (about.attribute, about.dataset)
            known = of_studies and row.captioner in shares and not math.isnan(row.value)
            if row.part in HEADLINES and known:
                key = (row.metric, row.part, label(result))
                numbers.setdefault(key, {})[row.captioner] = row.value
    return [
        NumberCorrelation(key, pearson([shares[name] for name in values], list(values.values())))
        for key, values in numbers.items()
    ]


def _shares(studies: dict[Path, _Study]) -> dict[str, float]:
    """Captioner to how often raters say that one caption treats its person differently."""
    shares: dict[str, float] = {}
    first: CaptionPair | None = None
    for folder, study in studies.items():
        pair = study.first
        first = first or pair
        if (pair.attribute, pair.dataset) != (first.attribute, first.dataset):
            raise DataError(
                f"{folder}: is about {pair.attribute} in {pair.dataset}, other studies about "
                f"{first.attribute} in {first.dataset}; gather studies of one attribute and data "
                "set"
            )
        if pair.captioner in shares:
            raise DataError(
                f"{folder}: is of {pair.captioner}, as another study is; gather one of each "
                "captioner"
            )
        if study.answers is not None:
            shares[pair.captioner] = study.answers.treated_differently.value
    return shares


def print_correlations(folders: Sequence[Path], runs: Path) -> None:
    """Print how the numbers of finished runs go with what raters say."""
    lines = number_correlations(folders, finished_results(runs))
    if not lines:
        raise DataError(
            f"{runs} has no number of the captioners, the attribute and the data set of these "
            "studies; name the folder of their runs, and folders of studies of pairs"
        )
    most = max(line.correlation.n for line in lines)
    if most < FEWEST_CORRELATED:
        print_out(
            f"a correlation over captioners needs {FEWEST_CORRELATED} of them, and here are {most}"
        )
        return
    caption = (
        "Over captioners: how each number goes with raters' share that says “differently” "
        "(Pearson, 95 % interval)"
    )
    rows = [
        [*line.name, _correlation(line.correlation), NumberCell(line.correlation.n, digits=0)]
        for line in lines
    ]
    head = ["metric", "part", "settings", "r", "captioners"]
    print_table(Table(caption, head, rows, keys=3))


def _percent(share: PairShare) -> str:
    low, high = (max(0.0, share.low), min(1.0, share.high))
    ends = "" if math.isnan(share.low) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * share.value:.1f}{ends} %"


def _points(share: PairShare) -> str:
    ends = "" if math.isnan(share.low) else f" [{100 * share.low:.1f}, {100 * share.high:.1f}]"
    return f"{100 * share.value:.1f}{ends} points"


def _correlation(correlation: Correlation) -> NumberCell | str:
    if math.isnan(correlation.value):
        return "unknown"
    return NumberCell(correlation.value, correlation.low, correlation.high)
