"""What a class says of itself to those who write configuration: that it may be built, and of what.

A configuration can build a class only if the class is a :class:`Configurable`, and can give each of
its parameters only what the parameter's annotation declares: a kind, and with ``Annotated`` a
range. Nothing is registered anywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

TARGET = "_target_"  # the key under which a configuration names a class


def known_name(module: str, name: str) -> str:
    """What a class is called in identities: by its name alone, so that its module may move.

    One of another package than ours bears that package's name too.

    Example:
        >>> known_name("bias_pipeline.metrics.attack.lic", "LIC"), known_name("mine.lic", "LIC")
        ('LIC', 'mine.LIC')
    """
    package = module.partition(".")[0]
    return name if package == __name__.partition(".")[0] else f"{package}.{name}"


class Configurable:
    """A class that a configuration may build, under the name it is defined by.

    Metrics, data sets, transforms, probes, encoders, scorings and loggers are, and plain values
    such as word lists. Their constructors keep what they are given: they neither run it nor write.
    """

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """Those settings that name files, as digests of what the files hold.

        They stand for the names in a run's identity, so that a moved file is the same run and a
        changed one another.

        Args:
            settings: as configured.
        """
        del settings
        return {}


class Constraint(Protocol):
    """What a parameter asks beyond its kind."""

    def refusal(self, value: Any) -> str | None:
        """What the value must be, None if it is that."""


@dataclass(frozen=True)
class Range:
    """Bounds of a number.

    Attributes:
        low: the lowest value.
        high: the highest value.
        above: all values are above it.
        below: all values are below it.

    Example:
        >>> Range(low=0, below=1).refusal(2), Range(low=0, below=1).refusal(0.5)
        ('at least 0 and below 1', None)
    """

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None

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
    """The pattern of a text.

    Attributes:
        pattern: the whole text matches it.
        words: what the text must be, for people.
    """

    pattern: str
    words: str

    def refusal(self, value: Any) -> str | None:
        """What the text must be, if it does not match."""
        sound = isinstance(value, str) and re.fullmatch(self.pattern, value)
        return None if sound else self.words


@dataclass(frozen=True)
class Nothing:
    """For what a configuration must leave empty.

    Attributes:
        instead: what to do instead.
    """

    instead: str

    def refusal(self, value: Any) -> str | None:
        """What to do instead, unless there is nothing."""
        return f"empty; {self.instead}" if value not in (None, {}, [], "") else None


@dataclass(frozen=True)
class Given:
    """What a configuration gives where the annotation says what the constructor makes of it.

    Attributes:
        kind: another annotation.
    """

    kind: Any


Count = Annotated[int, Range(low=1)]
Seed = Annotated[int, Range(low=0, below=2**62)]
Share = Annotated[float, Range(low=0, high=1)]
InnerShare = Annotated[float, Range(above=0, below=1)]
Dropout = Annotated[float, Range(low=0, below=1)]
Positive = Annotated[float, Range(above=0)]
NotNegativeCount = Annotated[int, Range(low=0)]
NotNegative = Annotated[float, Range(low=0)]
Seconds = Annotated[float, Range(above=0, high=7 * 24 * 3600)]  # no clock waits for ever
Resamples = Annotated[int, Range(low=2, high=1_000_000)]
Empty = Mapping[str, Any] | list[Any] | str | None
