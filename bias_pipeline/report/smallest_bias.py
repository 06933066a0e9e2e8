"""How small a bias so many images can show."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.value_names import T_TO_A, direction_of
from bias_pipeline.report.power import Measurement, balanced_images, measured
from bias_pipeline.report.table import number, percent
from bias_pipeline.report.tables import ARROWS


def smallest_bias_lines(balanced: float) -> list[list[str]]:
    """A line for each metric and planted bias."""
    return [
        [
            reading_of(power.first),
            power.first.design,
            amount(power.smallest(balanced), power.first.unit),
            *(_concluded(m) for m in power.at(balanced) if m.planted),
        ]
        for power in measured()
    ]


def planted_shares() -> list[int]:
    """The planted shares, per cent."""
    return sorted({m.planted for power in measured() for m in power.measurements if m.planted})


def unseen(
    corpus: Corpus, attribute: str, metrics: Collection[str], matched: Collection[str]
) -> str:
    """What the images of a corpus cannot show; of several planted biases, the worst seen counts."""
    sizes = [size for size in _described(corpus, attribute) if size]
    if len(sizes) != 2:
        return "how small a bias these images can show was measured for two groups only"
    balanced = balanced_images(sizes)
    largest: dict[str, tuple[float, str]] = {}
    for power in measured():
        name = reading_of(power.first)
        runs = matched if power.first.alignment == "matched" else metrics
        # From objects to groups nothing is scored without objects.
        scored = corpus.objects is not None or direction_of(power.first.part) != T_TO_A
        if power.first.metric in runs and scored:
            score = (power.smallest(balanced), power.first.unit)
            largest[name] = max(score, largest.get(name, score))
    amounts = ", ".join(f"{amount(*score)} ({name})" for name, score in largest.items())
    return f"the smallest biases that {sum(sizes)} images show with a power of 80 %: {amounts}"


def _described(corpus: Corpus, attribute: str) -> list[int]:
    """Images of each group with a caption, and with human captions where there are any."""
    rows = np.unique(corpus.model.image_rows)
    if len(corpus.human):
        rows = np.intersect1d(rows, corpus.human.image_rows)
    grouping = corpus.groupings[attribute]
    codes = grouping.codes[rows]
    return np.bincount(codes[codes >= 0], minlength=len(grouping.names)).tolist()


def reading_of(measurement: Measurement) -> str:
    """Metric, direction and alignment, with the part if it is not the headline."""
    direction = direction_of(measurement.part)
    part = measurement.part.removeprefix(f"{direction}:")
    words = (
        measurement.metric,
        ARROWS.get(direction, ""),
        measurement.alignment.removeprefix("constant"),
        "" if part in HEADLINES else f"({part})",
    )
    return " ".join(filter(None, words))


def amount(score: float, unit: str) -> str:
    """A score with its unit.

    Example:
        >>> amount(0.0612, "fraction"), amount(0.39, "nat")
        ('6.1 points', '0.39 nat')
    """
    return f"{percent(score)} points" if unit == "fraction" else f"{number(score)} {unit}"


def _concluded(measurement: Measurement) -> str:
    """Trials that concluded it out of all; a dash where most gave no answer."""
    if 2 * measurement.withheld > measurement.trials:
        return "–"
    return f"{measurement.concluded}/{measurement.trials}"
