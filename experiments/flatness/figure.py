"""The study's figure: captioners without bias on a line, under LIC and at equal style."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.study import pyplot, save_figure

UNBIASED = {
    "people": ("whole", "half", "first five words", "400 words", "two joined", "synonyms"),
    "scenes": ("faithful", "terse", "small vocabulary", "short", "talkative", "quiet",
               "neutral_speaker", "misgenders 40 %"),
}  # fmt: skip
LINES = {"lic": "LIC", "lic, equal style": "at equal style"}
COLOURS = {"lic": "#b35806", "lic, equal style": "#2166ac"}


def write_figure(rows: pd.DataFrame, path: Path) -> None:
    """A dot and its interval for each captioner without bias, for LIC and at equal style."""
    chosen = rows[(rows["part"] == "score") & (rows["planted"] == 0)]
    speakers = [(world, name) for world, names in UNBIASED.items() for name in names]
    plt = pyplot("flatness")
    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for place, (world, name) in enumerate(speakers):
        of_speaker = chosen[(chosen["world"] == world) & (chosen["speaker"] == name)]
        for shift, metric in ((-0.14, "lic"), (0.14, "lic, equal style")):
            for row in of_speaker[of_speaker["metric"] == metric].itertuples():
                axes.errorbar(
                    100 * row.value,
                    place + shift,
                    xerr=100 * row.half_width,
                    fmt="o",
                    markersize=4,
                    color=COLOURS[metric],
                    label=LINES[metric] if place == 0 else None,
                )
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_yticks(range(len(speakers)), [f"{world}: {name}" for world, name in speakers])
    axes.invert_yaxis()
    axes.set_xlabel("points; 0: no more than people. None of these speakers has a bias")
    axes.legend(frameon=False)
    save_figure(figure, path)
