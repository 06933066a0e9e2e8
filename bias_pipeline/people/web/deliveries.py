"""Which pictures each visit was sent, on disk, so that raters go on after a restart."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

DELIVERIES = "deliveries.jsonl"


class Deliveries:
    """The file of a study. A line that a kill or a full disk cut counts as absent."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = set(_read(path))

    def has(self, visit: str, image: str) -> bool:
        """Whether a picture was sent."""
        return (visit, image) in self._known

    def add(self, visit: str, image: str) -> None:
        """Note that a picture was sent; if that cannot be written, a restart shows it again."""
        if self.has(visit, image):
            return
        self._known.add((visit, image))
        with contextlib.suppress(OSError), self._path.open("ab") as file:
            file.write(f"\n{json.dumps([visit, image])}".encode())


def _read(path: Path) -> Iterator[tuple[str, str]]:
    content = path.read_bytes() if path.is_file() else b""
    for line in content.splitlines():
        with contextlib.suppress(ValueError):
            visit, image = json.loads(line)
            yield visit, image
