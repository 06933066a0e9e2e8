"""Reports the numbers that gold labels correct, in a sentence and a section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bias_pipeline.metrics.value_names import GOLD, MACHINE
from bias_pipeline.report.section import Section
from bias_pipeline.report.table import Cell, NumberCell, Table
from bias_pipeline.results.rows import Result, Row, mapping_in
from bias_pipeline.results.settings import label

_TEXT = (
    "A machine labelled all images, and people some of them (gold labels). “worth”: so many times "
    "as many gold labels, without machine labels, would give an interval as narrow."
)
_HEAD = ("number", "by machine labels", "corrected", "gold labels alone", "worth", "gold labels")


def correction_sentences(results: Sequence[Result]) -> list[str]:
    """A sentence on which metrics gold labels correct, with numbers; empty if none."""
    corrected: dict[str, str] = {}
    for result in results:
        if result.facts.gold:
            corrected.setdefault(result.rows[0].metric, _numbers(result))
    listed = ", ".join(f"{metric}{numbers}" for metric, numbers in corrected.items())
    text = f"Gold labels correct {listed}; other numbers rest on machine labels."
    return [text] if corrected else []


def _numbers(result: Result) -> str:
    """A clause on the first corrected number; empty if gold labels give no number."""
    for _, machine, corrected, alone, worth, _ in _lines(result):
        shown = ("machine", machine), ("corrected", corrected), ("gold alone", alone)
        texts = [f"{name} {cell.text}" for name, cell in shown if isinstance(cell, NumberCell)]
        if isinstance(worth, NumberCell):
            texts.append(f"worth {worth.text} times as many labels")
        return f" ({', '.join(texts)})"
    return ""


def correction_sections(results: Sequence[Result]) -> list[Section]:
    """A section with the corrected headlines; empty if there are none."""
    lines = [line for result in results for line in _lines(result)]
    table = Table("Machine labels corrected by gold labels", _HEAD, lines)
    return [Section("Corrected by gold labels", tables=[table], notes=[_TEXT])] if lines else []


def _lines(result: Result) -> Iterator[list[Cell]]:
    rows = {row.part: row for row in result.rows}
    gold = mapping_in(result.facts.audit, GOLD)
    for part, times in mapping_in(gold, "worth").items():
        machine, alone = rows.get(f"{part}:{MACHINE}"), rows.get(f"{part}:{GOLD}")
        name = " ".join(filter(None, (rows[part].metric, label(result), part)))
        yield [
            f"{rows[part].captioner}: {name}",
            *map(_cell, (machine, rows[part], alone)),
            None if times is None else NumberCell(times, digits=1),
            NumberCell(gold["labels"], digits=0),
        ]


def _cell(row: Row | None) -> Cell:
    return NumberCell.of_row(row) if row else None
