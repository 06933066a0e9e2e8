"""The study's table, and the figures that the package ships."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from bias_pipeline.io.files import csv_text
from bias_pipeline.report.power import LEVEL, Measurement, amount, measured_powers, reading_of
from bias_pipeline.report.table import percent
from bias_pipeline.stats.bootstrap import quantile
from experiments.study import markdown, write_page

SHIPPED = Path(__file__).resolve().parents[2] / "bias_pipeline" / "report" / "power.csv"
KEY = ["design", "metric", "alignment", "part", "unit", "n_images", "planted"]


def shipped_text(rows: pd.DataFrame) -> str:
    """The figures of the package as CSV: a line for each size and planted bias of a metric."""
    decided = rows[rows["value"].notna() & rows["ci_low"].notna()].copy()
    decided["error"] = (decided["value"] - decided["ci_low"]) / quantile(LEVEL)
    decided["withheld"] = decided["doubt"] != ""
    decided["concluded"] = (decided["p"] < 1 - LEVEL) & (decided["value"] > 0)
    figures = decided.groupby(KEY, sort=False).agg(
        balanced=("balanced", "mean"),
        trials=("trial", "nunique"),
        score=("value", "mean"),
        error=("error", "median"),
        concluded=("concluded", "sum"),
        withheld=("withheld", "sum"),
    )
    rounded = figures.reset_index().map(lambda x: float(f"{x:.4g}") if isinstance(x, float) else x)
    return csv_text([list(rounded), *rounded.itertuples(index=False, name=None)])


def write(rows: pd.DataFrame, page: Path) -> None:
    """Write the shipped figures, and the page of results made from them."""
    SHIPPED.write_text(shipped_text(rows), encoding="utf-8")
    measured_powers.cache_clear()
    tables = {_TITLE: f"{_READ}\n\n{_table()}", _CHECK: f"{_READ_CHECK}\n\n{_check()}"}
    write_page(page, "Results", "study.py", tables)


_TITLE = "What was concluded of planted bias"
_READ = """\
Smallest score: detected with a power of 80 %, by the median error of the trials. Then, for
each planted share, the trials in which an audit of the metric alone answers yes; in brackets their
mean score. Withheld: the audit gives no answer."""
_CHECK = "Is the smallest score right?"
_READ_CHECK = """\
Trials with planted bias where none was withheld, by their mean score as a share of the smallest
score for their number of images. At 1, four of five should be concluded."""
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)


def _table() -> str:
    lines = []
    for power in measured_powers():
        for size in sorted({m.n_images for m in power.measurements}):
            of_size = [m for m in power.measurements if m.n_images == size]
            smallest = power.smallest(of_size[0].balanced)
            lines.append(
                {
                    "metric": reading_of(power.any_measurement),
                    "planted bias": power.any_measurement.design,
                    "images": str(size),
                    "smallest score": amount(smallest, power.any_measurement.unit),
                    **{f"{m.planted} %": _trials(m) for m in of_size},
                }
            )
    return markdown(pd.DataFrame(lines).set_index("metric"))


def _check() -> str:
    """How many trials were concluded, by how their score compares with the smallest score."""
    counts = {share: [0, 0] for share in _SHARES}
    for power in measured_powers():
        for one in power.measurements:
            ratio = one.score / power.smallest(one.balanced)
            if one.planted and ratio >= 0 and not one.withheld:
                count = counts[max(share for share in _SHARES if share <= ratio)]
                count[0] += one.concluded
                count[1] += one.trials
    lines = [
        {
            "share": f"{low:g} to {high:g}" if high else f"{low:g} and more",
            "concluded": f"{concluded} of {trials} ({percent(concluded / trials, 0)} %)",
        }
        for (low, (concluded, trials)), high in zip(
            counts.items(), [*_SHARES[1:], None], strict=True
        )
        if trials
    ]
    return markdown(pd.DataFrame(lines).set_index("share"))


def _trials(measurement: Measurement) -> str:
    withheld = f", {measurement.withheld} withheld" if measurement.withheld else ""
    score = amount(measurement.score, measurement.unit).partition(" ")[0]
    return f"{measurement.concluded} of {measurement.trials}{withheld} ({score})"
