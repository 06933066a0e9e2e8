"""Figures of results, by matplotlib: SVG that takes its colours from the page it stands in."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bias_pipeline.report.tables import printable
from bias_pipeline.results import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours that no figure uses otherwise; in SVG they become the page's own.
_INK, _FAINT, _MARK = "#010203", "#020304", "#030405"
_VARIABLES = {_INK: "var(--ink)", _FAINT: "var(--faint)", _MARK: "var(--mark)"}
_STYLE: Any = {  # rc_context's keys are literals
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "font.size": 10,
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a name is text, not a formula
    "svg.fonttype": "none",
    "svg.hashsalt": "bias_pipeline",
}


def forest(rows: Sequence[Row], neutral: float, title: str) -> str:
    """Values with their intervals, one line a captioner.

    Args:
        rows: one headline of several captioners, the first on top.
        neutral: where a line is drawn.
        title: read aloud for those who cannot see it.

    Returns:
        An SVG element.
    """
    with _figure(6.4, 0.9 + 0.3 * len(rows)) as figure:
        axes = figure.subplots()
        axes.axvline(neutral, color=_FAINT, linewidth=1)
        for place, row in enumerate(rows):
            scale = _scale(row)
            if not math.isnan(row.ci_low):
                ends = (scale * row.ci_low, scale * row.ci_high)
                axes.plot(ends, (place, place), color=_MARK, linewidth=2)
            axes.plot(scale * row.value, place, "o", color=_MARK, markersize=5)
        axes.set_yticks(range(len(rows)), [printable(row.captioner) for row in rows])
        axes.invert_yaxis()
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(_unit(rows[0]))
        return _svg(figure, title)


def quadrants(pairs: Sequence[tuple[Row, Row]], title: str) -> str:
    """A->T against T->A, a cross of two intervals for each captioner.

    Args:
        pairs: the two headlines of each captioner.
        title: read aloud for those who cannot see it.

    Returns:
        An SVG element.
    """
    return scatter(pairs, title, ("attribute to task", "task to attribute"))


def scatter(pairs: Sequence[tuple[Row, Row]], title: str, names: tuple[str, str]) -> str:
    """Two numbers of each captioner as a cross of their intervals.

    Args:
        pairs: what is across and what is up.
        title: read aloud for those who cannot see it.
        names: of the axes.

    Returns:
        An SVG element.
    """
    with _figure(6.4, 4.4) as figure:
        axes = figure.subplots()
        axes.axvline(0, color=_FAINT, linewidth=1)
        axes.axhline(0, color=_FAINT, linewidth=1)
        for across, up in pairs:
            x, y = _scale(across) * across.value, _scale(up) * up.value
            axes.plot(x, y, "o", color=_MARK, markersize=5)
            axes.plot(_ends(across), (y, y), color=_MARK, linewidth=1)
            axes.plot((x, x), _ends(up), color=_MARK, linewidth=1)
            axes.annotate(
                printable(across.captioner), (x, y), xytext=(5, 5), textcoords="offset points"
            )
        axes.set_xlabel(printable(f"{names[0]}, {_unit(pairs[0][0])}"))
        axes.set_ylabel(printable(f"{names[1]}, {_unit(pairs[0][1])}"))
        return _svg(figure, title)


def _scale(row: Row) -> float:
    return 100.0 if row.unit == "fraction" else 1.0


def _unit(row: Row) -> str:
    return "per cent" if row.unit == "fraction" else row.unit


def _ends(row: Row) -> tuple[float, float]:
    return _scale(row) * row.ci_low, _scale(row) * row.ci_high


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    """A figure of our style, in inches; no window and no global state."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.patch.set_alpha(0)
        yield figure


def _svg(figure: Figure, title: str) -> str:
    from markupsafe import escape

    for axes in figure.axes:
        axes.patch.set_alpha(0)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    element = text.getvalue()
    element = element[element.index("<svg") :]
    for colour, variable in _VARIABLES.items():
        element = element.replace(colour, variable)
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'<g id="[^"]*"', "<g", element)  # a page holds many figures
    label = f'<svg role="img" aria-label="{escape(printable(title))}"'
    return element.replace("<svg", label, 1)
