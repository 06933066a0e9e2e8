"""Declares which classes a configuration may build, and which values their parameters allow.

A configuration can build only subclasses of :class:`Configurable`. A parameter's annotation
declares its type, and with ``Annotated`` its range. There is no other registry. Ranges and choices
are checked whenever an object is built, also from Python, so constructors need not check them.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache, lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, Protocol, Self, TypeGuard, Union, get_args, get_origin
from typing import get_type_hints as hints_of

from bias_pipeline.errors import UsageError, nearest_name

TARGET = "_target_"  # the key under which a configuration names a class


def known_name(module: str, name: str) -> str:
    """The name of a class in run ids, without its module, since the class may move.

    If another package defines the class, the name also contains this package's name.

    Example:
        >>> known_name("bias_pipeline.metrics.attack.lic", "LIC"), known_name("mine.lic", "LIC")
        ('LIC', 'mine.LIC')
    """
    package = module.partition(".")[0]
    return name if package == __name__.partition(".")[0] else f"{package}.{name}"


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number that a float can hold; true and false are no numbers.

    Example:
        >>> [is_number(value) for value in (1, 2.5, 1e999, 10**400, True, "1")]
        [True, True, False, False, False, False]
    """
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


class _Signature:
    """Gives a class the signature of its ``__init__`` although it has a ``__new__``."""

    def __get__(self, _: object, target: type) -> inspect.Signature:
        constructor = inspect.signature(target.__init__)  # type: ignore[misc]
        return inspect.Signature([*constructor.parameters.values()][1:])


class Configurable:
    """A class that a configuration may build, by the name of its definition.

    Such classes are metrics, data sets, transforms, probes, encoders, scorings, loggers, and plain
    values such as word lists. Constructors of such classes only store their arguments. They run and
    write nothing.
    """

    __signature__ = _Signature()

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """An object whose arguments are within the ranges and choices of their annotations."""
        names, kinds = _limits_of(cls)  # type: ignore[arg-type]
        for name, value in (*zip(names, args, strict=False), *settings.items()):
            words = violation(value, kinds[name]) if name in kinds else None
            if words:
                raise UsageError(f"{cls.__name__}: {name}={value!r} must be {words}")
        return super().__new__(cls)

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The settings that name files, as digests of the files' content.

        A run's identity has the digests instead of the names. So a moved file gives the same run,
        and a changed file gives a different run.
        """
        del settings
        return {}


class Constraint(Protocol):
    """A requirement on a parameter besides its type."""

    def refusal(self, value: Any) -> str | None:
        """A phrase that says what the value must be, or None if the value is right."""


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
        """A phrase with the bounds if the value is outside of them, else None."""
        sound = (
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )
        return None if sound else self.words

    @property
    def words(self) -> str:
        named = {
            "at least": self.low,
            "above": self.above,
            "at most": self.high,
            "below": self.below,
        }
        return " and ".join(f"{name} {end}" for name, end in named.items() if end is not None)


@dataclass(frozen=True)
class Text:
    """A pattern that a text must match."""

    pattern: str  # the whole text must match it
    words: str  # a description of the text, for people

    def refusal(self, value: Any) -> str | None:
        """A phrase that says what the text must be if it does not match, else None."""
        sound = isinstance(value, str) and re.fullmatch(self.pattern, value)
        return None if sound else self.words


@dataclass(frozen=True)
class MustBeEmpty:
    """The requirement that a configuration leaves a key empty."""

    instead: str  # what to do instead

    def refusal(self, value: Any) -> str | None:
        """A phrase that says what to do instead if the value is not empty, else None."""
        return f"empty; {self.instead}" if value not in (None, {}, [], "") else None


@dataclass(frozen=True)
class ConfiguredAs:
    """The type of a configured value, if the annotation names the type that results."""

    kind: Any  # another annotation


@cache
def kinds_of(target: type) -> Mapping[str, Any]:
    """Annotations of a constructor's parameters, by name, with ranges and choices."""
    constructor = target.__init__  # type: ignore[misc]
    try:
        return hints_of(target if is_dataclass(target) else constructor, include_extras=True)
    except NameError:  # annotations that only a type checker can resolve
        return {}


def violation(value: Any, kind: Any) -> str | None:
    """What a value must be, by the ranges and choices of an annotation; None if the value is right.

    Example:
        >>> violation(0, Count | None), violation([0.5, 2], Sequence[Share])
        ('at least 1', 'at least 0 and at most 1')
    """
    if type(value) is str:
        return _text_violation(value, kind)
    return next(_violation(value, kind), None)


@lru_cache(maxsize=1 << 16)  # long word lists, which the metrics of a sweep repeat
def _text_violation(text: str, kind: Any) -> str | None:
    return next(_violation(text, kind), None)


def choices_text(value: object, known: Iterable[object]) -> str:
    """The choices in words, together with the choice that is nearest to a wrong value.

    Example:
        >>> choices_text("ratios", ["difference", "ratio"])
        "one of difference, ratio (did you mean 'ratio'?)"
    """
    names = [*map(str, known)]
    near = nearest_name(str(value), names)
    several = "one of " if len(names) > 1 else ""
    return f"{several}{', '.join(names)}{f' (did you mean {near!r}?)' if near else ''}"


def _violation(value: Any, kind: Any) -> Iterator[str]:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        if value not in parts:
            yield choices_text(value, parts)
    elif origin is Annotated:
        yield from _violation(value, parts[0])
        refusals = (one.refusal(value) for one in parts[1:] if not isinstance(one, ConfiguredAs))
        yield from filter(None, refusals)
    elif origin in (Union, UnionType):
        words = [violation(value, part) for part in parts if _may_be(value, part)]
        if words and all(words):
            yield " or ".join(filter(None, words))
    else:
        for item, item_kind in _items(value, origin, parts):
            yield from _violation(item, item_kind)


def _items(value: Any, origin: Any, parts: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """The items of a list or a mapping, including its keys, with their annotations."""
    if not any(map(_limits, parts)):
        return  # lists of texts are not checked, since word lists are long
    if origin is Sequence and isinstance(value, Sequence):
        yield from ((item, parts[0]) for item in value)
    elif origin is Mapping and isinstance(value, Mapping):
        for pair in value.items():
            yield from zip(pair, parts, strict=True)


def _may_be(value: object, kind: Any) -> bool:
    """Whether a value is of one type of a union, whatever its range."""
    if get_origin(kind) is Annotated:
        return _may_be(value, get_args(kind)[0])
    plain = (int, float) if kind is float else get_origin(kind) or kind
    return not isinstance(plain, type | tuple) or isinstance(value, plain)


@cache
def _limits_of(target: type) -> tuple[Sequence[str], Mapping[str, Any]]:
    """All parameters of a constructor, and the annotations that declare more than a type."""
    limited = {name: kind for name, kind in kinds_of(target).items() if _limits(kind)}
    return [*inspect.signature(target).parameters], limited


def _limits(kind: Any) -> bool:
    parts = get_args(kind)
    if get_origin(kind) is Annotated:
        return _limits(parts[0]) or not all(isinstance(one, ConfiguredAs) for one in parts[1:])
    return get_origin(kind) is Literal or any(map(_limits, parts))


Count = Annotated[int, Range(low=1)]
Seed = Annotated[int, Range(low=0, below=2**62)]
Share = Annotated[float, Range(low=0, high=1)]
InnerShare = Annotated[float, Range(above=0, below=1)]
PositiveShare = Annotated[float, Range(above=0, high=1)]
Dropout = Annotated[float, Range(low=0, below=1)]
Positive = Annotated[float, Range(above=0)]
NotNegativeCount = Annotated[int, Range(low=0)]
NotNegative = Annotated[float, Range(low=0)]
Seconds = Annotated[float, Range(above=0, high=7 * 24 * 3600)]  # finite, so that no wait is endless
Resamples = Annotated[int, Range(low=2, high=1_000_000)]
OneLine = Annotated[str, Text(r"[^\x00-\x1f\x7f]+", "words on one line")]
Empty = Mapping[str, Any] | list[Any] | str | None
