"""Says how small a bias a number of images shows, and which conclusions a metric allows.

Both answers come from measured errors. The conclusions that a metric allows depend on the rule of
:mod:`~bias_pipeline.report.verdict`, and on whether its number found planted bias. ``flatness.csv``
says how far numbers move; ``experiments.flatness.study`` writes it. ``python -m
experiments.power.study`` writes ``power.csv``, which the package contains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import join_words
from bias_pipeline.io.files import read_csv
from bias_pipeline.metrics.base import HEADLINES, MetricInfo
from bias_pipeline.metrics.value_names import T_TO_A, direction_of, sibling_name
from bias_pipeline.report.compare import LEVEL
from bias_pipeline.report.conclusion_checks import LIMITS, NO_RULE
from bias_pipeline.report.table import number, percent
from bias_pipeline.report.tables import ARROWS
from bias_pipeline.report.verdict import BY_METRIC, BY_RULES
from bias_pipeline.stats.bootstrap import quantile

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

POWER = 0.8  # a bias is called detectable if this share of cases finds it


@dataclass(frozen=True)
class Measurement:
    """The outcome of trials with one number of images and one planted bias."""

    design: str  # where the bias was planted
    metric: str  # its name
    alignment: str  # the alignment of human captions
    part: str  # the part that decides
    unit: str  # of the score
    n_images: int  # images in a trial
    balanced: float  # see `balanced_images`; mean over trials
    planted: int  # per cent
    trials: int  # how many
    score: float  # the score's mean distance from the no-bias value
    error: float  # the score's median standard error, towards the no-bias value
    concluded: int  # trials in which an audit of this metric alone answers yes
    withheld: int  # trials in which the audit gives no answer

    @property
    def detectable(self) -> float:
        """The score that is above chance in four of five cases, by :func:`detectable`."""
        return detectable(self.error)


@dataclass(frozen=True)
class Power:
    """One part of one metric, under one planted bias, at all sizes."""

    measurements: Sequence[Measurement]  # for every size and planted share

    @property
    def any_measurement(self) -> Measurement:
        """One of the measurements, which all have the same design, metric, part and unit."""
        return self.measurements[0]

    def smallest(self, balanced: float) -> float:
        """The smallest score that this number of images shows in four of five cases.

        The score times the root of the size is interpolated between measured sizes, and constant
        beyond them.
        """
        sizes = sorted({m.n_images for m in self.measurements})
        nearest = [self._nearest_score(size) for size in sizes]
        logs = [math.log(m.balanced) for m in nearest]
        scaled = [m.detectable * math.sqrt(m.balanced) for m in nearest]
        return float(np.interp(math.log(balanced), logs, scaled)) / math.sqrt(balanced)

    def at_size(self, balanced: float) -> list[Measurement]:
        """The measurements at the size nearest to this number of images, by planted share."""
        size = min(self.measurements, key=lambda m: abs(math.log(m.balanced / balanced))).n_images
        return sorted((m for m in self.measurements if m.n_images == size), key=lambda m: m.planted)

    def smallest_size(self, planted: int) -> int | None:
        """The smallest size from which on audits conclude in four of five trials."""
        size = None
        by_size = {m.n_images: m for m in self.measurements if m.planted == planted}
        for n_images, measurement in sorted(by_size.items(), reverse=True):
            if measurement.concluded < POWER * measurement.trials:
                break
            size = n_images
        return size

    def _nearest_score(self, size: int) -> Measurement:
        """The measurement whose score is nearest to the detectable score; its errors are used."""
        planted = [m for m in self.measurements if m.n_images == size and m.planted]
        return min(planted, key=lambda m: abs(m.score - m.detectable))


def detectable(error: float, freedom: float = math.inf) -> float:
    """The value that a test finds in four of five cases.

    ``freedom`` has the degrees of freedom of Student's t; infinity means the normal distribution.

    Example:
        >>> round(detectable(1.0), 2), round(detectable(1.0, freedom=5), 2)
        (2.8, 3.49)
    """
    return (quantile(LEVEL, freedom) + quantile(2 * POWER - 1, freedom)) * error


def balanced_images(sizes: Sequence[int]) -> float:
    """How many images in groups of equal size show as much as groups of the given sizes.

    The error of a mean over groups depends on the sum of 1 / size.

    Example:
        >>> round(balanced_images([500, 500])), round(balanced_images([900, 100]))
        (1000, 360)
    """
    present = [size for size in sizes if size > 0]
    return len(present) ** 2 / sum(1 / size for size in present) if present else 0.0


@cache
def measured_powers() -> tuple[Power, ...]:
    """The measurements of the study, in the order of its designs."""
    by_part: dict[tuple[str, ...], list[Measurement]] = {}
    for one in read_records(files("bias_pipeline.report") / "power.csv", Measurement):
        by_part.setdefault((one.design, one.metric, one.alignment, one.part), []).append(one)
    return tuple(map(Power, by_part.values()))


_KINDS: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": lambda text: float(text or "nan"),
}


_Record = TypeVar("_Record", bound="DataclassInstance")


def read_records(file: Traversable, kind: type[_Record]) -> list[_Record]:
    """The lines of a CSV file of the package as records with these fields."""
    kinds = {field.name: _KINDS[str(field.type)] for field in fields(kind)}
    lines = read_csv(file.read_text(encoding="utf-8"))
    return [kind(**{name: kinds[name](line[name]) for name in kinds}) for line in lines]


def measured_of(metric: str, part: str) -> list[Power]:
    """The measurements of one number, with an item for each kind of planted bias."""
    return [
        power
        for power in measured_powers()
        if (power.any_measurement.metric, power.any_measurement.part) == (metric, part)
    ]


def measured_sizes() -> tuple[float, float]:
    """The smallest and the largest number of images in the study, as balanced images."""
    sizes = [m.balanced for power in measured_powers() for m in power.measurements]
    return min(sizes), max(sizes)


YES, MATCHED, NO = "yes", "only under `alignment=matched`", "no"
ONLY_YES = "only a yes"
PLANTED = 20  # the planted bias, in per cent, that a usable number must find
_SHOWN = {
    True: "`audit` shows it but draws no conclusion from it; `compare` uses it",
    False: "`audit` and `compare` show it but draw no conclusion from it",
}
_TRAITS = {
    "words": "the number of words",
    "vocabulary": "the size of the vocabulary",
    "neutral": "the share of captions that name no group",
}
_DIFFERING = (
    "it changes with {}, and published captioners differ from annotators by more than "
    f"{LIMITS.speech:.0%} in words and vocabulary; `audit` uses it for a model that writes as "
    "annotators do, `compare` for captioners that write alike"
)


@dataclass(frozen=True)
class Usability:
    """Whether a conclusion may rest on a headline."""

    headline: str  # which one
    part: str  # the part that decides; the headline itself if no part does
    answer: str  # `YES`, `MATCHED`, `NO`, or `ONLY_YES` if planted bias may stay unseen
    reason: str = ""  # why, for `NO` and `ONLY_YES`; else empty


@dataclass(frozen=True)
class Movement:
    """How far a number moves, in its unit."""

    metric: str  # its name
    alignment: str  # of the human captions
    part: str  # which number
    unit: str  # of the number
    world: str  # whether annotators or simulated captioners write
    moved: float  # the largest change between speakers without bias
    half_width: float  # half of the interval of that speaker's number; NaN without an interval
    speaker: str  # the speaker who changes the number most
    planted: float  # the largest change by planted bias
    bias: str  # the bias that changes the number most


def usability(info: MetricInfo) -> list[Usability]:
    """Whether a conclusion may rest on each headline of a metric.

    Example:
        >>> from bias_pipeline.metrics.catalogue import info_of
        >>> [answer.answer for answer in usability(info_of("dbac"))]
        ['only under `alignment=matched`', 'no']
    """
    known = {*info.readings, *info.responses, *info.says}
    headlines = [headline for headline in HEADLINES if headline in known]
    return [_usability_of(headline, info) for headline in headlines]


def _usability_of(headline: str, info: MetricInfo) -> Usability:
    rule = info.readings.get(headline)
    part = rule.part if rule else str(headline)
    if info.question in BY_METRIC:
        return Usability(headline, part, YES)
    if info.question not in BY_RULES:
        return Usability(headline, part, NO, _SHOWN[rule is not None])
    if rule is None:
        return Usability(headline, part, NO, NO_RULE)
    if rule.matched:
        return Usability(headline, part, MATCHED)
    if rule.follows:
        traits = join_words(_TRAITS[trait] for trait in rule.follows)
        return Usability(headline, part, NO, _DIFFERING.format(traits))
    unseen = _unseen(info.name, part)
    return Usability(headline, part, ONLY_YES if unseen else YES, unseen)


def _unseen(metric: str, part: str) -> str:
    """A sentence if a number misses planted bias at all measured sizes; else empty."""
    powers = measured_of(metric, part)
    if not powers or any(power.smallest_size(PLANTED) for power in powers):
        return ""
    sizes = {m.n_images for power in powers for m in power.measurements}
    return (
        f"with {min(sizes)} to {max(sizes):,} images it found a planted bias of {PLANTED} % in "
        "fewer than four of five trials; if it finds no bias, there may still be some"
    )


@cache
def movements() -> Sequence[Movement]:
    return read_records(files("bias_pipeline.report") / "flatness.csv", Movement)


def movements_of(metric: str, part: str, alignment: str) -> list[Movement]:
    """The movements of a number, and of its difference from annotators."""
    increase = sibling_name(part, "increase")
    return [
        movement
        for movement in movements()
        if movement.metric == metric
        and movement.alignment == alignment
        and movement.part in (part, increase)
    ]


def smallest_bias_lines(balanced: float) -> list[list[str]]:
    """A line for each metric and planted bias."""
    return [
        [
            reading_of(power.any_measurement),
            power.any_measurement.design,
            amount(power.smallest(balanced), power.any_measurement.unit),
            *(
                ("–" if 2 * m.withheld > m.trials else f"{m.concluded}/{m.trials}")
                for m in power.at_size(balanced)
                if m.planted
            ),
        ]
        for power in measured_powers()
    ]


def planted_shares() -> list[int]:
    return sorted(
        {m.planted for power in measured_powers() for m in power.measurements if m.planted}
    )


def unseen(
    corpus: Corpus, attribute: str, metrics: Collection[str], matched: Collection[str]
) -> str:
    """A sentence on how small a bias the images can show, for the bias that is hardest to see."""
    sizes = [size for size in _sizes_of_groups(corpus, attribute) if size]
    if len(sizes) != 2:
        return "how small a bias these images can show was measured for two groups only"
    balanced = balanced_images(sizes)
    largest: dict[str, tuple[float, str]] = {}
    for power in measured_powers():
        name = reading_of(power.any_measurement)
        runs = matched if power.any_measurement.alignment == "matched" else metrics
        # Without objects nothing is scored from objects to groups.
        scored = corpus.objects is not None or direction_of(power.any_measurement.part) != T_TO_A
        if power.any_measurement.metric in runs and scored:
            score = (power.smallest(balanced), power.any_measurement.unit)
            largest[name] = max(score, largest.get(name, score))
    amounts = ", ".join(f"{amount(*score)} ({name})" for name, score in largest.items())
    return f"the smallest biases that {sum(sizes)} images show with a power of 80 %: {amounts}"


def _sizes_of_groups(corpus: Corpus, attribute: str) -> list[int]:
    """How many images of each group have a caption and, if any are given, human captions."""
    rows = np.unique(corpus.model.image_rows)
    if len(corpus.human):
        rows = np.intersect1d(rows, corpus.human.image_rows)
    grouping = corpus.groupings[attribute]
    codes = grouping.codes[rows]
    return np.bincount(codes[codes >= 0], minlength=len(grouping.names)).tolist()


def reading_of(measurement: Measurement) -> str:
    """The name of a measured number, made of metric, direction, alignment and part."""
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
    """A score as text with its unit.

    Example:
        >>> amount(0.0612, "fraction"), amount(0.39, "nat")
        ('6.1 points', '0.39 nat')
    """
    return f"{percent(score)} points" if unit == "fraction" else f"{number(score)} {unit}"
