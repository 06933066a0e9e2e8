"""YAML files are checked before they are read, with their references (``${...}``).

Keys of an experiment that another choice lacks are left out.

A resolver is a function that a configuration calls by name. Two are allowed: ``oc.select``, and
``oc.env`` for a few variables. Those that parse text as configuration (``oc.decode``,
``oc.create``) or change with each call (``now``) could show a check one value and the program
another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import omegaconf.base
import yaml
from omegaconf import DictConfig, Node, OmegaConf

from bias_pipeline.declared import TARGET
from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.run.targets import parameters_of, resolve

if TYPE_CHECKING:
    from hydra.plugins.config_source import ConfigResult

LARGEST_FILE = 4_000_000  # bytes
MOST_NODES = 200_000  # with every alias expanded
DEEPEST = 50

_PLAIN = {
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map")
}
# A configuration has some dozens of references, which each cell has again; parsing one takes a
# millisecond. Trees of the parser are only read.
_PARSE = "parse"
setattr(omegaconf.base, _PARSE, lru_cache(maxsize=2000)(getattr(omegaconf.base, _PARSE)))
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def stamp(path: Path) -> tuple[int, int, int] | None:
    """Inode, size and time of change, to notice a changed file; None if it is absent."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def check_yaml(path: Path) -> None:
    """Refuse a file that is not plain YAML, or whose aliases expand too far."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(
                f"{path}: a configuration has at most {LARGEST_FILE} bytes; make it smaller"
            )
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not in UTF-8 ({error.reason}); save it as UTF-8") from error
    except OSError as error:
        raise ResourceError(f"{path} cannot be read: {error.strerror}") from error
    weight = _Weight(path)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            weight.add(event)
    except yaml.YAMLError as error:
        raise UsageError(broken(path, error)) from error


def broken(path: Path, error: yaml.YAMLError) -> str:
    """A sentence on a YAML error."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        problem = " ".join((error.problem or "it cannot be read").split())
        return f"{path}, line {error.problem_mark.line + 1}: no valid YAML, {problem}"
    return f"{path}: no valid YAML, {' '.join(str(error).split())}"


@dataclass
class _Weight:
    """Counts the nodes of a file with aliases expanded, while it is parsed."""

    path: Path  # of the file
    # Name of an anchor to the number of nodes it stands for
    anchored: dict[str, int] = field(default_factory=dict)
    # For each open collection its anchor and its nodes so far
    unfinished: list[tuple[str | None, int]] = field(default_factory=lambda: [(None, 0)])

    def add(self, event: yaml.Event) -> None:
        """Count one event of the parser."""
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchored:
                self._refuse(event, f"*{event.anchor} is used before or inside its anchor")
            self._count(event, self.anchored.get(event.anchor or "", 0))
        elif isinstance(event, yaml.ScalarEvent):
            self._check_tag(event)
            self._name(event.anchor, 1)
            self._count(event, 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._check_tag(event)
            self.unfinished.append((event.anchor, 1))
            if len(self.unfinished) > DEEPEST:
                self._refuse(event, f"nested more than {DEEPEST} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = self.unfinished.pop()
            self._name(anchor, size)
            self._count(event, size)

    def _name(self, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self.anchored[anchor] = size

    def _count(self, event: yaml.Event, size: int) -> None:
        anchor, known = self.unfinished[-1]
        self.unfinished[-1] = (anchor, known + size)
        if known + size > MOST_NODES:
            self._refuse(event, f"its aliases expand to more than {MOST_NODES} values")

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag is not None and event.tag not in _PLAIN:
            self._refuse(event, f"the tag {event.tag} is not allowed; plain values are")

    def _refuse(self, event: yaml.Event, words: str) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 1
        raise UsageError(f"{self.path}, line {line}: {words}")


KeyPath = tuple[str, ...]

VARIABLES = ("BIAS_PIPELINE_*", "HOME", "SCRATCH", "TMPDIR", "USER", "WORK")
_LARGEST = 20_000_000  # characters of a configuration with all references resolved
_VARIABLE = "|".join(name.replace("*", r"\w+") for name in VARIABLES)
_NO_DEFAULT = object()
_VARIABLE_NAME = re.compile(_VARIABLE, re.ASCII)
_ALLOWED = re.compile(
    r"\$\{\s*(?:(?P<path>\w[\w.\[\]-]*)\s*\}"
    r"|oc\.select\s*:\s*(?P<selected>\w[\w.\[\]-]*)\s*(?=[,}])"
    rf"|oc\.env\s*:\s*(?:{_VARIABLE})\s*(?=[,}}]))",
    re.ASCII,
)
_CALLED = re.compile(r"\$\{\s*([\w.]+)\s*:", re.ASCII)


def check_references(config: Mapping[str, Any]) -> None:
    """Refuse references that are neither to a key nor by an allowed resolver, and endless ones.

    Example:
        >>> check_references({"a": "${b.c}/x", "b": {"c": "${oc.env:HOME}"}})
        >>> check_references({"a": "${oc.decode:'{b: 1}'}"})
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: a: ${oc.decode: is not allowed; besides keys a \
configuration may refer to oc.select and oc.env (BIAS_PIPELINE_*, HOME, SCRATCH, TMPDIR, USER, WORK)
    """
    try:
        _Sizes(config).count(config, ())
    except RecursionError as error:
        raise UsageError("the configuration refers to itself, or is nested too deeply") from error


def check_defaults(places: Iterable[str], file: object) -> None:
    """Refuse a defaults list that calls a resolver; it may refer to a choice, as ``${encoder}``.

    Hydra copies the names in a defaults list into messages and into a job's files.

    Example:
        >>> check_defaults(["lic_${encoder}"], "a.yaml")
    """
    for text in places:
        if "${" in re.sub(r"\$\{[\w/@.-]+\}", "", text):
            raise UsageError(
                f"{file}: its defaults list names {text[:60]!r}; write a file's name there, or "
                "refer to the choice of a group, such as ${encoder}"
            )


def restrict_environment() -> None:
    """Make ``oc.env`` return only the few allowed variables, everywhere."""
    OmegaConf.register_new_resolver("oc.env", _environment, replace=True)


def _environment(name: str, default: Any = _NO_DEFAULT) -> Any:
    if not _VARIABLE_NAME.fullmatch(str(name)):
        raise UsageError(f"oc.env reads only {', '.join(VARIABLES)}, not {name}")
    if name in os.environ:
        return os.environ[name]
    if default is _NO_DEFAULT:
        raise UsageError(f"oc.env: the environment variable {name} is not set")
    return None if default is None else str(default)


def as_written(node: Any) -> Any:
    """A node of a configuration as plain data, references unresolved.

    OmegaConf's own way takes eight times as long.
    """
    content = node._value() if isinstance(node, Node) else node
    if isinstance(content, dict):
        return {key: as_written(child) for key, child in content.items()}
    return [as_written(child) for child in content] if isinstance(content, list) else content


def as_resolved(node: Any, known: dict[str, Any] | None = None) -> Any:
    """A node of a configuration as plain data, references resolved.

    OmegaConf's own way takes ten times as long. What several places refer to is one object.
    """
    if not isinstance(node, Node):  # what a reference returned is plain already
        return node
    content, known = node._value(), {} if known is None else known
    if isinstance(content, dict):
        return {key: _resolved(node, key, child, known) for key, child in content.items()}
    if isinstance(content, list):
        return [_resolved(node, n, child, known) for n, child in enumerate(content)]
    return content


def _resolved(parent: Any, key: Any, child: Node, known: dict[str, Any]) -> Any:
    """What a child refers to, itself if it is no reference; ``known`` are texts' values."""
    written = child._value()
    if not isinstance(written, str) or "${" not in written:
        return as_resolved(child, known)
    if written not in known:
        known[written] = as_resolved(parent[key], known)
    return known[written]


def _check_forms(path: KeyPath, text: str) -> None:
    for start in re.finditer(r"\$\{", text):
        if _ALLOWED.match(text, start.start()) is None:
            called = _CALLED.match(text, start.start())
            shown = called.group() if called else text[start.start() :][:40]
            raise UsageError(
                f"{'.'.join(path)}: {shown} is not allowed; besides keys a configuration may refer "
                f"to oc.select and oc.env ({', '.join(VARIABLES)})"
            )


class _Sizes:
    """Checks references and the sizes of nodes with all resolved, in one walk; resolves nothing."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self._known: dict[int, int] = {}  # identity of a mapping or list to its size
        self._named: dict[KeyPath, int] = {}  # what a reference names to its size
        self._open: set[KeyPath] = set()

    def count(self, node: Any, path: KeyPath) -> int:
        """The size of the node at a path, in characters."""
        if isinstance(node, str):
            return len(node) + (self._referred(node, path) if "${" in node else 0)
        if not isinstance(node, Mapping | list):
            return 1
        if id(node) in self._known:
            return self._known[id(node)]
        if isinstance(node, Mapping):
            size = sum(len(str(k)) + self.count(v, (*path, str(k))) for k, v in node.items())
        else:
            size = sum(self.count(item, (*path, str(n))) for n, item in enumerate(node))
        self._known[id(node)] = _within(1 + size, path)
        return 1 + size

    def _referred(self, text: str, path: KeyPath) -> int:
        """The size of all that a text refers to."""
        _check_forms(path, text)
        return sum(self._of(other) for other in _paths(text))

    def _of(self, path: KeyPath) -> int:
        """The size of what a reference names."""
        if path in self._open:
            raise UsageError(f"{'.'.join(path)} refers to itself")
        if path not in self._named:
            self._open.add(path)
            self._named[path] = _within(self.count(self._find(path), path), path)
            self._open.remove(path)
        return self._named[path]

    def _find(self, path: KeyPath) -> Any:
        """The node at a path, following references; None if there is none."""
        node: Any = self.config
        for number, name in enumerate(path):
            if isinstance(node, str) and number:
                others = list(_paths(node))
                node = self._find(others[0]) if len(others) == 1 else None
            node = _child(node, name)
        return node


def _within(size: int, path: KeyPath) -> int:
    """The size, unless it is too large."""
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
        return next((item for key, item in node.items() if str(key) == name), None)
    if isinstance(node, list) and name.isdigit() and int(name) < len(node):
        return node[int(name)]
    return None


def _paths(text: str) -> Iterator[KeyPath]:
    for match in _ALLOWED.finditer(text):
        path = match["path"] or match["selected"]
        if path:
            yield tuple(re.findall(r"[^.\[\]]+", path))


def leave_out_keys_of_others(loaded: Sequence[tuple[str, ConfigResult]]) -> None:
    """Remove keys from experiments that the file chosen instead of theirs does not have.

    ``experiment=relic_gender`` chooses ``alignment=constant`` and sets ``alignment.vocabulary``.
    With ``alignment=none``, which has no such key, the key is left out.
    """
    experiments = [file for path, file in loaded if path.startswith("experiment/")]
    others = [file for path, file in loaded if not path.startswith("experiment/")]
    paths = {path for path, _ in loaded}
    for group, name in dict(_choices(experiments)).items():
        nodes = [as_written(_node(file, group)) for file in others]
        target = next((node[TARGET] for node in nodes if TARGET in node), None)
        if target is None or f"{group}/{name}" in paths:
            continue
        known = {*parameters_of(resolve(target)), *(key for node in nodes for key in node)}
        for settings in (_node(file, group) for file in experiments):
            for key in settings.keys() - known:
                del settings[key]


def _choices(experiments: Sequence[ConfigResult]) -> Iterator[tuple[str, str]]:
    """Groups and the files that experiments choose for them; the last one counts."""
    for file in experiments:
        for entry in file.defaults_list or ():
            if entry.is_override():
                yield str(entry.group).lstrip("/"), str(entry.value)  # type: ignore[attr-defined]


def _node(file: ConfigResult, group: str) -> DictConfig:
    """The keys of a group in a file; empty if it has none."""
    node = file.config._get_node(group) if isinstance(file.config, DictConfig) else None
    return node if isinstance(node, DictConfig) and not node._is_none() else DictConfig({})
