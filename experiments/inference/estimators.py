"""How far are numbers from few images from those of all images, as published and as ours?

Usage: python -m experiments.inference.estimators [DATA [TRIALS]]

With DATA everything is computed and estimators.csv is written; without it the table is made anew. A
trial draws images of a captioner with replacement, so all images there are have the true number.
Images keep their counts: only sums are made anew, which takes a thousandth of a corpus' time.
Which objects human captions name often enough, and sets of tasks, are decided on all images.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.counting.base import CountingMetric
from bias_pipeline.metrics.counting.numbers import Tally
from bias_pipeline.stats.bootstrap import Draws, summary, widen_draws
from experiments.inference.designs import everything
from experiments.inference.trials import build_metric
from experiments.study import markdown

HERE = Path(__file__).resolve().parent
ROWS = HERE / "estimators.csv"
CAPTIONERS = ("nic", "sat", "oscar")
SIZES = (500, 2000)
TRIALS, RESAMPLES = 60, 100
PARTS = {
    "ba_directional": (
        "a_to_t", "t_to_a:published:images", "t_to_a:images", "t_to_a:published:named",
        "t_to_a:named",
    ),
    "ba_mals": ("published:joint", "score"),
    "differential_fairness": ("published", "score"),
}  # fmt: skip


def run(data: Path, trials: int) -> Iterator[dict[str, object]]:
    """One line a captioner, metric, size, trial and part."""
    for captioner in CAPTIONERS:
        corpus = everything(data, captioner)
        for name, parts in PARTS.items():
            metric = build_metric(data, name)
            assert isinstance(metric, CountingMetric)
            tally = metric.tally(metric.see(corpus))
            truth = numbers(tally, np.ones((1, len(corpus))))
            widening = {
                str(n): one.widening for n, one in tally.counted_numbers(tally.totals).items()
            }
            head = {"metric": name, "metric_version": metric.info.version, "captioner": captioner}
            for n_images in SIZES:
                for trial in range(trials):
                    draws = of_sample(tally, n_images, np.random.default_rng([trial, n_images]))
                    for part in parts:
                        line = {**head, "n_images": n_images, "trial": trial, "part": part}
                        yield line | _row_of(draws[part], widening[part], truth[part].item())
            print(captioner, name, flush=True)


def numbers(tally: Tally, weights: Float64Array) -> Mapping[str, Float64Array]:
    """All numbers, (B,) each, when images count as often as weighted, (B, N)."""
    counted = tally.counted_numbers({name: weights @ table for name, table in tally.tables.items()})
    return {name: number.values for name, number in counted.items()}  # noqa: PD011 - no table


def of_sample(tally: Tally, n_images: int, random: np.random.Generator) -> dict[str, Draws]:
    """The numbers of a sample and of its resamplings.

    An image that was drawn m times counts Poisson(m) times in a resampling: the Poisson bootstrap
    of the sample.
    """
    n_all = next(iter(tally.tables.values())).shape[0]
    drawn = random.multinomial(n_images, np.full(n_all, 1 / n_all))
    weights = np.vstack([drawn, random.poisson(drawn, (RESAMPLES, n_all))]).astype(np.float64)
    by_part = numbers(tally, weights)
    return {
        name: Draws(values[:1], values[1:, None], trained=False) for name, values in by_part.items()
    }


def _row_of(draws: Draws, widening: float, truth: float) -> dict[str, object]:
    estimate = summary(widen_draws(draws, widening))
    return {
        "value": estimate.value,
        "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high,
        "truth": truth,
    }


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Bias, error and coverage by part and size."""
    lines = {}
    names = ["metric", "part", "captioner", "n_images"]
    for (metric, part, captioner, n_images), group in rows.groupby(names, sort=False):
        off = group["value"] - group["truth"]
        covered = group["ci_low"].le(group["truth"]) & group["ci_high"].ge(group["truth"])
        lines[f"{metric} {part}, {captioner}, {n_images:,} images"] = {
            "of all images": group["truth"].iloc[0],
            "off on average": off.mean(),
            "root of mean square": np.sqrt((off**2).mean()),
            "coverage (%)": 100 * covered.mean(),
            "width": (group["ci_high"] - group["ci_low"]).mean(),
        }
    return pd.DataFrame(lines).T.rename_axis("part, captioner, size")


def main(data: str | None = None, trials: str = str(TRIALS)) -> None:
    if data is not None:
        pd.DataFrame(run(Path(data), int(trials))).to_csv(ROWS, index=False, float_format="%.4g")
    rows = pd.read_csv(ROWS)
    (HERE / "ESTIMATORS.md").write_text(
        "# Numbers from few images compared with all images\n\n"
        "Made by `estimators.py`; do not edit. "
        f"{rows['trial'].nunique()} samples a line.\n\n{markdown(table(rows), digits=3)}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
