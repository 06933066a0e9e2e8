"""What is read of a result's manifest: its shape, so that no reader stumbles over a foreign one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bias_pipeline.metrics.base import TRAITS


def checked(value: Any, kind: Any, name: str) -> Any:
    """A value that is of its type; true and false are no numbers.

    Raises:
        ValueError: naming it.

    Example:
        >>> checked(1, int, "n_images")
        1
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name} is {str(value)[:40]!r}")
    return value


def check_manifest(manifest: Mapping[str, Any], parts: Collection[str]) -> None:
    """Refuse a manifest of another shape than readers rely on.

    Args:
        manifest: of a result.
        parts: those that the result has rows of.

    Raises:
        ValueError: naming the entry.
    """
    _check_files(_mapping(manifest, "files", required=True))
    _check_reading(_mapping(manifest, "metric"))
    corpus = _mapping(manifest, "corpus")
    for name in ("digest", "file"):
        checked(corpus.get(name, ""), str, f"corpus.{name}")
    for key in _mapping(manifest, "keys").values():
        checked(key, str, "keys")
    for note in checked(manifest.get("notes", []), list, "notes"):
        checked(note, str, "notes")
    _check_parts(manifest, parts)


def _check_parts(manifest: Mapping[str, Any], parts: Collection[str]) -> None:
    """Refuse a manifest whose conclusions rest on parts that there are no rows of."""
    for told in _mapping(_mapping(manifest, "metric"), "readings").values():
        if told["part"] not in parts:
            raise ValueError(f"metric.readings names {told['part'][:40]!r}, of which it has no row")


def resamples(manifest: Mapping[str, Any]) -> int | None:
    """How many resamplings were asked for, None if that is not told.

    Example:
        >>> resamples({"config": {"stats": {"resamples": 1000}}}), resamples({"config": None})
        (1000, None)
    """
    found: Any = manifest
    for key in ("config", "stats", "resamples"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if type(found) is int else None


def _check_files(files: Mapping[str, Any]) -> None:
    for name, checksum in files.items():
        checked(checksum, str, "files")
        if "/" in name or name.startswith("."):
            raise ValueError(f"files names {name[:40]!r}")


def _check_reading(reading: Mapping[str, Any]) -> None:
    for name in ("title", "direction"):
        checked(reading.get(name, ""), str, f"metric.{name}")
    for text in _mapping(reading, "says").values():
        checked(text, str, "metric.says")
    for neutral in _mapping(reading, "neutral").values():
        checked(neutral, int | float, "metric.neutral")
    for told in _mapping(reading, "readings").values():
        _check_conclusion(checked(told, dict, "metric.readings"))
    for ends in _mapping(reading, "range").values():
        for end in checked(ends, list, "metric.range"):
            checked(end, int | float | None, "metric.range")


def _check_conclusion(told: Mapping[str, Any]) -> None:
    """Refuse what does not say on which part a conclusion rests."""
    checked(told.get("part"), str, "metric.readings.part")
    for trait in checked(told.get("follows"), list, "metric.readings.follows"):
        if trait not in TRAITS:
            raise ValueError(f"metric.readings.follows is {str(trait)[:40]!r}")
    if type(told.get("named")) is not bool:
        raise ValueError(f"metric.readings.named is {str(told.get('named'))[:40]!r}")


def _mapping(told: Mapping[str, Any], name: str, *, required: bool = False) -> Mapping[str, Any]:
    found = told.get(name, None if required else {})
    if required and found is None:
        raise ValueError(f"it has no {name}: it was written by an older version")
    mapping: Mapping[str, Any] = checked(found, dict, name)
    return mapping
