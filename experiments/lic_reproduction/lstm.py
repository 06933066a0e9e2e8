"""RELIC's own attacker: the published protocol with its LSTM, at published seeds.

LIC_M at three seeds, for gender about six processor minutes a captioner and seed, for race and age
about one; LIC_D for the vocabulary of one captioner at two seeds, ten trainings. Finished cells are
not run again, and committed rows of other parts stay, so the study can be run in parts.

Usage: python -m experiments.lic_reproduction.lstm [DATA_ROOT OUTPUTS PART ...]

A part is a preset and a captioner, such as relic_race:oscar, for its LIC_M, or with :human, such as
relic_gender:sat:human, for LIC_D; without arguments the page is made from the rows that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from scipy import stats

from experiments.study import (
    agreement,
    cell,
    markdown,
    merge_rows,
    part,
    printed_table,
    read_rows,
    sweep,
    write_page,
)

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "lstm_rows.csv", HERE / "LSTM.md"
CAPTIONERS = ("sat", "nic", "fc", "att2in", "transformer", "oscar", "nic_plus")
HUMAN = "human"
# Preset to RELIC's table, and the folder of its data.
PRESETS = {
    "relic_gender": ("1", "lic/bias_data"),
    "relic_race": ("2", "lic/bias_data"),
    "relic_age": ("3", "relic"),
    "relic_age_top_n": ("4", "relic"),
}
SEEDS = {"model": 3, HUMAN: 2}


def run(data: Path, outputs: Path, name: str) -> pd.DataFrame:
    """The rows of a part."""
    preset, captioner, *human = name.split(":")
    side = HUMAN if human else "model"
    return sweep(
        _study(preset, side),
        outputs,
        f"experiment={preset}",
        f"metric.sides=[{side}]",
        f"seeds={SEEDS[side]}",
        f"captioner={captioner}",
        f"dataset.root={data / PRESETS[preset][1]}",
    )


def _study(preset: str, side: str) -> str:
    return f"{preset} lstm human" if side == HUMAN else f"{preset} lstm"


def table(rows: pd.DataFrame, preset: str, side: str) -> pd.DataFrame:
    """A line for each captioner: ours with its seeds and images, and RELIC's."""
    study, column = _study(preset, side), {"model": "lic_m", HUMAN: "lic_d"}[side]
    scores = part(rows, study, side)
    scores = scores[[name for name in CAPTIONERS if name in scores.index]]
    chosen = rows[rows["study"] == study].set_index("captioner").loc[scores.index]
    printed = printed_table("relic", PRESETS[preset][0], "LIC_LSTM").reindex(scores.index)
    return pd.DataFrame(
        {
            "LSTM": scores,
            "interval": chosen.apply(cell, axis=1),
            "std of seeds": 100 * chosen["seed_std"],
            "seeds": chosen["n_seeds"].astype(int),
            "images": chosen["n_images"].astype(int),
            "RELIC": printed[column],
            "std of RELIC's seeds": printed[f"{column}_std"],
        }
    ).rename_axis("captioner")


def text(lines: pd.DataFrame) -> str:
    """A table of captioners; of three or more also how well they agree with RELIC."""
    if len(lines) < 3:
        return markdown(lines)
    statistics = agreement(lines["LSTM"], lines["RELIC"])
    statistics["spearman"] = float(stats.spearmanr(lines["LSTM"], lines["RELIC"]).statistic)
    agreements = ", ".join(f"{name} {value:.2f}" for name, value in statistics.items())
    return f"{markdown(lines)}\nOver {len(lines)} captioners: {agreements}.\n"


def page(rows: pd.DataFrame) -> dict[str, str]:
    """Title to table, of those that have rows."""
    titles = {"model": "LIC_M", HUMAN: "LIC_D, five positions"}
    return {
        f"{title} (per cent), {preset}, Table {printed}": text(lines)
        for preset, (printed, _) in PRESETS.items()
        for side, title in titles.items()
        if not (lines := table(rows, preset, side)).empty
    }


def main(data: str = "", outputs: str = "", *parts: str) -> None:
    for name in parts:
        rows = merge_rows(read_rows(ROWS), run(Path(data), Path(outputs), name))
        rows.to_csv(ROWS, index=False, float_format="%.6g")
    write_page(PAGE, "RELIC's LSTM", __file__, page(read_rows(ROWS)))


if __name__ == "__main__":
    main(*sys.argv[1:])
