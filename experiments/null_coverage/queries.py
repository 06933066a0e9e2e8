"""How often queries of a ranker to whom groups are nothing are said to be unfair.

Usage: python -m experiments.null_coverage.queries [TRIALS]

Random vectors of pictures and of queries; groups have nothing to do with them. Each query is tested
exactly, and by its interval, as before version 4 of the metric; so is their mean. With TRIALS
everything is computed and queries.csv is written; without it, the table is made anew from that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bias_pipeline.metrics.functional.fair_ranker import expected_entropy, p_of_fair
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.stats.bootstrap import Bootstrap, against
from experiments.null_coverage.reproduce import HERE, trial_rows
from experiments.study import markdown

ROWS, PAGE = HERE / "queries.csv", HERE / "QUERIES.md"
N_IMAGES, N_QUERIES, WIDTH = 2000, 40, 64
STATS = Bootstrap(resamples=400)
LEVELS = (0.05, 0.001)


class Case(NamedTuple):
    """A made-up data set; ``alike`` is the share of their direction that all queries have."""

    shares: tuple[float, ...]
    k: int = 100
    seeds: int = 5
    alike: float = 0.0


CASES = {
    "61 and 39 %": Case((0.61, 0.39)),
    "61 and 39 %, one seed": Case((0.61, 0.39), seeds=1),
    "50 and 50 %": Case((0.5, 0.5)),
    "90 and 10 %, k = 20": Case((0.9, 0.1), k=20),
    "61 and 39 %, queries alike": Case((0.61, 0.39), alike=0.95),
}


def run(trials: int, scratch: str) -> Iterator[dict[str, object]]:
    """The share of small p by case, trial, test and level."""
    del scratch
    for name, case in CASES.items():
        for trial in range(trials):
            for test, p_values in tested(case, np.random.default_rng(trial)).items():
                for level in LEVELS:
                    share = float(np.mean(np.asarray(p_values) < level))
                    yield {"case": name, "trial": trial, "test": test, "p": level, "share": share}
        print(name, flush=True)


def tested(case: Case, random: np.random.Generator) -> dict[str, npt.NDArray[np.float64]]:
    """P of every query, and of their mean, under each test."""
    own = random.normal(size=(N_QUERIES, WIDTH))
    queries = np.sqrt(case.alike) * random.normal(size=WIDTH) + np.sqrt(1 - case.alike) * own
    pictures = random.normal(size=(N_IMAGES, WIDTH))
    pictures /= np.linalg.norm(pictures, axis=1, keepdims=True)
    codes = random.choice(len(case.shares), N_IMAGES, p=case.shares)
    ranked = []
    for _ in range(case.seeds):
        rows = random.permutation(N_IMAGES)[: N_IMAGES // 2]
        vectors = queries.astype(np.float32), pictures[rows].astype(np.float32)
        ranked.append(Ranked.of(*vectors, rows, codes[rows], len(case.shares), case.k))
    sizes = np.stack([own.sizes for own in ranked])
    null = float(np.mean([expected_entropy(own, case.k) for own in sizes]))

    def entropies(weights: npt.NDArray[np.float64]) -> dict[int, npt.NDArray[np.float64]]:
        found = np.stack([own.entropies(weights, rows) for own in ranked], axis=-1)  # (B, C, S)
        return dict(enumerate([*found.transpose(1, 0, 2), found.mean(axis=1)]))

    rows = np.unique(np.concatenate([own.images.ravel() for own in ranked]))
    alone = np.stack(list(entropies(np.ones((1, len(rows)))).values())[:-1])[:, 0]  # (C, S)
    exact = p_of_fair(alone.T, sizes, case.k)
    if case.seeds == 1:  # an interval of one seed has no p
        return {"a query, exact": exact}
    found = STATS.estimate_weighted(
        random.integers(0, 2**63, len(rows)).astype(np.uint64), entropies
    )
    p_values = np.array([against(own, null).p_value for own in found.values()])
    return {
        "a query, exact": exact,
        "a query, its interval's": p_values[:-1],
        "the mean, its interval's": p_values[-1:],
    }


def write(rows: pd.DataFrame) -> None:
    """Write the table made of the rows."""
    order = {"case": list(CASES), "test": list(dict.fromkeys(rows["test"]))}
    table = 100 * rows.pivot_table("share", ["case", "test"], "p", sort=False)[list(LEVELS)]
    table = table.reindex([(c, t) for c in order["case"] for t in order["test"]]).dropna()
    lines = table.reset_index().set_axis(["groups", "tested", "p < .05", "p < .001"], axis=1)
    text = "# Single queries of a fair ranker\n\nMade by `queries.py`; do not edit.\n\n"
    text += (
        f"Per cent of small p, over {rows['trial'].nunique()} trials of {N_QUERIES} queries "
        f"(random vectors of {N_IMAGES} pictures).\n\n"
    )
    PAGE.write_text(text + markdown(lines.set_index("groups")))


def main(trials: str | None = None) -> None:
    write(trial_rows(run, ROWS, trials))


if __name__ == "__main__":
    main(*sys.argv[1:])
