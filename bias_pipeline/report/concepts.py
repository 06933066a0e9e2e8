"""The report's sections on queries: which retrieve one group most, and which all equally.

In word clouds of concepts, one a group, a concept's size is the group's share of what it retrieves.
After Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, Figures 4 and 5,
which define neither size nor number of concepts; here at most :data:`MOST`. The library wordcloud
places the words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bias_pipeline.errors import DataError, counted
from bias_pipeline.io.machine import CLOUDS
from bias_pipeline.io.terminal import printable
from bias_pipeline.report.examples import Grid, grid_of
from bias_pipeline.report.figures import Colours, FigureBar, Plot, Points, bars
from bias_pipeline.report.report_tables import Cell, Section, Sheet, SheetNumber
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import ResultStore

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 60  # concepts of a cloud
_SEED = 0  # of the places that are tried
_WIDTH, _HEIGHT, _INCH = 640, 300, 100  # pixels of the layout, and how many an inch has
_SMALLEST, _LARGEST = 9, 60  # pixels of a letter
_MARGIN = 2 * 3 / 72  # inches that a figure leaves around its axes


class CloudWord(NamedTuple):
    """A word of a cloud."""

    text: str  # the word
    size: float  # of its letters, in pixels of a cloud 640 wide
    left: float  # where it begins
    base: float  # how far down its line is


def cloud(shares: Mapping[str, float], title: str) -> Plot:
    """A cloud of concepts.

    Args:
        shares: concept to the group's share of what it retrieves, in [0, 1]; those of 0 are not
            drawn. At least one is above 0.
    """

    def draw(axes: Axes, colours: Colours) -> None:
        axes.set_xlim(0, _WIDTH)
        axes.set_ylim(_HEIGHT, 0)
        axes.set_axis_off()
        for word in laid_out(shares):
            points = 72 * word.size / _INCH
            drawn = axes.text(
                word.left, word.base, printable(word.text), fontsize=points, color=colours.mark
            )
            drawn.set_in_layout(False)  # the layout must not move words

    size = (_WIDTH / _INCH + _MARGIN, _HEIGHT / _INCH + _MARGIN)
    return Plot(title, size, draw, Points((), (), ()))


def laid_out(shares: Mapping[str, float]) -> list[CloudWord]:
    """The place of each word, the same for the same shares."""
    from PIL import ImageFont
    from wordcloud import WordCloud

    font = _font()
    drawn = {name: share for name, share in sorted(shares.items()) if share > 0}
    layout = WordCloud(
        font_path=font,
        width=_WIDTH,
        height=_HEIGHT,
        max_words=MOST,
        min_font_size=_SMALLEST,
        max_font_size=_LARGEST,
        prefer_horizontal=1.0,
        random_state=_SEED,
    ).generate_from_frequencies(drawn)
    words = []
    for (text, _), size, (top, left), _, _ in layout.layout_:
        before, above, *_ = ImageFont.truetype(font, size).getbbox(text, anchor="ls")
        words.append(CloudWord(text, size, left - before, top - above))
    return words


def _font() -> str:
    """The file of the font in which figures are drawn; matplotlib brings it."""
    import matplotlib as mpl

    return str(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf")


CONCEPTS = "concepts"  # the table's name
RETRIEVED = "retrieved"  # the table of the pictures that they retrieve first
MOST_SHOWN = 12  # runs with pictures and clouds, since a page must be small enough to mail
MOST_CLOUDS = 7  # more groups get no clouds
ENDS = 10  # queries that are drawn: so many of the least and of the most equal
_FEWER = (
    f"Pictures and word clouds are shown only for the first {MOST_SHOWN} runs; report fewer runs "
    "to "
    "see those of this one."
)
_ALPHA = 0.05
_SHARE = "share:"
_COLUMNS = {
    "concept",
    "query",
    "fairness",
    "ci_low",
    "ci_high",
    "p_holm",
    "over_represented",
    "excess",
}

Line = Mapping[str, str]


def concept_sections(
    store: ResultStore, results: Sequence[Result]
) -> tuple[list[Section], list[str]]:
    """A section for each run with queries, and a sentence on each damaged file."""
    sections: list[Section] = []
    damaged: list[str] = []
    for result in with_settings(results):
        try:
            lines = store.table(result, CONCEPTS)
        except DataError as error:
            damaged.append(f"{error}. Its queries are not shown")
            continue
        groups = [key.removeprefix(_SHARE) for key in (lines or [{}])[0] if key.startswith(_SHARE)]
        if not (lines and groups and lines[0].keys() >= _COLUMNS):
            continue
        if len(sections) >= MOST_SHOWN:
            sections.append(_section(result, lines, groups, [], [_FEWER]))
            continue
        figures, texts, faults = _pictures(store, result, lines, groups)
        sections.append(_section(result, lines, groups, figures, texts))
        damaged += faults
    return sections, damaged


def _title(result: Result) -> str:
    row = result.rows[0]
    apart = ", ".join(f"{key}={value}" for key, value in result.settings.items())
    return ", ".join(filter(None, (f"Queries by {row.attribute}", row.dataset, apart)))


def _section(
    result: Result,
    lines: Sequence[Line],
    groups: Sequence[str],
    figures: Sequence[Plot],
    texts: Sequence[str],
) -> Section:
    """Which groups queries retrieve, with further figures and their texts."""
    title = _title(result)
    explanation = (
        "Which groups each query retrieves, the most unequal first. Intervals resample images; a "
        "query that always retrieves the same groups has none. p tests the exact count of each "
        "group, corrected over all queries (Holm); where it is below .05, the table names the "
        "group "
        "that is retrieved too often, with points above its share of all pictures."
    )
    return Section(
        title=title,
        texts=[explanation, *texts],
        figures=[_figure(title, lines, groups), *figures],
        sheets=[_sheet(lines, groups)],
        metrics=[result.rows[0].metric],
        chapter="Queries",
    )


def _pictures(
    store: ResultStore, result: Result, lines: Sequence[Line], groups: Sequence[str]
) -> tuple[list[Plot], list[str], list[str]]:
    """The grid and the clouds of a run, their texts, and sentences on damaged files."""
    title, faults = _title(result), []
    grid = None
    try:
        grid = grid_of(store.table(result, RETRIEVED), f"{title}: pictures")
    except DataError as error:
        faults.append(f"{store.root / result.run_id / RETRIEVED}.csv: {error}")
    clouds = _clouds(title, lines, groups)
    figures = [*([grid] if grid else []), *clouds]
    return figures, [_of_pictures(result, grid), _of_clouds(clouds, groups)], faults


def _of_pictures(result: Result, grid: Grid | None) -> str:
    """A text on the grid and its terms, or on why there is none."""
    audit = result.manifest.get("audit")
    terms = audit.get("shown_under") if isinstance(audit, Mapping) else None
    if grid is not None:
        return (
            "Pictures: the nearest that the most unequal and the most equal queries retrieve with "
            "the first seed, as the model saw them. A query says nothing about the people shown. "
            f"Terms: {terms}."
        )
    if terms:
        return "Pictures: the run's folder contains none."
    return (
        f"Pictures: none are shown, since dataset {result.rows[0].dataset} does not state terms "
        "that allow it; for your own data, set dataset.shown_under=TERMS."
    )


def _clouds(title: str, lines: Sequence[Line], groups: Sequence[str]) -> list[Plot]:
    """A cloud for each group; none if they cannot be drawn."""
    if not CLOUDS.is_installed or len(groups) > MOST_CLOUDS:
        return []
    shares = {
        group: {line["concept"]: float(line[_SHARE + group]) for line in lines} for group in groups
    }
    return [
        cloud(concept_shares, f"{title}: {group}")
        for group, concept_shares in shares.items()
        if any(concept_shares.values())
    ]


def _of_clouds(clouds: Sequence[Plot], groups: Sequence[str]) -> str:
    """A text on the clouds, or on why there are none."""
    if clouds:
        return (
            f"Clouds for {', '.join(groups)}, in this order: the larger a concept, the larger the "
            "group's share of what it retrieves. Groups that are never retrieved have none."
        )
    if len(groups) > MOST_CLOUDS:
        return f"Word clouds are drawn for at most {MOST_CLOUDS} groups (metric.groups)."
    return f"Word clouds of each group: pip install 'bias_pipeline[{CLOUDS.name}]'."


def _figure(title: str, lines: Sequence[Line], groups: Sequence[str]) -> Plot:
    """The groups' shares of what the least and most equal queries retrieve."""
    shown = list(lines) if len(lines) <= 2 * ENDS else [*lines[:ENDS], *lines[-ENDS:]]
    query_bars = [
        FigureBar(line["concept"], [float(line[_SHARE + group]) for group in groups])
        for line in shown
    ]
    return bars(query_bars, groups, title, gap=ENDS if len(lines) > 2 * ENDS else None)


def _sheet(lines: Sequence[Line], groups: Sequence[str]) -> Sheet:
    rows: list[list[Cell]] = [
        [
            line["concept"],
            line["query"],
            _fairness(line),
            SheetNumber(_value(line["p_holm"]), digits=3),
            _too_many(line),
            *(
                SheetNumber(float(line[_SHARE + group]), fraction=True, digits=0)
                for group in groups
            ),
        ]
        for line in lines
    ]
    head = [
        "concept",
        "query",
        "fairness",
        "p (Holm)",
        "too many",
        *(f"{group}, share" for group in groups),
    ]
    return Sheet(f"All {counted(len(rows), 'queries')}", head, rows, folded=True)


def _too_many(line: Line) -> str:
    """The group that is retrieved more often than by chance, and by how many points."""
    if not _value(line["p_holm"]) < _ALPHA:
        return ""
    return f"{line['over_represented']} {100 * _value(line['excess']):+.0f}"


def _fairness(line: Line) -> SheetNumber:
    value, low, high = (_value(line[key]) for key in ("fairness", "ci_low", "ci_high"))
    return SheetNumber(value, low, high, fraction=True, digits=1)


def _value(cell: str) -> float:
    """A number of a table; NaN for an empty cell."""
    return float(cell) if cell else math.nan
