"""The tables of the study: false alarms, coverage, and the smallest bias that is seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from experiments.inference.designs import PEOPLE, SAMPLES, SCENES
from experiments.study import markdown

ALPHA = 0.05
RIGHT = (0.03, 0.07)  # the false alarms that a test may have
CHANCE = 0.025  # either way
SEEN_AT = (500, 5000)
_MARKED = (
    "Numbers in bold are outside 3 to 7 % by more than chance (exact binomial tests, 2.5 % either "
    "way). "
)


def page(rows: pd.DataFrame) -> str:
    """The whole page; metrics without trials are left out."""
    known = rows[rows["part"] != ""]
    return (
        "# Results\n\nMade by `study.py`; do not edit.\n\n"
        "Each number is printed with the trials behind it: one of 20 trials is 5 %, and 20 trials "
        "can distinguish 5 % only from 25 % or more. "
        + _MARKED
        + "Only numbers whose p is printed by "
        "a command have false alarms.\n\n"
        "## All metrics\n\n"
        "Coverage: how many intervals from samples of 500 and 2,000 images contain the number of "
        "all images, over seven captioners. False alarms: p below .05 among people and captions "
        "drawn as people's, of one captioner and of two paired, at all sizes. Smallest bias seen: "
        "the difference between two captioners that is detected with a power of 80 %, in the "
        "metric's unit.\n\n"
        f"{markdown(summary(known), digits=3)}\n"
        f"## False alarms by size\n\n{markdown(alarms(known), digits=1)}\n"
        "## Coverage by size\n\nThe value's distance from the truth, on average over captioners, "
        f"and the scatter of values.\n\n{markdown(coverage(known), digits=3)}\n"
    )


def coverage_page(rows: pd.DataFrame) -> str:
    """The measured behaviour of intervals and tests, one line a metric and part."""
    return (
        "# Measured coverage and false alarms\n\n"
        "Written by `python -m experiments.inference.study`, from all finished trials "
        "([how they are made](README.md), "
        "[by size](RESULTS.md)). A few trials show little: one of 20 "
        "is 5 %. " + _MARKED + "\n\n"
        "Coverage: how many intervals from 500 or 2,000 images of real captioners contain the "
        "number for all images. False alarms: p below .05 although no captioner is more biased "
        "than people, for one captioner and for two paired. Smallest bias seen: the difference "
        "between two captioners that is detected with a power of 80 %, in the metric's unit.\n\n"
        f"{markdown(summary(rows[rows['part'] != '']), digits=3)}"
    )


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One line a metric and part."""
    lines = {}
    for (metric, part), group in rows.groupby(["metric", "part"], sort=False):
        null = group[group["design"].isin([PEOPLE, SCENES])]
        samples = group[(group["design"] == SAMPLES) & group["n_images"].isin([500, 2000])]
        people = null[null["design"] == PEOPLE]
        lines[f"{metric} {part}"] = {
            "coverage": count_and_share(covers_truth(samples)),
            "false alarms": alarms_of(null["p_single"]),
            "false alarms, paired": alarms_of(null["p_paired"]),
            **{
                f"smallest bias seen at {n:,} images": people.loc[
                    people["n_images"] == n, "smallest_seen"
                ].median()
                for n in SEEN_AT
            },
        }
    return pd.DataFrame(lines).T.rename_axis("metric and part")


def alarms(rows: pd.DataFrame) -> pd.DataFrame:
    """Per cent of p below .05 by size, of one captioner and of two."""
    null = rows[rows["design"].isin([PEOPLE, SCENES])]
    lines = {}
    for (metric, part), group in null.groupby(["metric", "part"], sort=False):
        lines[f"{metric} {part}"] = {
            f"{name}, {n:,}": alarms_of(group.loc[group["n_images"] == n, column])
            for column, name in (("p_single", "one"), ("p_paired", "two"))
            for n in sorted(null["n_images"].unique())
        }
    return pd.DataFrame(lines).T.rename_axis("metric and part")


def coverage(rows: pd.DataFrame) -> pd.DataFrame:
    """How often intervals contain the number of all images, by size."""
    samples = rows[rows["design"] == SAMPLES]
    lines = {}
    for (metric, part, n), group in samples.groupby(["metric", "part", "n_images"], sort=False):
        by_captioner = group.groupby("captioner")
        lines[f"{metric} {part}, {n:,} images"] = {
            "coverage": count_and_share(covers_truth(group)),
            "of no width": count_and_share(group["ci_low"].dropna() == group["ci_high"].dropna()),
            "off the truth": (group["value"] - group["truth"])
            .groupby(group["captioner"])
            .mean()
            .mean(),
            "scatter": by_captioner["value"].std().mean(),
        }
    return pd.DataFrame(lines).T.rename_axis("metric, part and size")


def covers_truth(rows: pd.DataFrame) -> pd.Series:
    """Whether each interval contains the true value; unknown ones are left out."""
    known = rows.dropna(subset=["ci_low", "truth"])
    return known["ci_low"].le(known["truth"]) & known["ci_high"].ge(known["truth"])


def alarms_of(p_values: pd.Series) -> str:
    """How many p are below .05, in bold if that is more or fewer than a right test has."""
    flags = p_values.dropna() < ALPHA
    low, high = RIGHT
    few = len(flags) and stats.binom.cdf(flags.sum(), len(flags), low) < CHANCE
    many = len(flags) and stats.binom.sf(flags.sum() - 1, len(flags), high) < CHANCE
    return f"**{count_and_share(flags)}**" if few or many else count_and_share(flags)


def count_and_share(flags: pd.Series) -> str:
    """How many of the flags are set, as a count and a share."""
    if not len(flags):
        return "–"
    return f"{int(flags.sum())} of {len(flags)} ({100 * np.mean(flags):.0f} %)"
