"""What a configuration may name: our own classes and a short explicit list. Nothing else runs.

A prefix test is not enough: a name may reach foreign code through a module that imports it. So a
target is resolved first and must be DEFINED where its name says.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from bias_pipeline.errors import UsageError

PACKAGE = "bias_pipeline"

# Foreign targets by exact name: Hydra's own launchers and sweepers.
FOREIGN = frozenset(
    {
        "hydra._internal.core_plugins.basic_launcher.BasicLauncher",
        "hydra._internal.core_plugins.basic_sweeper.BasicSweeper",
        "hydra_plugins.device_pool.launcher.DevicePoolLauncher",
        "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher",
        "hydra_plugins.hydra_submitit_launcher.submitit_launcher.LocalLauncher",
        "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher",
    }
)

# Keys under which Python's logging configuration runs what it is given.
_FACTORY_KEYS = ("_target_", "()", "class")
_LOGGING_CLASSES = frozenset(
    {"logging.StreamHandler", "logging.FileHandler", "logging.NullHandler", "logging.Formatter"}
)


def check_targets(config: object, where: str = "config") -> None:
    """Refuse a configuration that names anything but what is allowed.

    Args:
        config: plain data, interpolations resolved where they can be.
        where: name of the node, for the message.

    Raises:
        UsageError: naming the node and the target.

    Example:
        >>> check_targets({"x": [{"_target_": "os.system"}]})
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: config.x.0: target 'os.system' is not allowed; only \
classes and functions defined in bias_pipeline are
    """
    for path, key, target in _targets(config, where):
        if key == "class" and target in _LOGGING_CLASSES:
            continue
        if not isinstance(target, str) or not is_allowed(target):
            raise UsageError(
                f"{path}: target {target!r} is not allowed; only classes and functions defined in "
                f"{PACKAGE} are"
            )


@cache
def _parameters(target: str) -> Mapping[str, inspect.Parameter]:
    """What an allowed target takes; a sweep asks for the same few again and again."""
    return inspect.signature(resolve(target)).parameters


def check_arguments(config: object, where: str = "") -> None:
    """Refuse a value of another kind than the parameter that it is meant for.

    Parameters declared as plain values or lists of them are checked; others are their
    constructor's business.

    Args:
        config: plain data whose targets are allowed.
        where: name of the node, for the message.

    Raises:
        UsageError: naming the key, what it must be and what was found.

    Example:
        >>> check_arguments({"_target_": "bias_pipeline.split.SplitRule", "test_share": "a"}, "x")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: x.test_share='a' must be a number
    """
    for path, node in _nodes(config, where):
        target = str(node["_target_"])
        if target in FOREIGN:
            continue
        declared = _parameters(target)
        for key, value in node.items():
            if key in declared and not _fits(value, str(declared[key].annotation)):
                kinds = [_KINDS[_kind(kind)][1] for kind in declared[key].annotation.split(" | ")]
                place = f"{path}.{key}".lstrip(".")
                raise UsageError(f"{place}={value!r} must be {' or '.join(kinds)}")


# Declared kind: what the configuration may hold for it, and its name for people.
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "str": ((str,), "text"),
    "Sequence": ((list,), "a list"),
    "None": ((type(None),), "null"),
}


def _kind(annotation: str) -> str:
    return annotation.partition("[")[0]


def _fits(value: object, annotation: str) -> bool:
    kinds = [_kind(kind) for kind in annotation.split(" | ")]
    if not all(kind in _KINDS for kind in kinds):
        return True
    if isinstance(value, bool):
        return "bool" in kinds
    return any(isinstance(value, _KINDS[kind][0]) for kind in kinds)


def _nodes(config: object, where: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(config, Mapping):
        if isinstance(config.get("_target_"), str):
            yield where, config
        for key, item in config.items():
            yield from _nodes(item, f"{where}.{key}".lstrip("."))
    elif isinstance(config, list):
        for number, item in enumerate(config):
            yield from _nodes(item, f"{where}.{number}")


def is_allowed(target: str) -> bool:
    """Whether a dotted name is ours by definition or on the explicit list.

    Example:
        >>> is_allowed("bias_pipeline.split.SplitRule")
        True
        >>> is_allowed("bias_pipeline.split.random.Random")
        False
    """
    if target in FOREIGN:
        return True
    module_name, _, name = target.rpartition(".")
    if module_name != PACKAGE and not module_name.startswith(f"{PACKAGE}."):
        return False
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except ImportError:
        return False
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        return False
    return found.__module__ == module_name and found.__qualname__ == name


def _targets(node: object, where: str) -> Iterator[tuple[str, str, object]]:
    if isinstance(node, Mapping):
        for key, item in node.items():
            if key in _FACTORY_KEYS and not isinstance(item, Mapping | list):
                yield where, str(key), item
            yield from _targets(item, f"{where}.{key}")
    elif isinstance(node, list | tuple):
        for number, item in enumerate(node):
            yield from _targets(item, f"{where}.{number}")


def resolve(target: str) -> Any:
    """The class or function that an allowed dotted name stands for."""
    module, _, name = target.rpartition(".")
    return getattr(importlib.import_module(module), name)


def build(node: Any) -> Any:
    """The object that a checked configuration describes, its parts built first.

    Hydra's own builder copies every word list several times over; targets are checked already.

    Args:
        node: plain data; a mapping with ``_target_`` becomes a call.

    Example:
        >>> build({"_target_": "bias_pipeline.split.SplitRule", "test_share": 0.2}).test_share
        0.2
    """
    if isinstance(node, Mapping):
        parts = {str(key): build(value) for key, value in node.items() if key != "_target_"}
        return resolve(node["_target_"])(**parts) if "_target_" in node else parts
    return [build(item) for item in node] if isinstance(node, list) else node
