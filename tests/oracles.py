"""The worked cases that are kept beside the repository."""

import json
from functools import cache
from typing import Any

import pytest

from tests.corpora import DATA

ORACLES = DATA.parent / "oracles"


@cache
def oracle(name: str) -> dict[str, Any]:
    """A file of worked cases; skips where it is absent."""
    path = ORACLES / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"no worked cases at {path}")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
