"""RELIC's own attacker: the published protocol with its LSTM, at published seeds.

LIC_M of seven captioners at three seeds, about six processor minutes a captioner and seed; LIC_D
for the vocabulary of one captioner at two seeds, ten trainings. Finished cells are not run again,
and committed rows of other parts stay, so the study can be run in parts.

Usage: python -m experiments.lic_reproduction.lstm DATA_ROOT [OUTPUTS [PART ...]]

A part is a captioner, for its LIC_M, or "human", for LIC_D; all if none is named.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from scipy import stats

from experiments.study import agreement, markdown, part, printed_table, sweep

HERE = Path(__file__).resolve().parent
CAPTIONERS = ("sat", "nic", "fc", "att2in", "transformer", "oscar", "nic_plus")
HUMAN, ALIGNED_TO = "human", "sat"  # LIC_D depends on the captioner only by its vocabulary
MODEL_STUDY, HUMAN_STUDY = "relic_gender lstm", "relic_gender lstm human"


def run(data: str, outputs: Path, name: str) -> pd.DataFrame:
    """The rows of a part."""
    human = name == HUMAN
    return sweep(
        HUMAN_STUDY if human else MODEL_STUDY,
        outputs,
        "experiment=relic_gender",
        f"metric.sides=[{'human' if human else 'model'}]",
        f"seeds={2 if human else 3}",
        f"captioner={ALIGNED_TO if human else name}",
        f"dataset.root={data}/lic/bias_data",
    )


def merge_rows(known: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Known rows, with those of the same study and captioner replaced; new rows come last."""
    key = ["study", "captioner"]
    again = known.set_index(key).index.isin(new.set_index(key).index)
    return pd.concat([known[~again], new], ignore_index=True)


def model_text(rows: pd.DataFrame) -> str:
    """LIC_M compared with RELIC's, and their agreement."""
    scores = part(rows, MODEL_STUDY, "model")
    scores = scores[[name for name in CAPTIONERS if name in scores.index]]
    printed = printed_table("relic", "1", "LIC_LSTM")["lic_m"][scores.index]
    std = 100 * rows[rows["study"] == MODEL_STUDY].set_index("captioner")["seed_std"]
    table = pd.DataFrame(
        {"LIC_M": scores, "std of seeds": std[scores.index], "LIC_M (RELIC)": printed}
    )
    statistics = agreement(scores, printed)
    statistics["spearman"] = float(stats.spearmanr(scores, printed).statistic)
    lines = [f"{name} {value:.2f}" for name, value in statistics.items()]
    title = "# LIC_M with RELIC's LSTM, three seeds (per cent)"
    return f"{title}\n\n{markdown(table)}\nOver {len(scores)} captioners: {', '.join(lines)}.\n"


def human_text(rows: pd.DataFrame) -> str:
    """LIC_D compared with RELIC's; empty if it has not been run."""
    selected = rows[(rows["study"] == HUMAN_STUDY) & (rows["part"] == "human")]
    if selected.empty:
        return ""
    table = selected.set_index("captioner")[["value", "seed_std"]] * 100
    table.columns = ["LIC_D", "std of seeds"]
    table["LIC_D (RELIC)"] = printed_table("relic", "1", "LIC_LSTM")["lic_d"][table.index]
    table["images"] = selected.set_index("captioner")["n_images"]
    return f"\n## LIC_D, two seeds, five positions (per cent)\n\n{markdown(table)}"


def main(data: str, outputs: str = "outputs/relic", *parts: str) -> None:
    frames = [run(data, Path(outputs), name) for name in parts or (*CAPTIONERS, HUMAN)]
    path = HERE / "lstm_rows.csv"
    known = pd.read_csv(path, keep_default_na=False, na_values=[""])
    rows = merge_rows(known, pd.concat(frames, ignore_index=True))
    rows.to_csv(path, index=False, float_format="%.6g")
    (HERE / "LSTM.md").write_text(model_text(rows) + human_text(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
