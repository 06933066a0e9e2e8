"""Does training amplify a planted bias, at which epoch, and what takes it away again?

Usage: python -m experiments.rebalance.study [--out DIR [--equalizer]]

With --out a SAT is fitted to captions with planted A→T (captioner `amplifier` of `scenes`), again
to the same captions drawn by the weights of `analysis rebalance`, with --equalizer once more with
its losses; all caption pictures that they have not seen, and every metric scores the captions
(rows.csv). Always, page and figure are made from these rows. What is there already is not done
again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from experiments.chain.study import caption, run_once
from experiments.study import cell, markdown, pyplot, read_rows, save_figure, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE, FIGURE = HERE / "rows.csv", HERE / "RESULTS.md", HERE / "epochs.svg"
SIDE = "64"  # pixels
SHOWN, CHECKED = "shown", "checked"  # what is scored, and what the weights are made from
SEEDS = {SHOWN: "0", CHECKED: "2000"}
LEARNT = (
    "dataset=scenes", "dataset.seed=1000", "dataset.n_images=10000", "captioner=amplifier",
    "--captions", "model",
)  # fmt: skip
TRAINING = ("encoder.dropout=0.1", f"encoder.side={SIDE}", "trainer.max_epochs=12", "--seed", "0")
EPOCHS = (1, 2, 3, 5, 8, 12)
LAST = "epoch_12"
COLUMNS = {
    "faithful": "a person",
    "amplifier": "planted captions",
    LAST: "SAT",
    "rebalanced": "SAT, rebalanced",
    "equalized": "SAT, Equalizer",
    "sampled": "SAT, words sampled",
    "rebalanced_sampled": "rebalanced, words sampled",
}
FITTED = ("amplifier", LAST, "rebalanced", "equalized")
FEW = "seeds=2"
SAMPLED = ("--temperature", "1", "--seed", "0")  # each word by its probability, not the likeliest
# Attribute, metric, alignment and part of each line of the tables, and its name.
LINES = {
    ("gender", "lic", "matched", "score"): "LIC at equal style",
    ("gender", "lic", "constant", "score"): "LIC",
    ("gender", "cooccurrence", "", "score"): "Cooccurrence",
    ("gender", "dbac", "matched", "a_to_t:shared"): "DBAC A→T at equal style, people's P",
    ("gender", "dbac", "matched", "t_to_a:shared"): "DBAC T→A at equal style, people's P",
    ("gender", "dbac", "constant", "a_to_t"): "DBAC A→T",
    ("gender", "dbac", "constant", "t_to_a"): "DBAC T→A",
    ("gender", "ba_directional", "", "a_to_t"): "BA→ A→T, labels=each",
    ("gender", "ba_directional", "", "t_to_a:named"): "BA→ T→A of captions that name a gender",
    ("gender", "gender_error", "", "named"): "Wrong gender, of captions that name one",
    ("gender", "gender_error", "", "score"): "Wrong gender, of all pictures",
    ("gender", "quality", "", "model"): "CIDEr-D",
    ("gender", "quality", "", "score"): "CIDEr-D minus people's",
    ("race", "lic", "matched", "score"): "Race: LIC at equal style",
    ("race", "cooccurrence", "", "score"): "Race: cooccurrence with labels",
}
DRAWN_LINES = (
    "LIC at equal style", "Cooccurrence", "BA→ A→T, labels=each",
    "BA→ T→A of captions that name a gender", "Wrong gender, of captions that name one", "CIDEr-D",
)  # fmt: skip
MARKS = {
    "rebalanced": ("s", "#2e7d32"), "equalized": ("^", "#6a1b9a"), "sampled": ("v", "#b8860b"),
}  # fmt: skip
PLANTED_LINES = (*DRAWN_LINES[:3], "DBAC A→T at equal style, people's P")


def write_captions(folder: Path, *, equalizer: bool) -> None:
    """Fit the captioners, with the Equalizer if wanted, and write their captions."""
    for name, seed in SEEDS.items():
        words = ("--n-images", "2000", "--seed", seed, "--side", SIDE)
        drawn = ("--out", str(folder / name), *words, "--captioner", "faithful", "amplifier")
        run_once(folder / name, "data", "draw", *drawn)
    planted = fit(folder, "planted", "--each-epoch")
    for epoch in EPOCHS:
        caption(folder / SHOWN, planted / "epochs" / f"{epoch:02d}", f"epoch_{epoch:02d}")
    caption(folder / SHOWN, planted, "sampled", *SAMPLED)
    caption(folder / CHECKED, planted, LAST)
    rebalanced = fit(folder, "rebalanced", "--weights", str(weights(folder)))
    caption(folder / SHOWN, rebalanced, "rebalanced")
    caption(folder / SHOWN, rebalanced, "rebalanced_sampled", *SAMPLED)
    if equalizer:
        caption(folder / SHOWN, fit(folder, "equalized", "--equalizer"), "equalized")


def fit(folder: Path, name: str, *options: str) -> Path:
    """Fit a SAT to the planted captions; its folder."""
    model, cache = folder / name, f"paths.cache={folder / 'cache'}"
    run_once(model, "fit", "sat", *LEARNT, *TRAINING, *options, "--out", str(model), cache)
    return model


def weights(folder: Path) -> Path:
    """The weights that the planted SAT's captions of the checked pictures give."""
    file, runs = folder / "weights.parquet", folder / "checked_runs"
    cache = f"paths.cache={folder / 'cache'}"
    scored = (f"dataset.root={folder / CHECKED}", f"captioner={LAST}", f"paths.outputs={runs}")
    run_once(runs, "experiment=chain", "metric=cooccurrence", *scored, cache)
    (run,) = runs.glob("cooccurrence-*")
    run_once(file, "analysis", "rebalance", str(run), *LEARNT, "--out", str(file), cache)
    return file


def scores(folder: Path) -> pd.DataFrame:
    """Rows of every metric for every captioner."""
    outputs = folder / "runs"
    written = {path.stem for path in (folder / SHOWN / "captioners").glob("*.json")}
    columns, trained = ([name for name in names if name in written] for names in (COLUMNS, FITTED))
    everyone = dict.fromkeys([*columns, *(f"epoch_{epoch:02d}" for epoch in EPOCHS)])
    chain = (
        "experiment=chain", f"dataset.root={folder / SHOWN}", "logger=csv",
        f"paths.cache={folder / 'cache'}",
    )  # fmt: skip
    named, last, fitted = (f"captioner={','.join(names)}" for names in (everyone, columns, trained))
    race = (*chain, last, "attribute=race")
    both, counting = "alignment=constant,matched", "metric=cooccurrence,gender_error,quality"
    frames = [
        sweep("lic", outputs, *chain, named, "metric=lic", both, FEW),
        sweep("dbac", outputs, *chain, fitted, "metric=dbac", both, FEW),
        sweep("counts", outputs, *chain, named, counting),
        sweep("ba", outputs, *chain, named, "metric=ba_directional", "metric.labels=each"),
        sweep("race", outputs, *race, "metric=lic", "alignment=matched", FEW),
        sweep("race counts", outputs, *race, "metric=cooccurrence", "metric.groups=labels"),
    ]
    rows = pd.concat(frames, ignore_index=True).drop_duplicates(["run_id", "part"])
    return rows[rows["part"].isin({part for *_, part in LINES})]


def line_of(rows: pd.DataFrame, key: tuple[str, str, str, str]) -> pd.DataFrame:
    """One number of every captioner."""
    attribute, metric, alignment, part = key
    return rows[
        (rows["attribute"] == attribute) & (rows["metric"] == metric) & (rows["part"] == part)
        & (rows["alignment"].fillna("") == alignment)
    ].set_index("captioner")  # fmt: skip


def table(rows: pd.DataFrame) -> str:
    """A line for each number, a column for each captioner."""
    lines = {}
    for key, title in LINES.items():
        line = line_of(rows, key)
        lines[title] = {
            name: cell(line.loc[captioner]) if captioner in line.index else "–"
            for captioner, name in COLUMNS.items()
            if captioner in set(rows["captioner"])
        }
    return markdown(pd.DataFrame(lines).T.rename_axis("number"))


def share_gone(rows: pd.DataFrame) -> str:
    """How much of the planted SAT's score goes, for numbers of A→T."""
    lines = {}
    for key, title in LINES.items():
        if title in PLANTED_LINES:
            value = line_of(rows, key)["value"]
            lines[title] = {
                COLUMNS[name]: 100 * (1 - value[name] / value[LAST])
                for name in value.index.intersection(list(COLUMNS), sort=False)
                if name not in ("faithful", "amplifier", LAST)
            }
    return markdown(pd.DataFrame(lines).T.rename_axis("number"), digits=0)


def draw(rows: pd.DataFrame) -> None:
    """Each number over the epochs, beside the planted captions and the two other fits."""
    plt = pyplot("rebalance")
    fig, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
    names = {title: key for key, title in LINES.items()}
    for ax, title in zip(axes.flat, DRAWN_LINES, strict=True):
        line = line_of(rows, names[title])
        per_cent = 100 if line["unit"].iloc[0] == "fraction" else 1
        course = per_cent * line.loc[
            [f"epoch_{epoch:02d}" for epoch in EPOCHS], ["value", "ci_low", "ci_high"]
        ]  # fmt: skip
        ax.plot(EPOCHS, course["value"], marker="o", color="#1f6f8b", label="SAT")
        ax.fill_between(EPOCHS, course["ci_low"], course["ci_high"], alpha=0.2, color="#1f6f8b")
        planted = per_cent * line.loc["amplifier", "value"]
        ax.axhline(planted, color="#c2571a", ls="--", label="planted captions")
        marks = {name: mark for name, mark in MARKS.items() if name in line.index}
        for place, (name, (marker, colour)) in enumerate(marks.items(), EPOCHS[-1] + 1):
            other = per_cent * line.loc[name, ["value", "ci_low", "ci_high"]].astype(float)
            spread = [[other["value"] - other["ci_low"]], [other["ci_high"] - other["value"]]]
            ax.errorbar(
                [place], [other["value"]], spread, fmt=marker, color=colour,
                label=COLUMNS[name].removeprefix("SAT, "),
            )  # fmt: skip
        ax.set_xticks(EPOCHS, map(str, EPOCHS))
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("epoch", fontsize=8)
    axes.flat[0].legend(fontsize=7)
    save_figure(fig, FIGURE)


def main() -> None:
    """Measure what is named, and write the page and the figure."""
    parser = argparse.ArgumentParser("python -m experiments.rebalance.study", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder of models, captions and runs")
    parser.add_argument("--equalizer", action="store_true", help="a fit with its losses too")
    options = parser.parse_args()
    if options.out:
        folder = options.out.absolute()
        write_captions(folder, equalizer=options.equalizer)
        scores(folder).to_csv(ROWS, index=False, float_format="%.6g")
    rows = read_rows(ROWS)
    tables = {
        "Per cent (CIDEr-D as it is), 95 % intervals": table(rows),
        "How much of the SAT's score goes, per cent": share_gone(rows),
    }
    write_page(PAGE, "Results", __file__, tables)
    draw(rows)


if __name__ == "__main__":
    main()
