"""Replaces secrets of the environment, in all output, by the names of their variables.

A command may contain one by mistake (``captioner=$HF_TOKEN``); errors, logs and manifests, which
are sent to others, repeat the command.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from bias_pipeline.io.atomic import replace_file

NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")  # endings of names of variables
SHORTEST = 8  # characters; a shorter value may occur in other text by chance


@lru_cache(maxsize=1)
def secrets() -> tuple[tuple[str, str], ...]:
    """Value and name of each variable with a secret, the longest value first.

    Cached; ``secrets.cache_clear()`` makes it read the environment again.
    """
    values = {
        value.strip(): name  # a line break at its end is no part of a key
        for name, value in os.environ.items()
        if name.upper().endswith(NAMES) and len(value.strip()) >= SHORTEST
    }
    return tuple(sorted(values.items(), key=lambda item: -len(item[0])))


def redacted(text: str) -> str:
    """Text with secrets replaced by the names of their variables, in brackets.

    Example:
        >>> redacted("nothing of the environment")
        'nothing of the environment'
    """
    for value, name in secrets():
        text = text.replace(value, f"({name})")
    return text


def redacted_data(value: Any) -> Any:
    """Plain data with every text redacted; keys of mappings stay."""
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
