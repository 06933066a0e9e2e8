"""What debiasing gives against what it costs, a line a method, and who is bettered by none."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.study import pyplot, save_figure

GAIN, PRICE = "score", "recall:image@10"


def tradeoffs(rows: pd.DataFrame) -> pd.DataFrame:
    """Fairness and recall of every method and size, per cent.

    Returns:
        Columns ``debias``, ``k`` (0 where sizes play no part), :data:`GAIN`, :data:`PRICE` and
        ``pareto``: whether no other has more of both.
    """
    item = rows[rows["study"].isin(["size", "none"]) & rows["part"].isin([GAIN, PRICE])]
    percent = item.assign(k=item["debias.k"].fillna(0).astype(int), value=100 * item["value"])
    table = percent.pivot(index=["debias", "k"], columns="part", values="value").reset_index()
    better = [
        ((table[GAIN] > line[GAIN]) & (table[PRICE] > line[PRICE])).any()
        for _, line in table.iterrows()
    ]
    return table.assign(pareto=[not item for item in better])


def tradeoff_figure(rows: pd.DataFrame, path: Path) -> None:
    """Recall by fairness; filled: no other has more of both."""
    plt = pyplot("vl_bias")
    fig, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for name, points in tradeoffs(rows).groupby("debias", sort=False):
        (line,) = axes.plot(points[GAIN], points[PRICE], "-", lw=1, label=name)
        faces = [line.get_color() if best else "white" for best in points["pareto"]]
        axes.scatter(points[GAIN], points[PRICE], c=faces, edgecolors=line.get_color(), zorder=3)
        for k, x, y in zip(points["k"], points[GAIN], points[PRICE], strict=True):
            axes.annotate(str(k) if k else "", (x, y), (4, 3), textcoords="offset points", size=7)
    axes.set_xlabel("retrieval fairness (%), a fair ranker has 95.8")
    axes.set_ylabel("image recall at 10 (%), chance 1.0")
    axes.legend(frameon=False, fontsize=8)
    save_figure(fig, path)
