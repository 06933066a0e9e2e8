"""Checks that a configuration's values have the types that parameters' annotations declare."""

from __future__ import annotations

import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeGuard, Union

from bias_pipeline.config.targets import nodes, resolve
from bias_pipeline.declared import TARGET, ConfiguredAs, Constraint
from bias_pipeline.errors import UsageError, did_you_mean

Names = Mapping[str, Any]  # the namespace of annotations that are strings

_NAMES: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "null",
}
_LARGEST = 2**63  # the limit of arrays and files


def check_arguments(config: object, where: str = "") -> None:
    """Refuse values that the constructors do not declare.

    Args:
        config: plain data whose targets are allowed.
        where: name of the node, for the message.

    Raises:
        UsageError: naming the key, its value and what it must be.

    Example:
        >>> rule = {"_target_": "bias_pipeline.corpus.hold_out.HoldOut"}
        >>> check_arguments({**rule, "test_share": "a"}, "x")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: x.test_share='a' must be a number
        >>> check_arguments({**rule, "test_share": 2}, "x")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: x.test_share=2 must be above 0 and at most 1
    """
    for path, node in nodes(config, where):
        given = {key: value for key, value in node.items() if key != TARGET}
        known, kinds = _parameters(str(node[TARGET]))
        _check_names(given, known, path)
        scope = vars(sys.modules[resolve(node[TARGET]).__module__])
        for key, value in given.items():
            check_value(value, kinds.get(key, Any), f"{path}.{key}".lstrip("."), scope)


def check_fields(given: Mapping[str, Any], declared: type, where: str) -> None:
    """Refuse keys and values that a ``TypedDict`` does not declare; see :func:`check_arguments`."""
    misfit = _fields(given, declared, where)
    if misfit:
        raise UsageError(misfit)


def check_value(value: object, kind: Any, where: str, scope: Names | None = None) -> None:
    """Refuse a value that an annotation does not allow.

    Example:
        >>> check_value(["x"], Sequence[int], "dims")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: dims.0='x' must be a whole number
    """
    misfit = _misfit(value, kind, where, scope or {})
    if misfit:
        raise UsageError(misfit)


@cache
def _parameters(target: str) -> tuple[Mapping[str, inspect.Parameter], Mapping[str, Any]]:
    """The parameters of an allowed target; cached, since a sweep needs the same few often."""
    target_class = resolve(target)
    takes = target_class if is_dataclass(target_class) else target_class.__init__
    try:
        kinds = typing.get_type_hints(takes, include_extras=True)
    except NameError:  # annotations that only a type checker can resolve
        kinds = {}
    return inspect.signature(target_class).parameters, kinds


def _check_names(given: Names, known: Mapping[str, inspect.Parameter], where: str) -> None:
    prefix = f"{where}." if where else ""
    for key in given:
        if key not in known:
            raise UsageError(f"{prefix}{key} is unknown; {did_you_mean(str(key), known)}")
    for key, parameter in known.items():
        if key not in given and parameter.default is parameter.empty:
            raise UsageError(f"{prefix}{key} is missing")


def _misfit(value: object, kind: Any, where: str, scope: Names) -> str | None:
    """A sentence on what is wrong with a value, None if it is right."""
    if isinstance(kind, str):  # an annotation as a string
        kind = scope.get(kind, Any)
    check = _CHECKS.get(typing.get_origin(kind) or kind)
    if check is not None:
        return check(value, kind, where, scope)
    if typing.is_typeddict(kind):
        return _fields(value, kind, where)
    return _object(value, kind, where) if inspect.isclass(kind) else None


def _anything(value: object, kind: Any, where: str, scope: Names) -> None:
    del value, kind, where, scope


def _plain(value: object, kind: Any, where: str, scope: Names) -> str | None:
    del scope
    return None if _is_plain(value, kind) else _must_be(value, _NAMES[kind], where)


def _is_plain(value: object, kind: Any) -> bool:
    """Whether a value has a plain type; too large or infinite numbers do not."""
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
    return type(value) is kind and (kind is not int or abs(value) < _LARGEST)  # type: ignore[arg-type]


def _annotated(value: object, kind: Any, where: str, scope: Names) -> str | None:
    plain, *extras = typing.get_args(kind)
    given = [extra.kind for extra in extras if isinstance(extra, ConfiguredAs)]
    misfit = _misfit(value, given[0] if given else plain, where, scope)
    if misfit:
        return misfit
    constraints: Iterator[Constraint] = (e for e in extras if not isinstance(e, ConfiguredAs))
    refusals = (constraint.refusal(value) for constraint in constraints)
    return next((_must_be(value, words, where) for words in refusals if words), None)


def _union(value: object, kind: Any, where: str, scope: Names) -> str | None:
    misfits = [_misfit(value, option, where, scope) for option in typing.get_args(kind)]
    if not all(misfits):
        return None
    start = _must_be(value, "", where)
    deeper = [m for m in misfits if m and not m.startswith(start)]
    if deeper:  # of the right shape, but an inner value is wrong
        return deeper[0]
    words = [m.removeprefix(start) for m in misfits if m]
    return start + " or ".join(dict.fromkeys(words))


def _choice(value: object, kind: Any, where: str, scope: Names) -> str | None:
    del scope
    known = typing.get_args(kind)
    if any(value == choice and type(value) is type(choice) for choice in known):
        return None
    return _must_be(value, f"one of {', '.join(map(str, known))}", where)


def _fields(value: object, declared: Any, where: str) -> str | None:
    scope = vars(sys.modules[declared.__module__])
    if not isinstance(value, Mapping) or _is_node(value):
        return _must_be(value, "a mapping", where)
    known = typing.get_type_hints(declared, include_extras=True)
    for key, item in value.items():
        if key not in known:
            return f"{where}.{key} cannot be set; {did_you_mean(str(key), known)}"
        misfit = _misfit(item, known[key], f"{where}.{key}", scope)
        if misfit:
            return misfit
    return None


def _list(value: object, kind: Any, where: str, scope: Names) -> str | None:
    if not isinstance(value, list):
        return _must_be(value, "a list", where)
    (item_kind,) = typing.get_args(kind) or (Any,)
    misfits = (_misfit(item, item_kind, f"{where}.{n}", scope) for n, item in enumerate(value))
    return next(filter(None, misfits), None)


def _mapping(value: object, kind: Any, where: str, scope: Names) -> str | None:
    if not isinstance(value, Mapping) or _is_node(value):
        return _must_be(value, "a mapping", where)
    names, value_kind = typing.get_args(kind) or (Any, Any)
    for key, item in value.items():
        misfit = _misfit(key, names, f"{where}: the key", scope)
        misfit = misfit or _misfit(item, value_kind, f"{where}.{key}", scope)
        if misfit:
            return misfit
    return None


def _callable(value: object, kind: Any, where: str, scope: Names) -> str | None:
    """Whether the objects of a configured class can be called."""
    del kind, scope
    bases = resolve(value[TARGET]).__mro__ if _is_node(value) else ()
    called = any("__call__" in vars(base) for base in bases)
    return None if called else _must_be(value, "a configuration of a transform", where)


def _object(value: Any, kind: type, where: str) -> str | None:
    """An object is configured by a mapping that names its class."""
    if _is_node(value) and kind in resolve(value[TARGET]).__mro__:
        return None
    shown = value[TARGET] if _is_node(value) else value
    about = (kind.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return _must_be(shown, f"a configuration of a {kind.__name__} ({about})", where)


def _is_node(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping) and TARGET in value


_CHECKS: Mapping[Any, Callable[[Any, Any, str, Names], str | None]] = {
    Any: _anything,
    object: _anything,
    **dict.fromkeys(_NAMES, _plain),
    Annotated: _annotated,
    Union: _union,
    types.UnionType: _union,
    Literal: _choice,
    list: _list,
    Sequence: _list,
    Mapping: _mapping,
    Callable: _callable,
}


def _must_be(value: object, words: str, where: str) -> str:
    return f"{where}={_shown(value)} must be {words}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
