"""What language models' metrics follow on scenes: one dial of a planted captioner at a time.

Usage: python -m experiments.gender_score.dials [OUTPUTS]

With OUTPUTS everything is computed (some twenty minutes of a processor) and dial_rows.csv and
dial_changes.csv are written; without it, the tables are made from those. Needs the extra
``offline-models``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from experiments.study import cell, markdown, sweep, write_page
from experiments.turned import change_table, changes, overrides

HERE = Path(__file__).resolve().parent
ROWS, CHANGES, PAGE = HERE / "dial_rows.csv", HERE / "dial_changes.csv", HERE / "DIALS.md"
BASE = "faithful"
DIALS = (
    ("a_to_t", -0.6),
    ("a_to_t", 0.5),
    ("a_to_t", 0.9),
    ("t_to_a", 0.5),
    ("gender_word_rate", 0.5),
    ("vocabulary", 0.3),
    ("length", 0.4),
    ("mention_rate", 0.5),
)
TURNED = {f"{dial}_{at:g}".translate(str.maketrans("-.", "m_")): (dial, at) for dial, at in DIALS}
ENCODER = "metric.sentence_encoder=sentence-transformers/all-MiniLM-L6-v2"
STUDIES = {
    "Gender Score": ("metric=gender_score",),
    "distance, GloVe": ("metric=gender_distance",),
    "distance, MiniLM": ("metric=gender_distance", ENCODER),
}
COMMON = ("dataset=scenes", "dataset.n_images=1000", "logger=csv")


def run(outputs: Path) -> pd.DataFrame:
    """Rows of all sweeps."""
    words = (f"captioner={','.join([BASE, *TURNED])}", *overrides(TURNED), *COMMON)
    found = [sweep(name, outputs, *own, *words) for name, own in STUDIES.items()]
    return pd.concat(found, ignore_index=True)


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every captioner under every metric, per cent."""
    own = rows.set_index(["study", "captioner"])
    lines = {
        name: {study: cell(own.loc[study, name]) for study in STUDIES} for name in (BASE, *TURNED)
    }
    return pd.DataFrame(lines).T.rename_axis("captioner")


def main(arguments: list[str]) -> None:
    if arguments:
        outputs = Path(arguments[0])
        rows = run(outputs)
        rows[rows["part"] == "score"].to_csv(ROWS, index=False, float_format="%.5g")
        found = changes(rows, outputs, BASE, TURNED)
        found.to_csv(CHANGES, index=False, float_format="%.5g")
    rows = pd.read_csv(ROWS, keep_default_na=False, na_values=[""])
    tables = {
        "Scores (per cent)": markdown(score_table(rows)),
        "A dial turned, less not turned (points)": change_table(pd.read_csv(CHANGES), [*STUDIES]),
    }
    write_page(PAGE, "What the scores follow", __file__, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
