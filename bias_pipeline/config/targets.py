"""The classes that a configuration may build: ours, and those of packages the user includes.

A target must be a subclass of :class:`Configurable` that is DEFINED in the module it names: no
function, nothing private, nothing that a module only imports.
"""

from __future__ import annotations

import importlib
import inspect
import re
from abc import ABC
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from bias_pipeline.declared import TARGET, Configurable
from bias_pipeline.errors import UsageError
from bias_pipeline.io.plugins import included

PACKAGE = "bias_pipeline"

# No part begins with an underscore, so no private module is ever imported.
_CLASS = re.compile(r"([A-Za-z]\w*)(?:\.[A-Za-z]\w*)*\.[A-Z]\w*", re.ASCII)


def is_allowed(target: object) -> bool:
    """Whether a configuration may build the class of a dotted name.

    Example:
        >>> is_allowed("bias_pipeline.corpus.hold_out.HoldOut")
        True
        >>> is_allowed("bias_pipeline.corpus.split.Corpus")
        False
        >>> is_allowed("bias_pipeline.corpus.split.seeds_of")
        False
    """
    return isinstance(target, str) and _find_class(target) is not None


def _find_class(target: str) -> type | None:
    named = _CLASS.fullmatch(target)
    if named is None or named[1] not in (PACKAGE, *included()):
        return None
    return _defined(target) if named[1] == PACKAGE else _of_user(target)


def _of_user(target: str) -> type | None:
    """The class in an included package; errors of its import are reported."""
    try:
        return _defined(target, strict=True)
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise UsageError(f"target {target!r}: its module cannot be imported ({cause})") from error


@cache
def _defined(target: str, *, strict: bool = False) -> type | None:
    """The class that a module defines, if a configuration may build it; else None."""
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
        or _is_kind(candidate)
    ):
        return None
    return candidate if candidate.__module__ == module and candidate.__qualname__ == name else None


def _is_kind(candidate: type) -> bool:
    """Whether a class is only a base of others."""
    return candidate is Configurable or ABC in candidate.__bases__ or inspect.isabstract(candidate)


def resolve(target: object) -> Any:
    """The class of a dotted name.

    Raises:
        UsageError: if a configuration may not build it.

    Example:
        >>> resolve("os.system")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: target 'os.system' is not allowed; only metrics, data \
sets, encoders and the like that bias_pipeline defines are
    """
    target_class = _find_class(target) if isinstance(target, str) else None
    if target_class is None:
        raise UsageError(
            f"target {target!r} is not allowed; only metrics, data sets, encoders and the like "
            f"that {PACKAGE}{_and_included()} defines are{_remedy(target)}"
        )
    return target_class


def by_content(node: Any) -> Any:
    """A resolved configuration with digests of files instead of their names."""
    if isinstance(node, Mapping):
        target = node.get(TARGET)
        digests = resolve(target).by_content(node) if target else {}
        return {key: by_content(value) for key, value in {**node, **digests}.items()}
    if isinstance(node, list):
        return [by_content(item) for item in node]
    return node


def _remedy(target: object) -> str:
    """A hint to include the user's package, if the class may be in one."""
    named = _CLASS.fullmatch(target) if isinstance(target, str) else None
    if named is None or named[1] in (PACKAGE, *included()):
        return ""
    return f"; if you trust package {named[1]!r}, add --include {named[1]}"


def _and_included() -> str:
    return "".join(f" or {name}" for name in included())


def check_targets(config: object, where: str = "config") -> None:
    """Refuse a configuration with a target that is not allowed.

    Args:
        config: plain data, interpolations resolved.
        where: name of the node, for the message.

    Raises:
        UsageError: naming the node and the target.

    Example:
        >>> check_targets({"x": [{"_target_": "os.system"}]})
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: config.x.0: target 'os.system' is not allowed; only \
metrics, data sets, encoders and the like that bias_pipeline defines are
    """
    for path, node in nodes(config, where):
        try:
            resolve(node[TARGET])
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error


def nodes(config: object, where: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every mapping that describes an object, and its path."""
    if isinstance(config, Mapping):
        if TARGET in config:
            yield where, config
        for key, item in config.items():
            yield from nodes(item, f"{where}.{key}".lstrip("."))
    elif isinstance(config, list):
        for number, item in enumerate(config):
            yield from nodes(item, f"{where}.{number}")


def build(node: Any) -> Any:
    """The object that a configuration describes, its parts built first.

    Hydra's own builder copies every word list several times, and builds any class.

    Args:
        node: plain data; a mapping with ``_target_`` becomes a call.

    Raises:
        UsageError: on a target that is not allowed.

    Example:
        >>> rule = build({"_target_": "bias_pipeline.corpus.hold_out.HoldOut", "test_share": 0.2})
        >>> rule.test_share
        0.2
    """
    if isinstance(node, Mapping):
        parts = {str(key): build(value) for key, value in node.items() if key != TARGET}
        return resolve(node[TARGET])(**parts) if TARGET in node else parts
    return [build(item) for item in node] if isinstance(node, list) else node
