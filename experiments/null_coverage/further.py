"""The same null for other parts than headlines: pairs of DBAC, groups of an intersection.

Usage: python -m experiments.null_coverage.further pairs|groups TRIALS
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory

import pandas as pd

from bias_pipeline.metrics.base import Score
from bias_pipeline.run import compose
from experiments.null_coverage.study import (
    COMMON,
    DBAC,
    HERE,
    SEEDS,
    columns,
    coverage_table,
    shuffle_groups,
)
from experiments.study import HOLD_OUT, markdown, write_page

CROSSED = ("attribute=[gender,race]", "dataset.n_images=2000", "attribute.min_images=50")
PAIRS = {
    "dbac": (*COMMON, *DBAC, "metric.prior=shared"),
    "dbac, accuracy": (*COMMON, *DBAC, "metric.prior=shared", "scoring=accuracy"),
    "dbac, accuracy, per caption": (
        *COMMON, *DBAC, "metric.prior=shared", "scoring=accuracy", "metric.aggregate=per_caption",
    ),
}  # fmt: skip
GROUPS = {"lic": (*COMMON, *CROSSED, "metric=lic", *HOLD_OUT)}
STUDIES = {"pairs": PAIRS, "groups": GROUPS}
TITLES = {
    "pairs": "DBAC A→T: the headline (`shared`), and all pairs of a group",
    "groups": "LIC: the groups of gender and race, and the largest gap between two",
}


def run(
    cells: Mapping[str, Sequence[str]], trials: int, scratch: str
) -> Iterator[dict[str, object]]:
    """One line per trial and part; new images, captions and shuffled groups in every trial."""
    for trial in range(trials):
        for name, words in cells.items():
            where = (f"dataset.seed={1 + trial}", f"paths.outputs={scratch}")
            cell = compose.cell([*words, *where])
            metric = cell.build("metric")
            corpus = shuffle_groups(cell.corpus(), trial, metric.attribute.name)
            score = metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
            for label, part in named_parts(score):
                if label.startswith("pairs") and name.endswith("per caption"):
                    continue  # the same as above
                line = {"trial": trial, "metric": name, "part": label}
                yield line | columns(score.parts[part], metric.info)
        print(f"{trial + 1} of {trials}", flush=True)


def named_parts(score: Score) -> Iterator[tuple[str, str]]:
    """The parts to count, each with its name in the table."""
    for part in score.parts:
        way, _, rest = part.partition(":")
        group, _, task = rest.partition(":")
        if part in ("a_to_t", "score", "gap") or part.startswith("group:"):
            yield part, part
        elif way == "a_to_t" and group in ("male", "female") and task:
            yield f"pairs of {group}", part


def write() -> None:
    """The tables made of the rows that are there."""
    tables = {
        title: markdown(coverage_table(pd.read_csv(path).dropna(subset=["value", "ci_low"])))
        for name, title in TITLES.items()
        if (path := HERE / f"{name}.csv").is_file()
    }
    write_page(HERE / "FURTHER.md", "Results for other parts than headlines", __file__, tables)


def main(study: str, trials: str) -> None:
    with TemporaryDirectory() as scratch:
        rows = pd.DataFrame(run(STUDIES[study], int(trials), scratch))
    rows.to_csv(HERE / f"{study}.csv", index=False, float_format="%.5g")
    write()


if __name__ == "__main__":
    main(*sys.argv[1:])
