"""Merges the files of ``conf/`` that choices name, as Hydra would.

The module implements only the parts of Hydra's defaults lists that ``conf/`` uses. Tests compare
every choice with Hydra's result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from bias_pipeline.errors import UsageError
from bias_pipeline.io.paths import conf_dir, conf_dirs, conf_file
from bias_pipeline.run.references import References
from bias_pipeline.run.yaml_files import check_yaml, stamp

_SELF, _GLOBAL, _OVERRIDE = "_self_", "_global_", "override "
_PACKAGE = re.compile(r"# @package (\S+)")
_HYDRAS_OWN = "hydra"

Part = tuple[str, Mapping[str, Any]]  # a path in the tree, and the content that a file puts there


class ChosenFiles:
    """Follows the defaults lists of ``conf/`` from the chosen files."""

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        self.chosen = dict(chosen)
        self.stamps: dict[Path, object] = {}  # by file that was read
        self._met: set[str] = set()

    def merge(self) -> dict[str, Any]:
        """The merged content of all files, without Hydra's part and with unresolved references."""
        wanted = list(self.chosen)
        parts = self._parts("", "config", "")
        for key in wanted:
            if key not in self._met:  # a group that config.yaml does not list
                parts += self._group(*_place(key, "", ""), None)
        tree: dict[str, Any] = {}
        for place, content in parts:
            for name in reversed(place.split(".") if place else []):
                content = {name: content}
            tree = merged_over(tree, content)
        return tree

    def _parts(self, folder: str, name: str, place: str) -> list[Part]:
        """The parts of a file and of all files that it lists, in the order of merging."""
        path = conf_file(folder, name)
        self.stamps[path] = stamp(path)
        header, content = _file(path, self.stamps[path])
        place = place if header is None else header
        listed = list(content.get("defaults", []))
        values = {k: v for k, v in content.items() if k not in ("defaults", _HYDRAS_OWN)}
        for entry in listed:
            for key, choice in entry.items() if isinstance(entry, dict) else ():
                if key.startswith(_OVERRIDE):
                    group, at = _place(key.removeprefix(_OVERRIDE), "", place)
                    at = at if "@" in key else group
                    self.chosen.setdefault(_key(group, at), choice)
        parts: list[Part] = []
        # From the last entry to the first, as in Hydra: a file may override entries before it.
        for entry in reversed(listed if _SELF in listed else [*listed, _SELF]):
            parts[:0] = [(place, values)] if entry == _SELF else self._entry(entry, folder, place)
        return parts

    def _entry(self, entry: Any, folder: str, place: str) -> list[Part]:
        if isinstance(entry, str):
            return self._parts(folder, entry, place)
        ((key, choice),) = entry.items()
        return [] if key.startswith(_OVERRIDE) else self._group(*_place(key, folder, place), choice)

    def _group(self, group: str, place: str, choice: Any) -> list[Part]:
        key = _key(group, place)
        self._met.add(key)
        names = self.chosen.setdefault(key, choice)
        listed = names if isinstance(names, list) else [names] if names else []
        return [part for name in listed for part in self._parts(group, name, place)]


def merged_over(
    tree: Mapping[str, Any], content: Mapping[str, Any], references: References | None = None
) -> dict[str, Any]:
    """A tree after content was merged into it; mappings are merged, other values are replaced.

    The given tree is not changed. With ``references``, a text in the tree that refers to a mapping
    is first replaced by the mapping.

    Example:
        >>> merged_over({"a": {"x": 1, "y": [1, 2]}, "b": 1}, {"a": {"y": [3]}, "b": {"c": 2}})
        {'a': {'x': 1, 'y': [3]}, 'b': {'c': 2}}
    """
    merged = dict(tree)
    for key, value in content.items():
        if not isinstance(value, Mapping):
            merged[key] = value
            continue
        inner = tree.get(key)
        if references and isinstance(inner, str):
            inner = references.named_by(inner)
        merged[key] = merged_over(inner if isinstance(inner, Mapping) else {}, value, references)
    return merged


_Merged = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[Path, object]]
_MERGED: dict[tuple[object, ...], _Merged] = {}  # by choices and folders
_MOST_CACHED = 64


def merged_files(choices: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The merged content of the files that choices name, and the choices in all groups.

    The content is merged again if one of the files has changed.
    """
    key = (*choices.items(), *conf_dirs())
    tree, chosen, stamps = _MERGED.pop(key, ({}, {}, {}))
    if not stamps or any(stamp(path) != known for path, known in stamps.items()):
        files = ChosenFiles(choices)
        tree, chosen, stamps = files.merge(), files.chosen, files.stamps
    _MERGED[key] = tree, chosen, stamps
    while len(_MERGED) > _MOST_CACHED:
        _MERGED.pop(next(iter(_MERGED)))
    return tree, chosen


def _place(key: str, folder: str, place: str) -> tuple[str, str]:
    """The group that an entry of a defaults list names, and the entry's path in the tree.

    Example:
        >>> _place("/task@_global_.task", "metric", "metric")
        ('task', 'task')
        >>> _place("/context@applies_to", "attribute", "attribute")
        ('context', 'attribute.applies_to')
    """
    group, _, at = key.partition("@")
    group = group[1:] if group.startswith("/") else f"{folder}/{group}".strip("/")
    at = at or group.replace("/", ".")
    if at.startswith(_GLOBAL):
        return group, at.removeprefix(_GLOBAL).lstrip(".")
    return group, f"{place}.{at}".lstrip(".")


def _key(group: str, place: str) -> str:
    return group if place == group else f"{group}@{place}"


@lru_cache(maxsize=500)
def _file(path: Path, version: object) -> tuple[str | None, Mapping[str, Any]]:
    """The path that a file's header sets (empty for the top), and its unresolved content."""
    del version  # only part of the cache's key
    text = path.read_text(encoding="utf-8")
    header = _PACKAGE.match(text)
    if path.is_relative_to(conf_dir()):
        content: Any = yaml.load(text, _quick_loader())  # noqa: S506 - it loads plain values
    else:  # a file of an included package, which may repeat a key
        from omegaconf import OmegaConf

        check_yaml(path)
        content = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    if not isinstance(content, dict):
        raise UsageError(f"{path}: a configuration must be a mapping of keys")
    return header and header[1].removeprefix(_GLOBAL), content


@cache
def _quick_loader() -> Any:
    """A YAML loader in C, with OmegaConf's rules for which words are numbers."""
    from omegaconf._utils import get_yaml_loader

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    rules = {"yaml_implicit_resolvers": get_yaml_loader().yaml_implicit_resolvers}
    return type("QuickLoader", (base,), rules)
