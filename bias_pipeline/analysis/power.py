"""How small a bias can so many images show? Answered from measured errors, not from a model.

``power.csv`` is written by ``python -m experiments.power.study`` and shipped with the package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from bias_pipeline.io.files import read_csv
from bias_pipeline.stats.bootstrap import quantile

POWER = 0.8  # the share of cases that find a bias which is called detectable
LEVEL = 0.95  # of the intervals


@dataclass(frozen=True)
class Measurement:
    """What trials of one size and one planted bias gave."""

    design: str  # where the bias was planted
    metric: str  # its name
    alignment: str  # of people's captions
    part: str  # the one that decides
    unit: str  # of the score
    n_images: int  # images a trial
    balanced: float  # see `balanced_images`; mean over trials
    planted: int  # per cent
    trials: int  # how many
    score: float  # its mean distance from neutral
    error: float  # its median standard error, towards neutral
    concluded: int  # trials in which an audit of this metric alone answers yes
    withheld: int  # trials in which it gives no answer

    @property
    def detectable(self) -> float:
        """The score that is above chance in four of five cases, see :func:`detectable`."""
        return detectable(self.error)


@dataclass(frozen=True)
class Power:
    """One part of one metric, under one planted bias, at all sizes."""

    measurements: Sequence[Measurement]  # of every size and planted share

    @property
    def first(self) -> Measurement:
        """Any of them: design, metric, part and unit are the same in all."""
        return self.measurements[0]

    def smallest(self, balanced: float) -> float:
        """The smallest score that so many images show in four of five cases.

        Between sizes its product with the root of the size is interpolated; beyond them it stays.

        Args:
            balanced: images, see :func:`balanced_images`.
        """
        sizes = sorted({m.n_images for m in self.measurements})
        nearest = [self._nearest_score(size) for size in sizes]
        logs = [math.log(m.balanced) for m in nearest]
        scaled = [m.detectable * math.sqrt(m.balanced) for m in nearest]
        return float(np.interp(math.log(balanced), logs, scaled)) / math.sqrt(balanced)

    def at(self, balanced: float) -> list[Measurement]:
        """Those of the size nearest to so many images, by planted share."""
        size = min(self.measurements, key=lambda m: abs(math.log(m.balanced / balanced))).n_images
        return sorted((m for m in self.measurements if m.n_images == size), key=lambda m: m.planted)

    def seen_from(self, planted: int) -> int | None:
        """The smallest size from which on audits conclude in four of five trials.

        Args:
            planted: per cent.

        Returns:
            Images; None if no measured size is enough.
        """
        size = None
        by_size = {m.n_images: m for m in self.measurements if m.planted == planted}
        for n_images, measurement in sorted(by_size.items(), reverse=True):
            if measurement.concluded < POWER * measurement.trials:
                break
            size = n_images
        return size

    def _nearest_score(self, size: int) -> Measurement:
        """The planted share whose score is nearest to what can be detected: errors follow it."""
        planted = [m for m in self.measurements if m.n_images == size and m.planted]
        return min(planted, key=lambda m: abs(m.score - m.detectable))


def detectable(error: float, level: float = LEVEL) -> float:
    """The value that a test finds in four of five cases.

    Args:
        error: its standard error.
        level: of the interval, 1 minus that of the test.

    Example:
        >>> round(detectable(1.0), 2)
        2.8
    """
    return (quantile(level) + quantile(2 * POWER - 1)) * error


def balanced_images(sizes: Sequence[int]) -> float:
    """Images in groups of equal size that show as much as groups of these sizes.

    The error of a mean over groups follows the sum of 1 / size.

    Args:
        sizes: images a group; a group without images does not count.

    Example:
        >>> round(balanced_images([500, 500])), round(balanced_images([900, 100]))
        (1000, 360)
    """
    present = [size for size in sizes if size > 0]
    return len(present) ** 2 / sum(1 / size for size in present) if present else 0.0


@cache
def measured() -> tuple[Power, ...]:
    """What the study measured, in the order of its designs."""
    text = files("bias_pipeline.analysis").joinpath("power.csv").read_text(encoding="utf-8")
    by_part: dict[tuple[str, ...], list[Measurement]] = {}
    for line in read_csv(text):
        one = _measurement(line)
        by_part.setdefault((one.design, one.metric, one.alignment, one.part), []).append(one)
    return tuple(map(Power, by_part.values()))


def _measurement(line: Mapping[str, str]) -> Measurement:
    return Measurement(
        design=line["design"],
        metric=line["metric"],
        alignment=line["alignment"],
        part=line["part"],
        unit=line["unit"],
        n_images=int(line["n_images"]),
        balanced=float(line["balanced"]),
        planted=int(line["planted"]),
        trials=int(line["trials"]),
        score=float(line["score"]),
        error=float(line["error"]),
        concluded=int(line["concluded"]),
        withheld=int(line["withheld"]),
    )


def measured_of(metric: str, part: str) -> list[Power]:
    """What the study measured of one number, a planted bias each; empty if it did not."""
    return [
        power for power in measured() if (power.first.metric, power.first.part) == (metric, part)
    ]


def measured_sizes() -> tuple[float, float]:
    """The smallest and the largest number of images that the study has, as balanced images."""
    sizes = [m.balanced for power in measured() for m in power.measurements]
    return min(sizes), max(sizes)
