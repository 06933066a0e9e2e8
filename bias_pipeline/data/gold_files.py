"""Reads gold labels: a table of ``image_id``, ``value`` and, if known, ``rater`` and ``chance``.

A file written by the command ``rate`` also has ``attribute``. Only lines on one attribute are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.data.label_files import label_map
from bias_pipeline.data.label_values import TIE, majority, recognise_labels
from bias_pipeline.data.tables import Rows, check_file, open_rows
from bias_pipeline.errors import DataError, NotApplicableError, UsageError, did_you_mean, inflect
from bias_pipeline.stats.raters import answer_counts, fleiss

_WHAT = "gold labels: a table of image_id, value and, if known, rater and chance"
_IMAGE, _VALUE, _ATTRIBUTE, _RATER, _CHANCE = "image_id", "value", "attribute", "rater", "chance"
_SHOWN = 8

Votes = Mapping[str, Mapping[str, str]]  # labels by image and rater


def read_gold(path: Path, dataset: str, attribute: Attribute) -> GoldLabels:
    """The gold labels of one attribute. If there are several raters, the majority decides."""
    if attribute.is_crossed:
        raise UsageError("dataset.gold is of one attribute; score two attributes one by one")
    votes, chances = _read(open_rows(check_file(path, "dataset.gold"), what=_WHAT), attribute)
    groups, known = label_map(dataset, attribute, {})
    values = dict.fromkeys(chain.from_iterable(ballot.values() for ballot in votes.values()))
    labels, _ = recognise_labels(values, known, attribute)
    understood = {*labels.groups, *labels.strata}
    if unknown := [value for value in values if value not in understood]:
        raise DataError(
            f"{path}: unknown values: {', '.join(map(repr, unknown[:_SHOWN]))}; "
            f"{did_you_mean(unknown[0], [*groups, *filter(None, labels.strata)])}"
        )
    meaning = {
        value: labels.group_of(value) or _no_group(labels.is_unsure(value)) for value in values
    }
    read = {
        image: majority((meaning[value], 1.0) for value in ballot.values())
        for image, ballot in votes.items()
    }
    return GoldLabels(
        file=str(path),
        attribute=attribute.name,
        groups={image: value for image, value in read.items() if value in groups},
        unsure=frozenset(image for image, value in read.items() if value == _no_group(True)),
        others=frozenset(i for i, value in read.items() if value in (_no_group(False), TIE)),
        chances=chances,
        notes=_agreement(votes, meaning, read.values()),
    )


def _no_group(unsure: bool) -> str:
    """A label with the meaning "no group" that is not the name of a group."""
    return "\0unsure" if unsure else "\0other"


def _read(rows: Rows, attribute: Attribute) -> tuple[Votes, dict[str, float]]:
    first, rows = rows.peek()
    rows.require(_IMAGE, _VALUE)
    votes: defaultdict[str, dict[str, str]] = defaultdict(dict)
    chances: dict[str, float] = {}
    others: set[str] = set()
    for number, row in rows.items:
        if _ATTRIBUTE in first and (about := rows.text(number, row, _ATTRIBUTE)) != attribute.name:
            others.add(about)
            continue
        image, value = rows.id(number, row, _IMAGE), rows.label(number, row, _VALUE)
        rater = rows.label(number, row, _RATER) if _RATER in first else ""
        if votes[image].setdefault(rater, value) != value:
            rows.refuse(number, f"image {image} has two values{f' by {rater}' * bool(rater)}")
        if _CHANCE in first:
            chance = _chance(rows, number, row)
            if chances.setdefault(image, chance) != chance:
                rows.refuse(number, f"image {image} has two chances; an image has one")
    if not votes and others:
        raise NotApplicableError(
            f"{rows.path}: no line is about attribute {attribute.name!r}; "
            f"{did_you_mean(attribute.name, others)}"
        )
    if not votes:
        raise DataError(f"{rows.path}: holds no gold labels; expected {_WHAT}")
    return dict(votes), chances


def _chance(rows: Rows, number: int, row: Mapping[str, Any]) -> float:
    try:
        chance = float(rows.value(number, row, _CHANCE))
    except (TypeError, ValueError, OverflowError):
        chance = -1.0
    if not 0 < chance <= 1:
        rows.refuse(
            number,
            f"chance {row[_CHANCE]!r} is not a number above 0 and up to 1: how likely the image "
            "was to be drawn",
        )
    return chance


def _agreement(votes: Votes, meaning: Mapping[str, str], chosen: Iterable[str]) -> list[str]:
    """A note on how well the raters agree; empty if there is only one rater."""
    ballots = [[meaning[value] for value in ballot.values()] for ballot in votes.values()]
    if len({rater for ballot in votes.values() for rater in ballot}) < 2:
        return []
    kappa = fleiss(answer_counts(ballots, list(dict.fromkeys(chain.from_iterable(ballots)))))
    split = sum(len(set(ballot)) > 1 for ballot in ballots)
    ties = sum(label == TIE for label in chosen)
    return [
        f"gold labels of several raters: Fleiss' kappa {kappa:.2f}, {split} of "
        f"{inflect(len(ballots), 'images')} judged differently, {ties} without a majority (they "
        "count as images of no group); the majority's label is taken as true"
    ]
