"""The scripts of an interactive page: figures by altair, all JavaScript inside the page.

The page's security policy permits exactly these scripts, by their hash. Expressions of figures are
interpreted, so it needs no ``unsafe-eval``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from bias_pipeline.io.terminal import printable
from bias_pipeline.report.figures import Plot, Points, ends, scale
from bias_pipeline.report.table import NumberCell

log = logging.getLogger(__name__)

# Figures take their colours from the page, so they follow its dark mode.
_INK, _FAINT, _MARK = "var(--ink)", "var(--faint)", "var(--mark)"
_HEIGHT = 400  # of a plane of two axes, in CSS pixels as all lengths here
_LINE = 24  # the height of a captioner's line in a figure with one axis
_ROOM = 20  # around the outermost intervals, for names


@dataclass(frozen=True)
class Script:
    """JavaScript within a page."""

    text: str  # without a closing tag

    @property
    def source(self) -> str:
        """Its hash, as a content security policy writes it.

        Example:
            >>> Script("").source
            "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
        """
        digest = hashlib.sha256(self.text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"


def scripts(plots: Sequence[Plot]) -> list[Script]:
    """The scripts of a page with some figures; none, with a notice, where altair is missing."""
    try:
        import altair  # noqa: F401 - checked before anything is written

        library = [_library()] if plots else []
    except ImportError as error:
        log.warning(
            "the report has no filters, and its figures are not interactive: %s; "
            "pip install 'bias_pipeline[report]'",
            error,
        )
        return []
    page_script = files("bias_pipeline.report").joinpath("page.js").read_text(encoding="utf-8")
    return [*library, Script(page_script)]


@cache
def _library() -> Script:
    """Vega-Embed with Vega, Vega-Lite and the interpreter of expressions, in ASCII."""
    import vl_convert

    text = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    plain = re.sub(r"[^\x00-\x7f]", lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return Script(re.sub("</(script)", r"<\\/\1", plain, flags=re.IGNORECASE))


def data(plots: Sequence[Plot]) -> str:
    """Vega-Lite's description of every figure, as JSON that no element can break out of."""
    return inert([spec(plot) for plot in plots])


def inert(content: object) -> str:
    r"""JSON for the inside of a page, with no character that has a meaning in HTML.

    Example:
        >>> inert("</script>")
        '"\\u003c/script\\u003e"'
    """
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", text)


def spec(plot: Plot) -> dict[str, Any]:
    """A figure as Vega-Lite: its marks have tooltips, names next to points."""
    import altair as alt

    points = plot.points
    drawn = _plane(points) if len(points.names) > 1 else _lines(points)
    chart = drawn.properties(
        data=alt.InlineData(values=_values(points), name="points"),
        description=printable(plot.title),  # read aloud
        width="container",
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    ).configure(
        background="transparent",
        font="system-ui, sans-serif",
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            domainColor=_FAINT,
            tickColor=_FAINT,
            grid=False,
            labelColor=_INK,
            titleColor=_INK,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelLimit=140,
            labelFlush=False,
            tickCount=8,
        ),
    )
    description: dict[str, Any] = chart.to_dict(validate=False)
    del description["$schema"]  # an address; the page loads nothing
    return description


def _values(points: Points) -> list[dict[str, Any]]:
    """For every captioner its values, the ends of its intervals, and the numbers as text."""
    values = []
    for rows in points.rows:
        value: dict[str, Any] = {"captioner": printable(rows[0].captioner)}
        for axis, row in zip("xy", rows, strict=False):
            low, high = ends(row)
            value |= {
                axis: _finite(scale(row) * row.value),
                f"{axis}_low": _finite(low),
                f"{axis}_high": _finite(high),
                f"{axis}_text": NumberCell.of(row).text,
            }
        values.append(value)
    return values


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _lines(points: Points) -> Any:
    """One line for each captioner, in the given order."""
    import altair as alt

    values = alt.X("x:Q", title=printable(points.names[0]), scale=alt.Scale(zero=False))
    names = alt.Y("captioner:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False))
    tooltip = _tooltip(points)
    return alt.layer(
        _neutral("x", points.neutral[0]),
        alt.Chart()
        .transform_filter("isValid(datum.x_low)")
        .mark_rule(color=_MARK, strokeWidth=2)
        .encode(x="x_low:Q", x2="x_high", y=names, tooltip=tooltip),
        alt.Chart()
        .mark_point(color=_MARK, filled=True, size=70, opacity=1)
        .encode(x=values, y=names, tooltip=tooltip),
    ).properties(height=_LINE * len(points.rows))


def _plane(points: Points) -> Any:
    """A cross of two intervals for each captioner, to be moved and magnified."""
    import altair as alt

    zoom = alt.selection_interval(
        name="zoom",
        bind="scales",
        # Without Ctrl the wheel scrolls the page, and so does a finger.
        zoom="wheel![event.ctrlKey]",
        translate="[pointerdown[event.pointerType === 'mouse'], window:pointerup] "
        "> window:pointermove!",
    )
    tooltip = _tooltip(points)
    room = alt.Scale(zero=False, padding=_ROOM)
    x = alt.X("x:Q", title=printable(points.names[0]), scale=room)
    y = alt.Y("y:Q", title=printable(points.names[1]), scale=room)
    crosses = [
        alt.Chart(name=f"interval_{axis}")
        .transform_filter(f"isValid(datum.{axis}_low)")
        .mark_rule(color=_MARK, clip=True)
        .encode(**encoded, tooltip=tooltip)
        for axis, encoded in (
            ("x", {"x": "x_low:Q", "x2": "x_high", "y": y}),
            ("y", {"x": x, "y": "y_low:Q", "y2": "y_high"}),
        )
    ]
    dots = alt.Chart(name="dots").mark_point(
        color=_MARK, filled=True, size=70, opacity=1, clip=True
    )
    names = alt.Chart(name="names").mark_text(color=_INK, fontSize=12)
    return alt.layer(
        _neutral("x", points.neutral[0]),
        _neutral("y", points.neutral[1]),
        *crosses,
        dots.encode(x=x, y=y, tooltip=tooltip).add_params(zoom),
        names.encode(x=x, y=y, text="captioner:N"),
    ).properties(height=_HEIGHT)


def _neutral(axis: str, value: float) -> Any:
    """The line of no bias."""
    import altair as alt

    line = alt.Chart(alt.InlineData(values=[{"at": value}])).mark_rule(color=_FAINT, clip=True)
    return line.encode(**{axis: "at:Q"})


def _tooltip(points: Points) -> list[Any]:
    """The tooltip of a mark: the captioner and its numbers."""
    import altair as alt

    fields = [
        alt.Tooltip(f"{axis}_text:N", title=printable(name))
        for axis, name in zip("xy", points.names, strict=False)
    ]
    return [alt.Tooltip("captioner:N"), *fields]
