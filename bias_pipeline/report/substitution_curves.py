"""Figure 1 of DBAC's appendix A, for any captioners."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.io.terminal import printable
from bias_pipeline.report.figures import Colours, Plot, Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXIS = tuple(np.linspace(0, 1, 101).tolist())  # of delta
_LINES = ("-", "--", ":", "-.")


def substitution_curves(curves: Mapping[str, Float64Array], enough: float) -> Plot:
    """The share of contextual substitutions at each delta, a line for each captioner.

    Args:
        curves: captioner to the (101,) shares at each delta of ``AXIS``, in [0, 1].
        enough: the share at which a line is drawn.
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

    return Plot("Contextual substitutions by delta", (6.4, 4.4), draw, Points((), (), ()))
