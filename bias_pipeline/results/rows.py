"""A result, with its rows, its manifest, its forms as text and CSV, and its reader."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.io.files import csv_text
from bias_pipeline.io.terminal import reword
from bias_pipeline.metrics.value_names import DIRECTIONS, HEADLINES, HUMAN, MODEL, SCORE
from bias_pipeline.results.manifest import Manifest, manifest_of
from bias_pipeline.results.plain_data import reader_of
from bias_pipeline.stats.bootstrap import Draws

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table

_DIGITS = 3  # printed digits of a number that is not a share


@dataclass(frozen=True)
class Row:
    """One number with its interval and its origin; the fields are the columns of every table.

    ``value``, ``seed_std`` and the interval are fractions if ``unit`` is ``fraction``. Only
    printing multiplies them by 100. An absent number is NaN (null in JSON), never zero. A column
    that a metric does not use is empty.
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
        run_id: the run's name.
        rows: the cell's numbers.
        manifest: how the numbers were computed, as plain data.
        predictions: the attackers' predictions.
        ids: the image ids to which rows of predictions refer.
        tables: further tables, by name.
        draws: by part, the values under every resampling, for comparisons.
        settings: the settings in which the result differs from others, see
            :mod:`bias_pipeline.results.settings`.
    """

    run_id: str
    rows: Sequence[Row]
    manifest: Mapping[str, object]
    predictions: Sequence[Predictions] = ()
    ids: Sequence[str] = ()
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    draws: Mapping[str, Draws] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def facts(self) -> Manifest:
        """The manifest as an object with types."""
        return manifest_of(self.manifest)

    @property
    def notes(self) -> list[str]:
        """The run's notes on its data and numbers, in the words of the command."""
        return [reword(note) for note in self.facts.notes]

    def neutral(self, part: str) -> float:
        """The no-bias value of a headline; other parts have 0."""
        return self.facts.metric.neutral.get(part, 0.0)

    @property
    def by_group(self) -> dict[str, Row]:
        """The row with the captioner's number for each group; empty if there are no such rows.

        If the part ``named`` has numbers of groups, the function takes these rows, otherwise a
        headline's rows.
        """
        rows = {row.part: row for row in self.rows}
        return next(filter(None, (group_rows(rows, part) for part in (*_DECIDING, *HEADLINES))), {})

    def frame(self) -> DataFrame:
        """The rows as a table with the columns of :class:`Row`."""
        from pandas import DataFrame

        return DataFrame([vars(row) for row in self.rows], columns=list(COLUMNS))

    def arrow(self) -> Table:
        """The rows as an Arrow table, in which absent numbers are null."""
        from pyarrow import Table

        return Table.from_pandas(self.frame(), preserve_index=False)

    def __repr__(self) -> str:
        """The metric, the captioner, the data and the main numbers, with shares in per cent.

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
    """The row with the number ``part`` of each group alone, in the groups' order.

    The row of a group is named ``PART:GROUP``. A main number also has ``group:GROUP`` or
    ``invented:GROUP``.
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
    """The name and value of a part, with the interval if there is one."""
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
    """The mapping at a path of keys in plain data; empty if no mapping is there.

    Example:
        >>> mapping_in({"attribute": {"labels": {"coco": "sex"}}}, "attribute", "labels")
        {'coco': 'sex'}
        >>> mapping_in({"attribute": 3}, "attribute", "labels")
        {}
    """
    node: object = record
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def rows_csv(
    rows: Sequence[Row],
    further: Sequence[str] = (),
    settings: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> str:
    """Rows as CSV with a header, in the form of :func:`bias_pipeline.io.files.csv_text`.

    Args:
        rows: rows of one or more runs.
        further: columns after the columns of a row.
        settings: the values of the further columns, by run id.

    Example:
        >>> rows_csv([], ["encoder.order"]).strip().split(",")[-2:]
        ['seeds', 'encoder.order']
    """
    lines = []
    for row in rows:
        values = settings.get(row.run_id, {})
        lines.append([*vars(row).values(), *(values.get(name, "") for name in further)])
    return csv_text([[*COLUMNS, *further], *lines])


def row_of(record: Mapping[str, Any]) -> Row:
    """A row from plain data.

    Raises:
        ValueError: if columns, or types of columns, are not a row's.
    """
    if set(record) != set(COLUMNS):
        raise ValueError(f"its rows do not have the columns {' '.join(COLUMNS)}")
    row: Row = reader_of(Row)(record, "")
    return row


def result_of(row_records: Any, manifest: Any, run_id: str) -> Result:
    """A result made of rows and a manifest, both as plain data.

    Raises:
        ValueError: or a similar error, if the data have another shape.
    """
    rows = [row_of(record) for record in row_records]
    if not rows or any(row.run_id != run_id for row in rows):
        raise ValueError("it has no rows, or rows of another run")
    result = Result(run_id, rows, manifest)
    parts = {row.part for row in rows}
    if result.facts.files is None:
        raise ValueError("it has no files: it was written by an older version")
    for name in result.facts.files:
        if "/" in name or name.startswith("."):
            raise ValueError(f"files names {name[:40]!r}")
    for rule in (result.facts.metric.readings or {}).values():
        if rule.part not in parts:
            raise ValueError(f"metric.readings names {rule.part[:40]!r}, which has no row")
    return result


def check_draws(draws: Mapping[str, Draws], result: Result) -> None:
    """Refuse draws that do not fit the rows, the seeds or the number of resamplings."""
    parts, n_seeds = {row.part for row in result.rows}, len(result.rows[0].seeds)
    n_resamples = mapping_in(result.facts.config, "stats").get("resamples")
    for part, part_draws in draws.items():
        n_drawn, n_columns = part_draws.resampled.shape
        fits = n_resamples in (None, n_drawn) and not part_draws.trials <= 0
        if part not in parts or not fits or n_columns != (n_seeds if part_draws.trained else 1):
            raise ValueError(f"its draws of {part[:40]!r} do not fit its rows and settings")
