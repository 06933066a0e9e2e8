"""Makes the table of headline numbers, and the notes below it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bias_pipeline.errors import inflect
from bias_pipeline.io.files import write_file
from bias_pipeline.io.terminal import print_out, print_text
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.value_names import COMPARED, CURVE, UNEVEN
from bias_pipeline.report.conclusion_checks import (
    COVERAGE,
    LIMITS,
    beyond_reach,
    much_longer,
    untestable_data,
)
from bias_pipeline.report.pareto import front_verdicts, fronts
from bias_pipeline.report.screen import fits_in_width, print_table
from bias_pipeline.report.table import Cell, NumberCell, Table, p_cell
from bias_pipeline.results.rows import Result, Row, rows_csv
from bias_pipeline.results.settings import (
    CHOICES,
    NAMED,
    further_columns,
    label,
    seeds_text,
    with_settings,
)

_MANY = 4  # from this number on, notes on learning curves are joined
ARROWS = {"a_to_t": "A→T", "t_to_a": "T→A"}
SIDES = ("model", "human")
BLANK, UNCOVERED, UNMOVED, UNREACHED, UNTESTED, TOO_LONG = "‡", "§", "¶", "‖", "¤", "※"
MARKS = {
    BLANK: "blank captions (counted above) count as absent and lower the coverage",
    UNCOVERED: f"covers less than {COVERAGE:.0%} of its images: no verdict",
    UNMOVED: "every resampling of the images gives this number, but it is not certain: what none "
    "of n images shows may still be true of up to 4/n of all images",
    UNREACHED: f"at equal style, annotators use less than {LIMITS.reach:.0%} of the captioner's "
    f"words as often, or more than {LIMITS.removed:.0%} of its words were removed: no "
    "verdict",
    UNTESTED: "labels or captions seem to be of other images, or the word lists are not in the "
    "language of the captions or are unchecked: no verdict",
    TOO_LONG: f"its captions are more than {LIMITS.longer:g} times as long as human captions, "
    "which lowers this number: no verdict",
}


def print_results(results: Sequence[Result]) -> None:
    """Print the headline numbers of finished cells. A table that is too wide is split by metric."""
    print_text(_title(results))
    whole, varying = headline_table(results), _varying(results)
    metrics: dict[str, list[Result]] = {}
    for result in results:
        metrics.setdefault(result.rows[0].metric, []).append(result)
    by_metric = (headline_table(metric_results, varying) for metric_results in metrics.values())
    for table in [whole] if fits_in_width(whole) else by_metric:
        print_out()
        print_table(table)
    print_out()
    on_fronts = front_verdicts(fronts(results)) if len(results) > 1 else []
    for note in [*on_fronts, *_notes(results)]:
        print_text(note)


def headline_table(results: Sequence[Result], beyond: Sequence[str] = ()) -> Table:
    """A table with a row for each cell; settings of ``beyond`` shared by all go to the caption."""
    varying, first = _varying(results), _identity(results[0])
    common = {name: first.get(name, "") for name in beyond if name not in varying}
    caption = " · ".join(
        value if name == "metric" else f"{name} {value}" for name, value in common.items() if value
    )
    present = {row.part for result in results for row in result.rows}
    headlines = [part for part in HEADLINES if part in present]
    sides = [part for part in SIDES if part in present]
    better = "" if any("lower" not in result.facts.metric.direction for result in results) else " ↓"
    head = [*varying, *(f"{ARROWS.get(part, part)}{better}" for part in headlines), "p"]
    head += ["coverage", "no group", "images", *sides]
    rows = [_cells(result, varying, headlines, sides) for result in results]
    return Table(caption, head, rows, keys=len(varying))


def write_table(folder: Path, results: Sequence[Result]) -> None:
    """Write the rows of all cells to ``table.csv``; further columns have the settings."""
    rows = [row for result in results for row in result.rows]
    settings = {result.run_id: result.settings for result in results}
    text = rows_csv(rows, further_columns(settings.values()), settings)
    write_file(folder / "table.csv", text.encode("utf-8", "replace"), sync=True)


def _p_cells(p_values: Sequence[float]) -> str:
    """The p of each headline as text, in order; a single dash if there is no p at all.

    Example:
        >>> _p_cells([0.041]), _p_cells([0.041, 1e-9]), _p_cells([])
        ('0.041', '0.041, <0.001', '–')
    """
    cells = [p_cell(value) for value in p_values]
    return ", ".join(cells) if set(cells) - {"–"} else "–"


def arrow(row: Row, neutral: float = 0.0) -> str:
    """An arrow: up or down if the interval lies above or below the no-bias value, else level."""
    if math.isnan(row.ci_low) or math.isnan(row.ci_high):
        return ""
    if row.ci_low > neutral:
        return "↑"
    return "↓" if row.ci_high < neutral else "≈"


def _cells(
    result: Result, varying: Sequence[str], headlines: Sequence[str], sides: Sequence[str]
) -> list[Cell]:
    rows = {row.part: row for row in result.rows}
    first = _leading_row(result)
    identity = _identity(result)
    identity["captioner"] += "" if _amplifies(result) else " †"
    return [
        *(identity.get(name, "") for name in varying),
        *(
            NumberCell.of_row(rows[part], pointing(rows[part], result)) if part in rows else None
            for part in headlines
        ),
        _p_cells([rows[part].p_value for part in headlines if part in rows]),
        NumberCell(first.coverage, fraction=True, digits=0, mark=marks(first, result)),
        NumberCell(first.neutral_rate, fraction=True, digits=0),
        NumberCell(first.n_images, digits=0),
        *(NumberCell.of_row(rows[part]) if part in rows else None for part in sides),
    ]


def _leading_row(result: Result) -> Row:
    """The row from which the coverage and the share of captions without a group are printed."""
    rows = {row.part: row for row in result.rows}
    return next((rows[part] for part in (*HEADLINES, *SIDES) if part in rows), result.rows[0])


def marks(row: Row, result: Result) -> str:
    """The warning signs of :data:`MARKS` to print beside a row's coverage."""
    unmoved = (other.ci_low == other.ci_high for other in result.rows if other.part in HEADLINES)
    used = {
        BLANK: has_blanks(result),
        UNCOVERED: row.coverage < COVERAGE,
        UNMOVED: any(unmoved),
        UNREACHED: any(beyond_reach(result, part) for part in HEADLINES),
        UNTESTED: bool(untestable_data(result)),
        TOO_LONG: _too_long_for_quality(row, result),
    }
    return " ".join(mark for mark, applies in used.items() if applies)


def legend(results: Sequence[Result]) -> list[str]:
    """The meanings of the signs of :data:`MARKS` that occur in these results."""
    used = {mark for result in results for mark in marks(_leading_row(result), result).split()}
    return [f"{mark} {meaning}" for mark, meaning in MARKS.items() if mark in used]


def has_blanks(result: Result) -> bool:
    return any(result.facts.corpus.blanks.values())


def metric_name(metric: str, attribute: str) -> str:
    """A metric's name for readers. The word gender is removed for other attributes.

    Example:
        >>> metric_name("gender_error", "gender"), metric_name("gender_error", "religion")
        ('gender_error', 'religion error')
    """
    if "gender" not in metric or "gender" in attribute:
        return metric
    return metric.replace("gender", attribute).replace("_", " ")


def headline_name(row: Row, settings: str = "") -> str:
    """The name of a headline: the metric, its direction if there are two, differing settings."""
    name = metric_name(row.metric, row.attribute)
    return " ".join(filter(None, [name, ARROWS.get(row.part, ""), settings]))


def pointing(row: Row, result: Result) -> str:
    """The arrow beside a headline number; empty if nothing is tested by this number."""
    untested = row.part in result.facts.metric.untested
    if untested or untestable_data(result) or _too_long_for_quality(row, result):
        return ""
    return arrow(row, result.neutral(row.part))


def _too_long_for_quality(row: Row, result: Result) -> bool:
    """Whether captions are so long that they cannot score as high as human captions."""
    return row.metric == "quality" and bool(much_longer(result))


def _identity(result: Result) -> dict[str, str]:
    """The choices, seeds and settings by which a cell may differ from other cells."""
    row = result.rows[0]
    choices = {name: str(getattr(row, name)) for name in CHOICES}
    return {**result.settings, **choices, "seeds": seeds_text(row.seeds)}


def _varying(results: Sequence[Result]) -> list[str]:
    """The columns in which cells differ; the captioner is always among them."""
    identities = [_identity(result) for result in results]
    keys = dict.fromkeys([*CHOICES, *(key for identity in identities for key in identity)])
    return [
        key
        for key in keys
        if key == "captioner" or len({identity.get(key, "") for identity in identities}) > 1
    ]


def _title(results: Sequence[Result]) -> str:
    first, varying = _identity(results[0]), _varying(results)
    fixed = {k: v for k, v in first.items() if v and k not in (*varying, *CHOICES, "seeds")}
    named = [f"{key} {first[key]}" for key in CHOICES if first[key] and key not in varying]
    seeds = [] if "seeds" in varying else [inflect(len(results[0].rows[0].seeds), "seeds")]
    printed = (*HEADLINES, *SIDES)
    units = {row.unit for result in results for row in result.rows if row.part in printed}
    unit = "per cent" if units <= {"fraction"} else "fractions in per cent"
    return " · ".join([*named, *(f"{k} {v}" for k, v in fixed.items()), *seeds, unit])


def attributed_notes(results: Sequence[Result]) -> list[str]:
    """The notes of cells. Each note occurs once, and begins with the captioners it is about.

    If only some cells of a captioner have a note, the note also names these cells, as in ``oscar
    (lic matched)``. The name of a cell consists of the metric, of the attribute and the data set if
    there are several, and of settings.
    """
    keys = ("metric", "attribute", "dataset")
    several = [key for key in keys if len({getattr(r.rows[0], key) for r in results}) > 1]
    cells: dict[str, dict[str, list[str]]] = {}  # note, to captioner, to names of its cells
    for result in with_settings(results):
        row = result.rows[0]
        named = [str(getattr(row, key)) for key in several]
        settings = label(result) or " ".join(f"{k}={v}" for k, v in result.settings.items() if v)
        name = " ".join(filter(None, [*named, settings]))
        for note in result.notes:
            cells.setdefault(note, {}).setdefault(row.captioner, []).append(name)
    n_cells = Counter(result.rows[0].captioner for result in results)
    notes = []
    for note, names_by_captioner in cells.items():
        speakers = [
            captioner
            if len(names) == n_cells[captioner]
            else f"{captioner} ({'; '.join(dict.fromkeys(names))})"
            for captioner, names in names_by_captioner.items()
        ]
        notes.append(f"{', '.join(speakers)}: {note}")
    return notes


def _notes(results: Sequence[Result]) -> list[str]:
    """The notes that readers need beside the numbers; each note occurs only once."""
    notes = _fold_curves(attributed_notes(results))
    if not all(_amplifies(result) for result in results):
        notes.append(
            "† not known to be trained on captions of this data set: read a bias difference, "
            "not an amplification"
        )
    notes += legend(results)
    arrows = "↑ above the no-bias value, ↓ below, ≈ the interval includes it"
    return [*notes, arrows, *_directions(results)]


def _fold_curves(notes: Sequence[str]) -> list[str]:
    """Join the notes on several learning curves into one note, and keep other notes."""
    curves = [note for note in notes if CURVE in note]
    if len(curves) < _MANY:
        return [*notes]
    uneven = sum(UNEVEN in note for note in curves)
    advice = f": {COMPARED}" if uneven else ""
    summary = f"{uneven} of {len(curves)} learning curves (rows learning:*) are {UNEVEN}{advice}"
    return [*(note for note in notes if note not in curves), summary]


def _directions(results: Sequence[Result]) -> list[str]:
    """Lines on how to read each metric; metrics with the same text share a line."""
    metrics: dict[str, list[str]] = {}
    for result in results:
        metrics.setdefault(result.facts.metric.direction, []).append(result.rows[0].metric)
    return [f"{', '.join(dict.fromkeys(who))}: {text}" for text, who in metrics.items() if text]


def _amplifies(result: Result) -> bool:
    """Whether a result needs no †: it tests retrieval, or its captioner learnt from this data."""
    return result.facts.metric.question == "retrieval" or training_of(result)


def training_of(result: Result) -> bool:
    """Whether the captioner is known to have been trained on captions of this data set."""
    return result.facts.corpus.trained_on_reference is True


def latest_results(results: Iterable[Result]) -> list[Result]:
    """The latest result of each cell.

    Captioners are in the order of their first runs, and each captioner's metrics in the order of
    their names, since several processes finish cells in any order.
    """
    runs = sorted(results, key=lambda result: result.facts.started)
    latest = {_cell_of(result): result for result in runs}
    captioners = list(dict.fromkeys(result.rows[0].captioner for result in runs))

    def place(result: Result) -> tuple[int, str, str]:
        row = result.rows[0]
        return captioners.index(row.captioner), row.metric, label(result)

    return sorted(latest.values(), key=place)


def _cell_of(result: Result) -> tuple[object, ...]:
    row = result.rows[0]
    names = ("dataset", "attribute", "captioner", "metric", *NAMED)
    return (*(getattr(row, name) for name in names), *result.settings.items())


def captioners(results: Sequence[Result]) -> list[str]:
    """The names of the captioners, in the order of the results."""
    return list(dict.fromkeys(result.rows[0].captioner for result in results))
