"""Checks the shape of a result's manifest and draws, so that readers need not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from bias_pipeline.metrics.base import TRAITS

if TYPE_CHECKING:
    from bias_pipeline.stats.bootstrap import Draws


def checked(value: Any, kind: Any, name: str) -> Any:
    """The value, if it has its type; true and false are not numbers.

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
    """Refuse a manifest without the shape that readers expect."""
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
    """Refuse a manifest whose readings name parts without a row."""
    for conclusion in _mapping(_mapping(manifest, "metric"), "readings").values():
        if conclusion["part"] not in parts:
            raise ValueError(f"metric.readings names {conclusion['part'][:40]!r}, which has no row")


def resamples(manifest: Mapping[str, Any]) -> int | None:
    """How many resamplings were requested, None if unknown.

    Example:
        >>> resamples({"config": {"stats": {"resamples": 1000}}}), resamples({"config": None})
        (1000, None)
    """
    node: Any = manifest
    for key in ("config", "stats", "resamples"):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if type(node) is int else None


def check_draws(
    draws: Mapping[str, Draws], manifest: Mapping[str, Any], parts: Collection[str], n_seeds: int
) -> None:
    """Refuse draws that do not fit the rows, the seeds or the number of resamplings."""
    n_resamples = resamples(manifest)
    for part, part_draws in draws.items():
        n_drawn, n_columns = part_draws.resampled.shape
        fits = n_resamples in (None, n_drawn) and not part_draws.trials <= 0
        if part not in parts or not fits or n_columns != (n_seeds if part_draws.trained else 1):
            raise ValueError(f"its draws of {part[:40]!r} do not fit its rows and settings")


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
    for conclusion in _mapping(reading, "readings").values():
        _check_conclusion(checked(conclusion, dict, "metric.readings"))
    for ends in _mapping(reading, "range").values():
        for end in checked(ends, list, "metric.range"):
            checked(end, int | float | None, "metric.range")


def _check_conclusion(conclusion: Mapping[str, Any]) -> None:
    """Refuse a reading that does not name its part and traits."""
    checked(conclusion.get("part"), str, "metric.readings.part")
    for trait in checked(conclusion.get("follows"), list, "metric.readings.follows"):
        if trait not in TRAITS:
            raise ValueError(f"metric.readings.follows is {str(trait)[:40]!r}")
    if type(conclusion.get("named")) is not bool:
        raise ValueError(f"metric.readings.named is {str(conclusion.get('named'))[:40]!r}")


def _mapping(record: Mapping[str, Any], name: str, *, required: bool = False) -> Mapping[str, Any]:
    entry = record.get(name, None if required else {})
    if required and entry is None:
        raise ValueError(f"it has no {name}: it was written by an older version")
    mapping: Mapping[str, Any] = checked(entry, dict, name)
    return mapping
