"""Checks and resolves all references (``${...}``) of a configuration in one walk.

A resolver is a function that a configuration calls by name. Two resolvers are allowed:
``oc.select``, and ``oc.env`` for a few variables. Other resolvers parse text as configuration
(``oc.decode``), or change with each call (``now``). A check could then see another value than the
program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import UsageError

if TYPE_CHECKING:
    from omegaconf import DictConfig

KeyPath = tuple[str, ...]

VARIABLES = ("BIAS_PIPELINE_*", "HOME", "SCRATCH", "TMPDIR", "USER", "WORK")
_LARGEST = 20_000_000  # characters of a configuration with all references resolved
_NO_DEFAULT = object()
_ABSENT = object()
_VARIABLE = "|".join(name.replace("*", r"\w+") for name in VARIABLES)
_VARIABLE_NAME = re.compile(_VARIABLE, re.ASCII)
_ALLOWED = re.compile(
    r"\$\{\s*(?:(?P<path>\w[\w.\[\]-]*)\s*\}"
    r"|oc\.select\s*:\s*(?P<selected>\w[\w.\[\]-]*)\s*(?=[,}])"
    rf"|oc\.env\s*:\s*(?:{_VARIABLE})\s*(?=[,}}]))",
    re.ASCII,
)
_CALLED = re.compile(r"\$\{\s*([\w.]+)\s*:", re.ASCII)
# References that need no parser: a key, or a call whose default is a word or a whole number.
_PLAIN = re.compile(
    r"\$\{(?:(?P<path>\w[\w.\[\]-]*)"
    rf"|oc\.(?:select:(?P<selected>\w[\w.\[\]-]*)|env:(?P<variable>{_VARIABLE}))"
    r"(?:,(?P<default>\[\]|0|[1-9]\d*|null|true|false"
    r"|(?!(?i:null|true|false|inf|nan)\b)[A-Za-z_]\w*))?)\}",
    re.ASCII,
)
_CONSTANTS: Mapping[str, object] = {"null": None, "true": True, "false": False}


def restrict_environment() -> None:
    """Let ``oc.env`` refuse all but a few allowed variables, in the whole process."""
    from omegaconf import OmegaConf

    OmegaConf.register_new_resolver("oc.env", _environment, replace=True)


def _environment(name: str, default: Any = _NO_DEFAULT) -> Any:
    if not _VARIABLE_NAME.fullmatch(str(name)):
        raise UsageError(f"oc.env reads only {', '.join(VARIABLES)}, not {name}")
    if name in os.environ:
        return os.environ[name]
    if default is _NO_DEFAULT:
        raise UsageError(f"oc.env: the environment variable {name} is not set")
    return None if default is None else str(default)


class References:
    """Resolves the references in a configuration that is given as plain data.

    A node to which several places refer becomes one object. Sizes are in characters, with all
    references resolved.

    Example:
        >>> References({"a": "${b.c}/x", "b": {"c": 3}, "d": "${b}"}).resolve()
        {'a': '3/x', 'b': {'c': 3}, 'd': {'c': 3}}
        >>> References({"a": "${oc.decode:'{b: 1}'}"}).resolve()
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: a: ${oc.decode: is not allowed; besides keys a \
configuration may refer to oc.select and oc.env (BIAS_PIPELINE_*, HOME, SCRATCH, TMPDIR, USER, WORK)
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.faults: list[str] = []  # sentences on references to keys that the configuration lacks
        # Id of a mapping or list, to its value and size
        self._known: dict[int, tuple[Any, int]] = {}
        self._named: dict[KeyPath, tuple[Any, int]] = {}  # value and size, by path
        self._open: set[KeyPath] = set()

    def resolve(self) -> dict[str, Any]:
        """The configuration with resolved references; a reference to an absent key is None."""
        tree: dict[str, Any] = self.resolved_at()
        return tree

    def resolved_at(self, *path: str) -> Any:
        """The node at a path, with all references resolved."""
        try:
            return self._value(self._find(path), path)[0]
        except RecursionError as error:
            raise UsageError(
                "the configuration refers to itself, or is nested too deeply"
            ) from error

    def named_by(self, text: str) -> Any:
        """The node that a text refers to if it consists of one reference to a key, else None."""
        whole = _PLAIN.fullmatch(text)
        node = self._find(_split(whole["path"])) if whole and whole["path"] else _ABSENT
        return None if node is _ABSENT else node

    def _value(self, node: Any, path: KeyPath) -> tuple[Any, int]:
        if isinstance(node, str):
            return self._of_text(node, path) if "${" in node else (node, len(node))
        if not isinstance(node, Mapping | list):
            return node, 1
        if id(node) in self._known:
            return self._known[id(node)]
        value: Any
        if isinstance(node, Mapping):
            items = {key: self._value(item, (*path, str(key))) for key, item in node.items()}
            value = {key: item for key, (item, _) in items.items()}
            size = sum(len(str(key)) + inner for key, (_, inner) in items.items())
        else:
            listed = [self._value(item, (*path, str(n))) for n, item in enumerate(node)]
            value, size = [item for item, _ in listed], sum(inner for _, inner in listed)
        self._known[id(node)] = value, _check_size(1 + size, path)
        return self._known[id(node)]

    def _of_text(self, text: str, path: KeyPath) -> tuple[Any, int]:
        """The value of a text that contains references."""
        _check_forms(path, text)
        size = len(text) + sum(self._resolve_path(other)[1] for other in _paths(text))
        _check_size(size, path)
        whole = _PLAIN.fullmatch(text)
        if whole:
            value = self._of_reference(whole)
            return None if value is _ABSENT else value, size
        references = list(_PLAIN.finditer(text))
        if "\\" in text or len(references) < text.count("${"):
            return self._parse(text), size
        values = {match.group(): self._of_reference(match) for match in references}
        if _ABSENT in values.values():
            return None, size
        if not all(type(value) in (str, int) for value in values.values()):
            return self._parse(text), size
        return _PLAIN.sub(lambda match: str(values[match.group()]), text), size

    def _of_reference(self, reference: re.Match[str]) -> Any:
        default = _NO_DEFAULT if reference["default"] is None else _default(reference["default"])
        if reference["variable"]:
            return _environment(reference["variable"], default)
        key = reference["path"] or reference["selected"]
        value, _ = self._resolve_path(_split(key))
        if value is not _ABSENT and value != "???":
            return value
        if reference["selected"]:
            return None if default is _NO_DEFAULT else default
        missing = "is missing" if value == "???" else "not found"
        self.faults.append(f"Interpolation key {key!r} {missing}")
        return _ABSENT

    def _resolve_path(self, path: KeyPath) -> tuple[Any, int]:
        """The value at the path that a reference names, and its size."""
        if path in self._open:
            raise UsageError(f"{'.'.join(path)} refers to itself")
        if path not in self._named:
            self._open.add(path)
            value, size = self._value(self._find(path), path)
            self._named[path] = value, _check_size(size, path)
            self._open.remove(path)
        return self._named[path]

    def _find(self, path: KeyPath) -> Any:
        node: Any = self.config
        for number, name in enumerate(path):
            if isinstance(node, str) and number:
                others = list(_paths(node))
                node = self._find(others[0]) if len(others) == 1 else _ABSENT
            node = _child(node, name)
        return node

    def _parse(self, text: str) -> Any:
        """The value of a text that only OmegaConf's parser can read."""
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        try:
            value = OmegaConf.create({"value": text}, parent=self._omegaconf)["value"]
            is_node = OmegaConf.is_config(value)
            return OmegaConf.to_container(value, resolve=True) if is_node else value
        except OmegaConfBaseException as error:
            self.faults.append(str(error).splitlines()[0])
            return None

    @cached_property
    def _omegaconf(self) -> DictConfig:
        from omegaconf import OmegaConf

        restrict_environment()
        return OmegaConf.create(dict(self.config))


def _default(text: str) -> object:
    if text == "[]":
        return []
    return int(text) if text.isdigit() else _CONSTANTS.get(text, text)


def _check_forms(path: KeyPath, text: str) -> None:
    for start in re.finditer(r"\$\{", text):
        if _ALLOWED.match(text, start.start()) is None:
            called = _CALLED.match(text, start.start())
            shown = called.group() if called else text[start.start() :][:40]
            raise UsageError(
                f"{'.'.join(path)}: {shown} is not allowed; besides keys a configuration may refer "
                f"to oc.select and oc.env ({', '.join(VARIABLES)})"
            )


def _check_size(size: int, path: KeyPath) -> int:
    """Return a size; a size that is too large is refused."""
    if size > _LARGEST:
        raise UsageError(
            f"{'.'.join(path) or 'the configuration'} has more than {_LARGEST} characters with "
            "its references resolved"
        )
    return size


def _child(node: Any, name: str) -> Any:
    if isinstance(node, Mapping):
        if name in node:
            return node[name]
        return next((item for key, item in node.items() if str(key) == name), _ABSENT)
    if isinstance(node, list) and name.isdigit() and int(name) < len(node):
        return node[int(name)]
    return _ABSENT


def _paths(text: str) -> Iterator[KeyPath]:
    for match in _ALLOWED.finditer(text):
        path = match["path"] or match["selected"]
        if path:
            yield _split(path)


def _split(key: str) -> KeyPath:
    return tuple(re.findall(r"[^.\[\]]+", key))
