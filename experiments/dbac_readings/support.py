"""DBAC A→T of real captioners by the number of images and the limit for rare tasks.

Usage: python -m experiments.dbac_readings.support [DATA_ROOT [OUTPUTS]]

With DATA_ROOT everything is computed and support.csv is written; without it, the table is made from
the support.csv that is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import random_words
from bias_pipeline.metrics.attack.dbac_direction import Direction
from bias_pipeline.metrics.attack.dbac_scorer import DirectionScorer
from bias_pipeline.run import compose
from experiments.study import HOLD_OUT_TASKS, lic_data, markdown, rows_at, write_page
from experiments.study import cell as written

HERE = Path(__file__).resolve().parent
CAPTIONERS = ("sat", "nic", "oscar")
SHARES = (0.00125, 0.0025, 0.005, 0.01, 0.02)
DEFAULT = 0.005
SEEDS = (0, 12, 456)
# (i, n): part i of n equal random parts of the images.
SAMPLES = {"all": (0, 1), "half": (0, 2), "other half": (1, 2), "quarter": (0, 4)}
SAMPLES |= {"second quarter": (1, 4)}


def sample(corpus: Corpus, part: int, of: int) -> Corpus:
    """One of several equal parts of the images, at random."""
    chosen = random_words("bundle", 1, corpus.keys) % np.uint64(of) == part
    grouping = corpus.groupings["gender"]
    codes = np.where(chosen, grouping.codes, -1)
    return replace(corpus, groupings={"gender": replace(grouping, codes=codes)})


def run(data: Path, outputs: Path = Path("outputs/dbac_support")) -> pd.DataFrame:
    """The lines of all captioners, samples and shares."""
    return pd.DataFrame(_lines(data, outputs))


def _lines(data: Path, outputs: Path) -> Iterator[dict[str, object]]:
    """One line per captioner, sample and share; another share trains no new attackers."""
    common = ["metric=dbac", *lic_data(data), *HOLD_OUT_TASKS]
    for captioner in CAPTIONERS:
        for name, part in SAMPLES.items():
            for share in SHARES if name == "all" else (DEFAULT,):
                words = [f"captioner={captioner}", f"metric.min_support={share}"]
                built = compose.cell([*common, *words, f"paths.outputs={outputs}"])
                metric, corpus = built.build("metric"), sample(built.corpus(), *part)
                splits = metric.draw_splits(corpus, SEEDS)
                direction = Direction(metric.settings, "a_to_t", metric.see(corpus))
                score = DirectionScorer(direction, splits).score()
                part_score = score.parts["a_to_t"]
                line = {"captioner": captioner, "sample": name, "min_support": share}
                line |= {"metric": metric.info.name, "metric_version": metric.info.version}
                line |= {k: getattr(part_score, k) for k in ("value", "ci_low", "ci_high")}
                yield line | {"unit": "fraction", "n_images": part_score.n_images}
                print(f"{captioner}, {name}, {share}", flush=True)


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Samples and shares as rows, captioners as columns."""
    named = rows.assign(cell=rows.apply(written, axis=1))
    wide = named.pivot_table(
        index=["sample", "min_support"], columns="captioner", values="cell", aggfunc="first"
    )
    return wide.reset_index().set_index("sample").loc[list(SAMPLES)]


def main(arguments: list[str]) -> None:
    rows = rows_at(HERE / "support.csv", run, arguments)
    tables = {"Per cent": markdown(table(rows), digits=5)}
    write_page(HERE / "SUPPORT.md", "DBAC A→T by sample and share", __file__, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
