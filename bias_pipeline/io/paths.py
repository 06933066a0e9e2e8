"""The folders of the configuration, the studies and the user's cache, and names made of paths."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bias_pipeline.errors import ResourceError


def conf_dir() -> Path:
    """The configuration folder: inside an installed package, next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def experiments_dir() -> Path:
    """The studies of a checkout; an installed package has none."""
    return Path(__file__).resolve().parents[2] / "experiments"


def user_cache() -> Path:
    """The user's cache folder.

    Raises:
        ResourceError: if the user has no home, as in some containers. No folder that others can
            write to replaces it, since it stores weights.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        return root.expanduser() / "bias_pipeline"
    except RuntimeError as error:
        raise ResourceError(f"{error}; set XDG_CACHE_HOME to a folder of your own") from error


def choices_of(folder: Path) -> list[str]:
    """The choices of a configuration group; a file that others share starts with an underscore."""
    return sorted(path.stem for path in folder.glob("[!_]*.yaml"))


def safe_name(stem: str) -> str:
    """A file's stem as a captioner's name: letters, digits, ``_`` and ``-``, at most 60 of them.

    Example:
        >>> safe_name("../BLIP 2 (large)")
        'BLIP_2_large'
    """
    return re.sub(r"[^\w-]+", "_", stem).strip("_-")[:60] or "unnamed"
