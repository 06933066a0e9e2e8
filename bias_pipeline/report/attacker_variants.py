"""One number of several captioners under several attackers, from finished results.

Nothing is trained: a sweep over encoders, heads, vectors or metrics is enough to measure how far
its conclusions depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.errors import DataError, UsageError, did_you_mean
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import values_of, with_settings
from bias_pipeline.stats.bootstrap import Draws

Stored = Mapping[str, Mapping[str, Draws]]

SETTINGS = ("encoder", "head", "masking", "alignment", "scoring")
KEYS = ("metric", *SETTINGS)  # what may always vary
OVER = ("encoder", "head")  # what varies by default


class Setting(NamedTuple):
    """The settings that all variants share; empty if it varies or is not used."""

    headline: str  # the number, such as `lic` or `dbac a_to_t`
    attribute: str = ""  # whose groups
    dataset: str = ""  # its name
    encoder: str = ""  # of the attackers; so for the rest, as in rows
    head: str = ""  # see rows
    masking: str = ""  # see rows
    alignment: str = ""  # see rows
    scoring: str = ""  # see rows
    others: str = ""  # further settings in which runs differ, see `settings`

    def __str__(self) -> str:
        return " ".join(filter(None, self))

    def rivals(self, other: Setting) -> bool:
        """Whether the other is a different number of the same captions with the same treatment."""
        ours = (self.attribute, self.dataset, self.masking, self.alignment)
        theirs = (other.attribute, other.dataset, other.masking, other.alignment)
        return self.headline != other.headline and ours == theirs


@dataclass(frozen=True, eq=False)
class Variants:
    """Scores of C captioners under V variants."""

    setting: Setting  # what was scored
    captioners: tuple[str, ...]  # C names
    variants: tuple[str, ...]  # V names, such as `lstm mlp3`
    values: Float64Array  # (C, V) scores
    neutral: Float64Array  # (V,) the score that means no bias
    # (B, C, V) the scores under B resamplings of the images; if they are not stored, B is 0 and
    # intervals are NaN
    resampled: Float64Array
    absent: tuple[str, ...] = ()  # captioners left out, since some variant lacks them
    units: tuple[str, ...] = ()  # (V,) of scores of runs; empty for others

    def only(self, captioners: Sequence[str], variants: Sequence[str]) -> Variants:
        """The scores of some captioners under some variants, in that order."""
        lines = [self.captioners.index(name) for name in captioners]
        columns = [self.variants.index(name) for name in variants]
        return replace(
            self,
            captioners=tuple(captioners),
            variants=tuple(variants),
            values=self.values[np.ix_(lines, columns)],
            neutral=self.neutral[columns],
            resampled=self.resampled[:, lines][:, :, columns],
            units=tuple(self.units[column] for column in columns) if self.units else (),
        )

    @classmethod
    def of_table(cls, name: str, table: Mapping[str, Mapping[str, float]]) -> Variants:
        """Published scores, captioner to variant to score, 0 meaning no bias.

        Example:
            >>> Variants.of_table("x", {"sat": {"a": 1.0, "b": 2.0}}).variants
            ('a', 'b')
        """
        variants = tuple(next(iter(table.values())))
        values = np.array([[scores[variant] for variant in variants] for scores in table.values()])
        nothing = np.empty((0, *values.shape))
        neutral = np.zeros(len(variants))
        return cls(Setting(name), tuple(table), variants, values, neutral, nothing)


@dataclass(frozen=True)
class _Cell:
    row: Row
    neutral: float
    draws: Draws | None

    def resampled(self) -> Float64Array:
        """(B,) mean over seeds."""
        return np.empty(0) if self.draws is None else self.draws.resampled.mean(axis=1)


def variants(
    results: Sequence[Result], draws: Stored, over: Sequence[str], fewest: int = 2
) -> list[Variants]:
    """A table for every headline with at least two variants and ``fewest`` captioners."""
    labelled = with_settings(results)
    further = dict.fromkeys(key for result in labelled for key in result.settings)
    _check(over, list(dict.fromkeys([*KEYS, *further])))
    alike = [key for key in further if key not in KEYS and not _varies(key, over)]
    groups: dict[Setting, dict[tuple[str, str], _Cell]] = {}
    for result in labelled:
        for row in result.rows:
            if row.part in HEADLINES and np.isfinite(row.value):
                group_cells = groups.setdefault(_same(row, result, over, alike), {})
                cell = _Cell(row, result.neutral(row.part), _drawn(draws, row))
                _add(group_cells, (row.captioner, _variant(row, result, over)), cell)
    made = [_variants(setting, cells) for setting, cells in groups.items()]
    return [table for table in made if len(table.variants) > 1 and len(table.captioners) >= fewest]


def _varies(key: str, over: Sequence[str]) -> bool:
    """Whether a setting varies, or belongs to a choice that varies.

    If metrics vary, each setting of a metric makes it another metric.
    """
    return "metric" in over or key in over or key.partition(".")[0] in over


def _check(over: Sequence[str], known: Sequence[str]) -> None:
    for key in over:
        if key not in known:
            raise UsageError(
                f"--over {key}: the runs do not differ in it; {did_you_mean(key, known)}"
            )


def _same(row: Row, result: Result, over: Sequence[str], alike: Sequence[str]) -> Setting:
    """The settings that all variants share; if metrics vary, their settings do too.

    A setting that differs between runs is read from every run.
    """
    if "metric" in over:
        return Setting("", row.attribute, row.dataset)
    fixed = {key: str(getattr(row, key)) for key in SETTINGS if key not in over}
    values = values_of(result) | dict(result.settings)
    others = " ".join(f"{key}={values[key]}" for key in alike if key in values)
    return Setting(_headline(row), row.attribute, row.dataset, **fixed, others=others)


def _headline(row: Row) -> str:
    return row.metric if row.part == "score" else f"{row.metric} {row.part}"


def _variant(row: Row, result: Result, over: Sequence[str]) -> str:
    within = [key for key in result.settings if key not in over and _varies(key, over)]
    return (
        " ".join(filter(None, (_part_of_name(row, result, key) for key in (*over, *within))))
        or "none"
    )


def _part_of_name(row: Row, result: Result, key: str) -> str:
    if key == "metric":
        return _headline(row)
    if key in SETTINGS:
        return str(getattr(row, key))
    return f"{key}={result.settings[key]}" if key in result.settings else ""


def _add(cells: dict[tuple[str, str], _Cell], key: tuple[str, str], cell: _Cell) -> None:
    first = cells.setdefault(key, cell)
    if first.row.run_id != cell.row.run_id:
        raise DataError(
            f"{first.row.run_id} and {cell.row.run_id} are two runs of {key[0]} that do not differ "
            f"in what is compared ({key[1]}); keep them in separate folders"
        )


def _drawn(draws: Stored, row: Row) -> Draws | None:
    return draws.get(row.run_id, {}).get(row.part)


def _variants(setting: Setting, cells: Mapping[tuple[str, str], _Cell]) -> Variants:
    names = tuple(dict.fromkeys(variant for _, variant in cells))
    everyone = tuple(dict.fromkeys(captioner for captioner, _ in cells))
    whole = tuple(name for name in everyone if all((name, variant) in cells for variant in names))
    grid = [[cells[name, variant] for variant in names] for name in whole]
    return Variants(
        setting=setting,
        captioners=whole,
        variants=names,
        values=np.reshape([[cell.row.value for cell in line] for line in grid], (-1, len(names))),
        neutral=np.array([cell.neutral for cell in grid[0]]) if grid else np.zeros(len(names)),
        resampled=_resampled(grid),
        absent=tuple(name for name in everyone if name not in whole),
        units=tuple(cell.row.unit for cell in grid[0]) if grid else (),
    )


def _resampled(grid: Sequence[Sequence[_Cell]]) -> Float64Array:
    """(B, C, V); empty unless all were resampled equally often."""
    drawn = [[cell.resampled() for cell in line] for line in grid]
    sizes = {len(numbers) for line in drawn for numbers in line}
    width = len(grid[0]) if grid else 0
    if len(sizes) != 1:
        return np.empty((0, len(grid), width))
    return np.moveaxis(np.array(drawn), -1, 0)
