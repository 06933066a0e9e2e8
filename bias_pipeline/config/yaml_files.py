"""Checks YAML files of unknown origin before they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import yaml

from bias_pipeline.errors import ResourceError, UsageError

LARGEST_FILE = 4_000_000  # bytes
MOST_NODES = 200_000  # with every alias expanded
DEEPEST = 50

_PLAIN = {
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map")
}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_yaml(path: Path) -> None:
    """Refuse a file that is not plain YAML, or whose aliases expand too far.

    Raises:
        ResourceError: if it cannot be read.
        UsageError: naming the file and the line.
    """
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
    """Counts the nodes of a file with aliases expanded, while it is parsed.

    Attributes:
        path: of the file.
        anchored: name of an anchor to the number of nodes it stands for.
        unfinished: for each open collection its anchor and its nodes so far.
    """

    path: Path
    anchored: dict[str, int] = field(default_factory=dict)
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
