"""What changes ImageCaptioner2 and LIC besides bias: words, length, mentions.

Usage: python -m experiments.imagecaptioner2.dials [OUTPUTS]

With OUTPUTS everything is computed and dial_rows.csv and dial_changes.csv are written; without it,
the tables are made from those.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from bias_pipeline.report.page import finished_runs
from bias_pipeline.stats.compare import paired_difference
from experiments.imagecaptioner2.study import ONE, intervals
from experiments.study import HOLD_OUT, markdown, read_rows, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, CHANGES = HERE / "dial_rows.csv", HERE / "dial_changes.csv"
PAGE = HERE / "DIALS.md"
BASE, A_TO_T = "amplifier", 0.5  # whose other settings are changed, one at a time
DIALS = {"vocabulary": 0.3, "length": 0.4, "mention_rate": 0.5}
# More seeds than elsewhere: with three, a change of SAT's has an interval of 30 points.
COMMON = ("seeds=10", "stats.resamples=1000", "logger=csv")
ATTACKERS = {
    "imagecaptioner2 sat": ("metric=imagecaptioner2", "encoder=sat", "metric.leaks=[]"),
    "lic ngram": ("metric=lic", *HOLD_OUT, ONE),
}
TURNED = {dial: f"{BASE}_{dial}" for dial in DIALS}


def run(outputs: Path) -> pd.DataFrame:
    """Rows of both sweeps."""
    dials = []
    for dial, name in TURNED.items():
        words_of_attacker = f"+dataset.captioners.{name}"
        dials += [
            f"{words_of_attacker}.a_to_t={A_TO_T}",
            f"{words_of_attacker}.{dial}={DIALS[dial]}",
        ]
    words = (f"captioner={','.join([BASE, *TURNED.values()])}", *dials, *COMMON)
    frames = [
        sweep(name, outputs, *words_of_attacker, *words)
        for name, words_of_attacker in ATTACKERS.items()
    ]
    return pd.concat(frames, ignore_index=True)


def score_changes(rows: pd.DataFrame, outputs: Path) -> pd.DataFrame:
    """The change of each score when a setting changes, over paired images and seeds."""
    draws = finished_runs(outputs)[1]
    scored = rows[rows["part"] == "score"].set_index(["study", "captioner"])["run_id"]
    lines = []
    for study in ATTACKERS:
        for dial, name in TURNED.items():
            one, other = (draws[scored[study, captioner]]["score"] for captioner in (name, BASE))
            change = paired_difference(one, other)
            ends = {"value": change.value, "low": change.ci_low, "high": change.ci_high}
            line = {"study": study, "dial": dial, "at": DIALS[dial]}
            lines.append({**line, **ends, "p": change.p_value})
    return pd.DataFrame(lines)


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every captioner under both attackers, per cent."""
    table = pd.DataFrame({study: intervals(rows, study) for study in ATTACKERS})
    return table.reindex([BASE, *TURNED.values()]).rename_axis("captioner")


def change_table(changes: pd.DataFrame) -> pd.DataFrame:
    """The score with a changed setting minus that without, in points, with 95 % intervals, p."""
    ends = (100 * changes[key] for key in ("value", "low", "high"))
    table = changes.assign(
        cell=[
            f"{v:+.1f} [{a:+.1f}, {b:+.1f}], p {p:.4f}"
            for v, a, b, p in zip(*ends, changes["p"], strict=True)
        ]
    ).pivot_table(index=["dial", "at"], columns="study", values="cell", aggfunc="first", sort=False)
    return table[list(ATTACKERS)].reset_index().set_index("dial")


def write(rows: pd.DataFrame, changes: pd.DataFrame) -> None:
    """Write the tables."""
    tables = {
        "Scores (per cent)": markdown(score_table(rows)),
        "One setting changed, minus unchanged (points)": markdown(change_table(changes)),
    }
    write_page(PAGE, "What else changes the scores", __file__, tables)


def main(arguments: list[str]) -> None:
    if arguments:
        outputs = Path(arguments[0])
        rows = run(outputs)
        rows[rows["part"] == "score"].to_csv(ROWS, index=False, float_format="%.5g")
        changes = score_changes(rows, outputs)
        changes.to_csv(CHANGES, index=False, float_format="%.5g")
    rows = read_rows(ROWS)
    write(rows, pd.read_csv(CHANGES))


if __name__ == "__main__":
    main(sys.argv[1:])
