"""With nothing to amplify, how often do 95 % intervals cover 0 and p values fall below 0.05?

Usage: python -m experiments.null_coverage.study [TRIALS]

With TRIALS everything is computed and rows.csv is written; without it, the tables are made anew
from the rows.csv that is there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy import stats

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.base import MetricInfo
from bias_pipeline.metrics.functional.dbac import PRIORS
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Estimate, with_p_value
from experiments.study import HOLD_OUT, HOLD_OUT_TASKS, markdown, write_results

HERE = Path(__file__).resolve().parent
ATTRIBUTE = "gender"
SEEDS = (0, 12, 456)
# The captioner draws its captions as annotators do. Fewer images, seeds, resamples and (for DBAC)
# human captions than a real run has, so that a trial takes seconds.
COMMON = ("captioner=faithful", "dataset.n_images=1000", "stats.resamples=200")
DBAC = ("metric=dbac", "metric.positions=2", *HOLD_OUT_TASKS)
CELLS: dict[str, tuple[str, ...]] = {
    "lic": ("metric=lic", *HOLD_OUT),
    "lic, one seed": ("metric=lic", *HOLD_OUT),
    "leakage": ("metric=leakage", *HOLD_OUT),
    "dbac": DBAC,
    "dbac, accuracy": (*DBAC, "scoring=accuracy"),
}
DESIGNS = {
    "one data set": "the same images and captions in every trial, their groups shuffled",
    "new data": "in every trial other images and captions too, their groups shuffled",
}


def shuffle_groups(corpus: Corpus, trial: int, attribute: str = ATTRIBUTE) -> Corpus:
    """The same images with their groups shuffled; groups keep their sizes."""
    grouping = corpus.groupings[attribute]
    codes = grouping.codes.copy()
    labelled = codes >= 0
    codes[labelled] = np.random.default_rng(trial).permutation(codes[labelled])
    return replace(corpus, groupings={attribute: replace(grouping, codes=codes)})


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a metric to count."""
    if not name.startswith("dbac"):
        return ("score",)
    return tuple(f"{way}:{prior}" for way in ("a_to_t", "t_to_a") for prior in PRIORS)


def run(trials: int, scratch: str) -> Iterator[dict[str, object]]:
    """One line per design, trial, metric and part; metrics share attackers through ``scratch``."""
    common = [*COMMON, f"paths.outputs={scratch}"]
    for design in DESIGNS:
        for trial in range(trials):
            world = 0 if design == "one data set" else 1 + trial
            for name, words in CELLS.items():
                cell = compose.cell([*common, *words, f"dataset.seed={world}"])
                metric, corpus = cell.build("metric"), shuffle_groups(cell.corpus(), trial)
                seeds = SEEDS[:1] if name.endswith("one seed") else SEEDS
                score = metric.compute(corpus, splits=metric.draw_splits(corpus, seeds))
                for part in parts_of(name):
                    line = {"design": design, "trial": trial, "metric": name, "part": part}
                    yield line | columns(score.parts[part], metric.info)
            print(f"{design}: {trial + 1} of {trials}", flush=True)


def columns(estimate: Estimate, info: MetricInfo) -> dict[str, object]:
    """The columns of an estimate's line."""
    test = with_p_value(estimate, info.neutral)
    line = {k: getattr(test, k) for k in ("value", "ci_low", "ci_high", "p_value")}
    return {"metric_version": info.version, **line}


def coverage_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How often intervals cover 0, and their width compared with the scores' true scatter."""
    lines = {}
    for (name, part), group in rows.groupby(["metric", "part"], sort=False):
        covered = int(((group["ci_low"] <= 0) & (group["ci_high"] >= 0)).sum())
        known = group["p_value"].dropna()
        lines[f"{name} {part}"] = {
            "intervals that cover 0": f"{covered} of {len(group)}",
            "95 % of that share": _share(covered, len(group)),
            "p < .05": f"{int((known < 0.05).sum())} of {len(known)}" if len(known) else "no p",
            "mean score": 100 * group["value"].mean(),
            "sd of scores": 100 * group["value"].std(),
            "mean half width / (1.96 sd)": (group["ci_high"] - group["ci_low"]).mean()
            / (2 * 1.96 * group["value"].std()),
            "verdict": _verdict(covered, len(group)),
        }
    return pd.DataFrame(lines).T.rename_axis("metric and part (mean and sd in per cent)")


def _share(hits: int, n: int) -> str:
    interval = stats.binomtest(hits, n).proportion_ci(method="exact")
    return f"{100 * interval.low:.0f} to {100 * interval.high:.0f} %"


def _verdict(hits: int, n: int) -> str:
    """Too few if 95 % coverage would give so few in less than 1 % of studies."""
    too_few = stats.binomtest(hits, n, 0.95, alternative="less").pvalue < 0.01
    return "covers too seldom" if too_few else "holds"


def write(rows: pd.DataFrame) -> None:
    """Write the tables made of the rows."""
    write_results(HERE, tables_by_design(rows, DESIGNS, coverage_table))


def tables_by_design(
    rows: pd.DataFrame,
    designs: Mapping[str, str],
    table: Callable[[pd.DataFrame], pd.DataFrame],
) -> dict[str, str]:
    """Design with its meaning to the table of its rows."""
    return {
        f"{design.capitalize()}: {meaning}": markdown(table(rows[rows["design"] == design]))
        for design, meaning in designs.items()
    }


def trial_rows(
    run: Callable[[int, str], Iterable[dict[str, object]]], path: Path, trials: str | None
) -> pd.DataFrame:
    """The lines of a file; computed first if a number of trials is given."""
    if trials is not None:
        with TemporaryDirectory() as scratch:
            rows = pd.DataFrame(run(int(trials), scratch))
        rows.to_csv(path, index=False, float_format="%.5g")
    return pd.read_csv(path)


def main(trials: str | None = None) -> None:
    write(trial_rows(run, HERE / "rows.csv", trials))


if __name__ == "__main__":
    main(*sys.argv[1:])
