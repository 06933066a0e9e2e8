"""Checks YAML files before they are read, and removes an experiment's keys that do not apply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from omegaconf import DictConfig, Node

from bias_pipeline.declared import TARGET
from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.run.targets import parameters_of, resolve

if TYPE_CHECKING:
    from hydra.plugins.config_source import ConfigResult

LARGEST_FILE = 4_000_000  # bytes
MOST_NODES = 200_000  # counted with every alias expanded
DEEPEST = 50

_PLAIN = {
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map")
}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def stamp(path: Path) -> tuple[int, int, int] | None:
    """A file's inode, size and time of change, which reveal changes; None if the file is absent."""
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
        raise UsageError(yaml_fault(path, error)) from error


def yaml_fault(path: Path, error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        problem = " ".join((error.problem or "it cannot be read").split())
        return f"{path}, line {error.problem_mark.line + 1}: no valid YAML, {problem}"
    return f"{path}: no valid YAML, {' '.join(str(error).split())}"


@dataclass
class _Weight:
    """Counts the nodes of a file while it is parsed; an alias counts as all nodes it stands for."""

    path: Path  # the file that is parsed
    # By name of an anchor, the number of nodes for which it stands
    anchored: dict[str, int] = field(default_factory=dict)
    # For each open collection, its anchor and how many nodes it has so far
    unfinished: list[tuple[str | None, int]] = field(default_factory=lambda: [(None, 0)])

    def add(self, event: yaml.Event) -> None:
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


def check_defaults(places: Iterable[str], file: object) -> None:
    """Refuse a defaults list that calls a resolver; a reference such as ``${encoder}`` is allowed.

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


def as_written(node: Any) -> Any:
    """A node of a configuration as plain data, with unresolved references.

    OmegaConf's own function takes eight times as long.
    """
    content = node._value() if isinstance(node, Node) else node
    if isinstance(content, dict):
        return {key: as_written(child) for key, child in content.items()}
    return [as_written(child) for child in content] if isinstance(content, list) else content


def leave_out_keys_of_others(loaded: Sequence[tuple[str, ConfigResult]]) -> None:
    """Remove keys that an experiment sets for a group and that the group's chosen file lacks.

    ``experiment=relic_gender`` chooses ``alignment=constant`` and sets ``alignment.vocabulary``.
    ``alignment=none`` has no such key, so the key is then left out.
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
    """Each group and the file that an experiment chooses for it, in the experiments' order."""
    for file in experiments:
        for entry in file.defaults_list or ():
            if entry.is_override():
                yield str(entry.group).lstrip("/"), str(entry.value)  # type: ignore[attr-defined]


def _node(file: ConfigResult, group: str) -> DictConfig:
    """The keys of a group in a file; empty if the file lacks the group."""
    node = file.config._get_node(group) if isinstance(file.config, DictConfig) else None
    return node if isinstance(node, DictConfig) and not node._is_none() else DictConfig({})
