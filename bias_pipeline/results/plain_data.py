"""Converts objects to plain data (for JSON), and back by the types that a dataclass declares."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_origin

import numpy as np

Reader = Callable[[Any, str], Any]  # takes a plain value, and its place in the file for messages


def plain_values(value: Any) -> Any:
    """A value as plain data: null for NaN and infinity, mappings for objects, plain numbers.

    Example:
        >>> plain_values({"a": np.array([1.0, np.nan])})
        {'a': [1.0, None]}
    """
    if type(value) in (str, int, bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain_values(item) for item in value]
    if is_dataclass(value):
        return {one.name: plain_values(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def checked_value(value: Any, kind: Any, name: str) -> Any:
    """The value if its type is ``kind``, otherwise a ValueError; true and false are not numbers.

    Example:
        >>> checked_value(1, int, "n_images")
        1
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name} is {str(value)[:40]!r}")
    return value


@cache
def reader_of(kind: Any) -> Reader:
    """A reader of plain values as a type; its ValueError names what does not fit.

    Null becomes NaN if a number is declared. For a dataclass, absent and null keys get their
    defaults, and unknown keys are ignored.

    Example:
        >>> reader_of(Mapping[str, float])({"model": None}, "shares")
        {'model': nan}
        >>> reader_of(Sequence[str])(7, "notes")
        Traceback (most recent call last):
        ...
        ValueError: notes is '7'
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        read = reader_of(inner[0])
        return lambda value, place: None if value is None else read(value, place)
    if is_dataclass(kind):
        return _reader_of_fields(kind)
    if origin is Mapping:
        item_of = reader_of(inner[1])
        return lambda value, place: {
            name: item_of(item, f"{place}.{name}")
            for name, item in checked_value(value, Mapping, place).items()
        }
    if origin in (Sequence, tuple):
        member_of = reader_of(inner[0])
        return lambda value, place: tuple(
            member_of(item, place) for item in checked_value(value, list | tuple, place)
        )
    if kind is float:
        return lambda value, place: (
            math.nan if value is None else float(checked_value(value, int | float, place))
        )
    if kind is bool:
        return lambda value, place: (
            value if type(value) is bool else checked_value(value, (), place)
        )
    if kind in (Any, object):
        return lambda value, place: value
    return lambda value, place: checked_value(value, kind, place)


def _reader_of_fields(kind: Any) -> Reader:
    hints = typing.get_type_hints(kind)
    required = {one.name for one in fields(kind) if one.default is MISSING is one.default_factory}
    readers = [(one.name, hints[one.name], reader_of(hints[one.name])) for one in fields(kind)]

    def read(value: Any, place: str) -> Any:
        stored, given = checked_value(value, Mapping, place or "it"), {}
        for name, declared, read_one in readers:
            item = stored.get(name)
            at = f"{place}.{name}" if place else name
            if item is not None or (declared is float and (name in required or name in stored)):
                given[name] = read_one(item, at)
            elif name in required:
                raise ValueError(f"{at} is missing")
        return kind(**given)

    return read
