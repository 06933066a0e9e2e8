"""The same null for the counting metrics: which are neutral, which are not, and in which direction.

And captioners of planted bias: how often do intervals contain the value of forty thousand images?

Usage: python -m experiments.null_coverage.counting [TRIALS]

With TRIALS everything is computed and counting.csv is written; without it, the tables are made anew
from the counting.csv that is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.base import HEADLINES, Number
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.stats.compare import paired_difference
from experiments.null_coverage.study import (
    ATTRIBUTE,
    COMMON,
    HERE,
    columns,
    coverage_table,
    shuffle_groups,
    tables_by_design,
)
from experiments.study import write_page

EACH = ("metric.labels=each", "metric.denominator=named")
CAPTIONS = (*EACH, "metric.groups=captions")
SIGNED = ("metric.absolute=false", "metric.min_support=20")
# With default settings ("default"), and if these are not neutral, on equal terms with people.
CELLS: Mapping[str, tuple[str, ...]] = {
    "ba_directional, default": ("metric=ba_directional",),
    "ba_directional, each caption": ("metric=ba_directional", *EACH),
    "ba_directional, each caption, groups of captions": ("metric=ba_directional", *CAPTIONS),
    "ba_mals, default": ("metric=ba_mals",),
    "ba_mals, each caption": ("metric=ba_mals", "metric.labels=each"),
    "multi_directional, default": ("metric=multi_directional",),
    "multi_directional, each caption, signed": ("metric=multi_directional", *EACH, *SIGNED),
    "multi_directional, each caption, signed, groups of captions": (
        "metric=multi_directional",
        *CAPTIONS,
        *SIGNED,
    ),
    "differential_fairness": ("metric=differential_fairness",),
    "cooccurrence": ("metric=cooccurrence",),
    "gender_error": ("metric=gender_error",),
    "gender_ratio": ("metric=gender_ratio",),
    "group_accuracy": ("metric=group_accuracy",),
    "quality": ("metric=quality",),
}
# Besides the headlines: a number minus the same number of human captions.
LESS_PEOPLE = {
    "gender_error": "score - human",
    "group_accuracy": "score - human",
    "gender_ratio": "model - captions:human",
}
PLANTED = ("amplifier", "stereotyper")
TRUTH_IMAGES, TRUTH_SEED = 40_000, 9999
DESIGNS = {
    "drawn": "captions drawn as people's are, with the labels of the images",
    "shuffled": "the same, with the labels shuffled over the images",
    "amplifier": "minus the true value, for the captioner that exaggerates what groups do",
    "stereotyper": "minus the true value, for the captioner that misgenders by objects",
}


def run(trials: int) -> Iterator[dict[str, object]]:
    """One line per design, trial, metric and part; new images and captions in every trial."""
    built = {
        n: compose.cell([*COMMON, *built_cell]).build("metric") for n, built_cell in CELLS.items()
    }
    for trial in range(trials):
        built_cell = compose.cell([*COMMON, "metric=gender_error", f"dataset.seed={1 + trial}"])
        corpus = built_cell.corpus()
        corpora = {"drawn": corpus, "shuffled": shuffle_groups(corpus, trial, ATTRIBUTE)}
        for name, metric in built.items():
            for design in corpora:
                parts = metric.compute(corpora[design], splits=[]).parts
                for part, estimate in _looked_at(name, parts).items():
                    line = {"design": design, "trial": trial, "metric": name, "part": part}
                    yield line | columns(estimate, metric.info)
        print(f"{trial + 1} of {trials}", flush=True)


def planted_lines(trials: int) -> Iterator[dict[str, object]]:
    """One line per captioner, trial, metric and headline, minus the value of very many images."""
    built = {n: compose.cell([*COMMON, *item]).build("metric") for n, item in CELLS.items()}

    def corpus(captioner: str, n_images: int, seed: int) -> Corpus:
        words = (f"captioner={captioner}", f"dataset.n_images={n_images}", f"dataset.seed={seed}")
        return compose.cell(["metric=gender_error", *words]).corpus()

    for captioner in PLANTED:
        many = corpus(captioner, TRUTH_IMAGES, TRUTH_SEED)
        truth = {n: item.compute(many, splits=[]).parts for n, item in built.items()}
        for trial in range(trials):
            few = corpus(captioner, 1000, 1 + trial)
            for name, metric in built.items():
                for part, item in metric.compute(few, splits=[]).parts.items():
                    if part in HEADLINES:
                        less = truth[name][part].value
                        line = {"design": captioner, "trial": trial, "metric": name, "part": part}
                        line |= columns(item, metric.info)
                        ends = {k: line[k] - less for k in ("value", "ci_low", "ci_high")}
                        yield {**line, **ends, "p_value": np.nan}
            print(f"{captioner}: {trial + 1} of {trials}", flush=True)


def _looked_at(name: str, parts: Mapping[str, Number]) -> dict[str, Estimate]:
    estimates = {part: parts[part] for part in HEADLINES if part in parts}
    if name in LESS_PEOPLE:
        first, second = (
            parts[part].draws for part in LESS_PEOPLE[name].split(" - ")
        )  # of one resampling of the images
        assert first is not None
        assert second is not None
        estimates[LESS_PEOPLE[name]] = paired_difference(first, second)
    return estimates


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Coverage, and how often an interval says that a captioner amplifies: 2.5 % at most."""
    with np.errstate(invalid="ignore"):  # no wrong group in any trial: no scatter
        result = coverage_table(rows.assign(p_value=np.nan)).drop(columns="p < .05")
    above = rows["ci_low"].gt(0).groupby([rows["metric"], rows["part"]], sort=False)
    result.insert(2, "above 0", [f"{int(flags.sum())} of {len(flags)}" for _, flags in above])
    return result


def write(rows: pd.DataFrame) -> None:
    """Write the tables made of the rows."""
    tables = tables_by_design(rows, DESIGNS, table)
    write_page(HERE / "COUNTING.md", "Results of the counting metrics", __file__, tables)


def main(trials: str | None = None) -> None:
    if trials is not None:
        rows = pd.DataFrame([*run(int(trials)), *planted_lines(int(trials))])
        rows.to_csv(HERE / "counting.csv", index=False, float_format="%.5g")
    write(pd.read_csv(HERE / "counting.csv"))


if __name__ == "__main__":
    main(*sys.argv[1:])
