"""The cost of an audit of ten million captions: measured costs, extrapolated, and a schedule.

Usage: python -m experiments.scaling.planning [measure]

With ``measure`` the cells are run (about ten minutes) and costs.csv is written; without it the plan
is made anew from the costs.csv that is there.
"""

from __future__ import annotations

import heapq
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.cells import run
from benchmarks.record import machine
from experiments.study import markdown

HERE = Path(__file__).resolve().parent
CAPTIONS_PER_IMAGE = 6  # one of the captioner, five of people
SIZES = (2_500, 5_000, 10_000)
CHECKED = 20_000
METRICS = {"lic": 2, "dbac": 2, "ba_directional": 1, "gender_error": 1, "quality": 1}
TARGET = 10_000_000
CAPTIONERS, ATTRIBUTES, SEEDS = 7, 2, 10
SLOTS = (8, 32, 128)


def foretold(
    rows: pd.DataFrame, column: str, captions: int, power: float | None = None
) -> tuple[float, float]:
    """The predicted value of a column at a number of captions, and the power it grows with.

    The constant part at the start is subtracted first, since start-up would bend the line. The rest
    grows from the largest measured size with the power that the last two doublings show, and at
    least in proportion to the captions.

    Args:
        rows: of one metric, each size twice the one before.
        column: to predict.
        captions: for how many.
        power: of the growth; estimated from the rows if left out.
    """
    values = rows.sort_values("images")[column].to_numpy()
    steps = np.diff(values)
    power = power or max(1.0, float(np.log2(steps[-1] / steps[-2])))
    start = max(0.0, float(values[0] - steps[0]))
    times = captions / (rows["images"].max() * CAPTIONS_PER_IMAGE)
    return start + (values[-1] - start) * times**power, power


def measure() -> pd.DataFrame:
    """Whole commands on the embedded data set, attackers with as many seeds as METRICS says."""
    lines = []
    for metric, seeds in METRICS.items():
        for images in (*SIZES, CHECKED):
            with tempfile.TemporaryDirectory() as folder:
                words = [f"metric={metric}", f"dataset.n_images={images}", f"seeds={seeds}"]
                used = run([*words, "logger=csv", f"paths.outputs={folder}"], Path(folder))
            line = {"metric": metric, "seeds": seeds, "images": images}
            lines.append(line | {"cpu_s": used.cpu, "peak_gb": used.peak / 1e9})
            print(lines[-1], file=sys.stderr, flush=True)
    return pd.DataFrame(lines)


def schedule(seconds: Sequence[float], slots: int) -> float:
    """Wall seconds if the longest jobs go first, each to the slot that is free next."""
    free = [0.0] * slots
    for job in sorted(seconds, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + job)
    return max(free)


def plan(costs: pd.DataFrame, per_job: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Jobs of every metric, one for each captioner and attribute and, for attackers, two seeds."""
    lines, jobs = [], []
    for metric, rows in costs.groupby("metric", sort=False):
        seconds, power = foretold(rows, "cpu_s", TARGET)
        gigabytes, _ = foretold(rows, "peak_gb", TARGET, power=1.0)
        checked = rows[rows["images"] == CHECKED].iloc[0]
        earlier = rows[rows["images"].isin(SIZES)]
        there = CHECKED * CAPTIONS_PER_IMAGE
        predicted = (
            foretold(earlier, "cpu_s", there)[0],
            foretold(earlier, "peak_gb", there, 1.0)[0],
        )
        trains = metric in ("lic", "dbac")
        n_jobs = CAPTIONERS * ATTRIBUTES * (SEEDS // METRICS[str(metric)] if trains else 1)
        jobs += [seconds + per_job] * n_jobs
        lines.append(
            {
                "metric": metric,
                "jobs": n_jobs,
                "minutes a job": seconds / 60,
                "GB a job": gigabytes,
                "CPU hours": n_jobs * seconds / 3600,
                "seconds grow with the power": power,
                "measured / predicted, s": checked["cpu_s"] / predicted[0],
                "measured / predicted, GB": checked["peak_gb"] / predicted[1],
            }
        )
    walls = [{"jobs at once": slots, "hours": schedule(jobs, slots) / 3600} for slots in SLOTS]
    return pd.DataFrame(lines), pd.DataFrame(walls)


def main() -> None:
    """Write PLANNING.md."""
    place = HERE / "costs.csv"
    if sys.argv[1:] == ["measure"]:
        measure().to_csv(place, index=False, float_format="%.3f", lineterminator="\n")
    spread = pd.read_csv(HERE / "throughput.csv").set_index("way")
    per_job = float(spread.loc["Slurm, 2 jobs at a time", "overhead_per_cell_s"])
    jobs, walls = plan(pd.read_csv(place), per_job)
    texts = [
        "# An audit of ten million captions",
        "Made by `planning.py`; do not edit.",
        f"{machine()}",
        f"One data set of {TARGET:,} captions: {TARGET // CAPTIONS_PER_IMAGE:,} images, each with "
        f"five human captions and one of the captioner; {CAPTIONERS} captioners, {ATTRIBUTES} "
        f"attributes, `ngram` attackers with {SEEDS} seeds, two per job.",
        markdown(jobs.set_index("metric"), 2),
        f"Extrapolated from {CHECKED * CAPTIONS_PER_IMAGE:,} captions: memory in proportion, "
        "seconds with the power that the last two doublings show and at least in proportion. Ten "
        f"million are {TARGET // (CHECKED * CAPTIONS_PER_IMAGE)} times as many and were not run, "
        "so this is an order of magnitude. The last two columns compare what the same rule "
        f"predicts from {', '.join(f'{n * CAPTIONS_PER_IMAGE:,}' for n in SIZES)} captions with "
        f"what {CHECKED * CAPTIONS_PER_IMAGE:,} took. Seconds are of one core and include making "
        "the embedded data; a million captions read from files take 21 s and 1.1 GB "
        "([data](../../docs/data.md)).",
        "## How long on a cluster",
        f"The longest jobs first, {per_job:.1f} s of Slurm and start-up a job as measured "
        "([RESULTS.md](RESULTS.md)), on cores like this machine's:",
        markdown(walls.set_index("jobs at once"), 1),
    ]
    (HERE / "PLANNING.md").write_text("\n\n".join(text.strip() for text in texts) + "\n")


if __name__ == "__main__":
    main()
