"""Do scores move when pictures change where no group of people shows?

Usage: python -m experiments.feature_sensitivity.study [--out DIR [--model FOLDER]]

With --out the data set of `python -m experiments.chain --out DIR` is captioned by --model (its SAT,
DIR/model) as it is, with backgrounds slightly blurred, and with one object in ten hidden, and every
metric scores the captions (rows.csv, and bias_pipeline/studies/features.csv for the metrics'
cards). Always, page and figure are made from these rows.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pandas as pd

from bias_pipeline.studies.feature_sensitivity import CHANGES, TITLES
from experiments.chain.study import bias_pipeline
from experiments.study import cell, markdown, pyplot, read_rows, save_figure, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE, FIGURE = HERE / "rows.csv", HERE / "RESULTS.md", HERE / "shifts.svg"
SHIPPED = HERE.parents[1] / "bias_pipeline" / "studies" / "features.csv"
COLOURS = {"background": "#1f6f8b", "objects": "#c2571a"}


def measure(folder: Path, model: Path) -> None:
    """Measure, and commit the rows."""
    out, notes = folder / "features", folder / "annotations"
    data = {
        "attributes": folder / "attributes.csv",
        "captions": notes / "captions.json",
        "instances": notes / "instances.json",
    }
    bias_pipeline(
        "analysis", "feature_sensitivity", str(folder / "images"), "--model", str(model),
        "--regions", str(data["instances"]), "--out", str(out),
        *(f"dataset.{key}={path}" for key, path in data.items()), f"paths.cache={folder / 'cache'}",
    )  # fmt: skip
    rows = read_rows(out / "feature_sensitivity.csv")
    rows["alignment"] = rows["alignment"].fillna("")
    rows.to_csv(ROWS, index=False, float_format="%.6g")
    shutil.copyfile(ROWS, SHIPPED)


def numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each number: its score, both shifts, and the larger one beside the interval."""
    lines = []
    for (metric, alignment, part), both in rows.groupby(
        ["metric", "alignment", "part"], sort=False
    ):
        shifts = both.set_index("change")
        first = both.iloc[0]
        after = both["score"] + both["shift"]
        steady = ((both["ci_low"] <= after) & (after <= both["ci_high"])).all()
        half = (first["ci_high"] - first["ci_low"]) / 2
        lines.append(
            {
                "metric": metric,
                "alignment": alignment or "–",
                "number": part,
                "score": cell(first.rename({"score": "value"})),
                **{
                    TITLES[change]: cell(
                        pd.Series(
                            {
                                "value": shifts.loc[change, "shift"],
                                "ci_low": shifts.loc[change, "shift_low"],
                                "ci_high": shifts.loc[change, "shift_high"],
                                "unit": first["unit"],
                            }
                        )
                    )
                    for change in CHANGES
                },
                "shift / half interval": (both["shift"].abs() / half).max(),
                "shift / score, per cent": 100 * (both["shift"] / both["score"]).abs().max(),
                "stays within its interval": "steady" if steady else "not",
            }
        )
    return pd.DataFrame(lines).set_index("metric")


def draw(rows: pd.DataFrame) -> None:
    """Each shift with its interval, in half widths of the score's interval."""
    plt = pyplot("feature_sensitivity")
    keys = rows[["metric", "part", "alignment"]].replace({"alignment": {"constant": ""}})
    names = [" ".join(filter(None, key)) for key in keys.drop_duplicates().itertuples(index=False)]
    fig, ax = plt.subplots(figsize=(8, 0.28 * len(names) + 1.2), layout="constrained")
    half = (rows["ci_high"] - rows["ci_low"]) / 2
    for offset, change in zip((-0.15, 0.15), CHANGES, strict=True):
        selected = rows["change"] == change
        shown, scale = rows[selected], half[selected]
        value = shown["shift"] / scale
        spread = [
            (shown["shift"] - shown["shift_low"]).fillna(0) / scale,
            (shown["shift_high"] - shown["shift"]).fillna(0) / scale,
        ]
        places = [place + offset for place in range(len(shown))]
        ax.errorbar(
            value, places, xerr=spread, fmt="o", ms=4, color=COLOURS[change], label=TITLES[change]
        )
    ax.axvspan(-1, 1, color="grey", alpha=0.15)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel("shift / half of the score's 95 % interval")
    ax.legend(fontsize=8)
    save_figure(fig, FIGURE)


def main() -> None:
    """Measure what is named, and write the page and the figure."""
    parser = argparse.ArgumentParser("python -m experiments.feature_sensitivity.study")
    parser.add_argument("--out", type=Path, help="the folder that experiments.chain wrote")
    parser.add_argument("--model", type=Path, help="any captioner of caption (DIR/model)")
    options = parser.parse_args()
    if options.out:
        measure(options.out.absolute(), (options.model or options.out / "model").absolute())
    rows = read_rows(ROWS)
    rows["alignment"] = rows["alignment"].fillna("")
    title = "Scores and shifts, per cent where they are fractions, 95 % intervals"
    write_page(PAGE, "Results", __file__, {title: markdown(numbers(rows))})
    draw(rows)


if __name__ == "__main__":
    main()
