"""The figures of the study, from its rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.metric_comparison.tables import matrix
from experiments.study import pyplot, save_figure

LABELS = {
    "counting": ("captioners, labels are objects in the image", "o", "#1f5fa8"),
    "ba union": ("captioners, labels are what five people name", "s", "#2f8f5b"),
    "ba each": ("captioners, labels are each person's caption", "^", "#7a4fa3"),
    "people": ("people's first 1 to 5 captions, objects", "D", "#c8590b"),
}


def mentions_figure(rows: pd.DataFrame, path: Path) -> None:
    """BA-> A→T by how many of the labels' objects captions name."""
    plt = pyplot("metric_comparison")
    fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for study, (name, marker, colour) in LABELS.items():
        selected = rows[(rows["study"] == study) & (rows["metric"] == "ba_directional")]
        parts = selected.pivot_table(index="captioner", columns="part", values="value")
        ends = selected[selected["part"] == "a_to_t"].set_index("captioner").loc[parts.index]
        mention_ratio = parts["mentions:model"] / parts["mentions:human"]
        value = 100 * parts["a_to_t"]
        error = [value - 100 * ends["ci_low"], 100 * ends["ci_high"] - value]
        joined = "-" if study == "people" else ""
        ax.errorbar(
            mention_ratio, value, yerr=error, marker=marker, linestyle=joined, color=colour,
            markersize=5, linewidth=1, capsize=2, label=name,
        )  # fmt: skip
    ax.axhline(0, color="0.5", linewidth=1)
    ax.axvline(1, color="0.85", linewidth=1, zorder=0)
    ax.set_xlabel("objects named in a description, for one in the labels")
    ax.set_ylabel("BA→ A→T, per cent, 95 % interval")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    save_figure(fig, path)


def agreement_figure(rows: pd.DataFrame, path: Path) -> None:
    """Kendall's tau of all metrics as a map."""
    plt = pyplot("metric_comparison")
    table = matrix(rows)
    fig, ax = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
    shown = ax.imshow(table.to_numpy(), cmap="RdBu", vmin=-1, vmax=1)
    ax.set_xticks(range(len(table)), table.columns, rotation=60, ha="right", fontsize=8)
    ax.set_yticks(range(len(table)), table.index, fontsize=8)
    for i in range(len(table)):
        for j in range(len(table)):
            value = table.to_numpy()[i, j]
            colour = "white" if abs(value) > 0.6 else "black"
            ax.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize=7, color=colour)
    fig.colorbar(shown, label="Kendall's tau-b")
    save_figure(fig, path)
