"""Where the configuration lies."""

from __future__ import annotations

from pathlib import Path


def conf_dir() -> Path:
    """The configuration folder: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def choices_of(folder: Path) -> list[str]:
    """The choices of a configuration group; a file that others share starts with an underscore."""
    return sorted(path.stem for path in folder.glob("[!_]*.yaml"))
