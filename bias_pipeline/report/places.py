"""Removes paths and names of the machine from a page that is sent to others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Two or more names after a slash that follows no word: neither "and/or" nor a URL.
_PATH = re.compile(r"(?<![\w:/.<~])/(?:[\w.+@%~-]+/)+([\w.+@%~-]*)")
_OF_MACHINE = ("host", "pid")


def without_places(text: str) -> str:
    """Text with absolute paths cut to their last name.

    Example:
        >>> without_places("dataset.root=/home/kim/data/coco, and/or https://a.org/b/c")
        'dataset.root=…/coco, and/or https://a.org/b/c'
    """
    return _PATH.sub(lambda match: f"…/{match.group(1)}", text)


def shareable(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest without absolute paths, the name of the host and the number of the process.

    Example:
        >>> shareable({"machine": {"host": "a", "pid": 1, "cores": 2}, "overrides": ["x=/a/b/c"]})
        {'machine': {'cores': 2}, 'overrides': ['x=…/c']}
    """
    cleaned = {key: _shareable(value) for key, value in manifest.items()}
    machine = cleaned.get("machine")
    if isinstance(machine, dict):
        cleaned["machine"] = {key: fact for key, fact in machine.items() if key not in _OF_MACHINE}
    return cleaned


def _shareable(value: Any) -> Any:
    if isinstance(value, str):
        return without_places(value)
    if isinstance(value, Mapping):
        return {without_places(str(key)): _shareable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shareable(item) for item in value]
    return value
