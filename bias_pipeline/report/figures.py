"""Draws figures of results, as inline SVG in the page's colours, and as SVG and PNG files.

Matplotlib draws all figures. Vega would draw figures that zoom. But outside of a browser it cannot
place names next to points: the names would cover the points and each other.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.io.terminal import printable
from bias_pipeline.report.table import NumberCell, without_places
from bias_pipeline.results.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

MARKER = 5.0  # half of a marker's box; all lengths here are in pixels
GAP = 6.0
FAR = 16.0  # names farther away get a line to their point
_REACHES = (GAP, 14.0, 24.0, 38.0, 56.0, 80.0)
_SIDES = [side for side in product((1, -1, 0), (1, -1, 0)) if any(side)]  # right above comes first
_LINE_WEIGHT = 0.2  # crossing an interval is better than hiding another name


def spread(
    points: Float64Array, sizes: Float64Array, area: Float64Array, lines: Float64Array
) -> Float64Array:
    """(N, 2) lower left corners of the points' names; each name is where it hides least.

    ``points`` is (N, 2), and ``sizes`` (N, 2) are widths and heights of names. ``lines`` (L, 4) are
    boxes of lines that names should not cross, in the order of points.

    Example:
        >>> spread(np.array([[10.0, 10]]), np.array([[20.0, 8]]), np.array([0.0, 0, 99, 99]),
        ...        np.empty((0, 4))).tolist()
        [[16.0, 16.0]]
    """
    markers = np.hstack([points - MARKER, points + MARKER])
    corners = np.zeros_like(points)
    taken = markers
    for i in np.argsort(points[:, 0], kind="stable"):
        offered = _offers(points[i], sizes[i])  # (M, 4)
        hidden = _overlap(offered, taken).sum(axis=1)
        crossed = _LINE_WEIGHT * _overlap(offered, lines).sum(axis=1)
        lost = sizes[i].prod() - _overlap(offered, area[None]).sum(axis=1)
        best = offered[np.argmin(hidden + crossed + 2 * lost)]  # the nearest of equal offers
        corners[i] = best[:2]
        taken = np.vstack([taken, best])
    return corners


def _offers(point: Float64Array, size: Float64Array) -> Float64Array:
    """(M, 4) boxes around a point, with the nearest first."""
    sides = np.array(_SIDES, np.float64)
    lower_left = [
        point + reach * sides - (1 - sides) / 2 * size  # at -1 the whole size, at 0 half of it
        for reach in _REACHES
    ]
    corners = np.vstack(lower_left)
    return np.hstack([corners, corners + size])


def _overlap(one: Float64Array, other: Float64Array) -> Float64Array:
    """(M, L) areas that boxes (M, 4) and boxes (L, 4) share."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    return np.maximum(high - low, 0).prod(axis=2)


def name_points(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    lines: Sequence[tuple[tuple[float, float], tuple[float, float]]],
    faint: str,
) -> list[Annotation]:
    """Write names next to the points of a plot whose limits are final."""
    figure = axes.figure
    known = [i for i, point in enumerate(points) if np.isfinite(point).all()]
    drawn = [axes.annotate(names[i], points[i], (0, 0), textcoords="offset points") for i in known]
    if not drawn:
        return []
    figure.draw_without_rendering()  # type: ignore[union-attr]  # the layout is settled by it
    boxes = [annotation.get_window_extent() for annotation in drawn]
    at = axes.transData.transform([points[i] for i in known])
    finite = [ends for ends in lines if np.isfinite(ends).all()]
    ends = axes.transData.transform(np.reshape(finite, (-1, 2))).reshape(-1, 4)
    low, high = np.minimum(ends[:, :2], ends[:, 2:]), np.maximum(ends[:, :2], ends[:, 2:])
    area = np.array(axes.get_window_extent().extents)
    sizes = np.array([[box.width, box.height] for box in boxes])
    corners = spread(at, sizes, area, np.hstack([low - 1, high + 1]))
    scale = 72 / figure.dpi
    for i, annotation, corner, point, size in zip(known, drawn, corners, at, sizes, strict=True):
        annotation.set_gid(mark_id(i))
        annotation.xyann = tuple((corner - point) * scale)
        nearest = np.clip(point, corner, corner + size)
        if np.linalg.norm(nearest - point) > FAR:
            connector = axes.transData.inverted().transform([point, nearest])
            axes.plot(*connector.T, color=faint, linewidth=0.7, scalex=False, scaley=False,
                      gid=mark_id(i))  # fmt: skip
    return drawn


PNG_DPI = 200
_NAMES_ABREAST = 4  # most groups whose names stand abreast above bars


@dataclass(frozen=True)
class Colours:
    """The colours in which a figure is drawn."""

    ink: str  # of text
    faint: str  # the colour of axes and reference lines
    mark: str  # the colour of the data


# Placeholders, which a page replaces by its own colours.
_PAGE = Colours("#010203", "#020304", "#030405")
_VARIABLES = {"ink": "var(--ink)", "faint": "var(--faint)", "mark": "var(--mark)"}
PRINT = Colours("#1a1a1a", "#767676", "#0b57a4")


@dataclass(frozen=True)
class Plot:
    """A figure that is not drawn yet."""

    title: str  # also read aloud by screen readers
    size: tuple[float, float]  # width and height in inches
    draw: Callable[[Axes, Colours], None]  # draws the figure on axes in given colours
    # Captioners whose marks a page can leave out, each with its numbers. The marks of the captioner
    # at place k have the id `mark_id(k)`
    marks: Sequence[tuple[str, str]] = ()

    def inline(self) -> str:
        """An SVG element in the page's colours; pointing at a captioner shows its numbers."""
        from markupsafe import escape

        element = self._svg(_PAGE)
        for name, variable in _VARIABLES.items():
            element = element.replace(getattr(_PAGE, name), variable)
        for place, (captioner, numbers) in enumerate(self.marks):
            name = escape(without_places(printable(captioner)))
            title = f"<title>{name}: {escape(numbers)}</title>"
            marks = f'<g id="{mark_id(place)}">'
            element = element.replace(marks, f'<g data-captioner="{name}">{title}')
        return _without_ids(element)

    def svg(self) -> str:
        element = _without_ids(self._svg(PRINT))
        return f'<?xml version="1.0" encoding="utf-8"?>\n{element}'

    def png(self) -> bytes:
        """A PNG file, dark on white; the same numbers give the same bytes."""
        with self._draw(PRINT) as figure:
            figure.patch.set(alpha=1, facecolor="white")
            content = io.BytesIO()
            figure.savefig(content, format="png", dpi=PNG_DPI, metadata={"Software": None})
        return content.getvalue()

    def _svg(self, colours: Colours) -> str:
        from markupsafe import escape
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        with self._draw(colours) as figure:
            text = io.StringIO()
            canvas = FigureCanvasSVG(figure)  # savefig draws twice, first to find the margins
            canvas.print_svg(text, metadata={"Date": None})  # type: ignore[no-untyped-call]
        element = text.getvalue()
        element = element[element.index("<svg") :]
        element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
        label = f'<svg role="img" aria-label="{escape(printable(self.title))}"'
        return element.replace("<svg", label, 1)

    @contextmanager
    def _draw(self, colours: Colours) -> Iterator[Figure]:
        """The drawn figure in our style, made without a window or global state."""
        import matplotlib as mpl
        from matplotlib.figure import Figure

        with mpl.rc_context(_style(colours)):
            figure = Figure(figsize=self.size, layout="constrained")
            figure.patch.set_alpha(0)
            axes = figure.subplots()
            axes.patch.set_alpha(0)
            self.draw(axes, colours)
            yield figure


def mark_id(place: int) -> str:
    """The id of the marks that belong to the captioner with this number."""
    return f"captioner-{place}"


def _without_ids(element: str) -> str:
    """An SVG element whose groups have no ids, since a page has many figures."""
    return re.sub(r'<g id="[^"]*"', "<g", element)


def _style(colours: Colours) -> Any:  # rc_context's keys are literals
    return {
        "text.color": colours.ink,
        "axes.labelcolor": colours.ink,
        "axes.edgecolor": colours.faint,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": colours.ink,
        "ytick.color": colours.ink,
        "font.size": 10,
        "font.sans-serif": ["DejaVu Sans"],
        "text.parse_math": False,  # a name is text, not a formula
        "svg.fonttype": "none",
        "svg.hashsalt": "bias_pipeline",
    }


def forest(rows: Sequence[Row], neutral: float, title: str) -> Plot:
    """A figure of values with their intervals, with a line for each captioner."""

    def draw(axes: Axes, colours: Colours) -> None:
        axes.axvline(scale(rows[0]) * neutral, color=colours.faint, linewidth=1)
        for place, row in enumerate(rows):
            color, gid = colours.mark, mark_id(place)
            if not math.isnan(row.ci_low):
                axes.plot(ends(row), (place, place), color=color, linewidth=2, gid=gid)
            axes.plot(scale(row) * row.value, place, "o", color=color, markersize=5, gid=gid)
        axes.set_yticks(range(len(rows)), [printable(row.captioner) for row in rows])
        for place, name in enumerate(axes.get_yticklabels()):
            name.set_gid(mark_id(place))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(_unit(rows[0]))

    marks = [(row.captioner, NumberCell.of_row(row).text) for row in rows]
    return Plot(title, (6.4, 0.9 + 0.3 * len(rows)), draw, marks)


def scatter(
    pairs: Sequence[tuple[Row, Row]],
    title: str,
    names: tuple[str, str],
    neutral: tuple[float, float] = (0.0, 0.0),
) -> Plot:
    """A figure of two numbers for each captioner, where a cross shows the intervals of both."""
    lines = tuple(scale(row) * value for row, value in zip(pairs[0], neutral, strict=True))
    labels = tuple(f"{name}, {_unit(row)}" for name, row in zip(names, pairs[0], strict=True))

    def draw(axes: Axes, colours: Colours) -> None:
        axes.axvline(lines[0], color=colours.faint, linewidth=1)
        axes.axhline(lines[1], color=colours.faint, linewidth=1)
        for place, (across, up) in enumerate(pairs):
            x, y = scale(across) * across.value, scale(up) * up.value
            if not (math.isfinite(x) and math.isfinite(y)):
                continue
            color, gid = colours.mark, mark_id(place)
            axes.plot(x, y, "o", color=color, markersize=5, gid=gid)
            axes.plot(ends(across), (y, y), color=color, linewidth=1, gid=gid)
            axes.plot((x, x), ends(up), color=color, linewidth=1, gid=gid)
        axes.set_xlabel(printable(labels[0]))
        axes.set_ylabel(printable(labels[1]))
        points = [(scale(a) * a.value, scale(b) * b.value) for a, b in pairs]
        crosses = [
            line
            for (x, y), (a, b) in zip(points, pairs, strict=True)
            for line in (((ends(a)[0], y), (ends(a)[1], y)), ((x, ends(b)[0]), (x, ends(b)[1])))
        ]
        captioners = [printable(across.captioner) for across, _ in pairs]
        name_points(axes, points, captioners, crosses, colours.faint)

    marks = [
        (
            a.captioner,
            f"{labels[0]} {NumberCell.of_row(a).text}; {labels[1]} {NumberCell.of_row(b).text}",
        )
        for a, b in pairs
    ]
    return Plot(title, (6.4, 4.4), draw, marks)


@dataclass(frozen=True)
class FigureBar:
    name: str  # beside it
    shares: Sequence[float]  # (K,) shares, whose sum is 1


def bars(
    stacked: Sequence[FigureBar], groups: Sequence[str], title: str, gap: int | None = None
) -> Plot:
    """A figure of groups' shares, in which each line has a bar with a shade for each group."""
    strengths = [1 - 0.8 * k / max(len(groups) - 1, 1) for k in range(len(groups))]
    places = [
        place + (0.6 if gap is not None and place >= gap else 0) for place in range(len(stacked))
    ]

    def draw(axes: Axes, colours: Colours) -> None:
        left = [0.0] * len(stacked)
        for group, strength in enumerate(strengths):
            wide = [100 * bar.shares[group] for bar in stacked]
            axes.barh(
                places, wide, 0.75, left, color=colours.mark, alpha=strength, label=groups[group]
            )
            left = [a + b for a, b in zip(left, wide, strict=True)]
        axes.set_yticks(places, [printable(bar.name) for bar in stacked])
        axes.set_ylim(places[-1] + 0.6, -0.6)
        axes.set_xlim(0, 100)
        axes.set_xlabel("per cent of what is retrieved")
        columns = min(len(groups), _NAMES_ABREAST)
        axes.figure.legend(loc="outside upper center", ncols=columns, frameon=False)

    legend = 0.2 * math.ceil(len(groups) / _NAMES_ABREAST)
    return Plot(title, (6.4, 1.0 + legend + 0.24 * len(stacked)), draw)


@dataclass(frozen=True)
class PairedBar:
    """The captioner's share in each of K groups, with the annotators' shares."""

    name: str  # beside them
    shares: Sequence[float]  # (K,) in [0, 1]
    people: Sequence[float]  # (K,) annotators' shares, in [0, 1]; NaN if unknown


def paired_bars(pairs: Sequence[PairedBar], groups: Sequence[str], title: str) -> Plot:
    """A figure with a bar for each group, in its shade, above the narrow bar of annotators."""
    strengths = [1 - 0.65 * k / max(len(groups) - 1, 1) for k in range(len(groups))]
    high = 0.8 / len(groups)

    def draw(axes: Axes, colours: Colours) -> None:
        for k, (group, strength) in enumerate(zip(groups, strengths, strict=True)):
            tops = [place - 0.4 + k * high for place in range(len(pairs))]
            wide = [100 * pair.shares[k] for pair in pairs]
            people = [100 * pair.people[k] for pair in pairs]
            axes.barh([top + 0.3 * high for top in tops], wide, 0.5 * high, label=group,
                      color=colours.mark, alpha=strength)  # fmt: skip
            bars = axes.barh(
                [top + 0.65 * high for top in tops], people, 0.2 * high, color=colours.faint
            )
            if k == 0 and not all(map(math.isnan, people)):
                bars.set_label("annotators")
        axes.set_yticks(range(len(pairs)), [printable(pair.name) for pair in pairs])
        axes.set_ylim(len(pairs) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.set_xlabel("per cent of captions")
        columns = min(len(groups) + 1, _NAMES_ABREAST)
        axes.figure.legend(loc="outside upper center", ncols=columns, frameon=False)

    return Plot(title, (6.4, 1.2 + (0.12 + 0.18 * len(groups)) * len(pairs)), draw)


def scale(row: Row) -> float:
    """The factor by which a row's numbers are drawn: 100 for fractions (per cent), otherwise 1."""
    return 100.0 if row.unit == "fraction" else 1.0


def _unit(row: Row) -> str:
    return "per cent" if row.unit == "fraction" else row.unit


def ends(row: Row) -> tuple[float, float]:
    return scale(row) * row.ci_low, scale(row) * row.ci_high


AXIS = tuple(np.linspace(0, 1, 101).tolist())  # of delta
_LINES = ("-", "--", ":", "-.")


def substitution_curves(curves: Mapping[str, Float64Array], enough: float) -> Plot:
    """A figure of the share of contextual substitutions at each delta, with a line per captioner.

    ``curves`` has (101,) shares of a captioner at each delta in ``AXIS``, in [0, 1].
    """

    def draw(axes: Axes, colours: Colours) -> None:
        axes.axhline(100 * enough, color=colours.faint, linewidth=1)
        for (captioner, shares), line in zip(curves.items(), cycle(_LINES), strict=False):
            axes.plot(AXIS, 100 * shares, line, linewidth=1.5, label=printable(captioner))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 100)
        axes.set_xlabel("delta, the largest cosine distance of a substitution")
        axes.set_ylabel("contextual substitutions, per cent of all")
        axes.legend(frameon=False, loc="lower right")

    return Plot("Contextual substitutions by delta", (6.4, 4.4), draw)
