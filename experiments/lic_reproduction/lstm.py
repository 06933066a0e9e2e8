"""RELIC's own attacker: the published protocol with its LSTM, LIC_M, at three published seeds.

About six processor minutes a captioner and seed. Cells that are there are not run again, so the
study can be done in parts.

Usage: python -m experiments.lic_reproduction.lstm DATA_ROOT [OUTPUTS [CAPTIONER ...]]
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from scipy import stats

from experiments.study import agreement, markdown, part, published, sweep

HERE = Path(__file__).resolve().parent
CAPTIONERS = ("sat", "nic", "fc", "att2in", "transformer", "oscar", "nic_plus")


def main(data: str, outputs: str = "outputs/relic", *captioners: str) -> None:
    found = [
        sweep(
            "relic_gender lstm",
            Path(outputs),
            "experiment=relic_gender",
            "metric.sides=[model]",
            "seeds=3",
            f"captioner={captioner}",
            f"dataset.root={data}/lic/bias_data",
        )
        for captioner in captioners or CAPTIONERS
    ]
    rows = pd.concat(found, ignore_index=True)
    rows.to_csv(HERE / "lstm_rows.csv", index=False, float_format="%.6g")
    own = part(rows, "relic_gender lstm", "model")
    printed = published("relic", "1", "LIC_LSTM")["lic_m"][own.index]
    std = 100 * rows.set_index("captioner")["seed_std"]
    table = pd.DataFrame({"LIC_M": own, "std of seeds": std, "LIC_M (RELIC)": printed})
    found_agreement = agreement(own, printed)
    found_agreement["spearman"] = float(stats.spearmanr(own, printed).statistic)
    lines = [f"{name} {value:.2f}" for name, value in found_agreement.items()]
    text = f"# LIC_M with RELIC's LSTM, three seeds (per cent)\n\n{markdown(table)}\n"
    (HERE / "LSTM.md").write_text(f"{text}Over {len(own)} captioners: {', '.join(lines)}.\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
