"""Declares which classes a configuration may build, and which values their parameters allow.

A configuration can build only subclasses of :class:`Configurable`. A parameter's annotation
declares its type, and with ``Annotated`` its range. There is no other registry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

TARGET = "_target_"  # the key under which a configuration names a class


def known_name(module: str, name: str) -> str:
    """The name of a class in run ids: without its module, which may move.

    A class of another package has that package's name too.

    Example:
        >>> known_name("bias_pipeline.metrics.attack.lic", "LIC"), known_name("mine.lic", "LIC")
        ('LIC', 'mine.LIC')
    """
    package = module.partition(".")[0]
    return name if package == __name__.partition(".")[0] else f"{package}.{name}"


class Configurable:
    """A class that a configuration may build, by the name of its definition.

    These are metrics, data sets, transforms, probes, encoders, scorings, loggers, and plain values
    such as word lists. Their constructors only store their arguments: they run and write nothing.
    """

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The settings that name files, as digests of the files' content.

        A run's identity uses them instead of the names: a moved file is the same run, a changed
        one a different run.

        Args:
            settings: as configured.
        """
        del settings
        return {}


class Constraint(Protocol):
    """What a parameter requires besides its type."""

    def refusal(self, value: Any) -> str | None:
        """What the value must be, None if it is right."""


@dataclass(frozen=True)
class Range:
    """Bounds of a number.

    Example:
        >>> Range(low=0, below=1).refusal(2), Range(low=0, below=1).refusal(0.5)
        ('at least 0 and below 1', None)
    """

    low: float | None = None  # the lowest value
    high: float | None = None  # the highest value
    above: float | None = None  # all values are above it
    below: float | None = None  # all values are below it

    def refusal(self, value: Any) -> str | None:
        """The bounds in words, if the value is not within them."""
        sound = (
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )
        return None if sound else self.words

    @property
    def words(self) -> str:
        """The bounds in words."""
        named = {
            "at least": self.low,
            "above": self.above,
            "at most": self.high,
            "below": self.below,
        }
        return " and ".join(f"{name} {end}" for name, end in named.items() if end is not None)


@dataclass(frozen=True)
class Text:
    """The pattern of a text."""

    pattern: str  # the whole text matches it
    words: str  # a description of the text, for people

    def refusal(self, value: Any) -> str | None:
        """What the text must be, if it does not match."""
        sound = isinstance(value, str) and re.fullmatch(self.pattern, value)
        return None if sound else self.words


@dataclass(frozen=True)
class MustBeEmpty:
    """For a key that a configuration must leave empty."""

    instead: str  # what to do instead

    def refusal(self, value: Any) -> str | None:
        """What to do instead, if the value is not empty."""
        return f"empty; {self.instead}" if value not in (None, {}, [], "") else None


@dataclass(frozen=True)
class ConfiguredAs:
    """The type of the configured value, where the annotation has what the constructor makes."""

    kind: Any  # another annotation


Count = Annotated[int, Range(low=1)]
Seed = Annotated[int, Range(low=0, below=2**62)]
Share = Annotated[float, Range(low=0, high=1)]
InnerShare = Annotated[float, Range(above=0, below=1)]
PositiveShare = Annotated[float, Range(above=0, high=1)]
Dropout = Annotated[float, Range(low=0, below=1)]
Positive = Annotated[float, Range(above=0)]
NotNegativeCount = Annotated[int, Range(low=0)]
NotNegative = Annotated[float, Range(low=0)]
Seconds = Annotated[float, Range(above=0, high=7 * 24 * 3600)]  # no wait without end
Resamples = Annotated[int, Range(low=2, high=1_000_000)]
Empty = Mapping[str, Any] | list[Any] | str | None
