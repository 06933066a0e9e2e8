"""The figures of the study, from its rows."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from experiments.leaderboard.tables import ATTRIBUTES, HEADLINES, standing
from experiments.study import pyplot, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"↑": "#b5430b", "↓": "#1f5fa8", "≈": "#5f6670", "": "#5f6670"}
PANEL = (4.6, 1.75)  # width and height of a panel in inches


def ranking_figure(
    rows: pd.DataFrame, refused: pd.DataFrame, headlines: Mapping[str, object], path: Path
) -> None:
    """A panel for each headline and attribute: captioners in order, with intervals and groups."""
    plt = pyplot("leaderboard")
    size = (PANEL[0] * len(ATTRIBUTES), PANEL[1] * len(headlines))
    fig, axes = plt.subplots(len(headlines), len(ATTRIBUTES), figsize=size, layout="constrained")
    for line, headline in zip(axes, headlines, strict=True):
        for ax, attribute in zip(line, ATTRIBUTES, strict=True):
            ranking = standing(rows, attribute, headline)
            lacking = rows["captioner"].nunique() - len(ranking)
            note = f" ({lacking} not applicable)" if lacking and len(ranking) else ""
            ax.set_title(f"{headline}, {attribute}{note}", fontsize=9, loc="left")
            if len(ranking):
                _panel(ax, ranking)
            else:
                _write_reason(ax, _reason(refused, attribute, headline))
    save_figure(fig, path)


def _panel(ax: Axes, ranking: pd.DataFrame) -> None:
    """Captioners of one headline, the fairest on top."""
    fraction = ranking["unit"].iloc[0] == "fraction"
    value, low, high = (
        (100 if fraction else 1) * ranking[c] for c in ("value", "ci_low", "ci_high")
    )
    for place, name in enumerate(ranking.index):
        colour = COLOURS[ranking.loc[name, "sign"]]
        ax.plot((low[name], high[name]), (place, place), color=colour, linewidth=2)
        ax.plot(value[name], place, "o", color=colour, markersize=4.5)
        ax.annotate(
            ranking.loc[name, "letters"], (1.01, place), xycoords=("axes fraction", "data"),
            va="center", fontsize=7, annotation_clip=False,
        )  # fmt: skip
    ax.axvline(0, color="0.6", linewidth=1, zorder=0)
    ax.set_yticks(range(len(ranking)), ranking.index, fontsize=7)
    ax.set_ylim(len(ranking) - 0.5, -0.5)
    ax.tick_params(axis="x", labelsize=7)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("per cent" if fraction else str(ranking["unit"].iloc[0]), fontsize=7)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _write_reason(ax: Axes, reason: str) -> None:
    text = "\n".join(["not applicable:", *textwrap.wrap(reason, 50)])
    ax.text(0.02, 0.5, text, transform=ax.transAxes, va="center", fontsize=8, color="0.35")
    ax.set_axis_off()


def _reason(refused: pd.DataFrame, attribute: str, headline: str) -> str:
    metric, _ = HEADLINES[headline]
    selected = refused[(refused["attribute"] == attribute) & (refused["metric"] == metric)]
    first, *others = selected["reason"].unique()
    return f"{first} ({len(others)} more captioners alike)" if others else str(first)
