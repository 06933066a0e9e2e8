"""A table like RELIC's, filled with made-up captions."""

from pathlib import Path

import pandas as pd


def table(n: int = 60) -> pd.DataFrame:
    """Every second image of somebody young."""
    return pd.DataFrame(
        {
            "img_id": [100 + i for i in range(n)],
            "caption_list": [
                str([f"a person's dog, {('old', 'new')[i % 2]} {k}" for k in range(5)])
                for i in range(n)
            ],
            "pred_oscar": [f"a person with a {('kite', 'bus')[i % 3 == 0]}" for i in range(n)],
            "pred_sat": [f"a person with a {('cake', 'dog')[i % 2]}" for i in range(n)],
            "bb_age": [("old", "young")[i % 2] for i in range(n)],
        }
    )


def write_table(root: Path, rows: pd.DataFrame | None = None) -> Path:
    """Write the folder."""
    root.mkdir(parents=True, exist_ok=True)
    (table() if rows is None else rows).to_csv(root / "age_dataset.csv")
    return root
