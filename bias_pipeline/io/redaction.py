"""Keys of the environment in what is written or shown: their variable's name stands instead.

A command may name one by mistake (``captioner=$HF_TOKEN``), and what a command was is repeated in
errors, logs and manifests, which are sent to others.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from bias_pipeline.io.atomic import replace_file

NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")  # what the name of a variable ends in
SHORTEST = 8  # characters; what is shorter stands in other text by chance


@lru_cache(maxsize=1)
def secrets() -> tuple[tuple[str, str], ...]:
    """Value and name of each variable that holds a key, the longest value first.

    Read once; ``secrets.cache_clear()`` has the environment read again.
    """
    values = {
        value: name
        for name, value in os.environ.items()
        if name.upper().endswith(NAMES) and len(value) >= SHORTEST
    }
    return tuple(sorted(values.items(), key=lambda item: -len(item[0])))


def redacted(text: str) -> str:
    """Text in which the name of a variable stands for its value, in brackets.

    Example:
        >>> redacted("nothing of the environment")
        'nothing of the environment'
    """
    for value, name in secrets():
        text = text.replace(value, f"({name})")
    return text


def redacted_data(value: Any) -> Any:
    """Plain data with every text in it redacted; keys of mappings stay."""
    if not secrets():
        return value
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {key: redacted_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_data(item) for item in value]
    return value


def redact_files(paths: Iterable[Path]) -> None:
    """Redact files that a library wrote; those that cannot be read or written stay."""
    for path in paths if secrets() else ():
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = path.read_text(encoding="utf-8")
            if redacted(text) != text:
                replace_file(path, redacted(text).encode(), sync=False)
