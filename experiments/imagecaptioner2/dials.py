"""What ImageCaptioner2 and LIC follow beside bias: words, length, and how often objects are named.

Usage: python -m experiments.imagecaptioner2.dials [OUTPUTS]

With OUTPUTS everything is computed and dial_rows.csv and dial_changes.csv are written; without it,
the tables are made from those.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from experiments.imagecaptioner2.reproduce import ONE, told
from experiments.study import markdown, sweep, write_page
from experiments.turned import change_table, changes, overrides

HERE = Path(__file__).resolve().parent
ROWS, CHANGES = HERE / "dial_rows.csv", HERE / "dial_changes.csv"
PAGE = HERE / "DIALS.md"
BASE, A_TO_T = "amplifier", 0.5  # whose other dials are turned, one at a time
DIALS = {"vocabulary": 0.3, "length": 0.4, "mention_rate": 0.5}
# More seeds than elsewhere: three leave a change of SAT's an interval of 30 points.
COMMON = ("seeds=10", "stats.resamples=1000", "logger=csv")
ATTACKERS = {
    "imagecaptioner2 sat": ("metric=imagecaptioner2", "encoder=sat", "metric.leaks=[]"),
    "lic ngram": ("metric=lic", ONE),
}
TURNED = {f"{BASE}_{dial}": (dial, at) for dial, at in DIALS.items()}


def run(outputs: Path) -> pd.DataFrame:
    """Rows of both sweeps."""
    captioners = f"captioner={','.join([BASE, *TURNED])}"
    words = (captioners, *overrides(TURNED, a_to_t=A_TO_T), *COMMON)
    found = [sweep(name, outputs, *own, *words) for name, own in ATTACKERS.items()]
    return pd.concat(found, ignore_index=True)


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every captioner under both attackers, per cent."""
    table = pd.DataFrame({study: told(rows, study) for study in ATTACKERS})
    return table.reindex([BASE, *TURNED]).rename_axis("captioner")


def write(rows: pd.DataFrame, found: pd.DataFrame) -> None:
    """Write the tables."""
    tables = {
        "Scores (per cent)": markdown(score_table(rows)),
        "A dial turned, less not turned (points)": change_table(found, list(ATTACKERS)),
    }
    write_page(PAGE, "What the scores follow", __file__, tables)


def main(arguments: list[str]) -> None:
    if arguments:
        outputs = Path(arguments[0])
        rows = run(outputs)
        rows[rows["part"] == "score"].to_csv(ROWS, index=False, float_format="%.5g")
        found = changes(rows, outputs, BASE, TURNED)
        found.to_csv(CHANGES, index=False, float_format="%.5g")
    rows = pd.read_csv(ROWS, keep_default_na=False, na_values=[""])
    write(rows, pd.read_csv(CHANGES))


if __name__ == "__main__":
    main(sys.argv[1:])
