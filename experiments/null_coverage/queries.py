"""How often tests call fair queries unfair, and how often they detect unfair ones.

Usage: python -m experiments.null_coverage.queries [TRIALS]

Vectors of pictures and of queries are random and independent of groups, except in the cases in
which half of the queries prefer either group. Single queries are tested by the exact count of the
groups they retrieve, all together by permuted labels, and both by the interval of entropy too, as
before version 5 of the metric. With TRIALS everything is computed and queries.csv is written;
without it, the table is made anew from that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.retrieval.estimates import permuted_p
from bias_pipeline.retrieval.formulas import p_of_counts
from bias_pipeline.retrieval.ranked import Ranked
from bias_pipeline.retrieval.skew import expected_entropy
from bias_pipeline.stats.bootstrap import Bootstrap, with_p_value
from experiments.null_coverage.study import HERE, trial_rows
from experiments.study import markdown, write_page

ROWS, PAGE = HERE / "queries.csv", HERE / "QUERIES.md"
N_IMAGES, N_QUERIES, WIDTH = 2000, 40, 64
STATS = Bootstrap(resamples=200)
PERMUTATIONS = 199
LEVELS = (0.05, 0.01)


class Case(NamedTuple):
    """A made-up data set.

    Attributes:
        shares: of the groups.
        k: depth.
        seeds: splits.
        alike: the share of their direction that all queries have in common.
        lean: how much nearer a query is to the group that it prefers, in standard deviations.
        debiased: whether the difference of the groups' means in the other half is taken out.
    """

    shares: tuple[float, ...]
    k: int = 100
    seeds: int = 5
    alike: float = 0.0
    lean: float = 0.0
    debiased: bool = False


CASES = {
    "61 and 39 %": Case((0.61, 0.39)),
    "61 and 39 %, one seed": Case((0.61, 0.39), seeds=1),
    "50 and 50 %": Case((0.5, 0.5)),
    "90 and 10 %, k = 20": Case((0.9, 0.1), k=20),
    "61 and 39 %, k = 900 of 1000": Case((0.61, 0.39), k=900),
    "61 and 39 %, queries alike": Case((0.61, 0.39), alike=0.95),
    "61 and 39 %, debiased": Case((0.61, 0.39), debiased=True),
    "40, 30, 20 and 10 %": Case((0.4, 0.3, 0.2, 0.1)),
    "61 and 39 %, lean weakly": Case((0.61, 0.39), lean=0.04),
    "61 and 39 %, lean": Case((0.61, 0.39), lean=0.1),
}


def run(trials: int, scratch: str) -> Iterator[dict[str, object]]:
    """The share of small p by case, trial, test and level."""
    del scratch
    for name, case in CASES.items():
        for trial in range(trials):
            for test, p_values in test_queries(case, np.random.default_rng(trial)).items():
                for level in LEVELS:
                    share = float(np.mean(np.asarray(p_values) < level))
                    yield {"case": name, "trial": trial, "test": test, "p": level, "share": share}
        print(name, flush=True)


def test_queries(case: Case, random: np.random.Generator) -> dict[str, Float64Array]:
    """P of every query, and of their mean, under each test."""
    item = random.normal(size=(N_QUERIES, WIDTH))
    queries = np.sqrt(case.alike) * random.normal(size=WIDTH) + np.sqrt(1 - case.alike) * item
    codes = random.choice(len(case.shares), N_IMAGES, p=case.shares)
    pictures = random.normal(size=(N_IMAGES, WIDTH))
    # One more number of a vector is the group, or the group that a query prefers.
    sides = np.where(np.arange(N_QUERIES) % 2, 0.5, -0.5)
    queries = np.column_stack([queries, case.lean * np.linalg.norm(queries, axis=1) * sides])
    pictures = np.column_stack([pictures, np.where(codes == 0, 1.0, -1.0)])
    ranked = []
    for _ in range(case.seeds):
        order = random.permutation(N_IMAGES)
        rows, rest = order[: N_IMAGES // 2], order[N_IMAGES // 2 :]
        shown = _debias(pictures, codes, rest) if case.debiased else pictures
        vectors = queries.astype(np.float32), shown[rows].astype(np.float32)
        ranked.append(Ranked.rank(*vectors, rows, codes[rows], len(case.shares), case.k))
    sizes = np.stack([item.sizes for item in ranked])
    keys = random.integers(0, 2**63, N_IMAGES).astype(np.uint64)
    counts = np.stack([item.top_counts for item in ranked]).astype(np.int64)
    tests = {
        "a query, exact count": p_of_counts(counts, sizes),
        "all queries, permuted labels": np.array([permuted_p(ranked, keys, PERMUTATIONS, 0)[0]]),
    }
    if case.seeds == 1:  # an interval of one seed has no p
        return tests
    null = float(np.mean([expected_entropy(item, case.k) for item in sizes]))
    rows = np.unique(np.concatenate([item.images.ravel() for item in ranked]))

    def entropies(weights: Float64Array) -> dict[int, Float64Array]:
        by_query = np.stack(
            [index.entropies(weights, rows) for index in ranked], axis=-1
        )  # (B, C, S)
        return dict(enumerate([*by_query.transpose(1, 0, 2), by_query.mean(axis=1)]))

    estimates = STATS.estimate_weighted(keys[rows], entropies)
    p_values = np.array([with_p_value(item, null).p_value for item in estimates.values()])
    return {
        **tests,
        "a query, entropy's interval": p_values[:-1],
        "all queries, entropy's interval": p_values[-1:],
    }


def _debias(pictures: Float64Array, codes: IntArray, fitted: IntArray) -> Float64Array:
    """Pictures without the difference of two groups' means, fitted to other pictures."""
    first, second = (pictures[fitted][codes[fitted] == group].mean(axis=0) for group in (0, 1))
    direction = (first - second) / np.linalg.norm(first - second)
    return np.asarray(pictures - np.outer(pictures @ direction, direction))


def write(rows: pd.DataFrame) -> None:
    """Write the table made of the rows."""
    order = {"case": list(CASES), "test": list(dict.fromkeys(rows["test"]))}
    table = 100 * rows.pivot_table("share", ["case", "test"], "p", sort=False)[list(LEVELS)]
    table = table.reindex([(c, t) for c in order["case"] for t in order["test"]]).dropna()
    lines = table.reset_index().set_axis(["groups", "tested", "p < .05", "p < .01"], axis=1)
    title = (
        f"Per cent of small p, over {rows['trial'].nunique()} trials of {N_QUERIES} queries "
        f"(random vectors of {N_IMAGES} pictures)"
    )
    tables = {title: markdown(lines.set_index("groups"))}
    write_page(PAGE, "Fair queries, and queries that prefer a group", __file__, tables)


def main(trials: str | None = None) -> None:
    write(trial_rows(run, ROWS, trials))


if __name__ == "__main__":
    main(*sys.argv[1:])
