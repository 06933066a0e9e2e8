"""A result: its rows and manifest, as a sentence, as CSV, and read back from plain data."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.io.files import csv_text
from bias_pipeline.io.terminal import worded
from bias_pipeline.metrics.base import TRAITS
from bias_pipeline.metrics.value_names import DIRECTIONS, HEADLINES, HUMAN, MODEL, SCORE
from bias_pipeline.stats.bootstrap import Draws

if TYPE_CHECKING:
    from pandas import DataFrame

_DIGITS = 3  # of a number that is no share


@dataclass(frozen=True)
class Row:
    """One number with its interval and its origin; the columns of every table.

    ``value``, ``seed_std`` and the interval are fractions where ``unit`` is ``fraction``; only
    printing multiplies by 100. An absent number is NaN (null in JSON), never zero. A column that a
    metric does not use is empty.
    """

    run_id: str
    metric: str
    metric_version: int
    part: str
    attribute: str
    dataset: str
    captioner: str
    encoder: str
    head: str
    masking: str
    alignment: str
    scoring: str
    value: float
    unit: str
    seed_std: float
    ci_low: float
    ci_high: float
    p_value: float
    n_images: int
    n_seeds: int
    coverage: float
    neutral_rate: float
    seeds: tuple[int, ...]


COLUMNS = tuple(column.name for column in fields(Row))


@dataclass(frozen=True, repr=False)
class Result:
    """The rows of one cell, its manifest and the attackers' predictions.

    Attributes:
        run_id: its name.
        rows: its numbers.
        manifest: how the numbers were computed, as plain data.
        predictions: of the attackers.
        ids: image ids that the rows of predictions refer to.
        tables: further tables by name.
        draws: part to its values under every resampling, for comparisons.
        settings: in which it differs from others, see :mod:`bias_pipeline.results.settings`.
    """

    run_id: str
    rows: Sequence[Row]
    manifest: Mapping[str, object]
    predictions: Sequence[Predictions] = ()
    ids: Sequence[str] = ()
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    draws: Mapping[str, Draws] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What the run said of its data and numbers, worded as the lines of the command."""
        notes = self.manifest.get("notes", [])
        return [worded(str(note)) for note in notes] if isinstance(notes, list) else []

    @property
    def by_group(self) -> dict[str, Row]:
        """Group to the captioner's number of that group; empty for a metric without such numbers.

        Where a part of the number decides (``named``), its rows are those of that part.
        """
        rows = {row.part: row for row in self.rows}
        return next(filter(None, (group_rows(rows, part) for part in (*_DECIDING, *HEADLINES))), {})

    def frame(self) -> DataFrame:
        """The rows as a table, one line a row, with the columns of :class:`Row`."""
        from pandas import DataFrame

        return DataFrame([asdict(row) for row in self.rows], columns=list(COLUMNS))

    def __repr__(self) -> str:
        """Metric, captioner, data and main numbers, shares in per cent.

        Example:
            >>> Result("a run", (), {})
            no numbers
        """
        rows = self.rows
        if not rows:
            return "no numbers"
        main = [row for row in rows if row.part in (*HEADLINES, MODEL, HUMAN)]
        of = f"{rows[0].metric} ({rows[0].attribute}) of {rows[0].captioner} on {rows[0].dataset}"
        more = len(rows) - len(main)
        numbers = ", ".join(map(_number, main)) or "no main number"
        scored = any(row.part in HEADLINES for row in rows)
        further = [f"{more} more in frame()"] * bool(more)
        lacking = [] if scored else ["no score: the reason is in .notes"]
        return "; ".join([f"{of}: {numbers}", *further, *lacking])


_DECIDING = ("named",)  # parts that decide in place of a headline


def group_rows(rows: Mapping[str, Row], part: str) -> dict[str, Row]:
    """Group to its row of the same number as ``part``, in the order of the attribute's groups.

    A group's row is ``PART:GROUP``; for a main number also ``group:GROUP`` or ``invented:GROUP``.
    """
    start = f"{part}:" if part in DIRECTIONS else ""
    tails = [
        name.removeprefix(f"{start}group:") for name in rows if name.startswith(f"{start}group:")
    ]
    tails += [name.split(":")[1] for name in rows if re.fullmatch("invented:[^:]+:mentions", name)]
    of_groups = {}
    for name in dict.fromkeys(tail for tail in tails if ":" not in tail):
        parts = [f"{part}:{name}"]
        if part in (SCORE, MODEL, *DIRECTIONS):
            parts += [f"group:{name}:{part}", f"{start}group:{name}", f"invented:{name}"]
        if row := next((rows[one] for one in parts if one in rows), None):
            of_groups[name] = row
    return of_groups


def _number(row: Any) -> str:
    """A part with its interval, if it has one."""
    if math.isnan(row.value):
        return f"{row.part} undefined"
    share = row.unit == "fraction"
    value, low, high = (
        f"{100 * one:.1f}" if share else f"{one:.{_DIGITS}g}"
        for one in (row.value, row.ci_low, row.ci_high)
    )
    interval = "" if math.isnan(row.ci_low) else f" [{low}, {high}]"
    return f"{row.part} {value}{interval}{' %' if share else ''}"


def mapping_in(record: Mapping[str, object], *keys: str) -> Mapping[str, Any]:
    """The mapping below some keys, as ``metric`` and ``neutral`` of a manifest; possibly empty.

    Example:
        >>> mapping_in({"metric": {"neutral": {"score": 0}}}, "metric", "neutral")
        {'score': 0}
        >>> mapping_in({"metric": 3}, "metric", "neutral")
        {}
    """
    node: object = record
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def number_or_nan(value: object) -> float:
    """A number of a manifest, NaN for anything else."""
    return float(value) if isinstance(value, int | float) else math.nan


def direction_in(result: Result) -> str:
    """How a metric's headlines are read, such as "lower is fairer"; empty if it does not say."""
    return str(mapping_in(result.manifest, "metric").get("direction", ""))


def neutral_of(result: Result, part: str) -> float:
    """The value that means no bias: a headline's; other parts are read against 0."""
    return float(mapping_in(result.manifest, "metric", "neutral").get(part, 0.0))


def rows_csv(
    rows: Sequence[Row],
    further: Sequence[str] = (),
    settings: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> str:
    """Rows as CSV with a header; see :func:`bias_pipeline.io.files.csv_text`.

    Args:
        rows: of any runs.
        further: columns after those of a row.
        settings: run id to the values of these columns.

    Example:
        >>> rows_csv([], ["encoder.order"]).strip().split(",")[-2:]
        ['seeds', 'encoder.order']
    """
    lines = []
    for row in rows:
        values = settings.get(row.run_id, {})
        lines.append([*asdict(row).values(), *(values.get(name, "") for name in further)])
    return csv_text([[*COLUMNS, *further], *lines])


def plain_values(value: Any) -> Any:
    """Plain JSON data: NaN and infinities become null, numpy numbers Python numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain_values(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


_KINDS = {column.name: str(column.type) for column in fields(Row)}


def result_of(row_records: Any, manifest: Any, run_id: str) -> Result:
    """A result from rows and manifest as plain data; a ValueError or similar if they are not."""
    rows = [_row(row) for row in row_records]
    check_manifest(manifest, {row.part for row in rows})
    if not rows or any(row.run_id != run_id for row in rows):
        raise ValueError("it has no rows, or rows of another run")
    return Result(run_id, rows, manifest)


def _row(record: Mapping[str, Any]) -> Row:
    """A row, if its columns have their types."""
    if set(record) != set(COLUMNS):
        raise ValueError(f"its rows do not have the columns {' '.join(COLUMNS)}")
    return Row(**{name: _value(name, kind, record[name]) for name, kind in _KINDS.items()})


def _value(name: str, kind: str, value: Any) -> Any:
    if kind == "float":
        return math.nan if value is None else float(checked(value, int | float, name))
    if kind == "tuple[int, ...]":
        return tuple(checked(item, int, name) for item in checked(value, list, name))
    return checked(value, {"str": str, "int": int}[kind], name)


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
    """Refuse an evidence rule that does not name its part and traits."""
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
