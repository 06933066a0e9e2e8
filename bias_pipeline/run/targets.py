"""Checks which classes a configuration may build, and the types of their values.

A target names a subclass of :class:`Configurable` in this package or in a package that the user
includes. The module of the target must define the class: functions, private names and imported
classes are refused. Values must have the types in the annotations of parameters.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import marshal
import re
import sys
import types
import typing
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeGuard, Union

from bias_pipeline.declared import (
    TARGET,
    Configurable,
    ConfiguredAs,
    Constraint,
    choices_text,
    is_number,
    kinds_of,
)
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.paths import VARIABLE, advice_to_include, included_packages

PACKAGE = "bias_pipeline"

# No part begins with an underscore, so no private module is ever imported.
_CLASS = re.compile(r"([A-Za-z]\w*)(?:\.[A-Za-z]\w*)*\.[A-Z]\w*", re.ASCII)


def is_allowed(target: object) -> bool:
    """Whether a configuration may build the class of a dotted name.

    Example:
        >>> is_allowed("bias_pipeline.corpus.split_rules.HoldOut")
        True
        >>> is_allowed("bias_pipeline.corpus.split.Corpus")
        False
        >>> is_allowed("bias_pipeline.corpus.split.seeds_of")
        False
    """
    return isinstance(target, str) and _find_class(target) is not None


def _find_class(target: str) -> type | None:
    named = _CLASS.fullmatch(target)
    if named is None or named[1] not in (PACKAGE, *included_packages()):
        return None
    if named[1] == PACKAGE:
        return _defined_class(target)
    try:
        return _defined_class(target, strict=True)
    except Exception as error:
        absent = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        cause = f"{type(error).__name__}: {error}{advice_to_include(absent or '')}"
        raise UsageError(f"target {target!r}: its module cannot be imported ({cause})") from error


@cache
def _defined_class(target: str, *, strict: bool = False) -> type | None:
    """The class that a module defines if a configuration may build it, else None."""
    module, _, name = target.rpartition(".")
    try:
        candidate = getattr(importlib.import_module(module), name, None)
    except ImportError:
        if strict:
            raise
        return None
    if (
        not inspect.isclass(candidate)
        or not issubclass(candidate, Configurable)
        or candidate is Configurable  # or a class that is only a base of others
        or ABC in candidate.__bases__
        or inspect.isabstract(candidate)
    ):
        return None
    return candidate if candidate.__module__ == module and candidate.__qualname__ == name else None


def resolve(target: object) -> Any:
    """The class of a dotted name.

    Example:
        >>> resolve("os.system")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: target 'os.system' is not allowed; only metrics, data \
sets, encoders and the like that bias_pipeline defines are
    """
    target_class = _find_class(target) if isinstance(target, str) else None
    if target_class is None:
        _refuse_absent_class(target)
        packages = " or ".join((PACKAGE, *included_packages()))
        raise UsageError(
            f"target {target!r} is not allowed; only metrics, data sets, encoders and the like "
            f"that {packages} defines are{_hint(target)}"
        )
    return target_class


def _refuse_absent_class(target: object) -> None:
    """Refuse a class that is absent from its module, and name the classes that are there."""
    named = _CLASS.fullmatch(target) if isinstance(target, str) else None
    if named is None or named[1] not in (PACKAGE, *included_packages()):
        return
    module, _, name = named[0].rpartition(".")
    if module not in sys.modules:
        return
    content = vars(sys.modules[module])
    if name not in content:
        known = [one for one in content if _CLASS.fullmatch(f"{module}.{one}")]
        known = [one for one in known if _defined_class(f"{module}.{one}")]
        raise UsageError(
            f"target {target!r}: {module} has no class {name!r}; {did_you_mean(name, known)}"
        )


def by_content(node: Any) -> Any:
    """A resolved configuration in which the digest of each file replaces its name."""
    if isinstance(node, Mapping):
        target = node.get(TARGET)
        digests = resolve(target).by_content(node) if target else {}
        return {key: by_content(value) for key, value in {**node, **digests}.items()}
    if isinstance(node, list):
        return [by_content(item) for item in node]
    return node


def _hint(target: object) -> str:
    """A hint to include the user's package, if a package may have the class."""
    named = _CLASS.fullmatch(target) if isinstance(target, str) else None
    if named is None or named[1] in (PACKAGE, *included_packages()):
        return ""
    return (
        f"; if you trust package {named[1]!r}, add --include {named[1]} (from Python: set the "
        f"variable {VARIABLE}={named[1]})"
    )


def build(node: Any) -> Any:
    """The object that a configuration describes; its parts are built first.

    Hydra's own builder copies every word list several times, and builds any class.

    Example:
        >>> node = {"_target_": "bias_pipeline.corpus.split_rules.HoldOut", "test_share": 0.2}
        >>> rule = build(node)
        >>> rule.test_share
        0.2
    """
    if isinstance(node, Mapping):
        parts = {str(key): build(value) for key, value in node.items() if key != TARGET}
        return resolve(node[TARGET])(**parts) if TARGET in node else parts
    return [build(item) for item in node] if isinstance(node, list) else node


Names = Mapping[str, Any]  # the namespace of annotations that are strings

_NAMES: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "null",
}
_LARGEST = 2**63  # numbers beyond do not fit into arrays and files


def check_nodes(config: object, where: str = "") -> None:
    """Refuse targets that are not allowed, and values that constructors do not declare.

    A text that would become a reference is refused too. An object in several places is checked
    once. The parts of an object are checked before the object.

    Example:
        >>> check_nodes({"x": [{"_target_": "os.system"}]})
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: x.0: target 'os.system' is not allowed; only \
metrics, data sets, encoders and the like that bias_pipeline defines are
        >>> rule = {"_target_": "bias_pipeline.corpus.split_rules.HoldOut"}
        >>> check_nodes({**rule, "test_share": "a"}, "x")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: x.test_share='a' must be a number
        >>> check_nodes({**rule, "test_share": 2}, "x")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: x.test_share=2 must be above 0 and at most 1
    """
    _check_within(config, where, set())


_SOUND: set[tuple[bytes, tuple[str, ...]]] = set()  # digests of parts that were checked, with the
# packages that were included; the cells of a sweep repeat most parts


def _identity(part: Any) -> tuple[bytes, tuple[str, ...]] | None:
    """A key that is equal for parts with equal content, or None if it is no plain data."""
    try:
        content = marshal.dumps(part, 2)  # later formats depend on who else refers to the part
    except ValueError:
        return None
    return hashlib.sha256(content).digest(), included_packages()


def _check_within(config: object, where: str, checked: set[int]) -> None:
    """Check a node of a configuration; ``checked`` has the ids of checked mappings and lists."""
    if isinstance(config, str) and "${" in config:
        raise UsageError(f"{where}: a text may not contain '${{'")
    if not isinstance(config, Mapping | list) or id(config) in checked:
        return
    identity = _identity(config) if where and "." not in where else None
    if identity in _SOUND:
        return
    checked.add(id(config))
    try:
        target = resolve(config[TARGET]) if _is_node(config) else None
    except UsageError as error:
        raise UsageError(f"{where or 'config'}: {error}") from error
    for key, item in config.items() if isinstance(config, Mapping) else enumerate(config):
        if type(item) is str and "${" not in item:
            continue
        _check_within(item, f"{where}.{key}".lstrip("."), checked)
    if target is not None and _is_node(config):
        given = {key: value for key, value in config.items() if key != TARGET}
        _check_names(given, parameters_of(target), where)
        kinds, scope = kinds_of(target), vars(sys.modules[target.__module__])
        for key, value in given.items():
            check_value(value, kinds.get(key, Any), f"{where}.{key}".lstrip("."), scope)
    if identity is not None:
        _SOUND.add(identity)


def check_fields(given: Mapping[str, Any], declared: type, where: str) -> None:
    """Refuse keys and values that a ``TypedDict`` does not declare; see :func:`check_nodes`."""
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
def parameters_of(target: type) -> Mapping[str, inspect.Parameter]:
    """The parameters of a class, cached because a sweep often needs the same classes."""
    return inspect.signature(target).parameters


def _check_names(given: Names, known: Mapping[str, inspect.Parameter], where: str) -> None:
    prefix = f"{where}." if where else ""
    for key in given:
        if key not in known:
            raise UsageError(f"{prefix}{key} is unknown; {did_you_mean(str(key), known)}")
    for key, parameter in known.items():
        if key not in given and parameter.default is parameter.empty:
            raise UsageError(f"{prefix}{key} is missing")


def _misfit(value: object, kind: Any, where: str, scope: Names) -> str | None:
    """A sentence on the fault of a value, or None if the value is right."""
    if isinstance(kind, typing.ForwardRef):  # an annotation that contains itself
        kind = kind.__forward_arg__
    if isinstance(kind, str):  # an annotation given as its name
        kind = scope.get(kind, Any)
    if kind in (Any, object):
        return None
    check = _CHECKS.get(typing.get_origin(kind) or kind)
    if check is not None:
        return check(value, kind, where, scope)
    if typing.is_typeddict(kind):
        return _fields(value, kind, where)
    return _object(value, kind, where) if inspect.isclass(kind) else None


def _check_plain(value: object, kind: Any, where: str, scope: Names) -> str | None:
    """A sentence if a value has a wrong type or is a number that is too large; else None."""
    del scope
    if kind is float:
        right = is_number(value)
    else:
        right = type(value) is kind and (kind is not int or abs(value) < _LARGEST)  # type: ignore[arg-type]
    return None if right else _must_be(value, _NAMES[kind], where)


def _check_annotated(value: object, kind: Any, where: str, scope: Names) -> str | None:
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
    if deeper:  # the shape is right, but an inner value is wrong
        return deeper[0]
    words = [m.removeprefix(start) for m in misfits if m]
    return start + " or ".join(dict.fromkeys(words))


def _choice(value: object, kind: Any, where: str, scope: Names) -> str | None:
    del scope
    known = typing.get_args(kind)
    if any(value == choice and type(value) is type(choice) for choice in known):
        return None
    return _must_be(value, choices_text(value, known), where)


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
    if item_kind is str and all(type(item) is str for item in value):  # such as a word list
        return None
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
    """A sentence if the objects of a configured class cannot be called, else None."""
    del kind, scope
    bases = resolve(value[TARGET]).__mro__ if _is_node(value) else ()
    called = any("__call__" in vars(base) for base in bases)
    return None if called else _must_be(value, "a configuration of a transform", where)


def _object(value: Any, kind: type, where: str) -> str | None:
    """None if a value is a mapping that names a subclass of ``kind``, otherwise a sentence."""
    if _is_node(value) and kind in resolve(value[TARGET]).__mro__:
        return None
    shown = value[TARGET] if _is_node(value) else value
    about = (kind.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return _must_be(shown, f"a configuration of a {kind.__name__} ({about})", where)


def _is_node(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping) and TARGET in value


_CHECKS: Mapping[Any, Callable[[Any, Any, str, Names], str | None]] = {
    **dict.fromkeys(_NAMES, _check_plain),
    Annotated: _check_annotated,
    Union: _union,
    types.UnionType: _union,
    Literal: _choice,
    list: _list,
    Sequence: _list,
    Mapping: _mapping,
    Callable: _callable,
}


def _must_be(value: object, words: str, where: str) -> str:
    text = repr(value)
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return f"{where}={shown} must be {words}"
