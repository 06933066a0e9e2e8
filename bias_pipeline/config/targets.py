"""What a configuration may name: classes of ours that say so, and of packages the user includes.

A name is resolved to an object, and the object must be a class that :class:`Configurable` marks and
that is DEFINED where the name says: no function, nothing private, nothing a module merely imports.
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
from bias_pipeline.io.included import included

PACKAGE = "bias_pipeline"

# No part begins with an underscore, so no private module is ever imported to look into it.
_CLASS = re.compile(r"([A-Za-z]\w*)(?:\.[A-Za-z]\w*)*\.[A-Z]\w*", re.ASCII)


def is_allowed(target: object) -> bool:
    """Whether a configuration may build what a dotted name stands for.

    Example:
        >>> is_allowed("bias_pipeline.corpus.split.SplitRule")
        True
        >>> is_allowed("bias_pipeline.corpus.split.Corpus")
        False
        >>> is_allowed("bias_pipeline.corpus.split.seeds_of")
        False
    """
    return isinstance(target, str) and _found(target) is not None


def _found(target: str) -> type | None:
    named = _CLASS.fullmatch(target)
    if named is None or named[1] not in (PACKAGE, *included()):
        return None
    return _defined(target) if named[1] == PACKAGE else _of_user(target)


def _of_user(target: str) -> type | None:
    """The same of an included package, whose own mistakes are told."""
    try:
        return _defined(target, strict=True)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise UsageError(f"target {target!r}: its module cannot be imported ({told})") from error


@cache
def _defined(target: str, *, strict: bool = False) -> type | None:
    """The class that a module defines under a name and that a configuration may build."""
    module, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        if strict:
            raise
        return None
    if not inspect.isclass(found) or not issubclass(found, Configurable) or _is_kind(found):
        return None
    return found if found.__module__ == module and found.__qualname__ == name else None


def _is_kind(found: type) -> bool:
    """Whether a class only says what others have in common."""
    return found is Configurable or ABC in found.__bases__ or inspect.isabstract(found)


def resolve(target: object) -> Any:
    """The class that a dotted name stands for.

    Raises:
        UsageError: if a configuration may not build it.

    Example:
        >>> resolve("os.system")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: target 'os.system' is not allowed; only metrics, data \
sets, encoders and the like that bias_pipeline defines are
    """
    found = _found(target) if isinstance(target, str) else None
    if found is None:
        raise UsageError(
            f"target {target!r} is not allowed; only metrics, data sets, encoders and the like "
            f"that {PACKAGE}{_and_included()} defines are{_remedy(target)}"
        )
    return found


def by_content(node: Any) -> Any:
    """A resolved configuration in which what is in files stands for their names."""
    if isinstance(node, Mapping):
        target = node.get(TARGET)
        found = resolve(target).by_content(node) if target else {}
        return {key: by_content(value) for key, value in {**node, **found}.items()}
    if isinstance(node, list):
        return [by_content(item) for item in node]
    return node


def _remedy(target: object) -> str:
    """What to do where the class may be the user's own."""
    named = _CLASS.fullmatch(target) if isinstance(target, str) else None
    if named is None or named[1] in (PACKAGE, *included()):
        return ""
    return f"; if you trust package {named[1]!r}, add --include {named[1]}"


def _and_included() -> str:
    return "".join(f" or {name}" for name in included())


def check_targets(config: object, where: str = "config") -> None:
    """Refuse a configuration that names anything but what is allowed.

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
    """Every mapping of plain data that describes an object, and its place."""
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

    Hydra's own builder copies every word list several times over, and builds anything.

    Args:
        node: plain data; a mapping with ``_target_`` becomes a call.

    Raises:
        UsageError: on a target that is not allowed.

    Example:
        >>> rule = build({"_target_": "bias_pipeline.corpus.split.SplitRule", "test_share": 0.2})
        >>> rule.test_share
        0.2
    """
    if isinstance(node, Mapping):
        parts = {str(key): build(value) for key, value in node.items() if key != TARGET}
        return resolve(node[TARGET])(**parts) if TARGET in node else parts
    return [build(item) for item in node] if isinstance(node, list) else node
