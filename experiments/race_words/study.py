"""Which words follow words of race, in captions of seven captioners and of people.

Usage: python -m experiments.race_words.study [DATA_ROOT]

With DATA_ROOT the captions are read and rows.csv is written; without it, the tables are made from
the rows.csv that is there. Only counts and single words are stored, no captions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from bias_pipeline.language.caption_words import Collocations, collocations
from bias_pipeline.run import compose
from experiments.study import CAPTIONERS, lic_data, markdown, rows_of, write_results

HERE = Path(__file__).resolve().parent
MOST = 10


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """A row for each captioner and one for people, whose captions are the same for all."""
    del outputs  # nothing is trained or scored
    lines = []
    for captioner in CAPTIONERS:
        cell = compose.cell([*lic_data(data), "attribute=race", f"captioner={captioner}"])
        by_side = {
            result.side: result for result in collocations(cell.corpus(), cell.build("attribute"))
        }
        lines.append(_line(captioner, by_side["model"]))
    return pd.DataFrame([*lines, _line("people", by_side["human"])])


def _line(who: str, result: Collocations) -> dict[str, object]:
    follow = ", ".join(f"{word} {count}" for word, count in result.following[:MOST])
    counts = {
        "captions": result.captions,
        "with a word": result.holding,
        "name a group": result.naming,
    }
    return {"captions of": who, **counts, "most frequent next": follow}


def main(arguments: list[str]) -> None:
    rows = rows_of(HERE, run, arguments)
    rows.insert(3, "%", (100 * rows["with a word"] / rows["captions"]).map("{:.1f}".format))
    table = markdown(rows.set_index("captions of"))
    write_results(HERE, {"Captions of images labelled light or dark": table})


if __name__ == "__main__":
    main(sys.argv[1:])
