"""The report's sections on descriptions: concepts by group, spellings, captions, other words.

The tables of a run contain the captions, at most four for each concept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bias_pipeline.report.figures import PairedBar, Plot, paired_bars
from bias_pipeline.report.section import Section, stored_lines
from bias_pipeline.report.table import Cell, NumberCell, Table, Weighted
from bias_pipeline.results.rows import Result, mapping_in
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import ResultStore

TABLE = "descriptions"
_SPELLINGS, _CAPTIONS, _SLOTS = "described_words", "described_captions", "described_slots"
_COLUMNS = {
    TABLE: {"concept", "group", "rate", "others", "rate of others", "annotators",
            "annotators of others", "difference", "difference error", "beyond annotators",
            "beyond annotators error", "annotators at this rate by"},
    _SPELLINGS: {"concept", "side", "group", "spelling", "captions", "of"},
    _CAPTIONS: {"concept", "group", "image_id", "caption", "marked"},
    _SLOTS: {"word", "image_id", "caption", "marked"},
}  # fmt: skip
_DRAWN = 12  # the most concepts in a figure
_ALONE = "annotators say it of one group alone"
_Z = 1.96
_MARK = 0.5  # the weight of a marked word; words are drawn in two strengths
HABIT = (
    "A captioner may share a habit with annotators, so compare its own difference with the part "
    "beyond annotators."
)
_READ = (
    "How many captions of each group have a concept. “own difference” compares pictures with "
    "the same objects or like descriptions (in points, with its 95 % interval). “beyond "
    "annotators” subtracts the difference that annotators would show at the captioner's rate. "
    "The first lines are the clearest."
)

Line = Mapping[str, str]


def description_sections(
    store: ResultStore, results: Sequence[Result]
) -> tuple[list[Section], list[str]]:
    """A section for each run of ``descriptions``, and a sentence on each damaged file."""
    sections: list[Section] = []
    damaged: list[str] = []
    for result in with_settings(results):
        if result.rows[0].metric != TABLE:
            continue
        tables = {
            name: stored_lines(store, result, name, columns, damaged, "It is not shown")
            for name, columns in _COLUMNS.items()
        }
        if tables[TABLE]:
            sections.append(_section(result, tables))
    return sections, damaged


def _section(result: Result, tables: Mapping[str, Sequence[Line]]) -> Section:
    row = result.rows[0]
    apart = ", ".join(f"{key}={value}" for key, value in result.settings.items())
    title = ", ".join(
        filter(None, (f"{row.captioner}: descriptions by {row.attribute}", row.dataset, apart))
    )
    lines = tables[TABLE]
    further = [
        _spellings(tables[_SPELLINGS]),
        _captions(tables[_CAPTIONS]),
        _slots(tables[_SLOTS]),
    ]
    return Section(
        title=title,
        texts=[*_sentences(result), _READ, HABIT],
        figures=_figures(title, lines),
        tables=[_concepts(lines), *(table for table in further if table.rows)],
        metrics=[row.metric],
        captioner=row.captioner,
        chapter="How people are described",
    )


def _sentences(result: Result) -> list[str]:
    texts = mapping_in(result.facts.audit, "descriptions").get("sentences", ())
    return [f"{text[:1].upper()}{text[1:]}." for text in texts]


def _figures(title: str, lines: Sequence[Line]) -> list[Plot]:
    """A figure for each group against others, with the concepts that differ most clearly."""
    figures = []
    for group, others in dict.fromkeys((line["group"], line["others"]) for line in lines):
        shown = [line for line in lines if (line["group"], line["others"]) == (group, others)]
        pairs = [
            PairedBar(
                line["concept"],
                (_value(line["rate of others"]), _value(line["rate"])),
                (_value(line["annotators of others"]), _value(line["annotators"])),
            )
            for line in shown[:_DRAWN]
        ]
        figures.append(paired_bars(pairs, (others, group), f"{title}: {group} and {others}"))
    return figures


def _concepts(lines: Sequence[Line]) -> Table:
    """A table of concepts: both rates, the model's difference, the part beyond annotators."""
    names = dict.fromkeys((line["others"], line["group"]) for line in lines)
    other, group = next(iter(names)) if len(names) == 1 else ("others", "group")
    several = len(names) > 1
    rows: list[list[Cell]] = [
        [
            f"{line['concept']} ({line['group']})" if several else line["concept"],
            *(_share(line[name]) for name in ("rate of others", "rate")),
            *(_share(line[name]) for name in ("annotators of others", "annotators")),
            _difference(line, "difference"),
            None if _is_of_one_group(line) else _difference(line, "beyond annotators"),
            _remark(line),
        ]
        for line in lines
    ]
    head = [
        *("concept", other, group, f"annotators, {other}", f"annotators, {group}"),
        *(f"own difference ({group})", "beyond annotators", "annotators' part is from"),
    ]
    return Table("Concepts, in per cent of captions and in points", head, rows)


def _is_of_one_group(line: Line) -> bool:
    return line["annotators at this rate by"] == _ALONE


def _remark(line: Line) -> str:
    """The text of the cell "annotators' part is from", with the concept's note, if any."""
    if _is_of_one_group(line):
        return "follows the group in annotators' captions too"
    return "; ".join(filter(None, (line["annotators at this rate by"], line.get("note", ""))))


def _share(cell: str) -> NumberCell:
    return NumberCell(_value(cell), fraction=True, digits=1)


def _difference(line: Line, name: str) -> NumberCell:
    value, half = _value(line[name]), _Z * _value(line[f"{name} error"])
    return NumberCell(value, value - half, value + half, fraction=True, digits=1)


def _value(cell: str) -> float:
    return float(cell) if cell else math.nan


def _spellings(lines: Sequence[Line]) -> Table:
    """A table of spellings with counts, and a line for each concept and group."""
    listed: dict[tuple[str, str], dict[str, list[str]]] = {}
    for line in lines:
        sides = listed.setdefault((line["concept"], line["group"]), {})
        sides.setdefault(line["side"], []).append(f"{line['spelling']} {line['captions']}")
    rows: list[list[Cell]] = [
        [concept, group, *(", ".join(sides.get(side, ())) or None for side in ("model", "human"))]
        for (concept, group), sides in listed.items()
    ]
    caption = "Spellings, with the number of captions that have them; they decide nothing"
    return Table(caption, ["concept", "group", "captioner", "annotators"], rows, folded=True)


def _captions(lines: Sequence[Line]) -> Table:
    rows: list[list[Cell]] = [
        [line["concept"], line["group"], _mark_words(line), line["image_id"]] for line in lines
    ]
    caption = "Captions with a concept, four of each, drawn by chance"
    return Table(caption, ["concept", "group", "caption", "image"], rows, folded=True)


def _slots(lines: Sequence[Line]) -> Table:
    """A table of words that belong to no concept, with counts and an example."""
    rows: list[list[Cell]] = [
        [
            line["word"],
            ", ".join(
                f"{key.removeprefix(_COUNT)} {line[key]}" for key in line if key.startswith(_COUNT)
            ),
            _mark_words(line),
            line["image_id"],
        ]
        for line in lines
    ]
    caption = "Other words where descriptions stand; they decide nothing"
    return Table(caption, ["word", "captions", "an example", "image"], rows, folded=True)


_COUNT = "captions:"


def _mark_words(line: Line) -> Weighted:
    marked = set(line["marked"].split())
    words = line["caption"].split(" ")
    return Weighted(tuple((word, _MARK * (str(k) in marked)) for k, word in enumerate(words)))
