"""Summarises the answers of a study.

For all studies, the module finds the agreement of raters, how many known answers they gave, and how
often labels are wrong. For pairs of captions, it finds which person is treated differently, and how
metrics' numbers correlate with the raters' share.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.data.rating_tables import (
    CANNOT_TELL,
    LABEL_ERRORS,
    SEVERAL,
    write_label_errors,
)
from bias_pipeline.errors import DataError, ResourceError, inflect
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.terminal import print_out
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.people.web.study import GOLD, NO_ATTRIBUTE, STUDY, Rating, read_ratings
from bias_pipeline.report.caption_pairs import (
    FIRST,
    SECOND,
    CaptionPair,
    PairAnswers,
    pair_answers,
    read_pairs,
)
from bias_pipeline.report.page import finished_results
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import NumberCell, Table
from bias_pipeline.report.tables import latest_results
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import label, with_settings
from bias_pipeline.stats.bootstrap import Estimate, Interval
from bias_pipeline.stats.compare import FEWEST_CORRELATED, pearson
from bias_pipeline.stats.raters import (
    LEAST_RATERS,
    answer_counts,
    consensus,
    error_range,
    fleiss,
    krippendorff,
    label_confusion,
    with_interval,
)
from bias_pipeline.stats.shares import effective_trials, wilson

_Z = 1.96


def agreement_lines(folder: Path) -> list[str]:
    """Sentences on the agreement of raters; the function also writes how often labels are wrong."""
    path = folder / STUDY
    if not path.is_file():
        raise ResourceError(f"{folder}: holds no study; start one with rate ... --out {folder}")
    study = expect(load_json(path, what="settings of a study"), dict, path, "")
    answers = [str(answer) for answer in expect(study.get("answers"), list, path, "answers")]
    ratings = read_ratings(folder)
    if not ratings:
        raise ResourceError(f"{folder}: nobody has answered yet")
    ballots = _ballots(ratings)
    raters = {rating.rater for rating in ratings}
    undecided = {CANNOT_TELL: "cannot tell", SEVERAL: "several people"}
    counts = Counter(rating.value for rating in ratings)
    n_undecided = ", ".join(
        f"{words}: {counts[value]}"
        for value, words in undecided.items()
        if value not in answers and (counts[value] or value == CANNOT_TELL)
    )
    gold = load_json(folder / GOLD, what="known answers") if (folder / GOLD).is_file() else {}
    return [
        f"{study.get('question')}",
        f"{inflect(len(ratings), 'answers')} of {inflect(len(raters), 'raters')} about "
        f"{inflect(len(ballots), 'items')}; {n_undecided}",
        *_coefficients(list(ballots.values()), answers, ordinal=bool(study.get("ordinal"))),
        *error_lines(ratings, answers),
        *_stored_errors(folder, str(study.get("attribute")), ratings, answers),
        *_right_answers(ratings, expect(gold, dict, folder / GOLD, "")),
    ]


def _coefficients(
    ballots: Sequence[Sequence[str]], answers: Sequence[str], *, ordinal: bool
) -> list[str]:
    all_counts = answer_counts(ballots, list(dict.fromkeys([*answers, SEVERAL, CANNOT_TELL])))
    n_paired = int((all_counts.sum(axis=1) > 1).sum())
    if not n_paired:
        return ["no item has answers of two raters, so agreement is unknown"]
    lines = [
        f"{inflect(n_paired, 'items have')} two answers or more; 95 % intervals over items",
        f"Fleiss' kappa {_coefficient(with_interval(all_counts, fleiss))}",
        f"Krippendorff's alpha {_coefficient(with_interval(all_counts, krippendorff))}",
    ]
    if ordinal:
        ranks = answer_counts(ballots, answers)
        alpha = with_interval(ranks, partial(krippendorff, ordinal=True))
        lines.append(
            f"Krippendorff's alpha for ordinal data, without 'cannot tell' {_coefficient(alpha)}"
        )
    return lines


def _coefficient(agreement: Interval) -> str:
    """A coefficient in words.

    Example:
        >>> nan = float("nan")
        >>> _coefficient(Interval(0.5, nan, nan))
        '0.50 (no interval)'
    """
    value, low, high = agreement
    if np.isnan(value):
        return "unknown (all answers are the same)"
    return f"{value:.2f} " + ("(no interval)" if np.isnan(low) else f"[{low:.2f}, {high:.2f}]")


def _right_answers(ratings: Sequence[Rating], gold: dict[str, str]) -> list[str]:
    """How many of the known answers each rater gave, and how many all raters gave together."""
    by_rater: defaultdict[str, list[bool]] = defaultdict(list)
    by_image: defaultdict[str, list[bool]] = defaultdict(list)
    for rating in (rating for rating in ratings if rating.image_id in gold):
        right = rating.value == gold[rating.image_id]
        by_rater[rating.rater].append(right)
        by_image[rating.image_id].append(right)
    lines = []
    for rater, rights in sorted(by_rater.items()):
        low, high = wilson(sum(rights) / len(rights), len(rights), _Z)
        lines.append(
            f"{rater}: {sum(rights)} of {inflect(len(rights), 'known answers')} [{low:.0%}, "
            f"{high:.0%}]"
        )
    if lines:
        counts = np.array([[sum(one), len(one) - sum(one)] for one in by_image.values()], np.int64)
        share, low, high = with_interval(counts, lambda n: float(n[:, 0].sum() / n.sum()))
        error = 0.0 if np.isnan(low) else (high - low) / (2 * _Z)
        trials = effective_trials(share, error, counts.sum(), len(counts))
        low, high = wilson(share, trials, _Z)
        lines.append(f"all raters: {share:.0%} of known answers [{low:.0%}, {high:.0%}]")
    return lines


_LEAST = 30  # with fewer items, rates of errors stay unknown
_RESAMPLES = 200


def error_lines(ratings: Sequence[Rating], groups: Sequence[str]) -> list[str]:
    """What the answers of three or more raters (or else of two) show about errors."""
    answers = _answer_table(ratings, groups)
    if len(several := _by_several(answers)):
        return _by_truth(several, groups)
    n_answers = (answers >= 0).sum(axis=1)
    both = answers[n_answers == 2]
    if len(both) >= _LEAST:
        pairs = np.array([row[row >= 0] for row in both])
        differ = float((pairs[:, 0] != pairs[:, 1]).mean())
        low, high = error_range(differ, len(groups))
        return [
            f"two raters differ on {differ:.1%} of {len(pairs)} items; if they err independently, "
            f"{low:.1%} (one makes all the errors) to {high:.1%} (both make equally many) of the "
            "answers are wrong, and more if they make the same errors; dataset.label_noise shows "
            "how far scores would move at either end"
        ]
    return [
        f"how often labels err is estimated from {_LEAST} items or more that three raters could "
        f"tell (here {(n_answers >= LEAST_RATERS).sum()}), or that two could tell (here "
        f"{len(both)})"
    ]


def _by_several(answers: IntArray) -> IntArray:
    """The answers to items that enough raters answered; empty if there are too few items."""
    several = answers[(answers >= 0).sum(axis=1) >= LEAST_RATERS]
    return several if len(several) >= _LEAST else several[:0]


def _stored_errors(
    folder: Path, attribute: str, ratings: Sequence[Rating], groups: Sequence[str]
) -> list[str]:
    """Write how often the majority's label is wrong, if known; returns a sentence on the file."""
    several = _by_several(_answer_table(ratings, groups))
    if not len(several) or attribute == NO_ATTRIBUTE:
        return []
    path = folder / LABEL_ERRORS
    write_label_errors(path, attribute, groups, label_confusion(several, len(groups)))
    return [
        f"{path}: these shares; dataset.label_noise={path} shows how far scores move if as many "
        "more labels are wrong"
    ]


def _answer_table(ratings: Sequence[Rating], groups: Sequence[str]) -> IntArray:
    """(N, R) the group that each rater gave each item; -1 without an answer."""
    images = {image: row for row, image in enumerate(dict.fromkeys(r.image_id for r in ratings))}
    raters = {name: column for column, name in enumerate(sorted({r.rater for r in ratings}))}
    answers = np.full((len(images), len(raters)), -1)
    for rating in ratings:
        if rating.value in groups:
            place = images[rating.image_id], raters[rating.rater]
            answers[place] = groups.index(rating.value)
    return answers


def _by_truth(answers: IntArray, groups: Sequence[str]) -> list[str]:
    generator, n_items = np.random.default_rng(0), len(answers)
    errors = _errors(answers, len(groups))
    drawn = [
        _errors(answers[generator.integers(0, n_items, n_items)], len(groups))
        for _ in range(_RESAMPLES)
    ]
    shares = {}
    n_true = consensus(answers, len(groups)).prior * n_items
    for group, error, n, values in zip(groups, errors, n_true, np.transpose(drawn), strict=True):
        if np.isfinite(error) and np.isfinite(values).all():
            low, high = wilson(error, effective_trials(error, float(np.std(values)), n, n), _Z)
            ends = np.quantile(values, [0.025, 0.975])  # each draw estimates raters' errors again
            low, high = min(low, ends[0]), max(high, ends[1])
            shares[group] = f"{error:.1%} of {group} [{low:.1%}, {high:.1%}]"
    lines = []
    if shares:
        lines.append(
            f"{inflect(n_items, 'items have')} {LEAST_RATERS} answers or more; if raters err "
            "independently (Dawid and Skene 1979), the majority's label is wrong for "
            f"{', '.join(shares.values())}"
        )
    rare = ", ".join(group for group in groups if group not in shares)
    if rare:
        lines.append(f"how often the label {rare} errs is unknown: too few items have it")
    return lines


def _errors(answers: IntArray, n_groups: int) -> Float64Array:
    return np.asarray(1 - np.diag(label_confusion(answers, n_groups)), np.float64)


PAIRS_FILE = "pairs.csv"  # the table of a study of pairs


class PairStudy(NamedTuple):
    """A folder with answers about pairs."""

    first: CaptionPair  # a pair, which names the captioner, the data set and the attribute
    answers: PairAnswers | None  # None if no rater could tell anything


def read_pair_study(folder: Path) -> PairStudy | None:
    """The study in a folder, or None if the study has no pairs."""
    if not (folder / PAIRS_FILE).is_file():
        return None
    pairs = read_pairs(folder / PAIRS_FILE)
    return PairStudy(pairs[0], pair_answers(pairs, _ballots(read_ratings(folder))))


def _ballots(ratings: Sequence[Rating]) -> dict[str, list[str]]:
    """The answers by image id."""
    ballots: defaultdict[str, list[str]] = defaultdict(list)
    for rating in ratings:
        ballots[rating.image_id].append(rating.value)
    return ballots


def pair_lines(folder: Path) -> list[str]:
    """Sentences on the answers in a study of pairs; empty for other studies."""
    study = read_pair_study(folder)
    if study is None:
        return []
    answers = study.answers
    if answers is None:
        return ["no rater could tell for any pair"]
    one, two = answers.groups
    return [
        f"{study.first.captioner}: in {_percent(answers.treated_differently)} of the answers one "
        f"caption treats its person differently, mean over {inflect(len(answers.pairs), 'pairs')} "
        "with 95 % interval over pairs",
        f"answers name the caption of {one} in {_percent(answers.of_group(0))}, of {two} in "
        f"{_percent(answers.of_group(1))}; {two} more often by {_points(answers.leaning)}",
        f"{FIRST} is chosen more often than {SECOND} by {_points(answers.by_place)}; each group is "
        "A in half of the pairs",
        "over pairs, correlation of raters' share with the number of concepts that only one "
        f"caption says of its person: r = {_correlation(answers.with_concepts)}",
    ]


class NumberCorrelation(NamedTuple):
    """The correlation, over captioners, between a number and the raters' share."""

    name: tuple[str, str, str]  # metric, part, and settings in which its run differs
    correlation: Estimate
    n_captioners: int


def number_correlations(
    folders: Sequence[Path], results: Iterable[Result]
) -> list[NumberCorrelation]:
    """The correlation of each headline with the raters' share, over captioners that have both."""
    studies = {one: study for one in folders if (study := read_pair_study(one)) is not None}
    shares = _shares(studies)
    if not shares:
        return []
    about = next(iter(studies.values())).first
    numbers: dict[tuple[str, str, str], dict[str, float]] = {}
    for result in latest_results(with_settings(results)):
        for row in result.rows:
            of_studies = (row.attribute, row.dataset) == (about.attribute, about.dataset)
            known = of_studies and row.captioner in shares and not math.isnan(row.value)
            if row.part in HEADLINES and known:
                key = (row.metric, row.part, label(result))
                numbers.setdefault(key, {})[row.captioner] = row.value
    return [
        NumberCorrelation(
            key, pearson([shares[name] for name in values], list(values.values())), len(values)
        )
        for key, values in numbers.items()
    ]


def _shares(studies: dict[Path, PairStudy]) -> dict[str, float]:
    """How often raters say that one caption treats its person differently, by captioner."""
    shares: dict[str, float] = {}
    first = next((study.first for study in studies.values()), None)
    for folder, study in studies.items():
        pair = study.first
        assert first is not None
        if (pair.attribute, pair.dataset) != (first.attribute, first.dataset):
            raise DataError(
                f"{folder}: is about {pair.attribute} in {pair.dataset}, other studies about "
                f"{first.attribute} in {first.dataset}; gather studies of one attribute and data "
                "set"
            )
        if pair.captioner in shares:
            raise DataError(
                f"{folder}: is of {pair.captioner}, and so is another study; gather one study of "
                "each captioner"
            )
        if study.answers is not None:
            shares[pair.captioner] = study.answers.treated_differently.value
    return shares


def print_correlations(folders: Sequence[Path], runs: Path) -> None:
    """Print how the numbers of finished runs correlate with the answers of raters."""
    lines = number_correlations(folders, finished_results(runs))
    if not lines:
        raise DataError(
            f"{runs} has no number of the captioners, the attribute and the data set of these "
            "studies; name the folder of their runs, and folders of studies of pairs"
        )
    most = max(line.n_captioners for line in lines)
    if most < FEWEST_CORRELATED:
        print_out(
            f"a correlation over captioners needs {FEWEST_CORRELATED} of them, and here are {most}"
        )
        return
    caption = (
        "Over captioners: correlation of each number with the share of answers that say "
        "“differently” (Pearson, 95 % interval)"
    )
    rows = [
        [*line.name, _correlation(line.correlation), NumberCell(line.n_captioners, digits=0)]
        for line in lines
    ]
    head = ["metric", "part", "settings", "r", "captioners"]
    print_table(Table(caption, head, rows, keys=3))


def _percent(share: Interval) -> str:
    low, high = (max(0.0, share.low), min(1.0, share.high))
    ends = "" if math.isnan(share.low) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * share.value:.1f}{ends} %"


def _points(share: Interval) -> str:
    ends = "" if math.isnan(share.low) else f" [{100 * share.low:.1f}, {100 * share.high:.1f}]"
    return f"{100 * share.value:.1f}{ends} points"


def _correlation(correlation: Estimate) -> NumberCell | str:
    if math.isnan(correlation.value):
        return "unknown"
    return NumberCell(correlation.value, correlation.ci_low, correlation.ci_high)
