"""How much a score depends on whose labels are used: its bounds over annotators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.report.tables import headline_name, number, percent
from bias_pipeline.results.store import Result, Row

KEY = "dataset.annotator"
_TOLD = ("metric", "attribute", "dataset", "captioner")  # of a row, and in a sentence


@dataclass(frozen=True)
class Bounds:
    """One headline of one captioner under the labels of several people.

    Attributes:
        rows: annotator, or ``majority``, to the headline under their labels.
        settings: in which these cells differ from others of the sweep, as part of their name.
    """

    rows: Mapping[str, Row]
    settings: str = ""

    @property
    def lowest(self) -> str:
        """Whose labels give the lowest value."""
        return min(self.rows, key=lambda who: self.rows[who].value)

    @property
    def highest(self) -> str:
        """Whose labels give the highest value."""
        return max(self.rows, key=lambda who: self.rows[who].value)

    @property
    def sampled(self) -> tuple[float, float]:
        """The lowest lower end and the highest upper end of the intervals."""
        return (
            min(row.ci_low for row in self.rows.values()),
            max(row.ci_high for row in self.rows.values()),
        )

    def sentence(self) -> str:
        """The bounds in one sentence, in per cent where the unit is a fraction."""
        first = next(iter(self.rows.values()))
        written = percent if first.unit == "fraction" else number
        low, high = (
            f"{written(self.rows[who].value)} ({who})" for who in (self.lowest, self.highest)
        )
        ends = " to ".join(written(end) for end in self.sampled)
        return (
            f"{first.captioner}: {headline_name(first, self.settings)} lies between {low} and "
            f"{high}, depending on whose labels of {first.attribute} are used; with sampling, "
            f"{ends}"
        )


def bounds(results: Sequence[Result], swept: Sequence[Mapping[str, str]]) -> list[Bounds]:
    """The bounds of every headline in a sweep over annotators; none in any other sweep.

    Args:
        results: the cells of a sweep.
        swept: for each cell the overrides in which the cells differ, key to value.
    """
    rows_by_setting: dict[tuple[str, ...], dict[str, Row]] = defaultdict(dict)
    for result, overrides in zip(results, swept, strict=True):
        settings = " ".join(f"{k}={v}" for k, v in overrides.items() if k not in (KEY, *_TOLD))
        for row in result.rows:
            if KEY in overrides and row.part in HEADLINES and row.value == row.value:
                names = (getattr(row, name) for name in _TOLD)
                rows_by_setting[settings, *names, row.part][overrides[KEY]] = row
    return [
        Bounds(rows, settings) for (settings, *_), rows in rows_by_setting.items() if len(rows) > 1
    ]
